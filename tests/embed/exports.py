#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the exports of the shared library equal the functions that the public headers declare and a
checked-in list, so that every change of the exports is noticed.

usage: exports.py LIBRARY INCLUDE exports.txt
"""
import pathlib
import re
import subprocess
import sys


def declared(folder):
    for header in sorted(folder.glob("hlo/*.h")):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        yield from re.findall(r"^(?!typedef|static)\w[\w \*]*?\b(hlo\w+)\(", text, re.M)


def main(library, include, listed):
    symbols = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    exported = {line.split()[-1] for line in symbols.splitlines() if line.split()[1] == "T"}
    wrong = 0
    for name, names in (("declared", set(declared(pathlib.Path(include)))), ("listed", set(pathlib.Path(listed).read_text().split()))):
        for symbol in sorted(exported ^ names):
            wrong += 1
            print(f"{symbol}: " + (f"exported, not {name}" if symbol in exported else f"{name}, not exported"))
    return int(bool(wrong) or len(exported) < 50)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
