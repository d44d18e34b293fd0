#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that docs/building.md lists the options that CMake lists for a build, with the defaults of cmake/options.cmake.

usage: options.py BUILD
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main(build):
    text = subprocess.run(["cmake", "-LA", "-N", build], capture_output=True, text=True, check=True).stdout
    cached = set(re.findall(r"^(HLO\w*):", text, re.M))
    declared = dict(re.findall(r'^option\((\w+) "[^"]*" ([^)]*)\)', (ROOT / "cmake/options.cmake").read_text(), re.M))
    defaults = {"ON": "on", "OFF": "off", "${PROJECT_IS_TOP_LEVEL}": "on, or off in another project"}
    listed = dict(re.findall(r"^\| `(HLOFP8_\w+)` \| ([^|]*) \|", (ROOT / "docs/building.md").read_text(), re.M))
    wrong = [f"{name}: " + ("not in docs/building.md" if name in cached else "CMake does not list it") for name in sorted(cached ^ set(listed))]
    wrong += [f"{name}: docs/building.md does not say the default {defaults[value]}" for name, value in declared.items()
              if listed.get(name, defaults[value]) != defaults[value]]
    print("\n".join(wrong))
    return int(bool(wrong) or not declared)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
