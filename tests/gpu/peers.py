#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times torch and XLA on the cases of speeds.py, each in a separate process.

usage: peers.py torch M N K [--no-fast] [--repeat N]
       peers.py xla FILE.hlo [--platform gpu|cpu] [--repeat N]

torch: runs torch._scaled_mm of normal fp8 operands to bf16 in a CUDA graph. The time is the median of N replays, queued
back to back and timed between events. xla: JAX's XLA compiles the module from the same text, and runs it on inputs with
the same distribution. The time is the median of five batches of N calls, queued back to back, divided by N.
Prints one JSON object: seconds and versions, or error. Exit status 1 if the package or device is missing.
"""
import argparse
import json
import os
import statistics
import sys
import time


def torch_seconds(a):
    import torch
    if not torch.cuda.is_available():
        raise RuntimeError("torch sees no CUDA device")
    m, n, k = a.sizes
    left = torch.randn(m, k, device="cuda").to(torch.float8_e4m3fn)
    right = torch.randn(n, k, device="cuda").to(torch.float8_e4m3fn).t()
    one = torch.ones((), device="cuda")

    def multiply():
        return torch._scaled_mm(left, right, scale_a=one, scale_b=one, out_dtype=torch.bfloat16,
                                use_fast_accum=not a.no_fast)
    for _ in range(3):
        multiply()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        multiply()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(a.repeat + 1)]
    graph.replay()
    for at, mark in enumerate(marks):
        if at:
            graph.replay()
        mark.record()
    torch.cuda.synchronize()
    seconds = statistics.median(marks[i].elapsed_time(marks[i + 1]) for i in range(a.repeat)) * 1e-3
    return {"seconds": seconds, "torch": torch.__version__, "cuda": torch.version.cuda}


def draw(jax, numpy, shape):
    """Draws inputs with the distribution of hlo-fp8-run, but on the device; floats in scalars and vectors are at least
    0.5, because they may be scales."""
    kind, dims = numpy.dtype(shape.numpy_dtype()), shape.dimensions()
    key = jax.random.PRNGKey(len(dims))
    if kind == numpy.bool_ or numpy.issubdtype(kind, numpy.integer):
        return jax.random.randint(key, dims, 0, 2).astype(kind)
    drawn = jax.random.normal(key, dims)
    return (abs(drawn) + 0.5 if len(dims) < 2 else drawn).astype(kind)


def xla_seconds(a):
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    os.environ["JAX_PLATFORMS"] = "cuda" if a.platform == "gpu" else a.platform
    import jax
    import numpy
    from jax._src.lib import xla_client
    from jaxlib import _jax
    device = jax.devices()[0]
    with open(a.file) as file:
        text = file.read()
    if hasattr(xla_client._xla, "hlo_module_from_text"):
        module, computation = xla_client._xla.hlo_module_from_text(text), xla_client.XlaComputation
    else:
        from jaxlib import _hlo
        module, computation = _hlo.hlo_module_from_text(text), _hlo.XlaComputation
    computation = computation(module.as_serialized_hlo_module_proto())
    program = device.client.compile_and_load(xla_client._xla.mlir.xla_computation_to_mlir_module(computation),
                                             _jax.DeviceList((device,)), xla_client.CompileOptions())
    inputs = [jax.device_put(draw(jax, numpy, s), device) for s in computation.program_shape().parameter_shapes()]

    def call(times):
        begun = time.perf_counter()
        for _ in range(times):
            results = program.execute_sharded(inputs).disassemble_into_single_device_arrays()
        for result in results:
            result[0].block_until_ready()
        return (time.perf_counter() - begun) / times
    call(3)
    return {"seconds": statistics.median(call(a.repeat) for _ in range(5)), "jax": jax.__version__, "device": device.device_kind}


def main():
    args = argparse.ArgumentParser()
    kinds = args.add_subparsers(dest="kind", required=True)
    torch = kinds.add_parser("torch")
    torch.add_argument("sizes", type=int, nargs=3)
    torch.add_argument("--no-fast", action="store_true")
    xla = kinds.add_parser("xla")
    xla.add_argument("file")
    xla.add_argument("--platform", default="gpu")
    for kind in (torch, xla):
        kind.add_argument("--repeat", type=int, default=20)
    a = args.parse_args()
    try:
        print(json.dumps(torch_seconds(a) if a.kind == "torch" else xla_seconds(a)))
    except Exception as error:  # the error if a package or a device is missing
        print(json.dumps({"error": f"{type(error).__name__}: {error}".split("\n")[0][:200]}))
        return 1
    return 0


sys.exit(main())
