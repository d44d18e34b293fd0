#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that XLA's GPU compiler, without disabled passes, creates as many FP8 calls for each function of _functions.py
as hlofp8.jit has FP8 matmuls. JAX compiles for an H100, without a GPU, for one device and for eight. The number with
jax.jit is printed."""
import os
import sys

os.environ['JAX_SKIP_CUDA_CONSTRAINTS_CHECK'] = '1'
# The first flag is needed without a device to time kernels on, the second because the matmuls here are small.
os.environ['XLA_FLAGS'] = '--xla_gpu_autotune_level=0 --xla_gpu_gemm_rewrite_size_threshold=0'

import _cases
import jax
import numpy as np

TARGET = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'xla', 'targets', 'h100_sxm.txtpb')
# These functions call the host, which requires a runtime.
LEFT_OUT = ('callback', 'debug')
FP8, TYPED = 'custom_call_target="__cublas$lt$matmul$f8"', 'custom_call_target="hlofp8.matmul"'
# Functions that are also compiled with emit="ffi", of which XLA keeps each call, and with hlofp8.enabled().
WITH_CALLS = ('plain', 'bias_relu', 'quantized_result', 'training_step', 'scan')


def compiled(function, args, kwargs):
    return function.lower(*args, **kwargs).compile().as_text()


def one(case, single, with_calls):
    import hlofp8
    from hlofp8._explain import watching
    static = case.options.get('static_argnums', ())
    static = (static,) if isinstance(static, int) else static
    static = {n % len(case.args) for n in static}

    def shape(leaf):
        if isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        sharding = None if 'in_shardings' in case.options else single
        return jax.ShapeDtypeStruct(np.shape(leaf), jax.dtypes.result_type(leaf), sharding=sharding)
    args = [arg if i in static else jax.tree.map(shape, arg) for i, arg in enumerate(case.args)]
    kwargs = {k: v if isinstance(v, str) else jax.tree.map(shape, v) for k, v in case.kwargs.items()}
    before = compiled(jax.jit(case.function, **case.options), args, kwargs).count(FP8)
    with watching() as seen:
        text = compiled(hlofp8.jit(case.function, **case.options), args, kwargs)
    assert text.count(FP8) == seen[0].fp8 >= case.fp8, f'{text.count(FP8)} FP8 calls of {seen[0].fp8} matmuls'
    if with_calls:
        typed = compiled(hlofp8.jit(case.function, emit='ffi', **case.options), args, kwargs).count(TYPED)
        assert typed == seen[0].fp8, f'{typed} typed calls of {seen[0].fp8}'
        with hlofp8.enabled():
            assert compiled(jax.jit(case.function, **case.options), args, kwargs).count(FP8) == seen[0].fp8
    return f'{text.count(FP8)} FP8 calls, {before} with jax.jit'


def quantized_training(single):
    """XLA creates FP8 calls for all quantized matmuls of a training step with quantize="current"; only attention is wide."""
    import _lm
    import hlofp8
    from hlofp8._explain import watching
    optimizer, step = _lm.training()
    params = _lm.initial(0)
    batch = np.zeros((_lm.BATCH, _lm.TOKENS + 1), np.int32)
    state, batch = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=single), ((params, optimizer.init(params)), batch))
    with watching() as seen:
        text = compiled(hlofp8.jit(step, quantize='current', min_gain=0.001), (state, batch), {})
    merged = 2 * 2 * _lm.LAYERS  # XLA multiplies by the three weights of a layer at once, and computes their gradients at once
    assert seen[0].fp8 == _lm.LINEAR and text.count(FP8) == _lm.LINEAR - merged, f'{text.count(FP8)} FP8 calls of {seen[0].fp8} matmuls'
    assert text.count(' dot(') == _lm.ATTENTION and '__cublas$gemm' not in text, text.count(' dot(')
    return f'{text.count(FP8)} FP8 calls'


def cases():
    import _functions
    single = jax.sharding.SingleDeviceSharding(_cases.devices[0])
    for name, case in _functions.CASES.items():
        def test(args, case=case, with_calls=name in WITH_CALLS):
            return one(case, single, with_calls)
        test.__name__ = name
        if name not in LEFT_OUT:
            yield test

    def quantized(args):
        return quantized_training(single)
    yield quantized


def main():
    args = _cases.arguments()
    from jax.experimental import topologies
    with open(TARGET) as file:
        _cases.devices = topologies.get_topology_desc(platform='cuda', target_config=file.read(), topology='1x1x8').devices
    return _cases.run(list(cases()), args)


if __name__ == '__main__':
    sys.exit(main())
