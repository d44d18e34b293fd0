#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that lint.py and rooms.py find one fault per check in a tree, and none in a tree without faults."""
import os
import pathlib
import subprocess
import sys
import tempfile

LINT = pathlib.Path(__file__).with_name("lint.py")
RUN = "// RUN: %hlo-fp8-opt %s | FileCheck %s\n"
CHECK = "// CHE" + "CK"

# A check, a file and its text, and the message of the finding.
FAULTS = [
    ("directives", "testdata/a/x.hlo", RUN + "// CHE" + "KC: a\n" + CHECK + ": b\n", "CHEKC"),
    ("directives", "testdata/a/x.hlo", RUN + CHECK + ": a\n" + CHECK + "_NEXT: b\n", "CHECK_NEXT"),
    ("directives", "testdata/a/x.hlo", RUN + CHECK + ": a\n" + CHECK + "-NXT: b\n", "CHECK-NXT"),
    ("directives", "testdata/a/x.hlo", RUN + CHECK + ": a\n" + CHECK + " b\n", "without its colon"),
    ("directives", "testdata/a/x.hlo", RUN + CHECK + ": a\n// FP8: b\n// FP8-NOT: c\n", "FP8-NOT"),
    ("directives", "testdata/a/x.hlo", RUN, "there is no CHECK line"),
    ("directives", "testdata/a/x.hlo", "HloModule x\n", "no RUN line"),
    ("directives", "testdata/a/x.test", "// RUN: %hlo-fp8-opt %S/x.hlo\n", "nothing checks"),
    ("directives", "testdata/a/bad-x.hlo", RUN + CHECK + ": error\n", "demand a refusal"),
    ("size", "ir/x.c", "int x;\n" * 1001, "1001 lines"),
    ("size", "ir/x.h", "int x;\n" * 1001, "1001 lines"),
    ("size", "tests/x.py", "x = 1\n" * 1001, "1001 lines"),
    ("functions", "ir/x.c", "int f(void) {\n" + "    g();\n" * 70 + "}\n", "function of"),
    ("headings", "ir/x.c", "/* " + 89 * "-" + " a\n * name */\n", "one line"),
    ("headings", "ir/x.c", "/* " + 50 * "-" + " name */\n", "100 columns"),
    ("guards", "ir/x.h", "#ifndef HLO_X_H\n#define HLO_X_H\n#endif\n", "expected HLO_IR_X_H"),
    ("guards", "include/hlo/x.h", "int x;\n", "expected HLO_X_H"),
    ("comments", "ir/x.c", "/* Whether it is so. */\n", "begins with 'Whether'"),
    ("words", "ir/x.c", "/* TO" + "DO */\n", "TODO"),
    ("words", "ir/x.c", '"/ho' + 'me/me/x"\n', "home"),
    ("size", "README.md", "x\n" * 131, "131 lines"),
    ("spdx", "ir/x.c", "int x;\n", "no SPDX line"),
    ("spdx", "testdata/x.test", "// SPDX-License-Identifier: Apache-2.0\n// RUN: x\n", "no SPDX line"),
    ("language", "ir/README.md", "Told so.\n", "Told"),
    ("products", "ir/x.tab.c", "int x;\n", "product"),
    ("products", "ir/x.c", "int x;", "newline"),
    ("readme", "ir/x.c", "int x;\n", "no README.md"),
    ("readme", "ir/README.md", "`y.c`\n", "no y.c"),
    ("readme", "docs/x.md", "`ir/y.c`\n", "no ir/y.c"),
    ("readme", "docs/x.md", "[y](y.md)\n", "y.md leads to no file"),
    ("readme", "docs/x.md", "# X\n[y](#y)\n", "#y leads to no heading"),
    ("tables", "ir/x.def", "ROW(x)\n", "includes"),
    ("tables", "matmul/table/activation.def", "HLO_ACTIVATION(SILU, 0, 0)\n", "no rule adds SILU"),
    ("tables", "matmul/table/target.def", "HLO_TARGET(95, 1)\n", "docs/cost.md does not have sm_95"),
    ("tables", "report/format.def", "HLO_REMARKS_FORMAT(CSV, csv)\n", "docs/diagnostics.md does not have csv"),
    ("tables", "passes/reason/reason.def", 'HLO_REASON(X, "no-page", 0, 0)\n', "no page passes/reason/pages/no-page.md"),
    ("tables", "passes/pass.def", 'PASS("untested", FUNCTION(f), 0, 0)\n', "no test in testdata runs untested"),
    ("tables", "tools/options.def", 'OPTION(UNREAD, 0)\n', "no program reads OPTION_UNREAD"),
    ("tables", "tools/options.def", 'OPTION(SOME, OPT, 0, "some", FLAG, NULL)\n', "no example of --some"),
    ("tables", "docs/cli.md", "```sh\nhlo-fp8-opt --some\n```\n", "no option --some"),
    ("silence", "ir/x.c", "void f(void) { exit(1); }\n", "exits"),
    ("silence", "passes/x.c", "static int count;\n", "mutable"),
    ("questions", "passes/x.c", "static bool is_fp8(hlo_rule_env *env, int x) {\n}\n", "must not make"),
    ("examples", "docs/x.md", "```c\nint x;\n```\n", "not in tests/embed"),
    ("blocks", "docs/x.md", "```\nx\n```\n", "nothing runs"),
    ("blocks", "README.md", "```hlo\nx\n```\n", "nothing runs"),
    ("blocks", "docs/x.md", "<!-- shown: a picture -->\n\n```python\nx\n```\n", "no block after"),
    ("coverage", "testdata/passes/COVERAGE.md", "| a | `fp8/x` | |\n", "no fp8/x"),
    ("coverage", "testdata/passes/COVERAGE.md", "| a | `rule x` | |\n", "no rule x"),
    ("coverage", "docs/from-gemm-rewriter.md", "a `rule x`\n", "no rule x"),
    ("format", "ir/x.c", "int  x;\n", "clang-format"),
]


