#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the grouping of random graphs of elementwise operations, reductions, broadcasts, transposes and reshapes.

usage: groups.py --bin DIR --work DIR --standin FILE [--long]

Every graph must have a plan, since no group may depend on itself. Some graphs run with the fake libraries (../cuda),
and every value that is read from memory or returned must equal that of the cpu backend within the derived bound. --long
tests ten times as many.
"""
import argparse
import concurrent.futures
import os
import pathlib
import random
import subprocess
import sys

FULL, TURNED, ROWS, COLUMNS, SCALAR, SPLIT = "f32[16,32]", "f32[32,16]", "f32[16]", "f32[32]", "f32[]", "f32[4,4,32]"
HEAD = """HloModule groups

add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
most { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }

ENTRY e {
  zero = f32[] constant(0)
  low = f32[] constant(-inf)
"""


class Graph:
    def __init__(self, seed, size):
        self.random = random.Random(seed)
        self.text = HEAD
        self.values = {shape: [] for shape in (FULL, TURNED, ROWS, COLUMNS, SCALAR, SPLIT)}
        self.count = 0
        for number, shape in enumerate([FULL, FULL, FULL, TURNED, ROWS, COLUMNS, SCALAR, SPLIT]):
            self.add(shape, f"parameter({number})")
        for _ in range(size):
            self.step()
        last = [name for names in self.values.values() for name in names[-4:]]
        self.text += f"  ROOT out = tuple({', '.join(last)})\n}}\n"

    def add(self, shape, expression):
        self.text += f"  v{self.count} = {shape} {expression}\n"
        self.values[shape].append(f"v{self.count}")
        self.count += 1

    def pick(self, shape):
        return self.random.choice(self.values[shape][-8:])

    def step(self):
        choose = self.random.choice
        kind, shape = self.random.randrange(16), choose(list(self.values))
        apply = choose(["zero), dimensions={%s}, to_apply=add", "low), dimensions={%s}, to_apply=most"])
        if kind < 5:
            operation = choose(["add", "subtract", "maximum", "minimum"])
            self.add(shape, f"{operation}({self.pick(shape)}, {self.pick(shape)})")
        elif kind < 7:
            self.add(shape, f"{choose(['tanh', 'negate', 'abs'])}({self.pick(shape)})")
        elif kind == 7:
            self.add(ROWS, f"reduce({self.pick(FULL)}, {apply % 1}")
        elif kind == 8:
            self.add(COLUMNS, f"reduce({self.pick(FULL)}, {apply % 0}")
        elif kind == 9:
            self.add(SCALAR, f"reduce({self.pick(ROWS)}, {apply % 0}")
        elif kind == 10:
            self.add(FULL, f"broadcast({self.pick(ROWS)}), dimensions={{0}}")
        elif kind == 11:
            self.add(FULL, f"broadcast({self.pick(COLUMNS)}), dimensions={{1}}")
        elif kind == 12:
            self.add(choose([FULL, ROWS, TURNED]), f"broadcast({self.pick(SCALAR)}), dimensions={{}}")
        elif kind == 13:
            source, shape = choose([(FULL, TURNED), (TURNED, FULL)])
            self.add(shape, f"transpose({self.pick(source)}), dimensions={{1,0}}")
        elif kind == 14:
            source, shape = choose([(FULL, SPLIT), (SPLIT, FULL)])
            self.add(shape, f"reshape({self.pick(source)})")
        else:
            self.add(FULL, f"reverse({self.pick(FULL)}), dimensions={{{choose([0, 1])}}}")


def check(program, folder, standin, seed, runs):
    """Returns the faults of a graph, or None."""
    path = folder / f"groups_{seed}.hlo"
    path.write_text(Graph(seed, 20 + seed % 150).text)
    standins = {name: standin for name in ("HLO_CUDA_DRIVER", "HLO_CUDA_NVRTC", "HLO_CUDA_CUBLASLT")}
    what = ["--compare=before"] if runs else ["--plan", "--target=sm_90"]
    done = subprocess.run([program, "--backend=cuda", *what, path], capture_output=True, text=True,
                          env=os.environ | standins)
    if done.returncode == 0:
        path.unlink()
        return None
    return f"{path}: status {done.returncode}\n{done.stdout[-600:]}{done.stderr[-600:]}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--standin", required=True)
    parser.add_argument("--long", action="store_true")
    args = parser.parse_args()
    program = f"{args.bin}/hlo-fp8-run"
    plans, runs = (2000, 120) if args.long else (200, 12)
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        wrong = pool.map(lambda seed: check(program, args.work, args.standin, seed, seed < runs), range(plans))
        wrong = [fault for fault in wrong if fault]
    for fault in wrong:
        print("FAILED", fault)
    print(f"{plans} plans, {runs} of them run, {len(wrong)} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
