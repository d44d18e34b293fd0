#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that a failing output causes status 1 and one message, and no other output.

usage: outputs.py --bin BIN --models MODELS --dump FOLDER --options OPTIONS_DEF --plugin PLUGIN --work WORK

Each option of options.def is in a command here if it prints or writes, otherwise in SILENT. Each command runs with
its standard stream on a full device, closed, and as a pipe without a reader, with and without SIGPIPE. Then it runs
with each output file on a full device, and with a name that is too long.
"""
import argparse
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys

# Options that select input, computation or format, and print nothing themselves.
SILENT = """inputs seed draw accumulate fp8-rounding devices dump-values graph autotune autotune-cache kernel-cache workspace fallback
partitioned xla topology backend optimize target cuda scale-operands emit allow-bias-rounding min-gain wide merge-dots ragged
passes rules module framework-files expect-fp8 fail-on-missed baseline allow-empty verify-each no-verify max-errors
remarks-format lint quantize amaxes record-amaxes""".split()

# The stream that receives the text, and the command: {m} and {n} are modules, {d} is a dump folder, {p} a plugin.
COMMANDS = """
1 opt --help
1 opt --version
1 opt --list-passes
1 opt --explain=all
1 opt --explain=unused
1 opt {m}
1 opt -o - {m}
1 opt --format=pb {m}
1 opt --format=pbtxt {m}
1 opt --print=short {m}
1 opt --extract=dot_general.1 {m}
1 opt --ahead=* --ahead-output=a.hlo {m}
1 opt --ahead=* --ahead-output=- -o a.hlo {m}
1 opt --diff {m} {n}
1 opt {d}
1 opt --remarks=all -o /dev/stdout {m}
1 opt --remarks-file=- -o a.hlo {m}
1 opt --remarks-file=a.txt {m}
1 opt --report=- --remarks-file=a.txt -o a.hlo {m}
1 opt --report=a.html {m}
2 opt --remarks=all -o a.hlo {m}
2 opt --stats -o a.hlo {m}
2 opt --time-passes -o a.hlo {m}
2 opt --print-after=all -o a.hlo {m}
1 run --help
1 run --version
1 run --version --backend=cpu
1 run {m}
1 run --plan {m}
1 run --profile {m}
1 run --check-nan {m}
1 run --time=1 {m}
1 run --optimize --bisect {m}
1 run --quantize=current --max-error=1 {m}
1 run --quantize=current --max-error=1 --wide-file=a.txt {m}
1 run --quantize=current --max-error=1 --remarks-file=a.txt --report=b.html {m}
2 run --quantize=current --max-error=1 --remarks=all {m}
1 run --optimize --compare=before --all-outputs {m}
1 run --outputs=a.npz {m}
1 run --trace=a.json {m}
1 run --dump-values=* --values=a.npz --outputs=b.npz {m}
1 run --backend=pjrt:{p} --compile-only {m}
1 run --backend=pjrt:{p} --compile-only --optimized=a.hlo {m}
""".strip().splitlines()
FILES = re.compile(r"(?<==|\s)[ab]\.\w+")


def check_options(path):
    """Checks that each option except -o is in a command or in SILENT, and that each word of SILENT is an option."""
    names = set(re.findall(r"^OPTION\(\w+, .*?, (?:0|'\w'), \"([\w-]+)\"", path.read_text(), re.M))
    used = set(re.findall(r"--([\w-]+)", " ".join(COMMANDS)))
    assert len(names) > 50, names
    return [f"--{name} is in no command, nor in SILENT" for name in sorted(names - used - set(SILENT))] + \
           [f"--{name} of SILENT is not an option" for name in sorted(set(SILENT) - names)]


def execute(command, folder, how, stream):
    """Runs a command with a failing stream. Returns the status and the outputs; that of the failing stream is empty."""
    streams = {1: subprocess.PIPE, 2: subprocess.PIPE}
    opened = []
    if how == "full":
        opened = [os.open("/dev/full", os.O_WRONLY)]
    elif how.startswith("pipe"):
        reader, writer = os.pipe()
        os.close(reader)
        opened = [writer]
    if opened:
        streams[stream] = opened[0]

    def prepare():
        signal.signal(signal.SIGPIPE, signal.SIG_IGN if how == "pipe ignored" else signal.SIG_DFL)
        if how == "closed":
            os.close(stream)

    started = subprocess.Popen(command, cwd=folder, stdout=streams[1], stderr=streams[2], preexec_fn=prepare, restore_signals=False)
    for descriptor in opened:
        os.close(descriptor)
    texts = started.communicate()
    return started.returncode, (texts[0] or b""), (texts[1] or b"").decode()


def main():
    parser = argparse.ArgumentParser()
    for name in ("bin", "models", "dump", "options", "plugin", "work"):
        parser.add_argument("--" + name, type=pathlib.Path, required=True)
    args = parser.parse_args()
    wrong = check_options(args.options)
    names = {"m": args.models / "seed_relu_damax.hlo", "n": args.models / "seed_relu_damax.xla.hlo", "d": args.dump, "p": args.plugin}
    folder = args.work / "outputs"
    count = 0

    def trial(program, text, how, stream, status):
        nonlocal count
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        command = [str(args.bin.resolve() / f"hlo-fp8-{program}"), *shlex.split(text.format(**names))]
        count += 1
        found, out, err = execute(command, folder, how, stream)
        left = sorted(path.name for path in folder.iterdir())
        errors = err.count("error: cannot ")
        said = errors == 1 if status == 1 and stream == 1 else errors == 0
        if found != status or (status not in (0, 3) and (left or not said)):
            wrong.append(f"{how}: hlo-fp8-{program} {text}: status {found}, not {status}; left {left}; {errors} errors\n{err[-400:]}")
        if how == "too long" and out:
            wrong.append(f"hlo-fp8-{program} {text[:80]}: wrote {len(out)} bytes before it failed")

    for line in COMMANDS:
        stream, program, text = line.split(" ", 2)
        trial(program, text, "", 1, 3 if "--diff" in text else 0)
        for how in ("full", "closed", "pipe", "pipe ignored"):
            trial(program, text, how, int(stream), -signal.SIGPIPE if how == "pipe" else 1)
        for file in FILES.findall(text):
            trial(program, text.replace(file, "/dev/full"), "file full", 1, 1)
            trial(program, text.replace(file, 300 * "x" + file), "too long", 1, 1)
    print("\n".join(wrong))
    print(f"{count} runs of {len(COMMANDS)} commands, {len(wrong)} wrong")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
