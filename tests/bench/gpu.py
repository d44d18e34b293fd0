#!/usr/bin/env python3
"""How fast matmuls and models run on this machine's GPU, against torch and JAX where they are installed.

usage: gpu.py --bin DIR --out DIR [--only TEXT] [--repeat N] [--autotune N] [--no-peers] [--standin FILE]

Runs what gpu_cases.py has: square matmuls, those of Llama's layers, one with everything fused, and the corpus's MLP and
encoder scaled up, on random normal inputs. For each: TFLOP/s and the share of the device's dense FP8 peak, with
cuBLASLt's first choice and with the best of --autotune algorithms, and the same of torch._scaled_mm and of JAX's XLA.
At 8192^3 also what scale pointers cost, and fast accumulation. Writes gpu.json and, where matplotlib is installed,
gpu.png to --out. docs/performance.md says how each time is taken.
With --standin (tests/cuda/README.md) no device is needed; sizes are small then, and the times mean nothing.
Exit status 1: there is no device, or a case fails.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import gpu_cases

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
QUERY = ("name", "driver_version", "clocks.max.sm", "clocks.max.memory", "clocks.sm", "clocks.mem", "power.limit",
         "power.default_limit", "temperature.gpu", "persistence_mode", "compute_cap")


def run(command, environment=None):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment)
    return done.returncode, done.stdout, done.stderr.strip()


def query_device():
    """What nvidia-smi says of device 0; None when there is none."""
    try:
        status, said, _ = run(["nvidia-smi", "-i", "0", f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader"])
    except FileNotFoundError:
        return None
    values = [value.strip() for value in said.strip().split(",")]
    return dict(zip(QUERY, values)) if status == 0 and len(values) == len(QUERY) else None


def peak_of(compute_cap):
    """(whose, dense FP8 TFLOP/s) of matmul/table/target.def's row for the architecture, or the nearest below."""
    sm = int(compute_cap.replace(".", ""))
    table = (ROOT / "matmul/table/target.def").read_text()
    rows = re.findall(r'^HLO_TARGET\((\d+),.*"([^"]+)", (\d+)', table, re.M)
    below = [(int(row), gpu, int(peak)) for row, gpu, peak in rows if int(row) <= sm and int(peak)]
    return max(below)[1:] if below else (None, None)


class Bench:
    def __init__(self, a):
        self.a = a
        self.program = a.bin / "hlo-fp8-run"
        self.environment = dict(os.environ)
        for library in ("DRIVER", "CUBLASLT", "NVRTC") if a.standin else ():
            self.environment[f"HLO_CUDA_{library}"] = a.standin
        self.work = tempfile.TemporaryDirectory()
        self.failed = False

    def write(self, case):
        path = pathlib.Path(self.work.name) / "case.hlo"
        path.write_text(case.text)
        return path

    def ours(self, case, autotune):
        """Seconds of the fastest run; None, and a word about it, when it fails."""
        cache = self.a.out / "autotune.json"
        command = [self.program, "--backend=cuda", "--optimize", f"--time={self.a.repeat}", f"--autotune={autotune}"]
        command += [f"--autotune-cache={cache}"] if autotune else []
        status, said, errors = run([*command, self.write(case)], self.environment)
        found = re.search(r"^run: min ([0-9.]+) s,", said, re.M)
        if status or not found:
            print(f"{case.name}: {errors or said}", file=sys.stderr)
            self.failed = True
            return None
        return float(found[1])

    def peer(self, arguments):
        status, said, errors = run([sys.executable, HERE / "gpu_peers.py", *arguments, f"--repeat={self.a.repeat}"])
        return json.loads(said) if status in (0, 1) and said else {"error": errors[-200:]}

    def torch(self, case):
        return self.peer(["torch", *case.sizes])

    def xla(self, case):
        return self.peer(["xla", self.write(case), "--platform=" + ("cpu" if self.a.standin else "gpu")])

    def flops(self, text):
        path = pathlib.Path(self.work.name) / "count.hlo"
        path.write_text(text)
        _, _, said = run([self.a.bin / "hlo-fp8-opt", "--stats", path, "-o", os.devnull])
        return sum(int(n) for n in re.findall(r"FLOPs of (?:dots|FP8 calls)\s+(\d+)", said))


def all_cases(bench):
    """By heading."""
    small = bool(bench.a.standin)
    models = ROOT / "testdata/models"
    sizes = {"sizes": {}} if small else {}
    return {
        "matmuls, fp8 x fp8 -> bf16": gpu_cases.squares((64, 128) if small else gpu_cases.SQUARES),
        "the matmuls of a layer": gpu_cases.llama(64, 64) if small else gpu_cases.llama(),
        "with relu, amax and an fp8 result": gpu_cases.fused(64 if small else 8192),
        "scale pointers and accumulation": gpu_cases.questions(64 if small else 8192),
        "models": [gpu_cases.model_case(name, (models / f"{name}.hlo").read_text(), bench.flops, **sizes)
                   for name in gpu_cases.MODELS if not small or name == "mlp_qdq_fwd"],
    }


