#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the cuda backend agrees with the cpu backend on every module of testdata/models, before and after --optimize.
Modules compiled or partitioned by XLA are omitted.

usage: models.py --bin DIR --models DIR --work DIR --standin FILE [--accumulate=f32|hopper] [--long] [--only NAME,...]

Each output lies within the bound that the cpu backend derives for it (hlo-fp8-run --compare). Runs are replayed from
CUDA graphs; some modules also run without graphs, with equal outputs. CUDA's libraries are the file of --standin
(tests/cuda/README.md), whose kernels and matmuls run on the host; tests/gpu runs the same modules on a device. With
--accumulate=hopper, matmuls sum like tensor cores, and the bounds assume this. A few cases take minutes: --long
also runs those.
"""
import argparse
import concurrent.futures
import pathlib
import sys

import _standin

# Modules that also run without graphs: a matmul, an epilogue, loops, a training step.
WITHOUT_GRAPH = {"seed_relu_damax", "scan_layers", "mlp_qdq_train"}
# Modules that are slow with the fake because of their size or number of steps.
LONG = {("qkv_shared", False), ("qkv_shared", True), ("llama_train", False)}


def check(run, program, model, optimize, work, environment, *options):
    """Returns the faults of the module. `run` runs programs, like _standin.run()."""
    how = ["--backend=cuda", f"--compare={model}", *options] + (["--optimize"] if optimize else [])
    name = model.stem + (".optimized" if optimize else "")
    status, said, errors = run([program, *how, f"--outputs={work}/{name}.npz", model], environment)
    if status or "agree" not in said:
        return [f"{name}: status {status}\n{said}{errors}"]
    if model.stem not in WITHOUT_GRAPH:
        return []
    status, said, errors = run([program, *how, "--graph=0", f"--outputs={work}/{name}.plain.npz", model], environment)
    if status:
        return [f"{name} --graph=0: status {status}\n{said}{errors}"]
    same = (work / f"{name}.npz").read_bytes() == (work / f"{name}.plain.npz").read_bytes()
    return [] if same else [f"{name}: other outputs with --graph=0"]


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--bin", type=pathlib.Path, required=True)
    args.add_argument("--models", type=pathlib.Path, required=True)
    args.add_argument("--work", type=pathlib.Path, required=True)
    args.add_argument("--standin", required=True)
    args.add_argument("--accumulate", choices=("f32", "hopper"), default="f32")
    args.add_argument("--long", action="store_true")
    args.add_argument("--only")
    a = args.parse_args()
    environment = _standin.environment(a.standin, a.accumulate)
    names = [m for m in sorted(a.models.glob("*.hlo")) if m.name.count(".") == 1]
    if a.only:
        names = [m for m in names if m.stem in a.only.split(",")]
    cases = [(m, optimize) for m in names for optimize in (False, True)
             if a.long or (m.stem, optimize) not in LONG]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        faults = pool.map(lambda case: check(_standin.run, a.bin / "hlo-fp8-run", *case, a.work, environment,
                                               f"--accumulate={a.accumulate}"), cases)
    faults = [fault for found in faults for fault in found]
    for fault in faults:
        print("FAILED", fault)
    print(f"{len(cases)} cases, {len(faults)} failed")
    return 1 if faults or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
