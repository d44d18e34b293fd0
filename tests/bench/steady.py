#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times runs of compiled modules on the CPU, compared with XLA on the same inputs.

usage: steady.py --bin DIR [--rounds N] [--runs N] [MODEL...]

Prints one line per module: milliseconds of a run by the cpu backend and by XLA's CPU program, and their ratio; the
ratio of the times from the module's text to its first result; the kilobytes of a run by both, and their ratio. Times
are minima over all rounds, which alternate between both so that other load affects both. The default modules are some
of testdata/models, and FP8 matmuls of some sizes.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PEER = ROOT / "tests" / "peer" / "_xla_cpu.py"
MODELS = ("mlp_qdq_train", "encoder_qdq_train", "scan_layers", "dense_qdq_train", "llama_train")
SIZES = (256, 512, 1024, 2048)
MATMUL = """\
HloModule matmul_{n}

ENTRY e {{
  x = f8e4m3fn[{n},{n}] parameter(0)
  w = f8e4m3fn[{n},{n}] parameter(1)
  s = f32[] parameter(2)
  xw = f32[{n},{n}] convert(x)
  ww = f32[{n},{n}] convert(w)
  b = f32[{n},{n}] broadcast(s), dimensions={{}}
  xd = f32[{n},{n}] multiply(xw, b)
  wd = f32[{n},{n}] multiply(ww, b)
  ROOT d = f32[{n},{n}] dot(xd, wd), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
"""


def output(*command):
    ran = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"steady.py: {' '.join(map(str, command))}: {ran.stderr.strip()[-500:]}")
    return ran.stdout


def measure(program, model, inputs, rounds, runs):
    """Returns, for both programs: seconds of a run; seconds from text to the first result; bytes of a run."""
    theirs = output(sys.executable, PEER, model, "--save-inputs", inputs)
    memory = [int(re.search(r"for cpu: (\d+) bytes", output(program, "--plan", model))[1]),
              int(re.search(r"memory_bytes (\d+)", theirs)[1])]
    run, first = [float("inf")] * 2, [float("inf")] * 2
    for _ in range(rounds):
        start = time.perf_counter()
        output(program, f"--inputs={inputs}", model)
        first[0] = min(first[0], time.perf_counter() - start)
        ours = output(program, f"--inputs={inputs}", f"--time={runs}", model)
        theirs = output(sys.executable, PEER, model, "--inputs", inputs, "--time", runs)
        run[0] = min(run[0], float(re.search(r"min ([\d.]+) s", ours)[1]))
        parse, compile_s, run_s = map(float, re.search(r"parse_s (\S+) compile_s (\S+) run_s (\S+)", theirs).groups())
        run[1] = min(run[1], run_s)
        first[1] = min(first[1], parse + compile_s + run_s)
    return run, first, memory


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--bin", type=pathlib.Path, required=True)
    args.add_argument("--rounds", type=int, default=3)
    args.add_argument("--runs", type=int, default=30)
    args.add_argument("models", type=pathlib.Path, nargs="*")
    a = args.parse_args()
    print(f"milliseconds of a run, the best of {a.rounds} times {a.runs}, and of text to first result, our whole process")
    print(f"{'':20}{'hlo-fp8':>10}{'XLA':>10}{'ratio':>8}{'first':>10}{'XLA':>10}{'times':>8}"
          f"{'memory':>10}{'XLA':>10}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as work:
        models = a.models or [ROOT / "testdata" / "models" / f"{name}.hlo" for name in MODELS]
        for n in () if a.models else SIZES:
            models.append(pathlib.Path(work, f"matmul_{n}.hlo"))
            models[-1].write_text(MATMUL.format(n=n))
        for model in models:
            run, first, memory = measure(a.bin / "hlo-fp8-run", model, pathlib.Path(work, "in.npz"), a.rounds, a.runs)
            print(f"{model.stem:20}{run[0] * 1e3:10.3f}{run[1] * 1e3:10.3f}{run[0] / run[1]:8.2f}"
                  f"{first[0] * 1e3:10.1f}{first[1] * 1e3:10.1f}{first[1] / first[0]:8.1f}"
                  f"{memory[0] / 1e3:10.0f}{memory[1] / 1e3:10.0f}{memory[0] / memory[1]:8.2f}", flush=True)


main()