def measure(bench, case, peers):
    row = {"name": case.name, "flops": case.flops, "seconds": bench.ours(case, 0)}
    row["tuned_seconds"] = bench.ours(case, bench.a.autotune) if bench.a.autotune else None
    row["torch"] = bench.torch(case) if peers and case.sizes else None
    row["xla"] = bench.xla(case) if peers else None
    return row


def rate(row, seconds):
    return row["flops"] / seconds * 1e-12 if seconds else None


def rates(row):
    """TFLOP/s of ours, tuned, torch, xla; None where there is no time."""
    times = [row["seconds"], row["tuned_seconds"]] + [(row[peer] or {}).get("seconds") for peer in ("torch", "xla")]
    return [rate(row, seconds) for seconds in times]


def print_row(row, peak):
    cells = []
    for tflops in rates(row):
        cells.append(f"{tflops:9.1f}" if tflops else f"{'-':>9}")
        cells.append(f"{100 * tflops / peak:5.1f}%" if tflops and peak else f"{'':6}")
    print(f"{row['name']:44}{''.join(cells)}", flush=True)


def answer(rows):
    """What scale pointers and fast accumulation cost, from the four rows that differ in them."""
    times = {row["name"].rsplit(" ", 1)[0]: row["tuned_seconds"] or row["seconds"] for row in rows}
    if len(times) < 4 or None in times.values():
        return
    for accumulation in ("fast", "full"):
        cost = times[f"scales, {accumulation} accumulation"] / times[f"no scales, {accumulation} accumulation"] - 1
        print(f"scale pointers cost {100 * cost:.1f} % against none, with {accumulation} accumulation")
    for scales in ("scales", "no scales"):
        cost = times[f"{scales}, full accumulation"] / times[f"{scales}, fast accumulation"] - 1
        print(f"full accumulation costs {100 * cost:.1f} % against fast, with {scales}")


def plot(result, path):
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError as error:
        print(f"no plot: {error}")
        return
    rows = [row for group in result["groups"].values() for row in group]
    figure, axes = pyplot.subplots(figsize=(11, 0.45 * len(rows) + 1.5))
    for at, label in enumerate(("hlo-fp8", f"hlo-fp8, best of {result['autotune']}", "torch._scaled_mm", "JAX/XLA")):
        here = [(i, rates(row)[at]) for i, row in enumerate(rows) if rates(row)[at]]
        if here:
            axes.barh([i + 0.2 * at - 0.3 for i, _ in here], [tflops for _, tflops in here], 0.2, label=label)
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows])
    axes.invert_yaxis()
    if result["peak"]:
        axes.axvline(result["peak"], linestyle="--", color="gray", label=f"dense FP8 peak of {result['peak_of']}")
    axes.set_xlabel("TFLOP/s")
    axes.set_title(result["device"]["name"])
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=120, bbox_inches="tight")
    print(f"plot: {path}")


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--bin", type=pathlib.Path, required=True)
    args.add_argument("--out", type=pathlib.Path, required=True)
    args.add_argument("--only", default="")
    args.add_argument("--repeat", type=int, default=20)
    args.add_argument("--autotune", type=int, default=64)
    args.add_argument("--standin")
    args.add_argument("--no-peers", action="store_true")
    a = args.parse_args()
    device = {"name": "stand-in", "compute_cap": "9.0"} if a.standin else query_device()
    if not device:
        print("bench --gpu: no CUDA device on this machine (nvidia-smi shows none): nothing is measured", file=sys.stderr)
        return 1
    a.out.mkdir(parents=True, exist_ok=True)
    bench = Bench(a)
    peak_of_gpu, peak = peak_of(device["compute_cap"])
    for key, value in device.items():
        print(f"{key:24}{value}")
    print(f"shares are of the dense FP8 peak of {peak_of_gpu}, {peak} TFLOP/s")
    result = {"device": device, "peak": peak, "peak_of": peak_of_gpu, "autotune": a.autotune, "repeat": a.repeat,
              "groups": {}}
    print(f"{'TFLOP/s':44}{'hlo-fp8':>15}{'tuned':>15}{'torch':>15}{'JAX/XLA':>15}")
    for heading, cases in all_cases(bench).items():
        cases = [case for case in cases if a.only in case.name]
        if not cases:
            continue
        print(f"-- {heading}")
        rows = result["groups"][heading] = []
        for case in cases:
            rows.append(measure(bench, case, not a.no_peers))
            print_row(rows[-1], peak)
    answer(result["groups"].get("scale pointers and accumulation", []))
    result["device_after"] = {} if a.standin else query_device()
    (a.out / "gpu.json").write_text(json.dumps(result, indent=1) + "\n")
    plot(result, a.out / "gpu.png")
    return 1 if bench.failed else 0


sys.exit(main())
