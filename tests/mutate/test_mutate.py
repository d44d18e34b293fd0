# SPDX-License-Identifier: Apache-2.0
"""Checks that mutate.py distinguishes detected and undetected mutants, on a generated tree.

usage: test_mutate.py --work DIR
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = b"""#include <stdlib.h>
int at_most(int a, int b) { return a < b ? a : b; }
int sum(const int *of, int count)
{
    int all = 0;
    for (int i = 0; i < count; i++)
        all += of[i];
    return all;
}
int largest(const int *of, int count)
{
    int most = 0;
    for (int j = 0; j < count; j++)
        most = of[j] > most ? of[j] : most;
    return most;
}
int same(int a) { return a * 2; }
int nobody(int a) { return a + 1; }
void stop(int a)
{
    if (a < 0) abort();
}
void drop(void *all)
{
    free(all);
}
"""
TEST = """#include <stdlib.h>
int at_most(int, int), sum(const int *, int), largest(const int *, int), same(int);
void stop(int);
int main(int argc, char **argv)
{
    (void)argv;
    int of[] = {1, 2, 3};
    if (argc > 1) return !(same(2) == 4);
    stop(1);
    int *few = calloc(2, sizeof *few);
    few[1] = 5;
    if (largest(few, 2) != 5) return 1;
    free(few);
    return !(at_most(1, 2) == 1 && at_most(2, 1) == 1 && at_most(3, 3) == 3 && sum(of, 3) == 6);
}
"""
CMAKE = """cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES C)
enable_testing()
add_library(small SHARED ir/small.c)
add_executable(test_small tests/test_small.c)
target_link_libraries(test_small PRIVATE small)
set(HLOFP8_SANITIZE "" CACHE STRING "")
if(HLOFP8_SANITIZE)
  set(prefix sanitized/)
endif()
add_test(NAME ${prefix}unit/small COMMAND test_small)
add_test(NAME other COMMAND test_small 1)
add_test(NAME ${prefix}lit/some COMMAND ${CMAKE_COMMAND} -E true)
add_test(NAME fails COMMAND ${CMAKE_COMMAND} -E false)
file(WRITE ${CMAKE_BINARY_DIR}/testdata/lit.cfg.py
"import lit.formats
config.name = 'small'
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = ['.test']
config.test_source_root = '${CMAKE_SOURCE_DIR}/testdata'
config.test_exec_root = '${CMAKE_BINARY_DIR}/testdata'
config.substitutions.append(('%small', '${CMAKE_BINARY_DIR}/test_small'))
")
"""
PRESETS = {"version": 6, "configurePresets": [{
    "name": "dev", "generator": "Ninja", "binaryDir": "${sourceDir}/build/dev",
    "cacheVariables": {"CMAKE_BUILD_TYPE": "Release", "CMAKE_EXPORT_COMPILE_COMMANDS": "ON"}}, {
    "name": "asan-ubsan", "inherits": "dev", "binaryDir": "${sourceDir}/build/asan-ubsan",
    "cacheVariables": {"HLOFP8_SANITIZE": "address", "CMAKE_C_FLAGS": "-fsanitize=address"}}]}
FILES = {"CMakeLists.txt": CMAKE, "CMakePresets.json": json.dumps(PRESETS), "ir/small.c": SOURCE.decode(), "tests/test_small.c": TEST,
         "testdata/some/some.test": "// RUN: %small && touch %t\n", ".gitignore": "/build/\n"}

# original code, mutant, kind of mutation, outcome
PLANTED = [
    (b"a < b", b"a <= b", "expression", "survived"),  # the mutant is equivalent for equal numbers
    (b"i < count", b"i < count - 1", "expression", "killed by"),
    (b"i++", b"i += 0", "expression", "killed by"),  # the mutant does not end
    (b"all += of[i]", b"", "statement", "killed by"),
    (b"a * 2", b"a + a", "expression", "the same code"),
    (b"a + 1", b"a - 1", "expression", "not reached"),
    (b"a < 0", b"a >= 0", "expression", "killed by"),  # the mutant aborts, in the shared library
    (b"j < count", b"j <= count", "expression", "killed by sanitized/"),  # the mutant reads past the end
]


def planted():
    rows = []
    for number, (original, text, form, _) in enumerate(PLANTED):
        at = SOURCE.index(original)
        rows.append({"number": number, "file": "ir/small.c", "line": SOURCE[:at].count(b"\n") + 1, "start": at,
                     "end": at + len(original), "kind": form, "form": form, "text": text.decode()})
    return rows


def mutate(folder, *options):
    done = subprocess.run([sys.executable, HERE / "mutate.py", f"--root={folder}", "--jobs=2", "--patience=2", *options],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"mutate.py {options} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def expect(told, *wanted):
    for what in wanted:
        if what not in told:
            sys.exit(f"not printed: {what}\n{told}")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--work", type=pathlib.Path, required=True)
    tree = options.parse_args().work.resolve() / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    for name, text in FILES.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    subprocess.run(["git", "init", "--quiet", str(tree)], check=True)
    plan = tree / "build" / "some.plan"
    plan.parent.mkdir()
    plan.write_text(json.dumps(planted()))

    told = mutate(tree, f"--plan={plan}")
    for number, (_, _, _, what) in enumerate(PLANTED):
        if what not in ("not reached", "survived"):
            row = next(line for line in told.split("\n") if f"] {number} ir/small.c:" in line)
            expect(row, what)
    expect(told, "left out, fails without a mutant: fails (1)", "8 mutants: 5 killed, 1 survived, 1 not reached, 1 the same code",
           "-int at_most(int a, int b) { return a < b ? a : b; }\n+int at_most(int a, int b) { return (a <= b) ? a : b; }",
           "Reached by 2 tests: ", "+int nobody(int a) { return (a - 1); }\n```\nNo test reaches it.")

    # Results are stored; only surviving mutants run a new test.
    golden = tree / "testdata" / "some" / "other.test"
    golden.write_text('// RUN: %small && bash -c "test \\"$HLO_MUTANT\\" != 0"\n')
    told = mutate(tree, f"--plan={plan}")
    expect(told, "1 tests run with a log", "[7/8] 0 ir/small.c:2 expression: killed by lit/some/other.test", "6 killed, 0 survived")

    if (HERE.parents[1] / "build" / "mutate" / "python").exists():
        told = mutate(tree, "--places=99", "--seed=3", f"--python={sys.executable}")
        expect(told, "10 mutants: ")  # one mutant per line, except on the line that only frees memory
    else:
        print("places are not drawn: libclang is not there until `tools/dev mutate` ran")


if __name__ == "__main__":
    main()
