# SPDX-License-Identifier: Apache-2.0
"""Defines programs of AQT: dot_general, einsum, and layers with AQT's configurations for FP8."""
import jax
import jax.numpy as jnp
from aqt.jax.v2 import config
from aqt.jax.v2.aqt_dot_general import DequantMode
from flax import linen as nn

from _jax import array, program

BF16 = jnp.bfloat16


@program
def aqt_dot_general():
    """Multiplies in e4m3, with a scale for each row and column."""
    op = config.config_fwd_fp8("e4m3")
    dot = lambda x, w: op(x, w, (((1,), (0,)), ((), ())))
    return dot, array((32, 64), BF16), array((64, 48), BF16)


@program
def aqt_dot_general_f32():
    op = config.config_fwd_fp8("e4m3")
    dot = lambda x, w: op(x, w, (((1,), (0,)), ((), ())))
    return dot, array((32, 64)), array((64, 48))


def train(cfg):
    """Computes a layer of Flax and its gradients."""
    config.set_stochastic_rounding(cfg, False, False, "jax.uniform")
    layer = nn.Dense(64, dtype=BF16, dot_general=cfg)
    x = array((32, 64), BF16)
    loss = lambda v, x: jnp.sum(layer.apply(v, x).astype(jnp.float32) ** 2)
    return jax.grad(loss, (0, 1)), jax.eval_shape(layer.init, jax.random.key(0), x), x


@program
def aqt_train():
    """Trains with the forward product in e4m3; products of gradients have one operand in e5m2 and one in e4m3."""
    cfg = config.config_v4(fwd_bits="e4m3", dlhs_bits="e4m3", drhs_bits="e4m3")
    config.set_bits(cfg, "e4m3", "e4m3", "e5m2", "e4m3", "e5m2", "e4m3")
    return train(cfg)


@program
def aqt_train_e5m2():
    """Trains with both operands of gradients in e5m2, which cuBLASLt does not support."""
    return train(config.config_v4(fwd_bits="e4m3", dlhs_bits="e5m2", drhs_bits="e5m2"))


@program
def aqt_einsum():
    """Computes attention's first product, with two batch dimensions."""
    q, k = array((2, 16, 4, 32), BF16), array((2, 16, 4, 32), BF16)
    op = config.config_fwd_fp8("e4m3")
    return lambda q, k: op(q, k, (((3,), (3,)), ((0, 2), (0, 2)))), q, k


@program
def aqt_per_tensor():
    """Multiplies with one scale for each operand."""
    cfg = config.config_fwd_fp8("e4m3")
    cfg.fwd.dg_quantizer.lhs.calib_shared_axes = "per_tensor"
    cfg.fwd.dg_quantizer.rhs.calib_shared_axes = "per_tensor"
    dot = lambda x, w: cfg(x, w, (((1,), (0,)), ((), ())))
    return dot, array((32, 64), BF16), array((64, 48), BF16)


@program
def aqt_fake_quantize():
    """Dequantizes both operands before the product."""
    op = config.config_fwd_fp8("e4m3")
    op.fwd.lhs.dequant_mode = op.fwd.rhs.dequant_mode = DequantMode.THIS_INPUT
    return lambda x, w: op(x, w, (((1,), (0,)), ((), ()))), array((32, 64), BF16), array((64, 48), BF16)
