"""The machine that a stage runs on: its device, its tools, and how programs are run there."""
import importlib.metadata
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
QUERY = ("name", "driver_version", "clocks.max.sm", "clocks.max.memory", "power.limit", "temperature.gpu", "compute_cap")


def run(command, environment=None, seconds=None):
    """Exit status, output, errors; the status is 124 when it took longer."""
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment,
                              timeout=seconds)
    except subprocess.TimeoutExpired:
        return 124, "", f"not done after {seconds} s"
    return done.returncode, done.stdout, done.stderr.strip()


def query_device():
    """What nvidia-smi says of the first device; None where it says nothing."""
    if not shutil.which("nvidia-smi"):
        return None
    status, said, _ = run(["nvidia-smi", "-i", "0", f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader"], None, 60)
    values = [value.strip() for value in said.strip().split(",")]
    return dict(zip(QUERY, values)) if status == 0 and len(values) == len(QUERY) else None


def peak_of(compute_cap):
    """(whose, dense FP8 TFLOP/s) of matmul/table/target.def's row for the architecture, or the nearest below."""
    sm = int(compute_cap.replace(".", ""))
    table = (ROOT / "matmul/table/target.def").read_text()
    rows = re.findall(r'^HLO_TARGET\((\d+),.*"([^"]+)", (\d+)', table, re.M)
    below = [(int(row), gpu, int(peak)) for row, gpu, peak in rows if int(row) <= sm and int(peak)]
    return max(below)[1:] if below else (None, None)


def versions():
    found = {}
    for package in ("torch", "jax", "nvidia-cublas", "nvidia-cublas-cu12"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


class Machine:
    """`error`: why no device can be used; None when one can."""

    def __init__(self, a):
        self.a, self.error = a, None
        self.environment = dict(os.environ)
        for library in ("DRIVER", "CUBLASLT", "NVRTC") if a.standin else ():
            self.environment[f"HLO_CUDA_{library}"] = str(pathlib.Path(a.standin).resolve())
        self.kernels = a.out / "kernels"
        self.kernels.mkdir(exist_ok=True)
        self.jobs = min(os.cpu_count() or 1, 8)
        self.models = ROOT / "testdata/models"
        device = {"name": "stand-in", "compute_cap": "9.0"} if a.standin else query_device()
        status, said, errors = self.ours(self.models / "seed_relu_damax.hlo")
        if status:
            self.error = errors.partition("error: ")[2] or errors or said
            return
        device = device or {"name": "unknown", "compute_cap": "9.0"}
        gpu, peak = peak_of(device["compute_cap"])
        self.facts = {**device, "peak": peak, "peak_of": gpu, **versions()}
        self.peak = peak

    def ours(self, *arguments, environment=None, seconds=600):
        """Runs hlo-fp8-run on the device."""
        command = [self.a.bin / "hlo-fp8-run", "--backend=cuda", f"--kernel-cache={self.kernels}", *arguments]
        return run(command, {**self.environment, **(environment or {})}, seconds)

    def peer(self, *arguments):
        """What others take: seconds and versions, or error."""
        program = pathlib.Path(__file__).parent / "peers.py"
        status, said, errors = run([sys.executable, program, *arguments, f"--repeat={self.a.repeat}"], None, 300)
        return json.loads(said) if status in (0, 1) and said else {"error": errors[-200:]}
