#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the memory traffic and the number of launches of the scaled models against LIMITS and XLA's kernels.

usage: traffic.py --bin DIR --work DIR [--xla] [--sass FILE --standin FILE]

The models are those of tests/gpu (8192 tokens). Their plans for sm_90 list the reads and writes of each kernel. A
loop's body counts once, and an in-place update counts as the whole array, as for XLA. With --xla, XLA compiles the
same modules, and its kernels are also counted. With --sass (nvdisasm), this machine's NVRTC compiles the kernels,
and their code is checked. No conversion uses the slow instruction (F2F), and only sines and cosines have an array in
local memory. Each kernel waits for previous kernels (ACQBULK) before it accesses memory. The ten kernels with the
most traffic do not spill registers, load and store 16 bytes at a time where their arrays allow it, and start at
least two loads before they wait for a load (_sass.py).
"""
import argparse
import collections
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/gpu"))
import _sass  # noqa: E402
import cases  # noqa: E402
from _standin import run  # noqa: E402

# Megabytes, and launches of kernels and copies (also of matmul operands), without matmuls: upper limits here, and
# XLA's values for an H100.
LIMITS = {"mlp_qdq_fwd": (772, 9, 772, 16), "mlp_qdq_train": (3360, 36, 4301, 53),
          "encoder_qdq_fwd": (3525, 28, 4598, 61), "encoder_qdq_train": (12690, 134, 16096, 180),
          "llama_train": (39657, 351, 42821, 378)}
KERNEL = re.compile(r"^    (\w+)\([^)]*\)(?: in \d+ blocks of \d+ threads,)? (\d+) bytes", re.M)
COPY = re.compile(r"^    copy [abcd]:.*", re.M)
HEAVIEST, HEAVY = 10, 1e6  # a heavy kernel moves at least this number of bytes
XLA_COMPILER = ROOT / "tests/peer/xla/_xla_gpu.py"
# An instruction in XLA's text: name, type without comments, opcode, operands.
INSTR = re.compile(r"^  (?:ROOT )?(%\S+) = (\(.*?\)|\S+) ([a-z-]+)\((.*?)\)", re.M)
XLA_KERNELS = ("fusion", "copy", "reduce", "transpose")


def type_bytes(text):
    """Returns the bytes of the arrays of a type. An element has at least 8 bits."""
    arrays = re.findall(r"\b(?:pred|[a-z]+(\d+)\w*)\[([\d,]*)\]", text)
    return sum(max(int(bits or 8), 8) // 8 * math.prod(int(size) for size in sizes.split(",") if size)
               for bits, sizes in arrays)


def xla_traffic(path):
    """Returns megabytes and launches of XLA's kernels for a module."""
    status, text, said = run([sys.executable, XLA_COMPILER, path])
    if status:
        sys.exit(f"FAILED XLA does not compile {path}: {said}")
    text = re.sub(r"/\*.*?\*/", "", text)
    bodies = set(re.findall(r"\b(?:body|condition)=(%[\w.-]+)", text))
    moved, launches = 0, 0
    for entry, name, computation in re.findall(r"^(ENTRY )?(%\S+) \(.*?\{\n(.*?)^\}", text, re.M | re.S):
        sizes = {}
        for name, shape, opcode, operands in INSTR.findall(computation) if entry or name in bodies else []:
            sizes[name] = type_bytes(shape)
            if opcode in XLA_KERNELS:
                moved += sizes[name] + sum(sizes[operand] for operand in set(re.findall(r"%[\w.-]+", operands)))
                launches += 1
    return moved / 1e6, launches


def check(a, name):
    path = a.work / f"{name}.hlo"
    path.write_text(cases.scaled((ROOT / f"testdata/models/{name}.hlo").read_text(), cases.MODELS[name]))
    status, plan, said = run([a.bin / "hlo-fp8-run", "--plan", "--backend=cuda", "--target=sm_90", "--optimize", path])
    moved, launches = collections.Counter(), 0
    for kernel, size in KERNEL.findall(plan) + [("copy", type_bytes(copy)) for copy in COPY.findall(plan)]:
        moved[kernel] += int(size)
        launches += 1
    megabytes, (most, times, *xla) = moved.total() / 1e6, LIMITS[name]
    print(f"{name}: {megabytes:.0f} MB in {launches} launches, of at most {most} in {times}; XLA's {xla[0]} in {xla[1]}")
    faults = [] if status == 0 and 0 < megabytes <= most and launches <= times else [f"more, or no plan: {said}"]
    if most > xla[0] or times > xla[1]:
        faults.append("XLA's kernels move less")
    if a.xla:
        found = [round(number) for number in xla_traffic(path)]
        faults += [f"XLA's kernels move {found[0]} MB in {found[1]} launches"] if found != xla else []
    if a.sass:
        kernels, said = _sass.sass_of(a, path)
        heaviest = [(kernel, size) for kernel, size in moved.most_common(HEAVIEST) if kernel != "copy" and size >= HEAVY]
        faults += _sass.check(plan, kernels, heaviest) if kernels else [f"no program was compiled: {said}"]
    path.unlink()
    return [f"{name}: {fault}" for fault in faults]


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--bin", type=pathlib.Path, required=True)
    args.add_argument("--work", type=pathlib.Path, required=True)
    args.add_argument("--xla", action="store_true")
    args.add_argument("--sass")
    args.add_argument("--standin")
    a = args.parse_args()
    faults = [fault for name in LIMITS for fault in check(a, name)]
    for fault in faults:
        print("FAILED", fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
