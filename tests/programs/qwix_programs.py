# SPDX-License-Identifier: Apache-2.0
"""Defines programs of Qwix: training with quantized layers, quantized weights and activations, tiles."""
import jax
import jax.numpy as jnp
import qwix
from flax import linen as nn
from flax import nnx

from _jax import array, program

BF16, E4M3, E5M2 = jnp.bfloat16, jnp.float8_e4m3fn, jnp.float8_e5m2


class Mlp(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Dense(128, use_bias=False, dtype=BF16)(x))
        return nn.Dense(64, dtype=BF16)(x)


def quantized(provider, *inputs):
    """Returns a model with the provider's quantization rule, and the shapes of its variables."""
    model = qwix.quantize_model(Mlp(), provider)
    return model, jax.eval_shape(model.init, jax.random.key(0), *inputs)


@program
def qwix_qt():
    """Applies a model for training, without its gradients: products in e4m3, a scale per token and per column."""
    model = qwix.quantize_model(Mlp(), qwix.QtProvider([qwix.QtRule(weight_qtype=E4M3, act_qtype=E4M3)]))
    x = array((32, 64), BF16)
    return model.apply, jax.eval_shape(model.init, jax.random.key(0), x), x


@program
def qwix_qt_train():
    """Trains with gradients of the output in e5m2."""
    rule = qwix.QtRule(weight_qtype=E4M3, act_qtype=E4M3, bwd_qtype=E5M2)
    model, x = qwix.quantize_model(Mlp(), qwix.QtProvider([rule])), array((32, 64), BF16)
    loss = lambda v, x: jnp.sum(model.apply(v, x).astype(jnp.float32) ** 2)
    return jax.grad(loss), jax.eval_shape(model.init, jax.random.key(0), x), x


@program
def qwix_ptq():
    """Applies weights stored in e4m3; activations are quantized at run time."""
    model, variables = quantized(qwix.PtqProvider([qwix.QuantizationRule(weight_qtype=E4M3, act_qtype=E4M3)]), array((32, 64), BF16))
    return model.apply, variables, array((32, 64), BF16)


@program
def qwix_ptq_static():
    """Uses one scale for all activations, which is part of the model."""
    rule = qwix.QuantizationRule(weight_qtype=E4M3, act_qtype=E4M3, act_static_scale=False,
                                 act_calibration_method="fixed,-8,8", weight_calibration_method="fixed,-1,1")
    model, variables = quantized(qwix.PtqProvider([rule]), array((32, 64), BF16))
    return model.apply, variables, array((32, 64), BF16)


@program
def qwix_ptq_tiles():
    """Uses a scale for 32 elements along k."""
    rule = qwix.QuantizationRule(weight_qtype=E4M3, act_qtype=E4M3, tile_size=32)
    model, variables = quantized(qwix.PtqProvider([rule]), array((32, 64), BF16))
    return model.apply, variables, array((32, 64), BF16)


@program
def qwix_ptq_int4():
    """Multiplies 4-bit weights and activations in e4m3."""
    rule = qwix.QuantizationRule(weight_qtype=jnp.int4, act_qtype=E4M3)
    model, variables = quantized(qwix.PtqProvider([rule]), array((32, 64), BF16))
    return model.apply, variables, array((32, 64), BF16)


@program
def qwix_weight_only():
    rule = qwix.QuantizationRule(weight_qtype=E4M3)
    model, variables = quantized(qwix.PtqProvider([rule]), array((32, 64), BF16))
    return model.apply, variables, array((32, 64), BF16)


@program
def qwix_einsum():
    """Multiplies two manually quantized arrays with a batch of experts."""

    def experts(x, w):
        x = qwix.quantize(x, E4M3, channelwise_axes=[0, 1])
        w = qwix.quantize(w, E4M3, channelwise_axes=[0, 2])
        return qwix.einsum("ecd,edf->ecf", x, w)

    return experts, array((4, 32, 64), BF16), array((4, 64, 48), BF16)


@program
def qwix_nnx_attention():
    """Computes attention of nnx with all products quantized."""
    rule = qwix.QuantizationRule(weight_qtype=E4M3, act_qtype=E4M3)
    make = lambda: nnx.MultiHeadAttention(2, 64, decode=False, dtype=BF16, rngs=nnx.Rngs(0))
    x = jnp.zeros((2, 16, 64), BF16)
    graph, state = nnx.split(nnx.eval_shape(lambda: qwix.quantize_model(make(), qwix.PtqProvider([rule]), x)))
    return lambda s, x: nnx.merge(graph, s)(x), state, array((2, 16, 64), BF16)


@program
def qwix_ragged_dot():
    """Computes a mixture of experts with tokens and weights quantized."""

    def experts(x, w, sizes):
        return qwix.ragged_dot(qwix.quantize(x, E4M3, channelwise_axes=[0]), qwix.quantize(w, E4M3, channelwise_axes=[0, 2]), sizes)

    return experts, array((64, 32), BF16), array((4, 32, 48), BF16), array((4,), jnp.int32)


@program
def qwix_mxfp8():
    """Multiplies blocks of 32 with e8m0 scales."""

    def product(x, w):
        return qwix.dot_general(qwix.quantize(x, "mxfp8", tiled_axes={1: 32}), qwix.quantize(w, "mxfp8", tiled_axes={0: 32}),
                                (((1,), (0,)), ((), ())))

    return product, array((64, 128), BF16), array((128, 96), BF16)


@program
def qwix_dequantized():
    """Dequantizes before the product, with a scale per row and per column."""

    def product(x, w):
        return qwix.dequantize(qwix.quantize(x, E4M3, channelwise_axes=[0])) @ qwix.dequantize(qwix.quantize(w, E4M3, channelwise_axes=[1]))

    return product, array((32, 64), BF16), array((64, 48), BF16)


@program
def qwix_static_scale():
    """Uses precomputed scales of activations."""
    rule = qwix.QuantizationRule(weight_qtype=E4M3, act_qtype=E4M3, act_static_scale=True)
    model, variables = quantized(qwix.PtqProvider([rule]), array((32, 64), BF16))
    return model.apply, variables, array((32, 64), BF16)


@program
def qwix_lora():
    """Adds low-rank products to those of quantized weights."""
    rule = qwix.LoraRule(weight_qtype=E4M3, act_qtype=E4M3, rank=16, alpha=1.0)
    model, variables = quantized(qwix.LoraProvider([rule]), array((32, 64), BF16))
    return model.apply, variables, array((32, 64), BF16)


@program
def qwix_conv():
    layer = nn.Conv(32, (3, 3), dtype=BF16)
    model = qwix.quantize_model(layer, qwix.PtqProvider([qwix.QuantizationRule(weight_qtype=E4M3, act_qtype=E4M3)]))
    x = array((2, 8, 8, 16), BF16)
    return model.apply, jax.eval_shape(model.init, jax.random.key(0), x), x


@program
def qwix_int8():
    """Multiplies 8-bit integers; no fp8 type represents all of them."""
    rule = qwix.QuantizationRule(weight_qtype=jnp.int8, act_qtype=jnp.int8)
    model, variables = quantized(qwix.PtqProvider([rule]), array((32, 64), BF16))
    return model.apply, variables, array((32, 64), BF16)
