# SPDX-License-Identifier: Apache-2.0
"""Runs all stages on a machine with a GPU, and packs their results into one file: run.sh calls it.

usage: pack.py --bin DIR [--report FILE] [OPTIONS of stages.py]

FILE (default: hlo-fp8-gpu-report.tar.xz) contains:
  summary.txt     the device, the versions, and for each stage its exit status and the numbers of passed, failed and
                  remaining cases
  report.md       the tables of report.py
  STAGE.jsonl     the rows of a stage; a failed row has the last lines that the program printed
  STAGE.log       the output of a stage
  autotune.json   the algorithms that were timed
It contains no environment variables and no serial numbers; messages of failed programs may contain paths. Without a
device, the script prints the reason, writes no FILE, and exits with status 1. If cases remain because a stage ran out of
time, the status is 75, and the next call continues.
"""
import argparse
import contextlib
import os
import pathlib
import platform
import subprocess
import sys
import tarfile
import tempfile
import time

import machine
import report
import stages

HERE = pathlib.Path(__file__).resolve().parent


def run(stage, options, log):
    """Runs a stage, with its output on the terminal and in the file `log`; returns its exit status."""
    with open(log, "w") as file:
        child = subprocess.Popen([sys.executable, HERE / "stages.py", stage, *options], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        for line in child.stdout:
            print(line, end="", flush=True)
            file.write(line)
        return child.wait()


def summary(here, results, statuses):
    """Returns the text of summary.txt."""
    lines = ["The CUDA libraries are the fakes of tests/cuda. No device was used, and all times are meaningless."] if here.a.standin else []
    lines += [f"{key}: {value}" for key, value in here.facts.items()]
    lines += [f"system: {platform.system()} {platform.machine()}, {' '.join(platform.libc_ver())}, Python {platform.python_version()}"]
    status, said, _ = machine.run([here.a.bin / "hlo-fp8-run", "--version"], None, 60)
    lines += [f"program: {said.splitlines()[0] if status == 0 and said else f'status {status}'}"]
    for stage, status in statuses.items():
        rows = [row for row in report.read_rows(results / f"{stage}.jsonl") if "stage" not in row]
        last = {row["case"]: row for row in rows if "case" in row}
        failed = [name for name, row in last.items() if "error" in row]
        left_out = sum("left_out" in row for row in last.values())
        hung = {row["begun"] for row in rows if "begun" in row} - last.keys()
        state = {0: "all cases passed", 1: "cases failed", stages.NOT_DONE: "cases remain"}.get(status, "did not run")
        lines += [f"{stage}: status {status}, {state}; {len(last) - len(failed) - left_out} passed, {len(failed)} failed, "
                  f"{left_out} left out, {len(hung)} begun but not finished"]
        lines += [f"  failed: {name}" for name in failed] + [f"  not finished: {name}" for name in sorted(hung)]
    return "\n".join(lines) + "\n"


def exit_status(statuses):
    """Returns the exit status of all stages: a failure comes before cases that remain."""
    found = set(statuses.values())
    return 0 if found == {0} else stages.NOT_DONE if found <= {0, stages.NOT_DONE} else 1


def pack(path, files):
    """Writes an archive of (name, path) pairs, without the owners of the files; replaces it as a whole."""
    def plain(member):
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member
    temporary = path.with_name(path.name + ".tmp")
    with tarfile.open(temporary, "w:xz") as archive:
        for name, file in files:
            archive.add(file, f"hlo-fp8-gpu-report/{name}", filter=plain)
    os.replace(temporary, path)


def main():
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--report", type=pathlib.Path, default=pathlib.Path("hlo-fp8-gpu-report.tar.xz"))
    packed, options = parser.parse_known_args()
    given = stages.arguments().parse_args(["smoke", *options])
    try:
        stages.make_folders(given)
        here = machine.Machine(given, time.monotonic() + 60)
        if here.error:
            print(f"run.sh: error: {here.error}; no report was written", file=sys.stderr)
            with contextlib.suppress(OSError):  # it has rows of an earlier run
                given.out.rmdir()
            return 1
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            statuses = {stage: run(stage, options, folder / f"{stage}.log") for stage in stages.STAGES}
            (folder / "summary.txt").write_text(summary(here, given.out, statuses))
            (folder / "report.md").write_text(report.report(given.out))
            rows = [given.out / f"{stage}.jsonl" for stage in stages.STAGES] + [given.out / "autotune.json"]
            files = [*sorted(folder.iterdir()), *(path for path in rows if path.exists())]
            print("\n" + (folder / "summary.txt").read_text(), end="")
            pack(packed.report, [(path.name, path) for path in files])
    except OSError as error:
        print(f"run.sh: error: {error}", file=sys.stderr)
        return 1
    print(f"Please send {packed.report} ({packed.report.stat().st_size} bytes)")
    return exit_status(statuses)


if __name__ == "__main__":
    sys.exit(main())
