#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the layout of the public structs and the values of the public enumerators with a checked-in list, so that every change of
the binary interface is noticed.

usage: layout.py CC INCLUDE layout.txt [--write]

The list has a line for each struct with its size, and for each field with its offset and size, and a line for each enumerator with its
value. It is that of x86-64, and equal on all machines with 64-bit pointers. --write replaces the list.
"""
import pathlib
import re
import subprocess
import sys
import tempfile


def structs(text):
    """Yields the name and the fields of each struct that is not opaque."""
    for body, name in re.findall(r"^typedef struct \w+ \{(.*?)^\} (\w+);", text, re.S | re.M):
        fields = []
        for declaration in body.split(";"):
            callback = re.search(r"\(\*(\w+)\)\(", declaration)
            parts = [] if callback else declaration.split(",")
            fields += [callback[1]] if callback else []
            fields += [re.search(r"(\w+)(?:\[\w+\])?$", part.strip())[1] for part in parts if part.strip()]
        yield name, fields


def program(include):
    """Returns a C program that prints the list."""
    lines, body = [], []
    for header in sorted(include.glob("hlo/*.h")):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        lines.append(f'#include "hlo/{header.name}"')
        for name, fields in structs(text):
            body.append(f'printf("struct {name} %zu\\n", sizeof({name}));')
            for field in fields:
                body.append(f'printf("    {field} %zu %zu\\n", offsetof({name}, {field}), sizeof((({name} *)0)->{field}));')
        for enumerators, name in re.findall(r"^(?:typedef )?enum \w*\s*\{(.*?)\} ?(\w*);", text, re.S | re.M):
            body.append(f'puts("enum {name}");')
            for enumerator in re.findall(r"\b(HLO_\w+)\s*(?:=[^,]*)?(?:,|$)", enumerators.strip()):
                body.append(f'printf("    {enumerator} %lld\\n", (long long){enumerator});')
    return "\n".join(["#include <stddef.h>", "#include <stdio.h>", *lines, "int main(void) {", *body, "return 0; }", ""])


def main(cc, include, listed, *options):
    with tempfile.TemporaryDirectory() as folder:
        source, binary = pathlib.Path(folder, "layout.c"), pathlib.Path(folder, "layout")
        source.write_text(program(pathlib.Path(include)))
        subprocess.run([cc, "-std=c99", "-I", include, source, "-o", binary], check=True)
        found = subprocess.run([binary], capture_output=True, text=True, check=True).stdout
    path = pathlib.Path(listed)
    if "--write" in options:
        path.write_text(found)
    expected = path.read_text()
    if found == expected and len(found.splitlines()) > 500:
        return 0
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(found)
        file.flush()
        subprocess.run(["diff", "-u", path, file.name], check=False)
    print("the layout of public types has changed; if that is intended, run layout.py with --write")
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
