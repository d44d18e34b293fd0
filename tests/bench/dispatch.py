#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times calls of compiled functions of hlofp8.jit, compared with jax.jit, on the CPU.

usage: dispatch.py [--rounds N]

Prints the best of N rounds, which alternate between all functions, in microseconds, and the ratio to jax.jit. The
functions are a call with one small argument, one with a tree of 400 leaves, and matmuls of 1024 rows with quantized
operands, in the forms "dq" and "ffi". The package hlofp8 must be importable.
"""
import argparse
import os
import timeit

os.environ["JAX_PLATFORMS"] = "cpu"

import hlofp8
import jax
import jax.numpy as jnp


def dequantize(x):
    return x.astype(jnp.bfloat16) * jnp.bfloat16(0.5)


def increment(x):
    return x + 1


def first(tree):
    return tree["layer0"]["w"].sum()


def matmul(x, w):
    return dequantize(x) @ dequantize(w)


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--rounds", type=int, default=15)
    rounds = args.parse_args().rounds
    tree = {f"layer{i}": {"w": jnp.ones((4, 4)), "b": jnp.ones(4)} for i in range(200)}
    square = jax.random.normal(jax.random.key(0), (1024, 1024)).astype(jnp.float8_e4m3fn)
    print(f"microseconds of a call, the best of {rounds} rounds")
    for title, function, given, calls, forms in (
            ("one argument", increment, (jnp.ones(4),), 2000, ("dq",)), ("400 leaves", first, (tree,), 50, ("dq",)),
            ("FP8 matmul of 1024", matmul, (square, square), 1, ("dq", "ffi"))):
        made = {"jax.jit": jax.jit(function), **{f"hlofp8.jit, {form}": hlofp8.jit(function, emit=form) for form in forms}}
        best = dict.fromkeys(made, float("inf"))
        for _ in range(rounds):
            for name, call in made.items():
                jax.block_until_ready(call(*given))
                seconds = timeit.timeit(lambda call=call: jax.block_until_ready(call(*given)), number=calls) / calls
                best[name] = min(best[name], seconds)
        for name, seconds in best.items():
            print(f"{title:20}{name:18}{seconds * 1e6:10.1f}{seconds / best['jax.jit']:8.2f}x")


main()
