# SPDX-License-Identifier: Apache-2.0
"""Describes the machine that a stage runs on (device, tools), and runs programs on it."""
import fcntl
import importlib.metadata
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
QUERY = ("name", "driver_version", "clocks.max.sm", "clocks.max.memory", "power.limit", "temperature.gpu", "compute_cap")


# A program has a separate process group in this process's session, so that ending the session ends it.
OWN_GROUP = {"process_group": 0} if sys.version_info >= (3, 11) else {"preexec_fn": os.setpgrp}


def run(command, environment=None, seconds=None, held=()):
    """Runs a program; returns exit status, output, errors. After a timeout the program and its children are ended, and
    the status is 124. A process that cannot be ended, because it waits for a hanging device, remains. The program has
    the files `held` open."""
    child = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, errors="replace", env=environment,
                             pass_fds=held, **OWN_GROUP)
    try:
        said, errors = child.communicate(timeout=seconds)
        return child.returncode, said, errors.strip()
    except subprocess.TimeoutExpired:
        said = errors = ""
    try:
        os.killpg(child.pid, signal.SIGKILL)
        said, errors = child.communicate(timeout=5)
    except (ProcessLookupError, subprocess.TimeoutExpired):
        pass
    return 124, said, f"not done after {seconds:.0f} s\n{errors}".strip()


def find_tool(name):
    """Returns the path of a tool of the toolkit, which may not be in PATH, or None."""
    folders = [str(folder) for pattern in ("local/cuda/bin", "local/cuda/compute-sanitizer", "local/cuda*/bin")
               for folder in sorted(pathlib.Path("/usr").glob(pattern))]
    folders += map(str, sorted(pathlib.Path("/opt/nvidia/nsight-compute").glob("*"), reverse=True))
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(folders))


def query_device():
    """Returns the output of nvidia-smi about the first device; empty on failure."""
    if not shutil.which("nvidia-smi"):
        return {}
    status, said, _ = run(["nvidia-smi", "-i", "0", f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader"], None, 30)
    values = [value.strip() for value in said.strip().split(",")]
    return dict(zip(QUERY, values)) if status == 0 and len(values) == len(QUERY) else {}


def read_versions(said):
    """Returns the output of --version --backend=cuda: the device's name and compute capability, and the libraries' versions."""
    rows = dict(row for row in re.findall(r"^([A-Za-z ]+): (.*)$", said, re.M))
    device = re.match(r"(.*), sm_(\d+)(\d)(,|$)", rows.pop("device", ""))
    found = {"name": device[1], "compute_cap": f"{device[2]}.{device[3]}"} if device else {}
    return {**found, **rows}


def rows_below(compute_cap):
    """Returns (sm, block scales supported, GPU, dense FP8 TFLOP/s) of each row of matmul/table/target.def up to an
    architecture."""
    sm = int(compute_cap.replace(".", ""))
    table = (ROOT / "matmul/table/target.def").read_text()
    rows = re.findall(r'^HLO_TARGET\((\d+), \d, \d, \d, (\d),.*"([^"]+)", (\d+)', table, re.M)
    return sorted((int(row), blocks == "1", gpu, int(peak)) for row, blocks, gpu, peak in rows if int(row) <= sm)


def peak_of(compute_cap):
    """Returns (GPU, dense FP8 TFLOP/s) of the row for the architecture, or of the nearest lower row with a peak."""
    known = [row[2:] for row in rows_below(compute_cap) if row[3]]
    return known[-1] if known else (None, None)


def versions():
    found = {}
    for package in ("torch", "jax", "nvidia-cublas", "nvidia-cublas-cu12"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


class Machine:
    """`error`: why no device can be used, or None. `stop`: the time of the clock at which programs are ended."""

    def __init__(self, a, stop):
        self.a, self.error, self.stop = a, None, stop
        self.environment = dict(os.environ)
        self.environment.setdefault("VIRTUAL_ENV", sys.prefix)  # the folders of NVIDIA's packages in this Python
        for library in ("DRIVER", "CUBLASLT", "NVRTC") if a.standin else ():
            self.environment[f"HLO_CUDA_{library}"] = str(pathlib.Path(a.standin).resolve())
        self.lock = os.open(a.work / "lock", os.O_RDWR | os.O_CREAT, 0o600)  # held while a program of this stage runs
        self.kernels = a.work / "kernels"
        self.kernels.mkdir(parents=True, exist_ok=True)
        self.models = ROOT / "testdata/models"
        status, said, errors = self.run([a.bin / "hlo-fp8-run", "--version", "--backend=cuda"], self.environment, 60)
        if "device: " not in said:  # otherwise a device that hangs or fails with graphs would be inspected again
            self.error = errors.partition("error: ")[2] or errors or said or f"status {status}"
            return
        device = {**({} if a.standin else query_device()), **read_versions(said)}
        gpu, peak = peak_of(device["compute_cap"])
        self.facts = {**device, "peak": peak, "peak_of": gpu, **versions()}
        self.peak = peak

    def blocks(self):
        """Returns (options for matmuls with block scales, None), or (None, why these matmuls are skipped)."""
        sm, has = rows_below(self.facts["compute_cap"])[-1][:2]
        return ((f"--target=sm_{sm}", "--cuda=12.9"), None) if has else (None, f"sm_{sm} has no scales per block")

    def is_alone(self, until):
        """Waits up to the time `until`. Returns true when no other stage, and no program of another stage, uses
        --work."""
        while True:
            try:
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except OSError:
                if time.monotonic() >= until:
                    return False
            time.sleep(0.1)

    def left(self):
        return self.stop - time.monotonic()

    def run(self, command, environment=None, seconds=240):
        """Like the function run(), but ends the program at `stop`."""
        return run(command, environment or self.environment, max(1, min(seconds, self.left())), (self.lock,))

    def ours(self, *arguments, environment=None):
        """Runs hlo-fp8-run on the device."""
        command = [self.a.bin / "hlo-fp8-run", "--backend=cuda", f"--kernel-cache={self.kernels}", *arguments]
        return self.run(command, {**self.environment, **(environment or {})})

    def peer(self, *arguments):
        """Returns the measurements of another framework (peers.py): seconds and versions, or error."""
        program = pathlib.Path(__file__).parent / "peers.py"
        status, said, errors = self.run([sys.executable, program, *arguments, f"--repeat={self.a.repeat}"], dict(os.environ))
        lines = said.splitlines()  # the last line is that of peers.py
        return json.loads(lines[-1]) if status in (0, 1) and lines else {"error": errors[-200:] or f"status {status}"}
