#!/usr/bin/env python3
"""The before and after in README.md is what the tool makes.

usage: example.py --bin DIR [--write]

Exit status 1 when README.md shows something else; --write puts it there.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = "testdata/models/seed_relu_damax.hlo"
BEGIN, END = "<!-- tests/lint/example.py -->\n", "<!-- end of it -->\n"


def cut(text):
    """The entry computation, without what says nothing about the computation."""
    text = text[text.index("ENTRY"):]
    text = text[:text.index("\n}") + 2]
    text = re.sub(r", (sharding|frontend_attributes|metadata)=\{(\"(\\.|[^\"\\])*\"|\{[^{}]*\}|[^{}])*\}", "", text)
    text = re.sub(r'\{"gemm_backend_config".*("epilogue":"\w+").*("damax_output":\w+).*\}', r"{..., \1,\2, ...}", text)
    return text.replace("/*index=5*/", "")


def example(bin_dir):
    command = [bin_dir / "hlo-fp8-opt", "--remarks=all", MODEL]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    before = cut((ROOT / MODEL).read_text())
    return (f"`{MODEL}`, as jax lowers it; sharding and metadata are cut, `%relu.1` is `maximum(x, 0)`, `%region_0.2` is `maximum(x, y)`:\n"
            f"```\n{before}\n```\nWhat `hlo-fp8-opt --remarks=all` makes of it:\n```\n{cut(ran.stdout)}\n```\n"
            f"and says about it:\n```\n{ran.stderr}```\n")


def main():
    readme = ROOT / "README.md"
    text = readme.read_text()
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    wanted = example(pathlib.Path(sys.argv[sys.argv.index("--bin") + 1]))
    if "--write" in sys.argv:
        readme.write_text(text[:start] + wanted + text[end:])
    elif text[start:end] != wanted:
        sys.exit(f"README.md does not show what the tool makes of {MODEL}; example.py --write does")


main()
