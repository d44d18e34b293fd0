#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles each program with XLA's GPU compiler, and writes testdata/programs/summary.json.

  count.py [NAME...]     count only these; the other entries do not change

The Python that runs it must have the packages of tests/peer/requirements*.txt. XLA compiles for an H100 with the flags
of tests/peer/xla/_xla_gpu.py: every matmul goes to cuBLASLt, none to Triton.
"""
import collections
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "testdata" / "programs"
PRODUCT = re.compile(r"^\s*(?:ROOT )?\S+ = \S+ (?:(?:dot|ragged-dot)\(|custom-call\(.*\"__op\$block_scaled_dot\")", re.M)
MATMUL = re.compile(r' = \(?(?P<d>\w+)\[.*custom_call_target="__cublas\$(?P<name>\S+?)"(?P<rest>.*)')


def facts(path):
    text = path.read_text()
    compiler = [sys.executable, ROOT / "tests/peer/xla/_xla_gpu.py", path]
    compiled = subprocess.run(compiler, capture_output=True, text=True, check=True).stdout
    calls = [match for match in MATMUL.finditer(compiled)]
    fp8 = [call for call in calls if call["name"] == "lt$matmul$f8"]
    return {
        "lines": text.count("\n"),
        "dots": len(PRODUCT.findall(text)),
        "fp8": len(fp8),
        "other": len(calls) - len(fp8),
        "left": len(PRODUCT.findall(compiled)),
        "epilogue": collections.Counter(re.search(r'"epilogue":"(\w+)"', call["rest"])[1] for call in fp8),
        "damax": collections.Counter(["true"] * sum('"damax_output":true' in call["rest"] for call in fp8)),
        "fp8_out": sum(call["d"].startswith("f8") for call in fp8),
    }


def main():
    path = PROGRAMS / "summary.json"
    summary = json.loads(path.read_text()) if path.exists() else {}
    for name in sys.argv[1:] or sorted(p.stem for p in PROGRAMS.glob("*.hlo")):
        summary[name] = facts(PROGRAMS / f"{name}.hlo")
        print(name, summary[name]["fp8"], "of", summary[name]["dots"])
    path.write_text(json.dumps(dict(sorted(summary.items())), indent=1) + "\n")


if __name__ == "__main__":
    main()
