#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the cuda backend has a plan for every module of testdata/models: before and after --optimize, and as
compiled by XLA. Modules for several devices are omitted.

usage: plans.py --bin DIR --models DIR [--update]

Plans need no device (--plan --target). No plan may reject an instruction, run one on the host, or differ between two
runs. The numbers of steps, kernels and matmuls on sm_90 are in plans.txt next to this file, which --update rewrites.
Modules after the passes are not listed, so that a change of the passes does not change the file.
"""
import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import sys

GOLDEN = pathlib.Path(__file__).parent / "plans.txt"
TARGETS = (89, 90, 100)
LISTED = 90
HEAD = f"{'module':32}{'steps':>8}{'groups':>8}{'matmuls':>9}{'copies':>8}{'kernels':>9}"


def plan(program, model, arguments):
    done = subprocess.run([program, "--plan", "--backend=cuda", *arguments, model], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def summary(text):
    """Returns the numbers of steps, groups of several instructions, matmuls, copies between layouts, and kernels."""
    steps = sum(int(n) for n in re.findall(r", (\d+) steps, frame of", text))
    groups = len(re.findall(r"^  \S.* = group of \d+\(", text, re.M))
    matmuls = len(re.findall(r"^ +cublasLtMatmul ", text, re.M))
    copies = len(re.findall(r"^  \S.* = copy\(", text, re.M))
    kernels = len(re.findall(r"__global__", text))
    return f"{steps:8}{groups:8}{matmuls:9}{copies:8}{kernels:9}"


def check(program, model, form, target):
    """Returns the line of plans.txt for the case, if plans.txt has one, and the faults."""
    name = model.name.removesuffix(".hlo") + form
    arguments = [f"--target=sm_{target}"] + (["--optimize"] if form else [])
    status, text, errors = plan(program, model, arguments)
    if status:
        return None, f"{name} for sm_{target}: status {status}\n{errors}"
    if "on the CPU" in errors + text:
        return None, f"{name} for sm_{target}: not all of it is on the device\n{errors}"
    if plan(program, model, arguments)[1] != text:
        return None, f"{name} for sm_{target}: another plan the second time"
    return f"{name:32}{summary(text)}" if target == LISTED and not form else None, None


def cases(models):
    for model in sorted(models.glob("*.hlo")):
        if ".spmd." in model.name or is_partitioned(model):
            continue
        forms = ("",) if ".xla." in model.name else ("", " --optimize")
        for form in forms:
            for target in TARGETS:
                yield model, form, target


def is_partitioned(model):
    """True if the module was compiled for several devices, which no backend supports."""
    return ".xla." in model.name and re.search(r"num_partitions=[^1]", model.read_text()[:10000])


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--bin", type=pathlib.Path, required=True)
    args.add_argument("--models", type=pathlib.Path, required=True)
    args.add_argument("--update", action="store_true")
    a = args.parse_args()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda case: check(a.bin / "hlo-fp8-run", *case), cases(a.models)))
    faults = [fault for _, fault in found if fault]
    text = "\n".join([HEAD] + [line for line, _ in found if line]) + "\n"
    if a.update:
        GOLDEN.write_text(text)
    golden = GOLDEN.read_text().splitlines()
    faults += [f"not so in plans.txt: {line}" for line in text.splitlines() if line not in golden]
    faults += [f"only in plans.txt: {line}" for line in golden if line not in text.splitlines()]
    for fault in faults:
        print("FAILED", fault)
    if text.splitlines() != golden:
        print(f"if that is as it should be: {__file__} --bin {a.bin} --models {a.models} --update")
    print(f"{len(found)} plans, {len(faults)} faults")
    return 1 if faults or not found else 0


sys.exit(main())
