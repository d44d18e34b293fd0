"""Runs one stage on a machine with a GPU: lease.sh calls it.

usage: stages.py STAGE --bin DIR [--out DIR] [--minutes N] [--only TEXT] [--repeat N] [--autotune N] [--no-peers]
                 [--standin FILE]

smoke    Versions and the device; a matmul without CUDA graphs and with them; every model planned and run once, with
         what cuBLASLt logs; compute-sanitizer over four, where it is installed.
correct  Every model, and random modules, against the cpu backend, before and after the rewrite.
matmul   TFLOP/s of square and of fused matmuls, with and without scales, with fast and full accumulation, and of 64
         algorithms of cuBLASLt the best; torch._scaled_mm and JAX's XLA beside them.
models   The scaled MLP and encoder, then the matmuls of Llama's layers; JAX's XLA beside them.
profile  Nsight Compute on the kernels that take longest; where it is not installed, the steps that take longest.

Each case is a line of JSON in OUT/STAGE.jsonl, written when it is done; the first line has the device and the versions.
A case that is there and did not fail is not run again. No case is begun after --minutes (the stage's own by default).
With --standin (tests/cuda/README.md) no device is needed: sizes are small, cases few, and times mean nothing.
"""
import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import sys
import time

import checks
import machine
import speeds

# Minutes, and the cases: functions that give (name, function) pairs, each of which returns the row of its case; the
# row of a case that fails has `error`.
STAGES = {
    "smoke": (4, checks.smoke),
    "correct": (6, checks.correct),
    "matmul": (8, speeds.matmuls),
    "models": (7, speeds.models),
    "profile": (3, speeds.profile),
}
NOT_DONE = 75


class Journal:
    """The rows of a stage in a file, one written behind the other."""

    def __init__(self, path, head):
        self.path = path
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        self.rows = {row["case"]: row for row in rows if "case" in row}
        with open(path, "a") as file:
            if not rows:
                file.write(json.dumps(head) + "\n")

    def has(self, name):
        return name in self.rows and "error" not in self.rows[name]

    def add(self, row):
        self.rows[row["case"]] = row
        with open(self.path, "a") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())


def run_case(name, function):
    begun = time.monotonic()
    try:
        row = function()
    except Exception as error:  # the other cases go on
        row = {"error": f"{type(error).__name__}: {error}"}
    return {"case": name, **row, "took": round(time.monotonic() - begun, 2)}


def say(row):
    known = {key: value for key, value in row.items() if key not in ("case", "said")}
    text = ", ".join(f"{key} {value}" for key, value in known.items() if value is not None)
    print(f"{row['case']}: {text}", flush=True)


def run_stage(journal, cases, jobs, deadline):
    """Runs the cases that the journal does not have, `jobs` at a time; returns the number that were not begun."""
    waiting = [case for case in cases if not journal.has(case[0])]
    late = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        def begin(case):
            return None if time.monotonic() > deadline else run_case(*case)
        for done in concurrent.futures.as_completed([pool.submit(begin, case) for case in waiting]):
            row = done.result()
            late += row is None
            if row:
                journal.add(row)
                say(row)
    return late


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("stage", choices=STAGES)
    args.add_argument("--bin", type=pathlib.Path, required=True)
    args.add_argument("--out", type=pathlib.Path, default=pathlib.Path("results"))
    args.add_argument("--minutes", type=float)
    args.add_argument("--only", default="")
    args.add_argument("--repeat", type=int, default=50)
    args.add_argument("--autotune", type=int, default=64)
    args.add_argument("--no-peers", action="store_true")
    args.add_argument("--standin")
    a = args.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    here = machine.Machine(a)
    if here.error:
        print(f"{a.stage}: error: {here.error}", file=sys.stderr)
        return 1
    minutes, cases_of = STAGES[a.stage]
    head = {"stage": a.stage, "date": datetime.date.today().isoformat(), **here.facts}
    print(", ".join(f"{key} {value}" for key, value in head.items()), flush=True)
    journal = Journal(a.out / f"{a.stage}.jsonl", head)
    cases = [case for case in cases_of(here, a) if a.only in case[0]]
    deadline = time.monotonic() + 60 * (a.minutes if a.minutes is not None else minutes)
    late = run_stage(journal, cases, here.jobs if a.stage == "correct" else 1, deadline)
    failed = [name for name, _ in cases if "error" in journal.rows.get(name, {})]
    print(f"{a.stage}: {len(cases) - late} of {len(cases)} cases are done, {len(failed)} failed"
          f"{': call it again to go on' if late else ''}")
    return 1 if failed or not cases else NOT_DONE if late else 0


if __name__ == "__main__":
    sys.exit(main())
