#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of docs/ci.md with the programs of a build: each line of a YAML block that calls hlo-fp8-opt.
With the original module, each command succeeds and the uploaded files are not empty. Then the module is broken
intentionally, and each gate must fail with status 3, regardless of the previous commands in its block.

usage: ci.py --bin BIN --module MODULE --work WORK
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import blocks

GATE = re.compile(r"--(expect-fp8|fail-on-missed|baseline)\b")
EMPTY = "HloModule empty\n\nENTRY e {\n  ROOT p = f32[4] parameter(0)\n}\n"


def recipes():
    """Returns the command lines of each block. The hook, whose arguments are file names, receives one file name."""
    for block in blocks.of("tests/embed/ci.py"):
        found = re.findall(r"(?:run:|-|entry:) (hlo-fp8-opt .*)$", block.code, re.M)
        assert found, f"{block.page}:{block.line}: no command"
        yield [line if line.endswith((".hlo", "dumps")) else line + " step.hlo" for line in found]


def without_one(text, line):
    """Returns the module with the lhs of the matmul in a line replaced by its cosine: no scale moves past a cosine."""
    lines = text.splitlines()
    operand = re.search(r" dot\((%?[\w.-]+), ", lines[line - 1])[1]
    shape = re.search(rf"^ *{re.escape(operand)} = (\S+) ", text, re.M)[1]
    lines[line - 1] = f"  %lost.here = {shape} cosine({operand})\n" + lines[line - 1].replace(f"dot({operand},", "dot(%lost.here,")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    for name in ("bin", "module", "work"):
        parser.add_argument("--" + name, type=pathlib.Path, required=True)
    args = parser.parse_args()
    shutil.rmtree(args.work, ignore_errors=True)
    (args.work / "dumps").mkdir(parents=True)
    env = {**os.environ, "PATH": f"{args.bin.resolve()}:{os.environ['PATH']}"}
    intact = args.module.read_text()
    (args.work / "base.hlo").write_text(intact)
    wrong, count = [], 0

    def run_all(title, text, fails):
        nonlocal count
        (args.work / "step.hlo").write_text(text)
        for stage in ("before_optimizations", "sm_9.0_gpu_after_optimizations"):
            (args.work / "dumps" / f"module_0001.step.{stage}.txt").write_text(text)
        for recipe in recipes():
            for command in recipe:
                status = 3 if fails(command) else 0
                got = subprocess.run(command.split(), cwd=args.work, env=env, capture_output=True, text=True)
                count += 1
                if got.returncode != status:
                    wrong.append(f"{title}: {command}: status {got.returncode}, not {status}\n{got.stderr[-500:]}")

    run_all("intact", intact, lambda command: False)
    results = json.loads((args.work / "fp8.sarif").read_text())["runs"][0]["results"]
    failed = xml.etree.ElementTree.parse(args.work / "fp8.xml").getroot().findall(".//failure")
    dots = json.loads((args.work / "fp8.json").read_text())["dots"]
    assert len(json.loads((args.work / "fp8.codequality.json").read_text())) == len(results)
    assert "matmuls in FP8" in (args.work / "summary.md").read_text()
    one = next(dot for dot in dots if dot["verdict"] == "fp8" and dot["operation"] == "dot")
    run_all("wide", re.sub(r"\bf8e(4m3fn|5m2)\b", "f16", intact), GATE.search)
    run_all("no matmuls", EMPTY, GATE.search)
    run_all("one lost", without_one(intact, one["line"]), lambda command: "--baseline" in command)
    print("\n".join(wrong))
    print(f"{count} commands, {len(wrong)} wrong; {len(results)} alerts, {len(failed)} failed cases")
    return int(bool(wrong) or count < 20 or not results or not failed)


if __name__ == "__main__":
    sys.exit(main())
