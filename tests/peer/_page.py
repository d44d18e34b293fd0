#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the data of an HTML page of hlo-fp8. As a program, prints a page for golden tests: the markup without style,
script and drawings, then a line for each group, matmul and instruction of the data.

usage: _page.py FILE.html"""
import json
import pathlib
import re
import sys

DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.S)


def data_of(text):
    """Returns the groups, matmuls and gone matmuls of a page, each a list of dictionaries without empty values."""
    data = json.loads(DATA.search(text)[1])
    strings = data["strings"]

    def value(key, item):
        if key[0] == "$":
            return strings[item]
        if key == "facts":
            return {strings[item[i]]: strings[item[i + 1]] for i in range(0, len(item), 2)}
        if key.endswith("_graph") and isinstance(item, list):
            return [["*" if focus else "", *(strings[index] for index in texts)] for focus, *texts in item]
        return item

    def rows(table):
        named = [{key.lstrip("$"): value(key, item) for key, item in zip(table["keys"], row, strict=True)} for row in table["rows"]]
        return [{key: item for key, item in row.items() if item not in ("", [])} for row in named]

    return {part: rows(data[part]) for part in ("groups", "matmuls", "gone")}


def main():
    text = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
    data = data_of(text)
    for element in ("style", "script", "template"):
        text = re.sub(rf"<{element}\b.*?</{element}>\n?", "", text, flags=re.S)
    print(re.sub(r"sha256-[\w+/]{43}=", "sha256-HASH", text), end="")
    for part, rows in data.items():
        for row in rows:
            graphs = {key: row.pop(key) for key in [*row] if key.endswith("_graph")}
            print(part, json.dumps(row, ensure_ascii=False))
            for key, graph in graphs.items():
                if graph and isinstance(graph, int):
                    print(f"  {key}: drawing {graph}")
                for instr in graph or () if isinstance(graph, list) else ():
                    print(f"  {key}: {' | '.join(instr).strip()}")


if __name__ == "__main__":
    main()
