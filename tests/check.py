#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds and runs only the tests of changed files, on the dev build.

usage: tools/dev check [PATH...]

Default: the files that differ from HEAD, and new files. TESTS maps a folder to the tests that cover it; the nearest
folder above a file determines its row. A changed golden test, unit test or peer test runs alone. The whole suite is
`tools/dev test`.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "dev"

# For a folder or file, the names of its ctest tests, as regular expressions.
TESTS = {
    "": ["lint/directives"],
    "api": ["unit/test_api_"],
    "bindings": ["peer/test_(arguments|mistakes|docs)$"],
    "docs": ["docs/", "lint/(readme|language|tables|examples|blocks|example|size)$"],
    "README.md": ["docs/", "lint/(readme|language|tables|examples|blocks|example|size)$"],
    "examples": ["embed$"],
    "grammar": ["unit/test_grammar_", "lit/parse", "recovery"],
    "grammar/message": ["unit/test_grammar_proto", "peer/test_(proto|names)$"],
    "grammar/proto": ["unit/test_grammar_proto", "peer/test_(proto|names)$"],
    "grammar/rules": ["unit/test_passes_rules", "unit/test_api_options", "lit/tool"],
    "grammar/text": ["unit/test_grammar_text", "lit/(parse|verify)", "recovery", "peer/test_syntax$"],
    "include": ["unit/test_api_", "lit/tool"],
    "ir": ["unit/test_ir", "lit/(parse|verify|passes)"],
    "ir/error": ["unit/test_error_", "lit/run"],
    "ir/eval": ["unit/test_eval_", "lit/run"],
    "ir/expand": ["lit/run"],
    "ir/float": ["unit/test_float_rows", "lit/run", "peer/test_float$"],
    "ir/infer": ["unit/test_ir_", "lit/(parse|verify)"],
    "ir/kernel": ["unit/test_eval_", "lit/run"],
    "ir/verify": ["unit/test_ir_", "lit/verify"],
    "matmul": ["unit/test_matmul_", "lit/cublaslt"],
    "matmul/cost": ["unit/test_matmul_models", "lit/tool", "peer/test_cost$"],
    "passes": ["unit/test_passes_", "lit/passes"],
    "passes/emit": ["unit/test_passes_", "lit/passes", "lit/tool"],
    "passes/reason": ["docs/explain", "lit/tool"],
    "report": ["unit/test_passes_report", "lit/tool", "peer/test_(remarks|report)$"],
    "runtime": ["unit/test_runtime_(npz|plan|extents|tiles)", "lit/run"],
    "runtime/bisect": ["lit/run"],
    "runtime/cuda": ["unit/test_cuda_(kernels|library|matmul|order)", "unit/test_runtime_(buffer|dlpack|faults)", "cuda/runs"],
    "runtime/ffi": ["unit/test_runtime_ffi", "peer/test_ffi$"],
    "runtime/pjrt": ["peer/test_pjrt$"],
    "testdata/models": ["unit/test_matmul_models", "peer/test_programs$"],
    "testdata/programs": ["peer/test_programs$"],
    "testdata/unquantized": ["lit/passes"],
    "tests/bench": ["bench"],
    "tests/cuda": ["cuda/"],
    "tests/embed": ["embed$", "docs/ci", "threads"],
    "tests/gpu": ["gpu/stages"],
    "tests/lint": ["lint/self"],
    "tests/mutate": ["mutate"],
    "tests/oom": ["oom"],
    "tests/random": ["random/modules"],
    "tools": ["lit/tool", "outputs", "stopping", "docs/blocks"],
}


def row(path):
    """Returns the tests of a file: those of the nearest folder of TESTS above it."""
    for folder in [path, *pathlib.PurePosixPath(path).parents]:
        name = "" if str(folder) == "." else str(folder)
        if name in TESTS:
            return TESTS[name]
    return []


def changed():
    words = ["git", "-C", str(ROOT), "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all"]
    entries = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split("\0")
    return [entry[3:] for entry in entries if entry and (ROOT / entry[3:]).exists()]


def plan(paths):
    """Returns regular expressions of ctest tests, and golden tests, for the files."""
    tests, goldens = set(), []
    for path in paths:
        golden = re.fullmatch(r"testdata/(?!models/|programs/|unquantized/)[\w-]+/.*\.(hlo|test)", path)
        single = re.fullmatch(r"tests/(unit|peer)/[\w/-]*?(test_\w+)\.(c|py)", path)
        if golden:
            goldens.append(BUILD / path)
        elif single:
            tests.add(f"{single[1]}/{single[2]}$")
        else:
            tests.update(row(path))
    return sorted(tests), goldens


def run(*words):
    print("$", " ".join(map(str, words)), flush=True)
    return subprocess.run(words, cwd=ROOT, check=False).returncode


def main():
    args = argparse.ArgumentParser(prog="tools/dev check", description=__doc__.split("\n")[0])
    args.add_argument("paths", nargs="*", metavar="PATH", help="a file or folder of the tree")
    given = args.parse_args().paths
    paths = []
    for path in given:
        full = pathlib.Path(path).resolve()
        if not full.exists() or ROOT not in (full, *full.parents):
            sys.exit(f"tools/dev check: {path} is not a file or folder of this tree")
        inside = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard", "--", str(full)], check=True,
                                capture_output=True, text=True).stdout.split("\n")
        paths += [name for name in inside if name]
    paths = paths if given else changed()
    if not paths:
        sys.exit("tools/dev check: no file differs from HEAD; name files or folders")
    tests, goldens = plan(paths)
    ctest = ["ctest", "--test-dir", str(BUILD), "-R", "|".join(f"^{test}" for test in tests)]
    listed = subprocess.run([*ctest, "-N"], check=True, capture_output=True, text=True).stdout if tests else ""
    names = re.findall(r"Test +#\d+: (\S+)", listed)
    start = time.monotonic()
    failed = [run("ninja", "-C", BUILD)]
    built = time.monotonic()
    sources = [path for path in paths if path.endswith((".c", ".h")) and (ROOT / path).exists()]
    if not failed[0]:
        if sources:
            failed.append(run(pathlib.Path(sys.executable).parent / "clang-format", "--dry-run", "-Werror", *sources))
        if goldens:
            failed.append(run(sys.executable, "tests/run-lit.py", "-q", *goldens))
        if names:
            failed.append(run(*ctest, "-j2", "--output-on-failure"))
    print(f"{len(paths)} files, {len(names)} tests and {len(goldens)} golden tests: "
          f"build {built - start:.0f} s, tests {time.monotonic() - built:.0f} s")
    sys.exit(any(failed))


if __name__ == "__main__":
    main()
