#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the stages for a machine with a GPU, with the fake libraries.

usage: test_stages.py --bin DIR --work DIR --standin FILE

Each stage runs all its cases. A second call only runs failed cases again. A stage without time left begins no case. An
interrupted stage continues, and cases that hung come last. A hanging program is ended with its children. OUT has few
files. The page has a row for each measured case. Without a device or a writable folder, a stage reports it. Cases that
a device does not support are skipped, with the reason, and run on one that does.
"""
import argparse
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import time

import cases
import machine
import pack
import report
import speeds
import stages

STAGES = ("smoke", "correct", "matmul", "models", "profile")
RUN = pathlib.Path(__file__).parent / "run.sh"


class Test:
    def __init__(self, a):
        self.a, self.faults, self.out = a, [], a.work / "out"
        shutil.rmtree(a.work, ignore_errors=True)
        a.work.mkdir(parents=True)

    def check(self, good, text):
        if not good:
            self.faults.append(text)

    def stage(self, stage, *options, standin=True, out=None, sm=90):
        command = [RUN, stage, "--bin", self.a.bin, "--out", out or self.out, "--work", self.a.work / "kept", "--repeat=2",
                   "--autotune=2", "--no-peers", *(("--standin", self.a.standin) if standin else ()), *options]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("HLO_CUDA")}
        environment["HLO_STANDIN_SM"] = str(sm)
        if not standin:
            environment["HLO_CUDA_DRIVER"] = "/nowhere/libcuda.so.1"
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment)
        return done.returncode, done.stdout, done.stderr

    def rows(self, stage, out=None):
        rows = [json.loads(line) for line in ((out or self.out) / f"{stage}.jsonl").read_text().splitlines()]
        return rows[:1] + [row for row in rows if "case" in row]

    def runs(self, stage):
        status, said, errors = self.stage(stage, "--minutes=0")
        self.check(status == 75 and "0 of" in said, f"{stage} without time: status {status}: {said}{errors}")
        status, said, errors = self.stage(stage)
        first, *cases = self.rows(stage)
        self.check(status == 0 and "0 failed" in said, f"{stage}: status {status}: {said}{errors}")
        self.check(first["stage"] == stage and len(cases) > 1, f"{stage}: {first}, {len(cases)} cases")

    def goes_on(self):
        *kept, last = self.rows("models")
        broken = {"case": last["case"], "error": "broken off"}
        half = json.dumps(last)[:20]  # the machine was lost while this row was written
        (self.out / "models.jsonl").write_text("".join(json.dumps(row) + "\n" for row in (*kept, broken)) + half)
        again = self.a.work / "again"
        shutil.rmtree(again, ignore_errors=True)
        status, said, _ = self.stage("models", "--out", again, "--from", self.out)
        self.out = again
        lines = (again / "models.jsonl").read_text().splitlines()
        self.check(lines.count(half) == 1, "the row that was not whole spoils the next one")
        (again / "models.jsonl").write_text("".join(line + "\n" for line in lines if line != half))
        again = self.rows("models")
        self.check(status == 0 and len(again) == len(kept) + 2 and again[-1]["case"] == last["case"],
                   f"a case that failed is not run again, or others are: status {status}: {said}")

    def comes_last(self):
        """Cases that were begun and have no row are begun again after the cases that were not begun."""
        path = self.a.work / "order.jsonl"
        path.unlink(missing_ok=True)
        journal = stages.Journal(path, {"stage": "order"})
        for row in ({"begun": "hangs"}, {"begun": "hangs"}, {"begun": "fails"}, {"case": "fails", "error": "x"}, {"begun": "good"},
                    {"case": "good"}):
            journal.write(row)
        order = [name for name, _ in stages.Journal(path, {}).waiting([(name, None) for name in ("hangs", "fails", "good", "new")])]
        self.check(order == ["new", "fails", "hangs"], f"order of cases: {order}")

    def ends_what_hangs(self):
        begun, left = time.monotonic(), self.a.work / "left"
        left.unlink(missing_ok=True)
        status, said, errors = machine.run(["sh", "-c", f"(sleep 3; touch {left}) & echo begun; sleep 60"], None, 1)
        self.check(status == 124 and said == "begun\n" and "not done after 1 s" in errors, f"{status}: {said}{errors}")
        self.check(time.monotonic() - begun < 3, "a program that hangs is waited for")
        time.sleep(max(0, begun + 4 - time.monotonic()))
        self.check(not left.exists(), "what a program started is not ended with it")

    def writes_few_files(self):
        """A stage writes at most the 8 files that a remote machine returns."""
        files = sorted(path.name for path in self.out.rglob("*"))
        self.check(files == sorted([*(f"{stage}.jsonl" for stage in STAGES), "autotune.json"]), f"files: {files}")

    def keeps_other_times(self):
        """A case whose tuned run fails has the times of its other runs."""
        class Here:
            a = argparse.Namespace(work=self.a.work, out=self.out, repeat=1, autotune=2, no_peers=True, standin=None)

            def ours(self, *options):
                tuned = any(str(option).startswith("--autotune=") for option in options)
                return (1, "", "error: illegal address") if tuned else (0, "median 500 ms", "")
        row = speeds.measure(Here(), cases.matmul_case("kept", 16, 16, 16))
        self.check(row["ours"] == 0.5 and "illegal address" in row["error"], str(row))
        self.check("| kept | 500000.0 us" in report.table({"kept": row}, 1), report.table({"kept": row}, 1))

    def needs_a_folder(self):
        file = self.a.work / "file"
        file.write_text("")
        (self.a.work / "taken/smoke.jsonl").mkdir(parents=True)
        for out in file / "out", self.a.work / "taken":
            status, _, errors = self.stage("smoke", "--out", out)
            self.check(status == 1 and "error: " in errors and "Traceback" not in errors, f"no folder: {status}: {errors}")
        nowhere = ([sys.executable, RUN.with_name("report.py"), *arguments] for arguments in
                   (("/nowhere",), (self.a.work, "--docs=/nowhere")))
        for command in nowhere:
            done = subprocess.run(command, capture_output=True, text=True)
            self.check(done.returncode == 1 and "report.py: error: " in done.stderr, f"{command}: {done.stderr}")
        done = subprocess.run(["/bin/sh", RUN, "smoke"], capture_output=True, text=True, env={"PATH": "/nowhere"}, cwd=self.a.work)
        self.check(done.returncode == 127 and "readlink" in done.stderr, f"no PATH: {done.returncode}: {done.stderr}")

    def fills_the_page(self):
        page = self.a.work / "page.md"
        page.write_text(f"before\n{report.BEGIN}old\n{report.END}after\n")
        found = report.fill(self.out, page)
        text = page.read_text()
        self.check(found == 0 and "old" not in text and text.startswith("before") and text.endswith("after\n"), text)
        for stage in ("matmul", "models"):
            for row in self.rows(stage)[1:]:
                self.check((f"| {row['case']} | " in text) != ("left_out" in row), f"{row['case']} is not in the page, or left out")
        (self.a.work / "nothing").mkdir()
        report.fill(self.a.work / "nothing", page)
        self.check(report.NOTHING in page.read_text(), "without results the page does not say so")
        page.write_text("no marks\n")
        self.check(report.fill(self.a.work, page) == 1, "a page without marks is taken")

    def tells_machines_apart(self):
        """The report has rows of two machines, one without properties, rows without numbers, and begun cases that have
        not ended."""
        results = self.a.work / "machines"
        results.mkdir()
        fast = {"flops": 2e12, "ours": 1e-3}
        head = {"stage": "matmul", "name": "A", "peak": 4000, "peak_of": "A"}
        rows = [{"case": "lost", **fast}, head, {"case": "a", **fast},
                {"case": "again", "error": "x"}, {"case": "bad", "error": "x | y\nz"}, 5, None, {"case": 7}, {"case": "text", "ours": "1"}, {"case": "none"},
                {"begun": "hung"}, {"stage": "matmul", "name": "B", "peak": None}, {"begun": "again"}, {"case": "again", **fast}]
        (results / "matmul.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"case": "ha')
        (results / "smoke.jsonl").write_text(json.dumps(head) + '\n{"case": "x"}\n{"begun": "y"}\n')
        a, lost, b = report.report(results).replace("A machine", "@A machine").replace("name B", "@name B").split("@")
        for section, found in ((lost, ("not known", "| lost | 1000.0 us, 2000.0 |")),
                               (a, ("1 cases passed, 1 failed", "peak of A", "| a | 1000.0 us, 2000.0 (50 %) |", "| text | - |",
                                    "| none | - |", "| bad | x \\| y |", "| hung | was begun")),
                               (b, ("| again | 1000.0 us, 2000.0 |",))):
            for text in found:
                self.check(text in section, f"'{text}' is not in: {section}")
        self.check("again" not in a, a)
        head = {"stage": "matmul", "name": "C"}
        for _ in range(2):
            stages.Journal(results / "matmul.jsonl", head)
        self.check((results / "matmul.jsonl").read_text().count('"C"') == 1, "the rows of another machine lack its facts")

    def tells_of_others(self):
        """Processes that another stage left are reported."""
        out = self.a.work / "beside"
        with open(self.a.work / "kept/lock", "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            status, said, errors = self.stage("models", "--minutes=0", out=out)
        self.check(status == 75 and "beside" in self.rows("models", out)[0], f"{status}: {said}{errors}")
        read, write = os.pipe()  # the pipe has only one end if no process holds the other end
        here = argparse.Namespace(lock=write, environment=None, left=lambda: 60)
        machine.Machine.run(here, ["sh", "-c", "sleep 1 >&- 2>&- &"])
        os.close(write)
        os.set_blocking(read, False)
        try:
            self.check(os.read(read, 1) != b"", "a leftover program does not hold the lock")
        except BlockingIOError:
            pass

    def scales_blocks(self):
        out = self.a.work / "sm_100"
        for stage in ("smoke", "correct", "matmul"):
            kept = [row for row in self.rows(stage) if row.get("case", "").startswith("block-scaled")]
            self.check(len(kept) == 2 and all(row["left_out"] == "sm_90 has no scales per block" for row in kept), f"{stage}: {kept}")
            status, said, errors = self.stage(stage, "--only=block-scaled", out=out, sm=100)
            self.check(status == 0 and "2 of 2 cases are done, 0 failed" in said, f"{stage}: status {status}: {said}{errors}")
            self.check(not any("left_out" in row for row in self.rows(stage, out)), f"{stage}: {self.rows(stage, out)}")

    def packs_a_report(self):
        """Without a stage, run.sh runs all stages and writes one file."""
        path = self.a.work / "report.tar.xz"
        status, said, errors = self.stage(f"--report={path}")
        self.check(status == 0 and f"Please send {path}" in said, f"all stages: status {status}: {said}{errors}")
        with tarfile.open(path) as archive:
            files = {name.partition("/")[2]: archive.extractfile(name).read().decode() for name in archive.getnames()}
        wanted = {"summary.txt", "report.md", "autotune.json", *(f"{stage}.{end}" for stage in STAGES for end in ("jsonl", "log"))}
        self.check(files.keys() == wanted, f"files of the report: {sorted(files)}")
        text = files["summary.txt"]
        self.check(text.startswith("The CUDA libraries are the fakes"), text)
        self.check(text.count("status 0, all cases passed") == len(STAGES) and "cuBLASLt: " in text and "program: hlo-fp8-run" in text, text)
        rows = {"begun": "hung"}, {"case": "bad", "error": "x"}, {"case": "good"}, {"case": "none", "left_out": "y"}
        (self.a.work / "smoke.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        here = argparse.Namespace(a=argparse.Namespace(standin=None, bin=self.a.bin), facts={"name": "G"})
        text = pack.summary(here, self.a.work, {"smoke": 1})
        self.check(text.startswith("name: G\n") and "smoke: status 1, cases failed; 1 passed, 1 failed, 1 left out, 1 begun but not finished\n"
                   "  failed: bad\n  not finished: hung\n" in text, text)
        found = [pack.exit_status(dict(enumerate(statuses))) for statuses in ((0, 0), (0, 75), (75, 1), (0, 2))]
        self.check(found == [0, 75, 1, 1], f"exit statuses: {found}")

    def misses_the_device(self):
        out, path = self.a.work / "nothing-here", self.a.work / "none.tar.xz"
        for stage in "smoke", f"--report={path}":
            status, _, errors = self.stage(stage, standin=False, out=out)
            self.check(status == 1 and "error: " in errors and "Traceback" not in errors, f"no device: {status}: {errors}")
        self.check(not path.exists() and not out.exists(), "a report without a device")


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--bin", type=pathlib.Path, required=True)
    args.add_argument("--work", type=pathlib.Path, required=True)
    args.add_argument("--standin", required=True)
    test = Test(args.parse_args())
    for stage in STAGES:
        test.runs(stage)
    test.writes_few_files()
    test.scales_blocks()
    test.goes_on()
    test.comes_last()
    test.ends_what_hangs()
    test.keeps_other_times()
    test.needs_a_folder()
    test.fills_the_page()
    test.tells_machines_apart()
    test.tells_of_others()
    test.packs_a_report()
    test.misses_the_device()
    for fault in test.faults:
        print("FAILED", fault)
    return 1 if test.faults else 0


sys.exit(main())
