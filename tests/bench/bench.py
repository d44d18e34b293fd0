#!/usr/bin/env python3
"""Times the library on one module, and jaxlib on the same module in the same run.

usage: bench.py --bin DIR --model FILE [--repeat N]

Prints the best of N, in milliseconds, and how many times as fast as jaxlib's C++ parser and printer the library is.
Optimising is set against the time XLA takes to read the same text, and the whole process of hlo-fp8-opt against
XLA's GPU compiler, from the module in memory to the program, where its plugin is installed.
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


def best_of(repeat, work):
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def resident():
    """Bytes of memory that this process holds, as bench.c counts them; 0 where the system does not tell."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
        _, pages, of_files = pathlib.Path("/proc/self/statm").read_text().split()[:3]
    except (OSError, AttributeError):
        return 0
    return (int(pages) - int(of_files)) * os.sysconf("SC_PAGESIZE")


def jaxlib_times(text, repeat):
    from jax._src.lib import xla_client
    read = xla_client._xla.hlo_module_from_text if hasattr(xla_client._xla, "hlo_module_from_text") else None
    if read is None:
        from jaxlib import _hlo
        read = _hlo.hlo_module_from_text
    read("HloModule m\n\nENTRY e {\n  ROOT x = f32[] parameter(0)\n}\n")
    before = resident()
    module = read(text)
    memory = resident() - before
    return {"parse": best_of(repeat, lambda: read(text)), "print": best_of(repeat, module.to_string), "memory": memory}


def compile_times(program, model, repeat):
    """The whole process of hlo-fp8-opt, and XLA's GPU compile of the same module, without its start and its reading."""
    command = [program, model, "-o", os.devnull]
    ours = best_of(repeat, lambda: subprocess.run(command, check=True))
    peer = pathlib.Path(__file__).parent.parent / "peer" / "_xla_gpu.py"
    ran = subprocess.run([sys.executable, peer, model, "--time"], capture_output=True, text=True)
    return ours, float(ran.stdout) if not ran.returncode else None, ran.stderr.strip()[-300:]


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--bin", type=pathlib.Path, required=True)
    args.add_argument("--model", type=pathlib.Path, required=True)
    args.add_argument("--repeat", type=int, default=20)
    a = args.parse_args()
    ran = subprocess.run([a.bin / "bench", a.model, str(a.repeat)], capture_output=True, text=True)
    if ran.returncode:
        sys.exit(ran.stderr.strip())
    ours = {name: float(seconds) for name, seconds in (line.split() for line in ran.stdout.splitlines())}
    text = a.model.read_text()
    theirs = jaxlib_times(text, a.repeat)
    print(f"{a.model}: {text.count(chr(10))} lines, {len(text) / 1e6:.2f} MB; best of {a.repeat}, milliseconds")
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
    print(f"optimising takes {ours['optimize'] / theirs['parse']:.2f} of the time that jaxlib takes to read the text")
    whole, xla, refusal = compile_times(a.bin / "hlo-fp8-opt", a.model, a.repeat)
    if xla is None:
        print(f"hlo-fp8-opt, the whole process: {whole * 1e3:.1f} ms; XLA's GPU compiler says: {refusal}")
    else:
        print(f"hlo-fp8-opt, the whole process: {whole * 1e3:.1f} ms; XLA's GPU compiler: {xla * 1e3:.0f} ms, "
              f"{xla / whole:.0f} times as long")


main()
