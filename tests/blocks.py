#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the code blocks of the pages in the top folder and docs/. Every block has a runner, or a reason why it has none.

usage: blocks.py --bin DIR

The runner of a block is that of its language (RUNNERS) or, between the marks `<!-- PATH -->` and `<!-- end of it -->`,
the file PATH. Other marks are on the line before a block:
  <!-- output -->          the output of the previous block, checked by the runner of that block
  <!-- shown: REASON -->   a block without a runner, for that reason
Runners call of(), so a new block has a runner or fails lint/blocks. This script runs the `sh` blocks, each as one
script of bash in one folder that has testdata and examples, with the programs of --bin. Exits with status 1 if a block
fails or prints something else.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[1]
RUNNERS = {
    "python": "tests/peer/python/test_docs.py",
    "c": "tests/lint/lint.py",
    "cpp": "tests/lint/lint.py",
    "cmake": "tests/lint/lint.py",
    "yaml": "tests/embed/ci.py",
    "sh": "tests/blocks.py",
}


@dataclass
class Block:
    """A code block; `line` is its first line of code, counted from 1."""

    page: str
    line: int
    language: str
    code: str
    runner: str = ""
    output: bool = False
    shown: str = ""


def read(page, text):
    """Returns the blocks of a page, each with its runner, and the lines of marks without a block."""
    found, astray, region, mark, start = [], [], "", None, None
    for number, line in enumerate(text.splitlines(), 1):
        if start is not None:
            if line.strip() == "```":
                code = "".join(each + "\n" for each in text.splitlines()[start.line - 1:number - 1])
                found.append(start)
                start.code, start = code, None
            continue
        fence = re.match(r" *```(\w*)", line)
        if fence:
            start = Block(page, number + 1, fence[1], "", region or RUNNERS.get(fence[1], ""))
            if mark and mark.startswith("output"):
                start.output, start.runner = True, found[-1].runner if found else ""
            elif mark:
                start.shown, start.runner = mark[len("shown:"):].strip(), ""
        elif mark is not None:
            astray.append(number - 1)
        comment = re.fullmatch(r"<!-- (.*) -->", line)
        mark = comment[1] if comment and re.match(r"output$|shown:", comment[1]) else None
        if comment and (ROOT / comment[1]).is_file():
            region = comment[1]
        elif comment and comment[1] == "end of it":
            region = ""
    return found, astray


def pages(root=ROOT):
    """Yields the name and the text of each page."""
    for path in [*sorted(root.glob("*.md")), *sorted((root / "docs").glob("*.md"))]:
        yield str(path.relative_to(root)), path.read_text(encoding="utf-8")


def of(runner, root=ROOT):
    """Returns the blocks of a runner."""
    return [block for page, text in pages(root) for block in read(page, text)[0] if block.runner == runner]


def faults(root):
    """Yields blocks without a runner or a reason, and marks without a block."""
    for page, text in pages(root):
        found, astray = read(page, text)
        for block in found:
            if not block.runner and not block.shown:
                yield page, block.line - 1, "nothing runs this block: mark it as tests/blocks.py describes"
        for line in astray:
            yield page, line, "no block after this mark"


def run(blocks, bin_dir):
    """Runs scripts with bash; yields errors."""
    printed = ""
    with tempfile.TemporaryDirectory() as folder:
        for linked in ("testdata", "examples"):
            os.symlink(ROOT / linked, os.path.join(folder, linked))
        environment = {**os.environ, "PATH": f"{bin_dir.resolve()}:{os.environ['PATH']}"}
        for block in blocks:
            if block.output:
                if block.code != printed:
                    yield f"{block.page}:{block.line}: the output is\n{printed}"
                continue
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", block.code], cwd=folder, env=environment, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            printed = done.stdout
            if done.returncode:
                yield f"{block.page}:{block.line}: status {done.returncode}\n{printed}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    args = parser.parse_args()
    scripts = of("tests/blocks.py")
    wrong = list(run(scripts, args.bin))
    print("\n".join(wrong))
    print(f"{len(scripts)} blocks of sh, {len(wrong)} faults")
    return int(bool(wrong) or not scripts)


if __name__ == "__main__":
    sys.exit(main())
