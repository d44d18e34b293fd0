#!/usr/bin/env python3
"""Runs the commands of docs/ci.md: each line of a block of YAML that calls hlo-fp8-opt, in a folder that has the module, with the
programs of a build. A gate that holds ends with 0, and with 3 when all matmuls are asked for; the files that are uploaded are there.

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


def commands():
    """The command lines, and for the hook, which is called with the names of files, one of these."""
    for block in blocks.of("tests/embed/ci.py"):
        found = re.findall(r"(?:run:|-|entry:) (hlo-fp8-opt .*)$", block.code, re.M)
        assert found, f"{block.page}:{block.line}: no command"
        for line in found:
            yield line if line.endswith("step.hlo") else line + " step.hlo"


def main():
    parser = argparse.ArgumentParser()
    for name in ("bin", "module", "work"):
        parser.add_argument("--" + name, type=pathlib.Path, required=True)
    args = parser.parse_args()
    shutil.rmtree(args.work, ignore_errors=True)
    args.work.mkdir(parents=True)
    shutil.copy(args.module, args.work / "step.hlo")
    env = {**os.environ, "PATH": f"{args.bin.resolve()}:{os.environ['PATH']}"}
    wrong = count = 0
    for line in commands():
        stricter = line.replace("75%", "all")
        for command, status in ((line, 0), (stricter, 3 if stricter != line else 0)):
            got = subprocess.run(command.split(), cwd=args.work, env=env, capture_output=True, text=True)
            count += 1
            if got.returncode != status:
                wrong += 1
                print(f"{command}: status {got.returncode}, not {status}\n{got.stderr}")
    results = json.loads((args.work / "fp8.sarif").read_text())["runs"][0]["results"]
    failed = xml.etree.ElementTree.parse(args.work / "fp8.xml").getroot().findall(".//failure")
    print(f"{count} commands, {wrong} wrong; {len(results)} alerts, {len(failed)} failed cases")
    return int(bool(wrong) or count < 8 or not results or not failed)


if __name__ == "__main__":
    sys.exit(main())
