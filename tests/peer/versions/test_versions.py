#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads, prints and runs the modules of old and new versions of JAX, TensorFlow and PyTorch/XLA (make.py).

usage: test_versions.py --bin BIN --models MODELS --work WORK [--data DIR] [--long] [--corpora DIR...]

Each module is printed, and the text is read and printed again, with the same result. It runs on the framework's
inputs, and must agree with the framework's outputs, before and after XLA's optimizations. EXCEPT lists what does not,
and why. docs/versions.md has the opcodes and custom calls of each version; HLO_UPDATE_GOLDENS=1 in the environment
writes this table. --long makes the data anew with every version that can be installed. testdata/versions/corpora.txt
lists the opcodes and custom calls of modules that are too large for the repository; --corpora writes this list.
"""
import concurrent.futures
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import numpy as np

import _script

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
import make  # noqa: E402

# The first version of each framework whose XLA rounds conversions to FP8 once.
ROUND_ONCE = {"jax": (0, 8), "tensorflow": (2, 21), "torch_xla": (2, 9)}

# What does not agree: version, program and stage (globs), the exit status, and the reason.
REMOVED = "simplify-fp-conversions of these versions removes conversions to a narrower type and back (docs/versions.md)"
EXCEPT = [
    ("tensorflow-2.17.1", "fp8_*", "before", 3, REMOVED),
    *((version, program, "before", 3, REMOVED) for version in ("jax-0.4.26", "jax-0.4.30") for program in ("fp8_[acdqr]*", "sharded_fp8")),
    ("tensorflow-2.8.4", "wide_types", "*", 3, "the FFT in f64 is Eigen's, whose errors are up to 63 units in the last place at size 6"),
]


def version(name):
    return tuple(int(part) for part in name.split("-")[1].split("."))


def options(name):
    """Returns the options with which the modules of a version run."""
    return ["--fp8-rounding=via-f16"] if version(name) < ROUND_ONCE[name.split("-")[0]] else []


def call(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def print_module(args, module, result):
    """Prints a module to a file. Returns the status, and the errors or the statistics."""
    status, _, said = call(args.bin / "hlo-fp8-opt", "--passes=", "--stats", "-o", result, module)
    return status, said


def opcodes(text, statistics):
    """Returns the opcodes and the targets of custom calls of a module."""
    rows = statistics.partition("\nopcodes\n")[2].partition("\nelement types")[0]
    return {f"`{row.split()[0]}`" for row in rows.splitlines()} | {f"custom-call `{target}`" for target in re.findall(r'custom_call_target="([^"]+)"', text)}


def check_text(args, module, work):
    """Prints the module, reads and prints the text again, and returns the differences."""
    once, twice = work / "once.hlo", work / "twice.hlo"
    for source, result in ((module, once), (once, twice)):
        status, said = print_module(args, source, result)
        if status:
            return said
        if source == module:
            (work / "statistics").write_text(said)
    return "" if once.read_bytes() == twice.read_bytes() else "the text differs when it is read and printed again"


def repeat(path, result, times):
    """Writes the arrays of a file several times, one after the other."""
    arrays = np.load(path)
    count = len(arrays.files)
    np.savez(result, **{str(copy * count + i): arrays[str(i)] for copy in range(times) for i in range(count)})
    return result


def check(args, name, folder, stage):
    """Returns the differences that a module of a program has, or nothing."""
    text, binary = folder / f"{stage}.hlo", folder / f"{stage}.hlo.pb"
    work = folder / stage
    work.mkdir()
    wrong = [found for found in (check_text(args, module, work) for module in (text, binary) if module.exists()) if found]
    inputs, outputs, several = folder / "inputs.npz", folder / "outputs.npz", []
    if (folder / "inputs8.npz").exists():  # before partitioning, each device has the whole arrays
        several = ["--devices=8"]
        if stage == "after":
            inputs, outputs = folder / "inputs8.npz", folder / "outputs8.npz"
        else:
            outputs = repeat(outputs, work / "outputs.npz", 8)
    status, said, errors = call(args.bin / "hlo-fp8-run", *several, *options(name), f"--inputs={inputs}", f"--compare={outputs}", binary if binary.exists() else text)
    expected = [entry for entry in EXCEPT if all(map(fnmatch.fnmatch, (name, folder.name, stage), entry[:3]))]
    if status != (expected[0][3] if expected else 0):
        wrong.append(f"status {status}: {errors}{said}")
    return wrong


def list_opcodes(args, folders):
    """Returns the opcodes and the targets of custom calls of the modules in folders."""
    found = set()
    for module in sorted(path for folder in folders for path in folder.rglob("*.hlo")):
        status, said = print_module(args, module, os.devnull)
        found |= set() if status else opcodes(module.read_text(), said)
    return found


def table(args, names):
    """Returns the rows of the opcodes of each version and of the corpora."""
    found = {}  # by opcode: the stages, by column
    for name in names:
        for statistics in (args.work / name).glob("*/*/statistics"):
            for word in opcodes((statistics.parent / "once.hlo").read_text(), statistics.read_text()):
                found.setdefault(word, {}).setdefault(name, set()).add(statistics.parent.name[0])
    corpora = list_opcodes(args, [args.models, args.models.parent / "programs"])
    for word in corpora | set((args.models.parent / "versions/corpora.txt").read_text().splitlines()[1:]):
        found.setdefault(word, {}).setdefault("", set()).add("x")
    rows = ["| | " + " | ".join(name.replace("-", " ") for name in names) + " | corpora |", "|---" * (len(names) + 2) + "|"]
    return rows + [f"| {word} | " + " | ".join("".join(sorted(cells.get(name, ()), reverse=True)) for name in [*names, ""]) + " |" for word, cells in sorted(found.items())]


def check_table(args, names):
    """Compares the table in docs/versions.md, or writes it. Returns whether it is right."""
    page = args.models.parents[1] / "docs/versions.md"
    head, begin, rest = page.read_text().partition("<!-- opcodes: begin -->\n")
    _, end, tail = rest.partition("<!-- opcodes: end -->")
    text = head + begin + "\n".join(table(args, names)) + "\n" + end + tail
    if os.environ.get("HLO_UPDATE_GOLDENS"):
        page.write_text(text)
    return page.read_text() == text


def main():
    parser = _script.parser(pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--few", action="store_true", help="a third of the modules, without the table")
    parser.add_argument("--corpora", type=pathlib.Path, nargs="+", default=[], help="write testdata/versions/corpora.txt, and exit")
    args = parser.parse_args()
    if args.corpora:
        lines = ["The opcodes and custom calls of a corpus, written by tests/peer/versions/test_versions.py --corpora", *sorted(list_opcodes(args, args.corpora))]
        (args.models.parent / "versions/corpora.txt").write_text("\n".join(lines) + "\n")
        return
    data = args.data or args.models.parent / "versions"
    if args.long:
        data, venvs = args.work / "made", args.work / "venvs"
        shutil.rmtree(data, ignore_errors=True)  # archives of versions that are left out this time
        for folder in (data, venvs):
            folder.mkdir(exist_ok=True)
        for name in make.VERSIONS:
            try:
                make.make(name, venvs, data)
            except (subprocess.CalledProcessError, SystemExit) as error:  # pip, or no Python
                print(f"{name} is left out: {error}")
            shutil.rmtree(venvs / name, ignore_errors=True)
    cases = []
    for archive in sorted(data.glob("*.tar.xz")):
        name = archive.name.removesuffix(".tar.xz")
        shutil.rmtree(args.work / name, ignore_errors=True)
        with tarfile.open(archive) as file:
            file.extractall(args.work / name)
        cases += [(args, name, folder, stage) for folder in sorted((args.work / name).iterdir()) for stage in ("before", "after")]
    cases = cases[:: 3 if args.few else 1]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda case: check(*case), cases))
    if not (args.data or args.long or args.few) and not check_table(args, sorted({name for _, name, _, _ in cases})):
        sys.exit("docs/versions.md: the table of opcodes is not that of testdata/versions")
    failed = [(case, wrong) for case, wrong in zip(cases, results) if wrong]
    for (_, name, folder, stage), wrong in failed:
        print(f"{name} {folder.name} {stage}:", *wrong, sep="\n  ")
    print(f"{len(cases) - len(failed)} modules agree, {len(failed)} do not")
    sys.exit(bool(failed) or not cases)


if __name__ == "__main__":
    main()
