#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that programs of public libraries (testdata/programs) have the expected number of FP8 calls, and unchanged
values. Each has as many FP8 calls, epilogues, amaxes and fp8 results as with XLA, or as listed with a reason in
fp8_counts.py, and computes the same before and after, within the bound that hlo-fp8-run derives. Programs with ragged
products have the same number of FP8 products and the same values with --ragged=keep; XLA makes at least RAGGED_CALLS
FP8 calls of them in total. With --long, the rewritten program is also compared with XLA's CPU backend on the original.
"""
import json
import os
import pathlib
import subprocess
import sys

import _script
import fp8_counts

# Programs that XLA's CPU backend does not support.
RAGGED, BLOCKS = "ragged-dot", "__op$block_scaled_dot"
RAGGED_CALLS = 12


def run(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True, env=os.environ | {"JAX_ENABLE_X64": "1"})


def same_as_xla(args, path):
    """Compares the rewritten program with XLA on random inputs. Returns the differences."""
    inputs, outputs = args.work / "inputs.npz", args.work / "outputs.npz"
    peer = pathlib.Path(__file__).parents[1] / "_xla_cpu.py"
    done = run(sys.executable, peer, path, "--save-inputs", inputs, "--outputs", outputs)
    if not done.returncode:
        done = run(args.bin / "hlo-fp8-run", "--optimize", f"--inputs={inputs}", f"--compare={outputs}", path)
    return [f"XLA on the CPU: {done.stdout}{done.stderr}"] * bool(done.returncode)


def check(args, path, facts):
    *_, wrong = fp8_counts.check(args.bin / "hlo-fp8-opt", path, path.stem, facts)
    text = path.read_text()
    count, _ = fp8_counts.DIFFERENT.get(path.stem, (facts["fp8"], ""))
    forms = [[], ["--ragged=dense"], ["--ragged=keep"]] if RAGGED in text else [[]]
    for form in forms:
        done = run(args.bin / "hlo-fp8-run", "--optimize", *form, "--compare=before", path)
        if done.returncode:
            wrong.append(f"before and after: {form} {done.stdout}{done.stderr}")
        if run(args.bin / "hlo-fp8-opt", *form, f"--expect-fp8={count}", "-o", os.devnull, path).returncode:
            wrong.append(f"{form} not {count} in FP8")
    return wrong + (same_as_xla(args, path) if args.long and RAGGED not in text and BLOCKS not in text else [])


def main():
    parser = _script.parser(pathlib.Path)
    parser.add_argument("--long", action="store_true", help="ask XLA's CPU backend as well")
    args = parser.parse_args()
    programs = args.models.parent / "programs"
    summary = json.loads((programs / "summary.json").read_text())
    paths = sorted(programs.glob("*.hlo"))
    bad = [f"summary.json has other names: {sorted(summary)}"] * (sorted(summary) != [path.stem for path in paths])
    ragged = sum(summary[path.stem]["fp8"] for path in paths if RAGGED in path.read_text())
    bad += [f"XLA makes {ragged} FP8 calls of the programs with ragged products"] * (ragged < RAGGED_CALLS)
    for path in paths:
        bad += [f"{path.stem}: {wrong}" for wrong in check(args, path, summary[path.stem])]
    print("\n".join(bad) or f"{len(paths)} programs as expected")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
