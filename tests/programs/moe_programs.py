# SPDX-License-Identifier: Apache-2.0
"""Defines mixtures of experts by ragged products, in JAX, Qwix and AQT."""
import functools

import jax
import jax.numpy as jnp
import qwix
from aqt.jax.v2 import aqt_ragged_dot, config
from flax import linen as nn

from _jax import array, program

F32, BF16, E4M3, E5M2 = jnp.float32, jnp.bfloat16, jnp.float8_e4m3fn, jnp.float8_e5m2
TERMS = jax.lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), [0], [])
BATCHES = jax.lax.RaggedDotDimensionNumbers((((2,), (2,)), ((0,), (1,))), [1], [0])
EXPERTS, TOKENS, MODEL, HIDDEN = 4, 64, 32, 48
UP, DOWN = (EXPERTS, MODEL, HIDDEN), (EXPERTS, HIDDEN, MODEL)


def quantized(x, dtype=E4M3, axis=None):
    """Returns fp8 values, and the scale of the whole array or a scale per index of the dimensions other than `axis`."""
    most = float(jnp.finfo(dtype).max)
    scale = jnp.maximum(jnp.max(jnp.abs(x.astype(F32)), axis=axis, keepdims=axis is not None), 1e-6) / most
    return jnp.clip(x.astype(F32) / scale, -most, most).astype(dtype), scale


def ragged_dot(x, w, sizes):
    return jax.lax.ragged_dot(x, w, sizes, preferred_element_type=F32)


@jax.custom_vjp
def fp8_ragged_dot(x, w, sizes):
    return forward(x, w, sizes)[0]


def forward(x, w, sizes):
    (x, sx), (w, sw) = quantized(x), quantized(w)
    return (ragged_dot(x, w, sizes) * (sx * sw)).astype(BF16), (x, sx, w, sw, sizes)


def backward(saved, dy):
    x, sx, w, sw, sizes = saved
    dy, sy = quantized(dy, E5M2)
    dx = ragged_dot(dy, w.swapaxes(1, 2), sizes) * (sy * sw)
    dw = jax.lax.ragged_dot_general(x, dy, sizes, TERMS, preferred_element_type=F32) * (sx * sy)
    return dx.astype(BF16), dw.astype(BF16), None


fp8_ragged_dot.defvjp(forward, backward)


@program
def jax_moe_train():
    """Computes two layers of experts, forward in e4m3 and both gradients in e5m2, with a scale per array."""

    def loss(up, down, x, sizes):
        h = jax.nn.gelu(fp8_ragged_dot(x, up, sizes))
        return jnp.mean(fp8_ragged_dot(h, down, sizes).astype(F32) ** 2)

    return (jax.value_and_grad(loss, (0, 1, 2)), array(UP, BF16), array(DOWN, BF16), array((TOKENS, MODEL), BF16),
            array((EXPERTS,), jnp.int32))


@program
def jax_moe_train_dequantized():
    """Quantizes per token and per expert, and dequantizes to bf16 before the product, also in the gradients."""

    def dequantized(*args, **options):
        q, scale = quantized(*args, **options)
        return q.astype(BF16) * scale.astype(BF16)

    def rounded(axis, backwards):
        """Rounds forward values, or gradients, to fp8."""
        f = jax.custom_vjp(lambda x: x if backwards else dequantized(x, axis=axis))
        f.defvjp(lambda x: (f(x), None), lambda _, dy: (dequantized(dy, E5M2) if backwards else dy,))
        return f

    def loss(w, x, sizes):
        y = jax.lax.ragged_dot(rounded(1, False)(x), rounded((1, 2), False)(w), sizes)
        return jnp.mean(rounded(None, True)(y).astype(F32) ** 2)

    return jax.grad(loss, (0, 1)), array(UP, BF16), array((TOKENS, MODEL), BF16), array((EXPERTS,), jnp.int32)


@program
def jax_moe_gated():
    """Computes routing, gate, up and down with a scale per token and per expert after each product, and the weighted
    sum of two experts."""

    def layer(x, router, gate, up, down, sg, su, sd):
        weights, experts = jax.lax.top_k(jax.nn.softmax(x.astype(F32) @ router), 2)
        order = jnp.argsort(experts.reshape(-1))
        sizes = jnp.bincount(experts.reshape(-1), length=EXPERTS)
        expert = experts.reshape(-1)[order]

        def project(x, w, scale):
            x, sx = quantized(x, axis=1)
            return ragged_dot(x, w, sizes) * sx * scale[expert][:, None]

        x = x[order // 2]
        h = jax.nn.silu(project(x, gate, sg)) * project(x, up, su)
        y = project(h, down, sd)[jnp.argsort(order)].reshape(TOKENS, 2, MODEL)
        return jnp.sum(y * weights[:, :, None], 1).astype(BF16)

    return (layer, array((TOKENS, MODEL), BF16), array((MODEL, EXPERTS)), array(UP, E4M3), array(UP, E4M3), array(DOWN, E4M3),
            *[array((EXPERTS,))] * 3)


@program
def jax_moe_columns():
    """Dequantizes weights with a scale per expert and column, and tokens, before the product; adds a bias per
    column."""

    def layer(x, sx, w, sw, bias, sizes):
        y = ragged_dot(x.astype(F32) * sx, w.astype(F32) * sw, sizes)
        return jax.nn.relu(y + bias).astype(BF16)

    return (layer, array((TOKENS, MODEL), E4M3), array((TOKENS, 1)), array(UP, E4M3), array((EXPERTS, 1, HIDDEN)), array((HIDDEN,)),
            array((EXPERTS,), jnp.int32))


@program
def jax_moe_batched():
    """Multiplies sequences with separate groups, tokens in e5m2, and quantizes the result for the next layer."""

    def layer(x, w, sizes, sx, sw, scale):
        y = jax.lax.ragged_dot_general(x, w, sizes, BATCHES, preferred_element_type=F32) * (sx * sw)
        return jnp.clip(jax.nn.relu(y) * scale, -448, 448).astype(E4M3)

    return (layer, array((2, TOKENS, MODEL), E5M2), array((EXPERTS, 2, MODEL, HIDDEN), E4M3), array((2, EXPERTS), jnp.int32),
            *[array(())] * 3)


class Experts(nn.Module):
    @nn.compact
    def __call__(self, x, sizes):
        up = self.param("up", nn.initializers.normal(), UP, BF16)
        down = self.param("down", nn.initializers.normal(), DOWN, BF16)
        return jax.lax.ragged_dot(nn.relu(jax.lax.ragged_dot(x, up, sizes)), down, sizes)


@program
def qwix_moe_train():
    """Trains with Qwix' rule: a scale per token and per column, gradients in e5m2."""
    rule = qwix.QtRule(weight_qtype=E4M3, act_qtype=E4M3, bwd_qtype=E5M2)
    model = qwix.quantize_model(Experts(), qwix.QtProvider([rule]))
    inputs = array((TOKENS, MODEL), BF16), array((EXPERTS,), jnp.int32)
    loss = lambda v, x, sizes: jnp.sum(model.apply(v, x, sizes).astype(F32) ** 2)
    return jax.grad(loss), jax.eval_shape(model.init, jax.random.key(0), *inputs), *inputs


@program
def aqt_ragged():
    """Computes AQT's product, with a scale per token, and per column of all experts."""
    cfg = config.config_fwd_fp8("e4m3")
    dot = functools.partial(aqt_ragged_dot.ragged_dot, cfg=cfg)
    return dot, array((TOKENS, MODEL), BF16), array(UP, BF16), array((EXPERTS,), jnp.int32)
