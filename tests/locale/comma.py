#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that a program with a decimal-comma locale reads and prints the same numbers.

usage: comma.py --bin BIN --testdata TESTDATA --preload SET_LOCALE --work WORK

Creates the locale, and runs each command without and with it. Texts and files must be identical; if they contain times,
only the form of the numbers is compared.
"""
import argparse
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

SOURCE = """comment_char %
escape_char /
LC_NUMERIC
decimal_point ","
thousands_sep ""
grouping -1
END LC_NUMERIC
"""

# Programs and options. {g}: a module with constants and a gelu, {q}: a training step, {a}: a call with an alpha, {d}: a
# dump folder.
COMMANDS = """
opt {g}
opt --format=pb {g}
opt --format=pbtxt {q}
opt --emit=ffi {q}
opt --emit=qdq {g}
opt --cuda=12.9 {q}
opt --passes= {a}
opt --rules=r.rules --remarks=all {q}
opt --remarks=all --remarks-format=json --lint -o /dev/null {q}
opt --remarks=all --remarks-format=sarif -o /dev/null {q}
opt --remarks=summary --remarks-file=- -o /dev/null {q}
opt --remarks-format=markdown --remarks-file=- -o /dev/null {q}
opt --report=- -o /dev/null {q}
opt --stats -o /dev/null {q}
opt --expect-fp8=55.5% --remarks=all -o /dev/null {q}
opt --extract=dot_general.1 {g}
opt --diff {g} {q}
opt {d}
opt --remarks-format=json {d}
run --plan {q}
run --plan --backend=cuda --target=sm_90 {a}
run --optimize --emit=ffi --compare=before --all-outputs {g}
run --optimize --compare=before --all-outputs {q}
run --outputs=o.npz {a}
run --optimize --bisect {q}
run --dump-values=* --values=o.npz --check-nan {g}
""".strip().splitlines()
TIMED = """
opt --time-passes -o /dev/null {q}
run --profile {g}
run --trace=o.json {g}
""".strip().splitlines()


def execute(command, folder, env):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "r.rules").write_text("phase algebra measure expression_size\n")
    done = subprocess.run(command, cwd=folder, env={**os.environ, **env}, capture_output=True)
    written = {path.name: path.read_bytes() for path in folder.iterdir()}
    return {"status": str(done.returncode).encode(), "stdout": done.stdout, "stderr": done.stderr, **written}


def numbers(text):
    """Returns whether the text has numbers with a point, and with a comma; shapes such as [32,128] do not count."""
    text = re.sub(rb"\[[\d,]*\]", b"", text)
    return bool(re.search(rb"\d\.\d", text)), bool(re.search(rb"\d,\d", text))


def main():
    parser = argparse.ArgumentParser()
    for name in ("bin", "testdata", "preload", "work"):
        parser.add_argument("--" + name, type=pathlib.Path, required=True)
    args = parser.parse_args()
    work = args.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    (work / "comma.src").write_text(SOURCE)
    # localedef warns about missing categories and exits with an error, but writes the locale.
    subprocess.run(["localedef", "-c", "--no-archive", "-i", "./comma.src", "-f", "ANSI_X3.4-1968", "./comma"], cwd=work,
                   env={**os.environ, "I18NPATH": "/nonexistent"}, capture_output=True)
    names = {"g": args.testdata / "models/bias_gelu_tanh.hlo", "q": args.testdata / "models/dense_qdq_train.hlo",
             "a": args.testdata / "cublaslt/one.hlo", "d": args.testdata / "tool/dump"}
    plain = {"SOURCE_DATE_EPOCH": "0", "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}
    comma = {**plain, "LC_ALL": "comma", "LOCPATH": str(work), "LD_PRELOAD": str(args.preload.resolve())}
    said = subprocess.run([sys.executable, "-c", "import locale; locale.setlocale(locale.LC_ALL, ''); print(locale.localeconv()['decimal_point'])"],
                          env={**os.environ, "LC_ALL": "comma", "LOCPATH": str(work)}, capture_output=True, text=True)
    assert said.stdout == ",\n", said
    wrong = []
    for text in [*COMMANDS, *TIMED]:
        program, options = text.split(" ", 1)
        command = [str(args.bin.resolve() / f"hlo-fp8-{program}"), *shlex.split(options.format(**names))]
        before, after = (execute(command, work / "run", env) for env in (plain, comma))
        if before["status"] not in (b"0", b"3"):
            wrong.append(f"{text}: status {before['status'].decode()}: {before['stderr'].decode()[-300:]}")
        for name, written in before.items():
            if text in TIMED:
                same = numbers(after[name]) == numbers(written)
            else:
                same = after.get(name) == written
            if not same:
                wrong.append(f"{text}: {name} differs")
    print("\n".join(wrong))
    print(f"{len(COMMANDS) + len(TIMED)} commands, {len(wrong)} outputs wrong")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
