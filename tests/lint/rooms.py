#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the folders of the library against the hlo_room() lines of CMakeLists.txt.

usage: rooms.py BUILD [--root=DIR]

Rejects, by the symbols of the object files in BUILD:
- a reference to a file of a folder that the referring folder does not see, or of a part of the library (cmake/options.cmake)
  that the part of the referring folder does not require,
- a cycle of files, except for real recursion (RECURSION below); in the tree, also a README.md whose line
  `This folder may include headers of` differs from the map, and a folder with more than MAX sources.

Prints a line for each finding; exit status 1 if there are any, or if there were no object files.
"""
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(next((a[7:] for a in sys.argv if a.startswith("--root=")), pathlib.Path(__file__).parents[2]))
MAX = 16
SOURCES = {".c", ".cuh", ".def", ".h", ".l", ".proto", ".y"}

# Allowed cycles: these files are recursive by nature.
RECURSION = [
    # A region is evaluated by the kernels of its instructions, and a kernel may apply a region.
    {"ir/eval/elementwise.c", "ir/eval/eval.c", "ir/eval/index.c", "ir/eval/interpret.c", "ir/eval/reduce.c",
     "ir/eval/region.c", "ir/eval/sort.c"},
]

# References that the preprocessor removes from a build without the part that they refer to.
CONDITIONAL = {("runtime/exec/devices.c", "CUDA")}


def requirements():
    """Returns the parts of the library, each with the parts that it requires, directly or not."""
    options = ROOT / "cmake" / "options.cmake"
    lines = re.findall(r"^hlo_requires\(HLOFP8_WITH_(\w+)(.*)\)$", options.read_text(), re.M) if options.exists() else []
    required = {None: {None}}
    for part, rest in lines:
        direct = re.findall(r"HLOFP8_WITH_(\w+)", rest)
        required[part] = {None, part}.union(*(required.get(p, {p}) for p in direct))
    return required


def the_map():
    """Returns, for each folder, the folders that it sees directly according to the map, all that it sees, and its part."""
    said, parts = {}, {}
    for line in re.findall(r"^hlo_room\((.*?)\)$", (ROOT / "CMakeLists.txt").read_text(), re.M | re.S):
        folder, *rest = line.split()
        sees = re.search(r"SEES ((?:[\w/]+\s*)+?)(?=SOURCES|LINK|$)", " ".join(rest))
        said[folder] = sees[1].split() if sees else []
        part = re.search(r"PART (\w+)", " ".join(rest))
        parts[folder] = part[1] if part else None
    everything = {}
    for folder, sees in said.items():
        everything[folder] = set(sees).union(*(everything[f] for f in sees))
    return said, everything, parts


def references(build):
    """Returns, for each file of the library, the files that it refers to, each with one of the symbols referred to."""
    defined, wanted = {}, collections.defaultdict(set)
    commands = build / "compile_commands.json"
    made = set(re.findall(r" -o (\S+\.o) ", commands.read_text())) if commands.exists() else None
    for path in build.glob("CMakeFiles/hlo_*.dir/**/*.o"):
        name = str(path).split(".dir/", 1)[1].removesuffix(".o")
        if made is not None and str(path.relative_to(build)) not in made:
            continue  # an object file of an earlier build, whose source no longer exists
        name = name.removeprefix("generated/")
        for line in subprocess.run(["nm", "-P", path], check=True, capture_output=True, text=True).stdout.splitlines():
            symbol, kind = line.split()[:2]
            if kind == "U":
                wanted[name].add(symbol)
            elif kind in "TDRBCVW":
                defined[symbol] = name
    return {name: {defined[s]: s for s in sorted(symbols) if defined.get(s, name) != name} for name, symbols in wanted.items()}


def circles(graph):
    """Returns the sets of files that reach each other (Tarjan's algorithm)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            circle = set()
            while node not in circle:
                circle.add(stack.pop())
            if len(circle) > 1:
                found.append(circle)

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def findings(build):
    said, seen, parts = the_map()
    required = requirements()
    graph = references(build)
    if not graph or not said:
        yield f"{build}: no object files, or no map"
    for name, others in sorted(graph.items()):
        folder = name.rsplit("/", 1)[0]
        for other, symbol in sorted(others.items()):
            if other.rsplit("/", 1)[0] not in seen.get(folder, set()) | {folder}:
                yield f"{name}: refers to {symbol} of {other}, which {folder} does not see"
            part, needed = parts.get(folder), parts.get(other.rsplit("/", 1)[0])
            if needed not in required.get(part, {None, part}) and (name, needed) not in CONDITIONAL:
                yield f"{name}: refers to {symbol} of {other}, a part that may be absent: {needed}"
    for circle in circles(graph):
        if not any(circle <= allowed for allowed in RECURSION):
            yield "a circle of files: " + ", ".join(sorted(circle))
    for folder, sees in said.items():
        readme = ROOT / folder / "README.md"
        line = "This folder may not include headers of other folders."
        if sees:
            line = f"This folder may include headers of {', '.join(f'`{f}/`' for f in sees)}, and of every folder that these folders may include."
        if not readme.exists() or line not in readme.read_text().split("\n"):
            yield f"{folder}/README.md: does not say '{line}'"
        sources = [p for p in (ROOT / folder).glob("*.*") if p.suffix in SOURCES]
        if len(sources) > MAX:
            yield f"{folder}: {len(sources)} sources, more than {MAX}"


def main():
    builds = [a for a in sys.argv[1:] if not a.startswith("--root=")]
    if len(builds) != 1:
        sys.exit(__doc__)
    sys.setrecursionlimit(10000)
    found = list(findings(pathlib.Path(builds[0])))
    print("\n".join(found))
    sys.exit(bool(found))


main()
