#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the example in docs/concepts.md is what hlo-fp8-opt prints.

usage: example.py --bin DIR [--write]

Exits with status 1 if the page differs; --write updates the page.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = "docs/concepts.md"
MODEL = "testdata/models/seed_relu_damax.hlo"
BEGIN, END = "<!-- tests/lint/example.py -->\n", "<!-- end of it -->\n"


def cut(text):
    """Returns the entry computation without shardings, metadata and most of the backend config."""
    text = text[text.index("ENTRY"):]
    text = text[:text.index("\n}") + 2]
    text = re.sub(r", (sharding|frontend_attributes|metadata)=\{(\"(\\.|[^\"\\])*\"|\{[^{}]*\}|[^{}])*\}", "", text)
    text = re.sub(r'\{"gemm_backend_config".*("epilogue":"\w+").*("damax_output":\w+).*\}', r"{..., \1,\2, ...}", text)
    return text.replace("/*index=5*/", "")


def example(bin_dir):
    command = [bin_dir / "hlo-fp8-opt", "--remarks=all", MODEL]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    before = cut((ROOT / MODEL).read_text())
    return (f"`{MODEL}` as JAX lowers it. Shardings and metadata are cut; `%relu.1` is `maximum(x, 0)`, `%region_0.2` is `maximum(x, y)`:\n"
            f"```\n{before}\n```\n`hlo-fp8-opt --remarks=all` rewrites it to:\n```\n{cut(ran.stdout)}\n```\n"
            f"and prints:\n```\n{ran.stderr}```\n")


def main():
    page = ROOT / PAGE
    text = page.read_text()
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    wanted = example(pathlib.Path(sys.argv[sys.argv.index("--bin") + 1]))
    if "--write" in sys.argv:
        page.write_text(text[:start] + wanted + text[end:])
    elif text[start:end] != wanted:
        sys.exit(f"{PAGE} does not show what hlo-fp8-opt prints for {MODEL}: run example.py --write")


main()
