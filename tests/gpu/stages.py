# SPDX-License-Identifier: Apache-2.0
"""Runs one stage on a machine with a GPU: run.sh and pack.py call it.

usage: stages.py STAGE --bin DIR [--out DIR] [--from DIR] [--work DIR] [--minutes N] [--only TEXT] [--repeat N]
                 [--autotune N] [--no-peers] [--standin FILE]

smoke    Prints versions and the device. Runs a matmul with and without CUDA graphs, arrays that stay on the device,
         every model once, with cuBLASLt's log (a model that fails runs again without graphs), and compute-sanitizer on
         four models, if it is installed.
correct  Compares every model, and random modules, with the cpu backend, before and after the rewrite.
matmul   Measures TFLOP/s of square and of fused matmuls, with and without scales, with fast and full accumulation, and
         the best of 64 algorithms of cuBLASLt; compared with torch._scaled_mm and JAX's XLA.
models   Times the scaled MLP and encoder, then the matmuls of Llama's layers; compared with JAX's XLA.
profile  Lists the longest steps of the training modules, and kernels by Nsight Compute, if it is installed.

OUT/STAGE.jsonl has a line of JSON for the start of each case, and one with its row for the end. The first line, and a
line before the rows of another machine, have the device and the versions. A case whose row has no error is not run
again. Cases that failed, or that began and have no row because they hung or the machine was lost, come last. No case
begins after --minutes (default: that of the stage), and no program runs for more than a minute longer. --from is the
OUT of an earlier machine. OUT contains only rows and autotune.json; all other files are in --work. If another stage
with the same --work, or one of its processes, runs at the same time, times are wrong: rows are then reported as those
of another machine. With --standin (tests/cuda/README.md) no device is needed: sizes are small, there are few cases, and
times are meaningless.
"""
import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import time

import checks
import machine
import report
import speeds

# For each stage: minutes, the number of concurrent cases, and functions that return its cases as (name, function)
# pairs. Each function of a pair returns the row of its case; the row of a failed case has `error`.
STAGES = {
    "smoke": (4, 4, checks.smoke),
    "correct": (6, 8, checks.correct),
    "matmul": (8, 1, speeds.matmuls),
    "models": (7, 1, speeds.models),
    "profile": (3, 1, speeds.profile),
}
NOT_DONE = 75
AFTERWARDS = 60  # seconds by which a program may exceed a stage's minutes


class Journal:
    """Reads and writes the rows of a stage. `lost`: why rows can no longer be written, or None."""

    def __init__(self, path, head):
        self.path, self.lost, self.lock = path, None, threading.Lock()
        rows = report.read_rows(path)
        self.rows = {row["case"]: row for row in rows if "case" in row}
        self.begun = [row["begun"] for row in rows if "begun" in row]
        heads = [row for row in rows if "stage" in row]
        if not rows:
            path.write_text("")
        elif not path.read_bytes().endswith(b"\n"):  # the last row may be incomplete
            with open(path, "a") as file:
                file.write("\n")
        if not heads or report.machine_of(heads[-1]) != report.machine_of(head):
            self.write(head)

    def has(self, name):
        return name in self.rows and "error" not in self.rows[name]

    def waiting(self, cases):
        """Returns the cases that are not done: first the cases that were not begun, then those that were begun least
        often."""
        return sorted((case for case in cases if not self.has(case[0])), key=lambda case: self.begun.count(case[0]))

    def write(self, row):
        with self.lock:
            try:
                with open(self.path, "a") as file:
                    file.write(json.dumps(row) + "\n")
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:  # the results were also printed
                self.lost = self.lost or str(error)

    def add(self, row):
        self.rows[row["case"]] = row
        self.write(row)


def run_case(name, function):
    begun = time.monotonic()
    try:
        row = function()
    except Exception as error:  # continue with the other cases
        row = {"error": f"{type(error).__name__}: {error}"}
    return {"case": name, **row, "took": round(time.monotonic() - begun, 2)}


def say(row):
    known = {key: value for key, value in row.items() if key not in ("case", "said")}
    text = ", ".join(f"{key} {value}" for key, value in known.items() if value is not None)
    print(f"{row['case']}: {text}", flush=True)


def run_stage(journal, cases, jobs, deadline):
    """Runs the cases that the journal does not have, `jobs` at a time; returns the number that were not begun."""
    late = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        def begin(case):
            if time.monotonic() > deadline:
                return None
            journal.write({"begun": case[0]})
            return run_case(*case)
        for done in concurrent.futures.as_completed([pool.submit(begin, case) for case in journal.waiting(cases)]):
            row = done.result()
            late += row is None
            if row:
                say(row)
                journal.add(row)
    return late


def make_folders(a):
    """Creates OUT and --work, and copies the rows of --from."""
    if not a.work:
        a.work = pathlib.Path(tempfile.gettempdir()) / f"hlo-fp8-{'standin' if a.standin else 'device'}-{os.getuid()}"
    a.out.mkdir(parents=True, exist_ok=True)
    a.work.mkdir(parents=True, exist_ok=True, mode=0o700)
    for earlier in a.earlier.glob("*.json*") if a.earlier else ():
        if not (a.out / earlier.name).exists():
            shutil.copyfile(earlier, a.out / earlier.name)


def arguments():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("stage", choices=STAGES)
    args.add_argument("--bin", type=pathlib.Path, required=True)
    args.add_argument("--out", type=pathlib.Path, default=pathlib.Path("results"))
    args.add_argument("--from", type=pathlib.Path, dest="earlier")
    args.add_argument("--work", type=pathlib.Path)
    args.add_argument("--minutes", type=float)
    args.add_argument("--only", default="")
    args.add_argument("--repeat", type=int, default=50)
    args.add_argument("--autotune", type=int, default=64)
    args.add_argument("--no-peers", action="store_true")
    args.add_argument("--standin")
    return args


def main():
    a = arguments().parse_args()
    minutes, jobs, cases_of = STAGES[a.stage]
    deadline = time.monotonic() + 60 * (minutes if a.minutes is None else a.minutes)
    try:
        make_folders(a)
        here = machine.Machine(a, deadline + AFTERWARDS)
    except OSError as error:
        print(f"{a.stage}: error: {error}", file=sys.stderr)
        return 1
    if here.error:
        print(f"{a.stage}: error: {here.error}", file=sys.stderr)
        return 1
    head = {"stage": a.stage, "date": datetime.date.today().isoformat(), **here.facts}
    if not here.is_alone(min(deadline, time.monotonic() + AFTERWARDS / 4)):
        head["beside"] = "programs of another stage"
    print(", ".join(f"{key} {value}" for key, value in head.items()), flush=True)
    try:
        journal = Journal(a.out / f"{a.stage}.jsonl", head)
    except OSError as error:
        print(f"{a.stage}: error: {error}", file=sys.stderr)
        return 1
    cases = [case for case in cases_of(here, a) if a.only in case[0]]
    late = run_stage(journal, cases, min(jobs, os.cpu_count() or 1), deadline)
    if journal.lost:
        print(f"{a.stage}: error: rows are lost: {journal.lost}", file=sys.stderr)
    failed = [name for name, _ in cases if "error" in journal.rows.get(name, {})]
    print(f"{a.stage}: {len(cases) - late} of {len(cases)} cases are done, {len(failed)} failed"
          f"{': call it again to continue' if late else ''}")
    return 1 if failed or journal.lost or not cases else NOT_DONE if late else 0


if __name__ == "__main__":
    sys.exit(main())
