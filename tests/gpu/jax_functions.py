#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares hlofp8.jit on a GPU with jax.jit: the functions of tests/peer/python/_functions.py, and the time of an MLP.

usage: jax_functions.py [--seconds N]

Each one-device function runs with jax.jit and with hlofp8.jit in the forms dq, qdq and ffi. A line has the FP8 calls of
the compiled module and the relative difference of the results, as the norm of the differences over the norm of the values.
No function is begun after N seconds (60). Then two layers of 8192 tokens, width 4096 and feed-forward 16384 are timed;
the time is the median of five batches of ten calls. Exit status 1: a difference of more than 2^-6, no FP8 call, or an
error. hlofp8 and JAX with its CUDA plugin must be installed.
"""
import argparse
import os
import pathlib
import sys
import time

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8 --xla_gpu_gemm_rewrite_size_threshold=0"
os.environ["JAX_PLATFORMS"] = "cuda,cpu"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "peer/python"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "peer"))

import _cases
import jax
import jax.numpy as jnp
import numpy as np

_cases.devices = jax.devices("cpu")  # functions on this mesh are not run here

import _functions
import hlofp8

CALLS = {"dq": None, "qdq": 'custom_call_target="__cublas$lt$matmul$f8"', "ffi": 'custom_call_target="hlofp8.matmul"'}
TOLERANCE = 2.0**-6


def numbers(tree):
    for leaf in jax.tree.leaves(tree):
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaf = jax.random.key_data(leaf)
        yield np.asarray(leaf).astype(np.complex128)


def difference(expected, found):
    return max((np.linalg.norm(a - b) / max(np.linalg.norm(a), 1e-30)
                for a, b in zip(numbers(expected), numbers(found), strict=True)), default=0.0)


def is_left_out(case):
    arguments = jax.tree.leaves((case.args, case.kwargs))
    return any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in arguments) or any(
        word in str(case.options) for word in ("shard", "donate"))


def check(case):
    """Returns a line to print, and whether the function passes."""
    expected = jax.jit(case.function, **case.options)(*case.args, **case.kwargs)
    said, well = [], True
    for emit in case.emits:
        function = hlofp8.jit(case.function, emit=emit, **case.options)
        by = difference(expected, function(*case.args, **case.kwargs))
        calls = case.fp8
        if CALLS[emit]:
            calls = function.lower(*case.args, **case.kwargs).compile().as_text().count(CALLS[emit])
            said.append(f"{emit}: {calls} calls, difference {by:.2g}")
        else:
            said.append(f"{emit}: difference {by:.2g}")
        well = well and by <= TOLERANCE and calls >= case.fp8
    return ", ".join(said), well


def layer(x, w, scale):
    def quantized(v):
        return jnp.clip(v / scale, -448, 448).astype(jnp.float8_e4m3fn).astype(jnp.bfloat16) * scale.astype(jnp.bfloat16)
    return jax.nn.relu(quantized(x) @ quantized(w))


def median_time(function, arguments):
    function(*arguments).block_until_ready()
    times = []
    for _ in range(5):
        begun = time.perf_counter()
        for _ in range(10):
            result = function(*arguments)
        result.block_until_ready()
        times.append((time.perf_counter() - begun) / 10)
    return sorted(times)[2]


def time_mlp():
    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(keys[0], (8192, 4096), jnp.bfloat16)
    up = jax.random.normal(keys[1], (4096, 16384), jnp.bfloat16) / 64
    down = jax.random.normal(keys[2], (16384, 4096), jnp.bfloat16) / 128
    arguments = x, up, down, jnp.float32(0.02)

    def mlp(x, up, down, scale):
        return layer(layer(x, up, scale), down, scale)

    def wide(x, up, down, scale):
        return jax.nn.relu(jax.nn.relu(x @ up) @ down)
    for name, function in (("jax.jit in bf16", jax.jit(wide)), ("jax.jit, quantized", jax.jit(mlp)),
                           ("hlofp8.jit, qdq", hlofp8.jit(mlp)), ("hlofp8.jit, ffi", hlofp8.jit(mlp, emit="ffi"))):
        print(f"{name}: {median_time(function, arguments) * 1e3:.3f} ms", flush=True)


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--seconds", type=float, default=60)
    end = time.monotonic() + args.parse_args().seconds
    print(f"JAX {jax.__version__}, {jax.devices()[0].device_kind}", flush=True)
    failed = done = 0
    for name, case in _functions.CASES.items():
        if is_left_out(case) or time.monotonic() > end:
            continue
        try:
            said, well = check(case)
        except Exception as error:  # check the other functions nevertheless
            said, well = f"{type(error).__name__}: {error}", False
        done += 1
        failed += not well
        print(f"{name}: {said}{'' if well else ' FAILED'}", flush=True)
    print(f"{done} functions, {failed} failed", flush=True)
    time_mlp()
    return 1 if failed or not done else 0


if __name__ == "__main__":
    sys.exit(main())
