#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prepares the public headers for Doxygen, and checks that every public function has an example.

usage: filter.py HEADER     prints the header for Doxygen (INPUT_FILTER of the Doxyfile)
       filter.py --check    exits with status 1 if a function of include/hlo has no example

The headers have plain comments. The filter marks those that document a file, a type, a field or a function, and protects
the characters that are special in Doxygen. Below each function, it includes the example: the first part of a file in
examples/reference that calls the function. A part is between two lines with the comment `/* [NAME] */`.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PART = re.compile(r"^ */\* \[([\w-]+)\] \*/\n(.*?)^ */\* \[\1\] \*/\n", re.M | re.S)
CALL = re.compile(r"\b(hlo\w+)\b(?=\()")
DECLARED = re.compile(r"^(?!typedef|struct \w+ \{|enum )(?:static inline )?\w[\w ]*?[ *]\**(hlo\w+)\(", re.M)


def examples():
    """Returns {function: (file, part)} of the first example of each function."""
    found = {}
    for path in sorted((ROOT / "examples/reference").glob("*.c")):
        for name, code in PART.findall(path.read_text()):
            for function in re.findall(r"\b(hlo(?:fp8)?_\w+)\b", code):
                found.setdefault(function, (path.name, name))
    return found


def split(text):
    """Returns alternately code and comments. A comment in a string is code."""
    parts, end = [], 0
    for token in re.finditer(r'"(?:\\.|[^"\\\n])*"|(/\*.*?\*/)', text, re.S):
        if token[1]:
            parts += [text[end:token.start()], token[1]]
            end = token.end()
    return parts + [text[end:]]


def functions(text):
    """Returns the functions that a header declares."""
    return DECLARED.findall("".join(split(text)[::2]))


def protect(comment):
    """Escapes the characters that are special in Doxygen, except in blocks of code."""
    kept = []
    for line in comment.split("\n"):
        if not line.startswith(" *     "):
            parts = re.split(r'("[^"]*")', line)  # Doxygen does not interpret text in quotes
            line = "".join(part if i % 2 else re.sub(r"([\\@<>#%])", r"\\\1", part) for i, part in enumerate(parts))
        kept.append(line)
    parts = re.split(r"`([^`]*)`", "\n".join(kept))
    return "".join(part if i % 2 == 0 else "'.'" if part == "." else f"<code>{part}</code>" for i, part in enumerate(parts))


FIELD = re.compile(r"^(    (?!return )(?:(?:const|struct|unsigned) )*\w+ )((?:\*|const )*)(\w+(?:\[\w+\])?)((?:, \**\w+)*);( *)$", re.M)


def document_fields(code, first, last):
    """Documents the fields without a comment. `first` and `last`: the comments before and after the code."""
    def one(field):
        before, after = code[:field.start()].strip(), code[field.end():]
        others = re.findall(r"(\**)(\w+)", field[4])
        text = f"{field[1]}{field[2]}{field[3]};{field[5]}"
        if (before or not first) and (after.strip() or not last):
            text += " /**< Documented with the field before it, or with its type. */"
        more = "".join(f"\n{field[1]}{stars}{name}; /**< Documented with {field[3]}. */" for stars, name in others)
        return text + more if not more or after.strip() or not last else more.lstrip("\n") + "\n" + text
    if first:  # macros after a documented one
        code = re.sub(r"(?<=\n)(?<!^\n)(#define \w+ [^\\\n]*)", r"\1 /**< Documented with the macro before it. */", code)
    return FIELD.sub(one, code)


def convert(text, known):
    """Returns the text of a header for Doxygen."""
    parts = split(text)
    seen_file, group = False, ""
    for i in range(1, len(parts), 2):
        comment, before, after = parts[i], parts[i - 1], parts[i + 1]
        if comment.startswith("/* SPDX"):
            continue
        if comment.startswith("/* ---"):  # a heading of a section
            parts[i] = f"{group}/** \\name {' '.join(comment.split()[2:-1]).capitalize()} */\n/**@{{*/"
            group = "/**@}*/\n"
            continue
        body = protect(comment[2:-2])
        if not seen_file:  # the first comment is that of the file
            seen_file = True
            parts[i] = f"/** \\file\n *{body}*/"
            continue
        line = before.rsplit("\n", 1)[-1]
        function = re.match(r"\s*(?:static inline )?\w[\w \n]*?[ *\n]\**(hlo\w+)\(", after)
        if line.strip():  # after a field, on its line
            parts[i] = f"/**<{body}*/"
        elif function and function[1] in known:
            file, name = known[function[1]]
            parts[i] = f"/**{body}\n *\n * \\par Example\n * \\snippet {file} {name}\n */"
        else:
            parts[i] = f"/**{body}*/"
    for i in range(0, len(parts), 2):
        first = i > 0 and parts[i - 1].startswith("/** ")
        last = i + 1 < len(parts) and parts[i + 1].startswith("/**<")
        parts[i] = document_fields(parts[i], first, last)
    return "".join(parts).replace("#pragma GCC visibility pop", group + "#pragma GCC visibility pop")


def main():
    known = examples()
    if sys.argv[1:] != ["--check"]:
        sys.stdout.write(convert(pathlib.Path(sys.argv[1]).read_text(), known))
        return 0
    missing = count = 0
    for header in sorted((ROOT / "include/hlo").glob("*.h")):
        for function in functions(header.read_text()):
            count += 1
            if function not in known:
                missing += 1
                print(f"include/hlo/{header.name}: {function}() has no example in examples/reference")
    print(f"{count} functions, {missing} without an example")
    return int(missing > 0 or count < 100)


if __name__ == "__main__":
    sys.exit(main())
