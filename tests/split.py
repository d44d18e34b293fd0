#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests --ahead: a module, and the two modules into which it is split, compute the same bits.

usage: split.py --bin DIR [--seed N] [--count N] MODULE...

Splits each module by N random sets of parameters, without passes and with --quantize, and executes the result. Prints
each difference, and the numbers of modules that were split and rejected.
"""
import argparse
import collections
import os
import random
import re
import subprocess
import sys
import tempfile

import numpy as np


def run(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return 1, "timeout"
    return done.returncode, done.stderr


def load(path):
    with np.load(path) as arrays:
        return [arrays[str(i)] for i in range(len(arrays.files))]


def save(path, arrays):
    np.savez(path, **{str(i): array for i, array in enumerate(arrays)})


def parameters(path):
    with open(path) as file:
        header = next(line for line in file if line.startswith("ENTRY "))
    header = re.sub(r"/\*.*?\*/", "", header.split(" -> ")[0])
    return [(name, shape.count("[")) for name, shape in re.findall(r"[(, ]([\w.-]+): (\([^)]*\)|[^,)]*\[[^\]]*\])", header)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("modules", nargs="+")
    given = parser.parse_args()
    opt, execute = (os.path.join(given.bin, name) for name in ("hlo-fp8-opt", "hlo-fp8-run"))
    rng = random.Random(given.seed)
    counts, failed = collections.Counter(), False
    with tempfile.TemporaryDirectory() as folder:
        at = lambda name: os.path.join(folder, name)  # noqa: E731
        for module in given.modules:
            for options in (["--passes="], ["--quantize=current", "--min-gain=0.001"]):
                if run(opt, *options, "-o", at("whole.hlo"), module)[0]:
                    counts["invalid"] += 1
                    continue
                names = parameters(at("whole.hlo"))
                if not names:
                    continue
                listed = ",".join(name for name, _ in names)
                status, _ = run(execute, "--seed=1", f"--dump-values={listed}", f"--values={at('values.npz')}",
                                f"--outputs={at('whole.npz')}", at("whole.hlo"))
                if status:
                    counts["not executed"] += 1
                    continue
                values = np.load(at("values.npz"))
                for _ in range(given.count):
                    chosen = {name for name, _ in names if rng.random() < 0.6} or {names[0][0]}
                    status, why = run(opt, *options, f"--ahead={','.join(sorted(chosen))}", "-o", at("main.hlo"),
                                      f"--ahead-output={at('ahead.hlo')}", module)
                    if status:
                        counts["rejected: " + re.sub(r".*error: |`.*?`", "", why.split("\n")[0])] += 1
                        failed |= status != 1
                        continue
                    leaves = {name: [values[name if k == 0 and not tuple_ else f"{name}{{{k}}}"] for k in range(count)]
                              for name, count in names for tuple_ in [name not in values.files]}
                    save(at("in.npz"), [leaf for name, _ in names if name in chosen for leaf in leaves[name]])
                    status, why = run(execute, f"--inputs={at('in.npz')}", f"--outputs={at('ahead.npz')}", at("ahead.hlo"))
                    if not status:
                        save(at("in.npz"), [leaf for name, _ in names if name not in chosen for leaf in leaves[name]]
                             + load(at("ahead.npz")))
                        status, why = run(execute, f"--inputs={at('in.npz')}", f"--outputs={at('main.npz')}", at("main.hlo"))
                    same = not status and [a.tobytes() for a in load(at("whole.npz"))] == [
                        a.tobytes() for a in load(at("main.npz"))]
                    counts["equal" if same else "different"] += 1
                    if not same:
                        failed = True
                        print(f"{module} {' '.join(options)} --ahead={','.join(sorted(chosen))}: "
                              f"{why or 'outputs differ'}")
    print("; ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    if failed or not counts["equal"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
