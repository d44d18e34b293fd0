#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the cost of optimizing is linear: prints the time per instruction for modules of N equal layers.

usage: layers.py --bin DIR [--layers N,N,..] [--repeat N]

Prints a table with a line per size: the best of three processes, with --repeat repetitions each.

A layer dequantizes its input and a weight, moves the weight, multiplies, adds a bias, applies relu, quantizes and takes
the amax.
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
    """Returns the text of a module with that many layers."""
    body = "".join(LAYER.format(i=i, n=i + 1, p=3 * i + 1, q=3 * i + 2, r=3 * i + 3) for i in range(count))
    shapes = ", ".join(["f8e4m3fn[32,64]"] + ["f32[]"] * count)
    values = ", ".join([f"x{count}"] + [f"m{i}" for i in range(count)])
    return (f"HloModule layers\n{MAXIMUM}ENTRY e {{\n  x0 = f8e4m3fn[32,64] parameter(0)\n{body}"
            f"  ROOT t = ({shapes}) tuple({values})\n}}\n")


ROUNDS = 3


def seconds(bench, path, repeat):
    """Returns the best time of each step over that many runs."""
    ran = subprocess.run([bench, path, str(repeat)], check=True, capture_output=True, text=True)
    return {name: float(value) for name, value in (line.split() for line in ran.stdout.splitlines())}


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--bin", type=pathlib.Path, required=True)
    args.add_argument("--layers", default="10,100,1000,10000")
    args.add_argument("--repeat", type=int, default=3)
    a = args.parse_args()
    counts = [int(count) for count in a.layers.split(",")]
    texts = {count: layers(count) for count in counts}
    best = {count: {} for count in counts}
    with tempfile.TemporaryDirectory() as work:
        for count in counts:
            pathlib.Path(work, f"{count}.hlo").write_text(texts[count])
        # Alternate between sizes, so that other load affects all of them.
        for count in counts * ROUNDS:
            for name, value in seconds(a.bin / "bench", pathlib.Path(work, f"{count}.hlo"), a.repeat).items():
                best[count][name] = min(value, best[count].get(name, value))
    print("microseconds for each instruction, and times that of the first line")
    print(f"{'layers':>8}{'instructions':>14}{'parse':>10}{'verify':>10}{'print':>10}{'optimize':>10}")
    first = None
    for count in counts:
        instrs = texts[count].count(" = ")
        each = [best[count][name] / instrs * 1e6 for name in ("parse", "verify", "print", "optimize")]
        first = first or each
        print(f"{count:8}{instrs:14}" + "".join(f"{value:10.3f}" for value in each)
              + "   " + " ".join(f"{value / start:.2f}" for value, start in zip(each, first)))


main()