# Phrases that lint/language rejects, one per line.
WORDS = ("is none", "is no matrix", "behind", "beside", "told", "tells of", "of one's own", "has not its", "in vain", "lent", "mends", "as it is", "so no longer", "quantised",
         "normalisation", "colours", "neighbour", "behaviour", "analyse", "artefact", "licence", "modelling", "are none", "handed on", "hands it on", "goes on", "as HLO has it", "is to be",
         "whom", "whoever")


def lint(check, root):
    command = [sys.executable, LINT, check, "--check", f"--root={root}"]
    return subprocess.run(command, capture_output=True, text=True)


# Two folders, `b` above `a`: their sources and READMEs, and the findings about one fault at a time.
ROOMS = {
    "CMakeLists.txt": "hlo_room(a)\nhlo_room(b SEES a)\n",
    "a/README.md": "This folder may not include headers of other folders.\n",
    "b/README.md": "This folder may include headers of `a/`, and of every folder that these folders may include.\n",
    "a/low.c": "int low(void) { return 1; }\n",
    "a/other.c": "int low(void); int other(void) { return low(); }\n",
    "b/high.c": "int low(void); int high(void) { return low(); }\n",
}
ROOM_FAULTS = [
    ({}, None),
    ({"a/low.c": "int high(void); int low(void) { return high(); }\n"}, "which a does not see"),
    ({"a/low.c": "int other(void); int low(void) { return other(); }\n"}, "a circle of files: a/low.c, a/other.c"),
    ({"b/README.md": "This folder may not include headers of other folders.\n"}, "b/README.md: does not say"),
    ({f"a/{i}.h": "" for i in range(16)}, "a: 18 sources"),
    ({"CMakeLists.txt": "\n"}, "no map"),
    ({"CMakeLists.txt": "hlo_room(a PART LOW)\nhlo_room(b SEES a)\n"}, "a part that may be absent: LOW"),
    ({"CMakeLists.txt": "hlo_room(a PART LOW)\nhlo_room(b PART HIGH SEES a)\n",
      "cmake/options.cmake": "hlo_requires(HLOFP8_WITH_HIGH HLOFP8_WITH_LOW)\n"}, None),
    ({"a/low.c": None, "a/other.c": None, "b/high.c": None}, "no object files"),
]


def rooms(fault):
    """Returns the findings of rooms.py for the two folders with some files changed or, for None, absent."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in {**ROOMS, **fault}.items():
            if text is None:
                continue
            path = pathlib.Path(root, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            if path.suffix == ".c":
                made = pathlib.Path(root, f"build/CMakeFiles/hlo_{path.parent.name}.dir/{name}.o")
                made.parent.mkdir(parents=True, exist_ok=True)
                subprocess.run([os.environ.get("CC", "cc"), "-c", path, "-o", made], check=True)
        command = [sys.executable, LINT.with_name("rooms.py"), f"{root}/build", f"--root={root}"]
        return subprocess.run(command, capture_output=True, text=True)


def main():
    failures = 0
    for fault, said in ROOM_FAULTS:
        result = rooms(fault)
        if result.returncode != (1 if said else 0) or (said or "") not in result.stdout:
            failures += 1
            print(f"rooms: {said or 'no fault'}: {result.stdout}{result.stderr}")
    checks = dict.fromkeys(fault[0] for fault in FAULTS)
    with tempfile.TemporaryDirectory() as root:
        pathlib.Path(root, "x.c").write_text("/* SPDX-License-Identifier: Apache-2.0 */\nint x;\n")
        pathlib.Path(root, "y.md").write_text("# Y\nIt is no longer so and has not been, for there is no `behind-barrier`: [y](#y), [y](y.md#y), analyses.\n")
        for check in checks:
            result = lint(check, root)
            if result.returncode != 0:
                failures += 1
                print(f"{check}: refuses a tree without a fault: {result.stdout}{result.stderr}")
    with tempfile.TemporaryDirectory() as root:
        pathlib.Path(root, "x.md").write_text("".join(f"The {word} x.\n" for word in WORDS))
        found = lint("language", root).stdout.splitlines()
        if len(found) != len(WORDS):
            failures += 1
            print(f"language: {len(found)} of {len(WORDS)} lines found: {found}")
    for check, name, text, said in FAULTS:
        with tempfile.TemporaryDirectory() as root:
            path = pathlib.Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            result = lint(check, root)
            if result.returncode != 1 or said not in result.stdout:
                failures += 1
                print(f"{check}: does not find {text[:60]!r} in {name}: {result.stdout}{result.stderr}")
    sys.exit(1 if failures else 0)


main()
