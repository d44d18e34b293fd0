#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that hlofp8.explain names each of these mistakes with quantization, and reports nothing about the fixed
function."""
import os
import sys
import warnings

os.environ['JAX_PLATFORMS'] = 'cpu'

import _cases
import jax
import jax.numpy as jnp
import numpy as np

E4M3, E5M2, BF16 = jnp.float8_e4m3fn, jnp.float8_e5m2, jnp.bfloat16
X, W = (jax.ShapeDtypeStruct(shape, BF16) for shape in ((32, 64), (64, 128)))
S = jax.ShapeDtypeStruct((), jnp.float32)


def q(x, scale, dtype=E4M3):
    most = jnp.float32(jnp.finfo(dtype).max)
    return jnp.clip(x.astype(jnp.float32) / scale, -most, most).astype(dtype)


def dq(value, scale):
    return value.astype(BF16) * scale.astype(BF16)


def qdq(x, scale, dtype=E4M3):
    return dq(q(x, scale, dtype), scale)


def unclamped(x, scale):
    return dq((x / scale).astype(E4M3), scale)


def int8(x, scale):
    return dq(jnp.clip(jnp.round(x / scale), -127, 127).astype(jnp.int8), scale)


def amax(x):
    return jnp.maximum(jnp.max(jnp.abs(x)), 1e-6).astype(jnp.float32) / 448


def along(w):
    scale = jnp.max(jnp.abs(w), axis=1, keepdims=True).astype(jnp.float32) / 448
    return dq(q(w, scale), scale)


def norm(x):
    return (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 1e-5)


def clipped_late(x, scale):
    return dq(jnp.clip((x / scale).astype(E4M3), E4M3(-448), E4M3(448)), scale)


def beyond(x, scale):
    return dq(jnp.clip(x / scale, -57344., 57344.).astype(E4M3), scale)


def good(x, w, a, b):
    return qdq(x, a) @ qdq(w, b)


def gradient(x, w, a, b):
    return jax.grad(lambda x, w: good(x, w, a, b).astype(jnp.float32).sum(), (0, 1))(x, w)


# Each function, with its reasons and lints; lint-round-trip is a consequence of a matmul that is not FP8.
MISTAKES = {
    'no scale after the matmul': (lambda x, w, a, b: q(x, a).astype(BF16) @ q(w, b).astype(BF16), {'lint-unused-scale'}),
    'no clamp': (lambda x, w, a, b: unclamped(x, a) @ unclamped(w, b), {'lint-no-clamp'}),
    'a clamp after the conversion': (lambda x, w, a, b: clipped_late(x, a) @ clipped_late(w, b), {'lint-no-clamp'}),
    'the clamp of another type': (lambda x, w, a, b: beyond(x, a) @ beyond(w, b), {'lint-clamp-bounds'}),
    'int8': (lambda x, w, a, b: int8(x, a) @ int8(w, b), {'integer-operand'}),
    'an fnuz type': (lambda x, w, a, b: qdq(x, a, jnp.float8_e4m3fnuz) @ qdq(w, b, jnp.float8_e4m3fnuz), {'operand-not-fp8'}),
    'two f8e5m2 operands': (lambda x, w, a, b: qdq(x, a, E5M2) @ qdq(w, b, E5M2), {'both-operands-e5m2'}),
    'scales along the contracting dimension': (lambda x, w, a, b: qdq(x, a) @ along(w), {'scale-not-scalar', 'lint-amax-zero'}),
    'one operand wide': (lambda x, w, a, b: x @ qdq(w, b), {'one-operand-wide'}),
    'only the output quantized': (lambda x, w, a, b: qdq(x @ w, a), {'not-quantized'}),
    'an offset': (lambda x, w, a, b: (qdq(x, a) + BF16(0.001)) @ qdq(w, b), {'operation-after-dequantize'}),
    'a layer norm': (lambda x, w, a, b: norm(qdq(x, a)) @ qdq(w, b), {'operation-after-dequantize'}),
    'a relu': (lambda x, w, a, b: jax.nn.relu(qdq(x, a)) @ qdq(w, b), {'relu-scale-sign'}),
    'a maximum': (lambda x, w, a, b: jnp.maximum(qdq(x, a), 0) @ qdq(w, b), {'relu-scale-sign'}),
    'a square': (lambda x, w, a, b: jnp.square(qdq(x, a)) @ qdq(w, b), {'operation-after-dequantize'}),
    'a gelu': (lambda x, w, a, b: jax.nn.gelu(qdq(x, a)) @ qdq(w, b), {'operation-after-dequantize'}),
    'a softmax': (lambda x, w, a, b: jax.nn.softmax(qdq(x, a)) @ qdq(w, b), {'operation-after-dequantize'}),
    'a sum with itself': (lambda x, w, a, b: (qdq(x, a) + qdq(x, a)) @ qdq(w, b), {'operation-after-dequantize'}),
    'a sum with an input': (lambda x, w, a, b: (qdq(x, a) + x) @ qdq(w, b), {'operation-after-dequantize'}),
    'a vector': (lambda x, w, a, b: (qdq(x, a) * jnp.arange(64, dtype=BF16)) @ qdq(w, b), {'scale-not-scalar'}),
    'swapped scales': (lambda x, w, a, b: dq(q(x, a), b) @ dq(q(w, b), a), {'lint-other-scale'}),
    'inverted scales': (lambda x, w, a, b: (q(x, a).astype(BF16) / a.astype(BF16)) @ (q(w, b).astype(BF16) / b.astype(BF16)), {'lint-other-scale'}),
    'the amax of the other operand': (lambda x, w, a, b: qdq(x, amax(x)) @ qdq(w, amax(x)), {'lint-other-amax'}),
    'an amax that may be 0': (lambda x, w, a, b: qdq(x, jnp.max(jnp.abs(x)).astype(jnp.float32) / 448) @ qdq(w, b), {'lint-amax-zero'}),
    'a differentiated conversion': (gradient, {'one-operand-wide', 'lint-cotangent'}),
}

# Correct functions, with all matmuls in FP8.
RIGHT = {
    'scales as inputs': good,
    'constant scales': lambda x, w, a, b: qdq(x, np.float32(0.3)) @ qdq(w, np.float32(0.25)),
    'scales of the amax': lambda x, w, a, b: qdq(x, amax(x)) @ qdq(w, amax(w)),
    'one scale of both amaxes': lambda x, w, a, b: (lambda s: qdq(x, s) @ qdq(w, s))(jnp.maximum(amax(x), amax(w))),
    'scales after the matmul': lambda x, w, a, b: (q(x, a).astype(BF16) @ q(w, b).astype(BF16)) * (a * b).astype(BF16),
    'scales of two products': lambda x, w, a, b: (q(x, a).astype(BF16) @ q(w, b).astype(BF16)) * a.astype(BF16) * b.astype(BF16),
    'a combined scale as an input': lambda x, w, a, b: (q(x, a).astype(BF16) @ q(w, BF16(0.5)).astype(BF16)) * b.astype(BF16),
    'an amax of the whole, a quantized part': lambda x, w, a, b: qdq(x[:16], amax(x)) @ qdq(w, b),
    'a relu after a positive scale': lambda x, w, a, b: jax.nn.relu(qdq(x, amax(x))) @ qdq(w, b),
    'a relu before the quantization': lambda x, w, a, b: qdq(jax.nn.relu(x), a) @ qdq(w, b),
    'a relu as a select': lambda x, w, a, b: (lambda d: jnp.where(d > 0, d, 0) @ qdq(w, b))(qdq(x, a)),
    'a transposition': lambda x, w, a, b: qdq(w, b).T @ qdq(x, a).T,
}


def named(args):
    """Each mistake has exactly the reasons and lints of the table."""
    import hlofp8
    for name, (function, wanted) in MISTAKES.items():
        found = hlofp8.explain(function, X, W, S, S)
        reasons = {v.reason for v in found if v.reason} | {v.reason for v in found.lints if v.reason != 'lint-round-trip'}
        assert reasons == wanted, f'{name}: {reasons}, expected {wanted}'
        assert all(f'{reason}: ' in str(found) for reason in wanted), found
    return f'{len(MISTAKES)} mistakes'


def right(args):
    """Correct functions are FP8, have no lint, and pass assert_fp8."""
    import hlofp8
    for name, function in RIGHT.items():
        found = hlofp8.assert_fp8(function, X, W, S, S)
        assert not found.lints, f'{name}: {found}'
    return f'{len(RIGHT)} functions'


def wrong_scales(args):
    """With a scale that makes the result wrong, assert_fp8 fails, and hlofp8.jit warns."""
    import hlofp8
    for name in ('no scale after the matmul', 'swapped scales', 'the amax of the other operand'):
        function, (lint,) = MISTAKES[name]
        try:
            hlofp8.assert_fp8(function, X, W, S, S)
        except AssertionError as error:
            assert lint in str(error), error
        else:
            raise AssertionError(f'{name} passed')
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            arrays = [jnp.ones(shape.shape, shape.dtype) for shape in (X, W, S, S)]
            hlofp8.jit(function)(*arrays)
        assert any(lint in str(warning.message) for warning in caught), [str(w.message) for w in caught]


def relu_values(args):
    """The relu of fp8 values equals the relu of the dequantized values, including NaN and zeros."""
    import hlofp8
    x = np.linspace(-3, 3, 32 * 64).reshape(32, 64).astype(np.float32)
    x[3, 5], x[4, 6], x[5, 7] = np.nan, 0.0, -0.0
    function = lambda x, w: jax.nn.relu(dq(x.astype(E4M3), jnp.float32(0.5))) @ dq(w.astype(E4M3), jnp.float32(2))
    arrays = jnp.asarray(x, BF16), jnp.asarray(np.eye(64, 128), BF16)
    jitted = hlofp8.jit(function)
    assert jitted.explain(*arrays).fp8 == 1
    np.testing.assert_array_equal(np.asarray(jitted(*arrays), np.float32), np.asarray(jax.jit(function)(*arrays), np.float32))


if __name__ == '__main__':
    sys.exit(_cases.run([named, right, wrong_scales, relu_values], _cases.arguments()))
