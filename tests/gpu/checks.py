# SPDX-License-Identifier: Apache-2.0
"""Defines the stages smoke and correct as (name, function) pairs; stages.py specifies the result of a function."""
import argparse
import importlib.util
import re
import shutil
import sys

import cases as programs
from machine import ROOT, find_tool

FIRST = "seed_relu_damax"
SANITIZED = (FIRST, "mlp_qdq_fwd", "scan_layers", "rowwise_before")
RANDOM = 100
FEW = {FIRST, "scan_layers"}  # the models that run with the fake libraries


def script(name):
    """Imports a script of tests/cuda; the folder comes last, so that its random.py does not shadow the standard module."""
    folder = ROOT / "tests/cuda"
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    spec = importlib.util.spec_from_file_location(f"cuda_{name}", folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def names_of(here):
    names = sorted(path.stem for path in here.models.glob("*.hlo") if path.name.count(".") == 1)
    return [name for name in names if not here.a.standin or name in FEW]


def row_of(status, said, errors, **more):
    row = {**more, "said": errors[-2000:]} if errors else more
    return {**row, "error": f"status {status}: {(errors or said)[-300:]}"} if status else row


def compared(here, path, *options):
    return row_of(*here.ours("--optimize", "--compare=before", *options, path))


def executed(here, path, *options):
    """Plans the module, which queries cuBLASLt for every matmul, and runs the plan; cuBLASLt's log is kept. After a
    failure, the module runs again without graphs, one launch at a time."""
    status, said, errors = here.ours("--optimize", "--time=3", *options, path,
                                     environment={"CUBLASLT_LOG_LEVEL": "1", "CUBLASLT_LOG_FILE": "/dev/stderr"})
    seconds = re.search(r"median ([0-9.]+) ms", said)
    row = row_of(status, said, errors, seconds=float(seconds[1]) * 1e-3 if seconds else None)
    if status and here.left() > 10:
        status, said, errors = here.ours("--optimize", "--graph=0", *options, path, environment={"CUDA_LAUNCH_BLOCKING": "1"})
        row["without_graphs"] = f"status {status}: {(errors or said)[-300:]}" if status else "runs"
    return row


def resident(here):
    """Runs a unit test on the device: arrays that stay on the device, streams of the caller, calls from several
    threads."""
    program = here.a.bin / "test_runtime_buffer"
    if not program.exists():
        return {"left_out": "test_runtime_buffer was not built"}
    status, said, errors = here.run([program], {**here.environment, "HLO_TEST_DEVICE": "1"})
    return row_of(status, said, "\n".join(re.findall(r".*(?:ERROR|FAILED|PASSED).*", said + errors)))


def sanitized(here, tool, name):
    sanitizer = None if here.a.standin else find_tool("compute-sanitizer")
    if not sanitizer:
        return {"left_out": "there is no compute-sanitizer"}
    command = [sanitizer, f"--tool={tool}", "--error-exitcode=9", "--target-processes=all", here.a.bin / "hlo-fp8-run",
               "--backend=cuda", "--graph=0", "--optimize", here.models / f"{name}.hlo"]
    return row_of(*here.run(command, None, 120))


def blocks(here, function):
    """Runs matmuls with block scales, which become calls if the device supports such scales."""
    options, why = here.blocks()

    def check(path):
        if why:
            return {"left_out": why}
        _, said, errors = here.ours("--optimize", "--plan", *options, path)
        return function(here, path, *options) if "A_SCALE_MODE VEC" in said else {"error": f"no call: {(errors or said)[-300:]}"}
    found = []
    for kind in programs.BLOCKS:
        case = programs.block_scaled(kind, 256, 128, 256)
        path = here.a.work / f"{kind}.hlo"
        path.write_text(case.text)
        found.append((case.name, lambda path=path: check(path)))
    return found


def smoke(here, a):
    def case(name, function, *arguments):
        return name, lambda: function(here, *arguments)
    names, first = names_of(here), here.models / f"{FIRST}.hlo"
    return [case(f"{FIRST} without graphs", compared, first, "--graph=0"), case(FIRST, compared, first),
            case("resident plans", resident),
            *(case(f"run {name}", executed, here.models / f"{name}.hlo") for name in names), *blocks(here, executed),
            *(case(f"{tool} {name}", sanitized, tool, name) for tool in ("memcheck", "racecheck")
              for name in SANITIZED if name in names)]


def model_agrees(here, models, name, optimize):
    work = here.a.work / "correct" / f"{name}{'-optimized' * optimize}"
    work.mkdir(parents=True, exist_ok=True)
    path = here.models / f"{name}.hlo"
    faults = models.check(here.run, here.a.bin / "hlo-fp8-run", path, optimize, work, here.environment,
                          f"--kernel-cache={here.kernels}")
    shutil.rmtree(work)
    return {"error": "; ".join(faults)} if faults else {}


def random_agrees(cases, seed):
    found = cases.check(seed)
    faults = [one for one in found if one not in ("agrees", "refused", "passed over")]
    return {"error": "; ".join(faults)} if faults else {"found": ", ".join(found)}


def low_precision(here):
    """Runs ragged dots, as one kernel and as dense calls, and calls with block scales."""
    ragged = here.a.work / "ragged.hlo"
    ragged.write_text(programs.RAGGED)
    return [(f"ragged {form}", lambda form=form: compared(here, ragged, f"--ragged={form}"))
            for form in ("keep", "dense")] + blocks(here, compared)


def correct(here, a):
    models, random = script("models"), script("random")
    if not here.a.standin:  # concurrent nodes and programmatic dependent launch can race only on a device
        models.WITHOUT_GRAPH = set(names_of(here))
    cases = random.Cases(argparse.Namespace(bin=a.bin, work=a.work, accumulate="hopper"), here.environment, here.run)
    found = [(f"{name}{' optimized' * optimize}",
              lambda name=name, optimize=optimize: model_agrees(here, models, name, optimize))
             for name in names_of(here) for optimize in (False, True)]
    return found + low_precision(here) + [(f"random {seed}", lambda seed=seed: random_agrees(cases, seed))
                    for seed in range(1, (4 if a.standin else RANDOM) + 1)]
