#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the library on modules, and jaxlib on the same modules in the same run.

usage: bench.py --bin DIR [--repeat N] MODEL...

Prints the best of N, in milliseconds, and the speedup over jaxlib's C++ parser and printer. The whole process
`hlo-fp8-opt --passes=`, which reads, verifies and prints, is compared with jaxlib reading and printing the same text in
this process, alternately. Optimizing is compared with the time in which XLA reads the text. If XLA's GPU plugin is
installed, the whole process with optimizing is compared with XLA's GPU compiler, from the module in memory to the
program.
"""
import argparse
import ctypes
import gc
import os
import pathlib
import re
import subprocess
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
RUNS_IN_TURN = 5


def best_of(repeat, work):
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def resident():
    """Returns the bytes of memory that this process holds, counted as in bench.c; 0 if the system does not report
    them."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
        _, pages, of_files = pathlib.Path("/proc/self/statm").read_text().split()[:3]
    except (OSError, AttributeError):
        return 0
    return (int(pages) - int(of_files)) * os.sysconf("SC_PAGESIZE")


def jaxlib_reader():
    from jax._src.lib import xla_client
    if hasattr(xla_client._xla, "hlo_module_from_text"):
        return xla_client._xla.hlo_module_from_text
    from jaxlib import _hlo
    return _hlo.hlo_module_from_text


def jaxlib_times(text, repeat):
    read = jaxlib_reader()
    read("HloModule m\n\nENTRY e {\n  ROOT x = f32[] parameter(0)\n}\n")
    before = resident()
    module = read(text)
    memory = resident() - before
    return {"parse": best_of(repeat, lambda: read(text)), "print": best_of(repeat, module.to_string), "memory": memory}


def run_process(*command):
    """Runs a command with as little overhead as possible."""
    child = os.posix_spawn(command[0], command, os.environ)
    if os.waitpid(child, 0)[1]:
        sys.exit(f"bench.py: {' '.join(map(str, command))} failed")


def whole_times(program, model, text, repeat):
    """Returns the seconds to read, verify and print in a separate process, and the seconds in which jaxlib reads and
    prints.

    Each has several consecutive runs, so that the caches contain its data.
    """
    read = jaxlib_reader()
    ours = theirs = float("inf")
    for _ in range(repeat):
        ours = min(ours, best_of(RUNS_IN_TURN, lambda: run_process(program, "--passes=", "-o", os.devnull, model)))
        theirs = min(theirs, best_of(RUNS_IN_TURN, lambda: read(text).to_string()))
    return ours, theirs


def compile_times(program, model, repeat):
    """Times the process of hlo-fp8-opt, and XLA's GPU compilation of the same module, without XLA's start and
    parsing."""
    ours = best_of(repeat, lambda: run_process(program, model, "-o", os.devnull))
    peer = pathlib.Path(__file__).parent.parent / "peer" / "xla" / "_xla_gpu.py"
    ran = subprocess.run([sys.executable, peer, model, "--time"], capture_output=True, text=True)
    return ours, float(ran.stdout) if not ran.returncode else None, ran.stderr.strip()[-300:]


def bench(binaries, model, repeat):
    ran = subprocess.run([binaries / "bench", model, str(repeat)], capture_output=True, text=True)
    if ran.returncode:
        sys.exit(ran.stderr.strip())
    ours = {name: float(seconds) for name, seconds in (line.split() for line in ran.stdout.splitlines())}
    text = model.read_text()
    theirs = jaxlib_times(text, repeat)
    print(f"{model}: {text.count(chr(10))} lines, {len(text) / 1e6:.2f} MB; best of {repeat}, milliseconds")
    print(f"{'':10}{'hlo-fp8':>10}{'jaxlib':>10}{'ratio':>8}")
    memory = ours.pop("memory")
    for name in ours:
        row = f"{name:10}{ours[name] * 1e3:10.2f}"
        if name in theirs:
            row += f"{theirs[name] * 1e3:10.2f}{theirs[name] / ours[name]:7.1f}x"
        print(row)
    instrs = len(re.findall(r"^ +(?:ROOT )?%?[\w.-]+ = ", text, re.MULTILINE))
    print(f"memory, bytes for each of {instrs} instructions: {memory / instrs:.0f} with the text, "
          f"{(memory - len(text)) / instrs:.0f} without; jaxlib {theirs['memory'] / instrs:.0f}, which keeps no text")
    whole, in_process = whole_times(binaries / "hlo-fp8-opt", model, text, repeat)
    print(f"hlo-fp8-opt --passes=, the whole process: {whole * 1e3:.2f} ms; jaxlib's reading and printing in a process that "
          f"runs: {in_process * 1e3:.2f} ms, {in_process / whole:.1f} times as long")
    print(f"optimizing takes {ours['optimize'] / theirs['parse']:.2f} of the time that jaxlib takes to read the text")
    whole, xla, refusal = compile_times(binaries / "hlo-fp8-opt", model, repeat)
    if xla is None:
        print(f"hlo-fp8-opt, the whole process: {whole * 1e3:.1f} ms; XLA's GPU compiler says: {refusal}")
    else:
        print(f"hlo-fp8-opt, the whole process: {whole * 1e3:.1f} ms; XLA's GPU compiler: {xla * 1e3:.0f} ms, "
              f"{xla / whole:.0f} times as long")


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--bin", type=pathlib.Path, required=True)
    args.add_argument("--repeat", type=int, default=20)
    args.add_argument("models", type=pathlib.Path, nargs="+")
    a = args.parse_args()
    for model in a.models:
        bench(a.bin, model, a.repeat)


main()
