# SPDX-License-Identifier: Apache-2.0
"""Defines programs of Haliax: a linear layer, a stack of layers and a layer of experts, with Haliax's FP8 products."""
import equinox as eqx
import haliax as hax
import jax
import jax.numpy as jnp
from haliax.quantization import QuantizationConfig, quantize_linear_layers

from _jax import array, program

In, Out, Mid, Batch = (hax.Axis(n, s) for n, s in (("in", 64), ("out", 32), ("mid", 128), ("batch", 16)))


def arrays(tree):
    """Returns the shapes of the arrays in a tree, and a function that replaces these arrays."""
    shapes, rest = eqx.partition(tree, lambda x: isinstance(x, jax.ShapeDtypeStruct))
    return shapes, lambda values: eqx.combine(values, rest)


@program
def haliax_linear():
    make = lambda: quantize_linear_layers(hax.nn.Linear.init(In, Out, key=jax.random.key(0)), QuantizationConfig(fp8=True, amax_history_length=16))
    shapes, whole = arrays(eqx.filter_eval_shape(make))
    return lambda v, x: whole(v)(hax.named(x, (Batch, In))).array, shapes, array((16, 64))


@program
def haliax_mlp_train():
    make = lambda: quantize_linear_layers(
        hax.nn.MLP.init(In, Out, 128, 1, key=jax.random.key(0)), QuantizationConfig(fp8=True, amax_history_length=16, compute_dtype=jnp.bfloat16))
    shapes, whole = arrays(eqx.filter_eval_shape(make))
    loss = lambda v, x: jnp.mean(whole(v)(hax.named(x, (Batch, In))).array.astype(jnp.float32) ** 2)
    return jax.grad(loss), shapes, array((16, 64), jnp.bfloat16)


@program
def haliax_moe():
    """Multiplies weights and inputs that are stored in e4m3, with a scale for each array."""
    Expert = hax.Axis("expert", 4)
    shapes, whole = arrays(eqx.filter_eval_shape(lambda: hax.nn.MoELinear.init(Expert, In, Out, key=jax.random.key(0), use_bias=False)))

    def layer(v, w, sw, x, sx, sizes):
        weight = hax.named(w.astype(jnp.bfloat16) * sw, (Expert, In, Out))
        linear = eqx.tree_at(lambda m: m.weight, whole(v), weight)
        return linear(hax.named(x.astype(jnp.bfloat16) * sx, (Batch, In)), hax.named(sizes, Expert)).array

    return layer, shapes, array((4, 64, 32), jnp.float8_e4m3fn), array((), jnp.bfloat16), array((16, 64), jnp.float8_e4m3fn), array((), jnp.bfloat16), array((4,), jnp.int32)
