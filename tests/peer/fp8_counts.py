#!/usr/bin/env python3
"""How many FP8 calls hlo-fp8-opt makes of each module, against what XLA's GPU compiler makes.

Prints a table of all modules. Fails where the count is not the one expected: XLA's, but for the modules
of DIFFERENT, which say why ours is another. A rule that stops firing is seen here. The output, in both forms
of the call, must be a module that jaxlib reads.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

from jaxlib import _hlo

# Module: (our count, why).
DIFFERENT = {
    "rowwise_before": (1, "XLA knows no scales but those of a whole operand; ours go past the matmul"),
    "qkv_shared": (3, "XLA merges the three dots of one operand before it looks for fp8, and none is left"),
}

CALL = re.compile(r'custom_call_target="__cublas\$lt\$matmul\$f8"')
DOT = re.compile(r"^\s*(?:ROOT )?%\S+ = \S+ dot\(", re.M)


def rewrite(program, path, form):
    """The rewritten module and what was said on the way; no module when it was refused, by us or by jaxlib."""
    command = [program, "--verify-each", "--scale-operands=" + form, path]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return None, f"status {done.returncode}\n{done.stderr}"
    try:
        _hlo.hlo_module_from_text(done.stdout)
    except Exception as refusal:  # jaxlib's own, which is no subclass of anything that says more
        return None, f"jaxlib refuses the output with --scale-operands={form}: {refusal}"
    return done.stdout, done.stderr


def main():
    parser = argparse.ArgumentParser()
    for name in ("bin", "models", "work"):
        parser.add_argument("--" + name, type=pathlib.Path, required=True)
    args = parser.parse_args()
    summary = json.loads((args.models / "summary.json").read_text())
    wrong = ours_in_all = theirs_in_all = 0
    print(f"{'module':24} {'dots':>5} {'XLA':>5} {'ours':>5} {'left':>5}  ")
    for name, facts in summary.items():
        path = args.models / f"{name}.hlo"
        used, said = rewrite(args.bin / "hlo-fp8-opt", path, "used")
        text, said = rewrite(args.bin / "hlo-fp8-opt", path, "all") if used else (None, said)
        if not text:
            print(f"{name}: {said}")
            wrong += 1
            continue
        ours, left, theirs = len(CALL.findall(text)), len(DOT.findall(text)), facts["fp8"]
        expected, why = DIFFERENT.get(name, (theirs, ""))
        good = ours == expected
        wrong += not good
        ours_in_all += ours
        theirs_in_all += theirs
        note = why if good else f"WRONG: {expected} expected"
        print(f"{name:24} {facts['dots']:5} {theirs:5} {ours:5} {left:5}  {note}")
    print(f"{'in all':24} {'':5} {theirs_in_all:5} {ours_in_all:5}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
