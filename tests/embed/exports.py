#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the exports of the shared library, the global symbols of the static library, the functions that the public
headers declare and a checked-in list are equal, so that every change is noticed. Also checks that the static library has
no intermediate code of GCC, and that its size without debugging information is at most 6 MB.

usage: exports.py SHARED STATIC INCLUDE [exports.txt]
"""
import pathlib
import re
import subprocess
import sys
import tempfile

LARGEST = 6_000_000


def declared(folder):
    for header in sorted(folder.glob("hlo/*.h")):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        yield from re.findall(r"^(?!typedef|static)\w[\w \*]*?\b(hlo\w+)\(", text, re.M)


def symbols(*options):
    """Returns the defined global symbols that nm lists."""
    lines = subprocess.run(["nm", "--defined-only", *options], capture_output=True, text=True, check=True).stdout.splitlines()
    return {fields[2] for fields in map(str.split, lines) if len(fields) == 3}


def main(shared, static, include, listed=None):
    exported = symbols("-D", shared)
    wrong = []
    expected = {"declared": set(declared(pathlib.Path(include))), "in the static library": symbols("-g", static)}
    if listed:
        expected["listed"] = set(pathlib.Path(listed).read_text().split())
    for name, names in expected.items():
        wrong += [f"{symbol}: " + (f"exported, not {name}" if symbol in exported else f"{name}, not exported") for symbol in sorted(exported ^ names)]
    wrong += [f"{symbol}: not named hlo" for symbol in sorted(exported) if not symbol.startswith("hlo")]
    sections = subprocess.run(["readelf", "-SW", static], capture_output=True, text=True, check=True).stdout
    if ".gnu.lto" in sections or ".gnu.debuglto" in sections:
        wrong.append(f"{static}: contains intermediate code")
    with tempfile.NamedTemporaryFile() as stripped:
        subprocess.run(["strip", "--strip-debug", "-o", stripped.name, static], check=True)
        size = pathlib.Path(stripped.name).stat().st_size
    if size > LARGEST and b"__asan_" not in pathlib.Path(static).read_bytes():
        wrong.append(f"{static}: {size} bytes, more than {LARGEST}")
    print("\n".join(wrong))
    return int(bool(wrong) or len(exported) < 50)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
