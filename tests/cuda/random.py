#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the cuda backend agrees with the cpu backend on random modules (tests/random), before and after --optimize.

usage: random.py --bin DIR --work DIR --standin FILE [--accumulate=f32|hopper] [--first SEED] [--count N]

CUDA's libraries are the file of --standin (tests/cuda/README.md); tests/gpu does the same on a device. Modules that the
cpu backend rejects are skipped; modules that only the cuda backend rejects are counted. With --accumulate=hopper,
matmuls of fp8 values sum like tensor cores, and the bounds assume this.
"""
import argparse
import concurrent.futures
import pathlib
import sys

import _standin

# Errors that only the cuda backend reports. The last one is about calls, which random modules may contain even before --optimize.
REFUSALS = ("has no CUDA kernel", "is not supported by cuBLASLt: no matmul of", "is not supported by cuBLASLt: output-scale-not-fp8")


class Cases:
    """Random modules as test cases. `run` runs programs, like _standin.run()."""

    def __init__(self, a, environment, run=_standin.run):
        self.a, self.environment, self.run_by = a, environment, run

    def run(self, *command, environment=None):
        return self.run_by(command, environment or self.environment)

    def check(self, seed):
        """Returns, for the original and the optimized form: "agrees"; "refused" by cuda only; "passed over" (refused by cpu); or the fault."""
        module = self.a.work / f"random-{seed}.hlo"
        ordered = dict(self.environment, HLO_STANDIN_ORDER=str(seed))
        module.write_text(self.run(self.a.bin / "random", f"--print={seed}")[1])
        program, found = self.a.bin / "hlo-fp8-run", []
        for form in ([], ["--optimize"]):
            if self.run(program, *form, "--plan", module)[0]:
                found.append("passed over")
                continue
            status, said, errors = self.run(program, "--backend=cuda", f"--accumulate={self.a.accumulate}", f"--seed={seed}",
                                            f"--compare={module}", *form, module, environment=ordered)
            if status == 0:
                found.append("agrees")
            elif status == 1 and any(why in errors for why in REFUSALS):
                found.append("refused")
            else:
                found.append(f"seed {seed} {form}: status {status}\n{errors}{said}")
        module.unlink()
        return found


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--bin", type=pathlib.Path, required=True)
    args.add_argument("--work", type=pathlib.Path, required=True)
    args.add_argument("--standin", required=True)
    args.add_argument("--accumulate", choices=("f32", "hopper"), default="f32")
    args.add_argument("--first", type=int, default=1)
    args.add_argument("--count", type=int, default=40)
    a = args.parse_args()
    cases = Cases(a, _standin.environment(a.standin, a.accumulate))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = [one for both in pool.map(cases.check, range(a.first, a.first + a.count)) for one in both]
    counts = {what: found.count(what) for what in ("agrees", "refused", "passed over")}
    faults = [one for one in found if one not in counts]
    for fault in faults:
        print("FAILED", fault)
    print(f"{len(found)} cases: {counts}, {len(faults)} faults")
    return 1 if faults or counts["agrees"] < len(found) / 2 else 0


if __name__ == "__main__":
    sys.exit(main())
