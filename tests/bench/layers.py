#!/usr/bin/env python3
"""Whether the cost of optimising is linear: modules of N equal layers, and the time per instruction of each.

usage: layers.py --bin DIR [--layers N,N,..] [--repeat N]

A layer dequantises its input and a weight, moves the weight about, multiplies, adds a bias, applies relu, quantises and takes the abs-max.
"""
import argparse
import pathlib
import subprocess
import tempfile

LAYER = """\
  w{i} = f8e4m3fn[64,64] parameter({p})
  scale{i} = f32[] parameter({q})
  b{i} = bf16[64] parameter({r})
  xw{i} = f32[32,64] convert(x{i})
  sx{i} = f32[32,64] broadcast(scale{i}), dimensions={{}}
  xd{i} = f32[32,64] multiply(xw{i}, sx{i})
  ww{i} = f32[64,64] convert(w{i})
  sw{i} = f32[64,64] broadcast(scale{i}), dimensions={{}}
  wd{i} = f32[64,64] multiply(ww{i}, sw{i})
  wt{i} = f32[64,64] transpose(wd{i}), dimensions={{1,0}}
  d{i} = f32[32,64] dot(xd{i}, wt{i}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  bw{i} = f32[64] convert(b{i})
  bb{i} = f32[32,64] broadcast(bw{i}), dimensions={{1}}
  a{i} = f32[32,64] add(d{i}, bb{i})
  z{i} = f32[] constant(0)
  zb{i} = f32[32,64] broadcast(z{i}), dimensions={{}}
  r{i} = f32[32,64] maximum(a{i}, zb{i})
  m{i} = f32[] reduce(r{i}, z{i}), dimensions={{0,1}}, to_apply=max
  sd{i} = f32[32,64] divide(r{i}, sx{i})
  lo{i} = f32[] constant(-448)
  hi{i} = f32[] constant(448)
  clamp{i} = f32[32,64] clamp(lo{i}, sd{i}, hi{i})
  x{n} = f8e4m3fn[32,64] convert(clamp{i})
"""
MAXIMUM = "max {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT m = f32[] maximum(x, y)\n}\n"


def layers(count):
    """The text of a module of that many layers."""
    body = "".join(LAYER.format(i=i, n=i + 1, p=3 * i + 1, q=3 * i + 2, r=3 * i + 3) for i in range(count))
    shapes = ", ".join(["f8e4m3fn[32,64]"] + ["f32[]"] * count)
    values = ", ".join([f"x{count}"] + [f"m{i}" for i in range(count)])
    return (f"HloModule layers\n{MAXIMUM}ENTRY e {{\n  x0 = f8e4m3fn[32,64] parameter(0)\n{body}"
            f"  ROOT t = ({shapes}) tuple({values})\n}}\n")


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--bin", type=pathlib.Path, required=True)
    args.add_argument("--layers", default="10,100,1000,10000")
    args.add_argument("--repeat", type=int, default=3)
    a = args.parse_args()
    print(f"{'layers':>8}{'instructions':>14}{'microseconds for each: parse':>32}{'optimize':>10}")
    for count in map(int, a.layers.split(",")):
        text = layers(count)
        with tempfile.NamedTemporaryFile("w", suffix=".hlo") as file:
            file.write(text)
            file.flush()
            ran = subprocess.run([a.bin / "bench", file.name, str(a.repeat)], check=True, capture_output=True, text=True)
        times = {name: float(seconds) for name, seconds in (line.split() for line in ran.stdout.splitlines())}
        instrs = text.count(" = ")
        print(f"{count:8}{instrs:14}{times['parse'] / instrs * 1e6:32.2f}{times['optimize'] / instrs * 1e6:10.2f}")


main()
