# SPDX-License-Identifier: Apache-2.0
"""Defines the stages matmul, models and profile as (name, function) pairs; stages.py specifies the result of a
function."""
import csv
import io
import re

import cases
from machine import find_tool

MODELS = ("encoder_qdq_train", "mlp_qdq_train", "encoder_qdq_fwd", "mlp_qdq_fwd")
HOTTEST = 5
METRICS = "gpu__time_duration.sum,dram__bytes.sum,launch__registers_per_thread,sm__warps_active.avg.pct_of_peak_sustained_active"


def write(here, case):
    path = here.a.work / f"{re.sub('[^a-z0-9]+', '-', case.name.lower())}.hlo"
    path.write_text(case.text)
    return path


def seconds_of(here, path, *options):
    """Returns the median seconds of queued runs."""
    status, said, errors = here.ours("--optimize", f"--time={here.a.repeat}", *options, path)
    found = re.search(r"median ([0-9.]+) ms", said)
    if status or not found:
        raise RuntimeError((errors or said)[-300:])
    return float(found[1]) * 1e-3


def measure(here, case, fast=True, options=()):
    """Returns the row of a case: seconds and TFLOP/s of each program."""
    path = write(here, case)
    row = {"flops": case.flops, "ours": seconds_of(here, path, *options)}
    if here.a.autotune:
        tuned = (*options, f"--autotune={here.a.autotune}", f"--autotune-cache={here.a.out / 'autotune.json'}")
        try:
            row["tuned"] = seconds_of(here, path, *tuned)
        except RuntimeError as error:  # a failing algorithm breaks the context, but the other times are still reported
            row["error"] = f"tuned: {error}"
    if not here.a.no_peers:
        peers = {"xla": ("xla", path, "--platform=" + ("cpu" if here.a.standin else "gpu"))}
        if case.sizes:
            peers["torch"] = ("torch", *case.sizes, *(() if fast else ("--no-fast",)))
        for name, arguments in peers.items():
            said = here.peer(*arguments)
            row[name] = said.get("seconds")
            if row[name] is None:
                row[f"{name}_error"] = said["error"]
    path.unlink()
    best = min(row["ours"], row.get("tuned", row["ours"]))
    row["tflops"] = round(case.flops / best * 1e-12, 1)
    return row


def block_scaled(here, sizes):
    options, why = here.blocks()
    found = [cases.block_scaled(kind, size, size, size) for kind in cases.BLOCKS for size in sizes]
    return [(case.name, lambda case=case: {"left_out": why} if why else measure(here, case, options=options))
            for case in found]


def matmuls(here, a):
    small = bool(a.standin)
    plain = [*cases.squares((64, 128) if small else cases.SQUARES), *cases.fused(64 if small else 8192),
             cases.matmul_case("regression", 260, 520, 3)]
    return [(case.name, lambda case=case: measure(here, case)) for case in plain] + \
           [(case.name, lambda case=case: measure(here, case, "fast" in case.name))
            for case in cases.questions(64 if small else 8192)] + block_scaled(here, (64,) if small else (8192, 16384))


def flops_of(here, text):
    path = here.a.work / "count.hlo"
    path.write_text(text)
    _, _, said = here.run([here.a.bin / "hlo-fp8-opt", "--stats", path, "-o", "/dev/null"])
    path.unlink()
    found = sum(int(n) for n in re.findall(r"FLOPs of (?:dots|library calls|convolutions)\s+(\d+)", said))
    if not found:
        raise RuntimeError("hlo-fp8-opt --stats counts no FLOPs of matmuls")
    return found


def scaled(here, name):
    sizes = {"sizes": {}} if here.a.standin else {}
    return cases.model_case(name, (here.models / f"{name}.hlo").read_text(), lambda text: flops_of(here, text), **sizes)


def models(here, a):
    names = MODELS[-1:] if a.standin else MODELS
    layers = cases.llama(64, 64)[:1] if a.standin else cases.llama()
    return [(name, lambda name=name: measure(here, scaled(here, name))) for name in names] + \
           [(case.name, lambda case=case: measure(here, case)) for case in layers]


def stepped(here, name):
    """Returns the longest steps, timed by the device's events: milliseconds per run, and the instructions of each
    step."""
    path = write(here, scaled(here, name))
    status, said, errors = here.ours("--optimize", "--profile", f"--time={here.a.repeat}", path)
    path.unlink()
    rows = re.findall(r"^ *([0-9.]+) +([0-9.]+) +([0-9.]+) +[0-9.]+ +([0-9.e+]+) +([0-9.]+) +([0-9.]+)  (\S.*)$",
                      said.partition("profile: ")[2].partition("\n\n")[0], re.M)
    if status or not rows:
        raise RuntimeError((errors or said)[-300:])
    keys = ("ms", "min", "median", "times", "MB", "GB/s", "step")
    return {"steps": len(rows), "hottest": [dict(zip(keys, map(str.strip, row))) for row in rows[:HOTTEST]]}


def profiled(here, name):
    """Returns the longest kernels: seconds and bytes of each launch, as measured by Nsight Compute."""
    tool = None if here.a.standin else find_tool("ncu")
    if not tool:
        return {"left_out": "there is no Nsight Compute (ncu)"}
    path = write(here, scaled(here, name))
    status, said, errors = here.run([tool, "--csv", "--page=raw", "--clock-control=none", "--target-processes=all",
                                     f"--metrics={METRICS}", here.a.bin / "hlo-fp8-run", "--backend=cuda", "--graph=0",
                                     "--optimize", path])
    path.unlink()
    if status:
        raise RuntimeError((errors or said)[-300:])
    table = list(csv.DictReader(io.StringIO(said[said.index('"ID"'):])))[1:]
    table.sort(key=lambda row: -float(row["gpu__time_duration.sum"].replace(",", "")))
    return {"kernels": len(table), "hottest": [{key: row[key] for key in ("Kernel Name", *METRICS.split(","))}
                                               for row in table[:HOTTEST]]}


def profile(here, a):
    return [(f"{what} {name}", lambda name=name, function=function: function(here, name))
            for what, function in (("steps", stepped), ("profile", profiled)) for name in MODELS[bool(here.a.standin):2]]
