# SPDX-License-Identifier: Apache-2.0
"""Defines programs of Flax: the layers that run in FP8, one for each kind of scaling, and training steps with optax."""
import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from flax import nnx
from flax.linen import fp8_ops

from _jax import array, program

BF16 = jnp.bfloat16
OVERWRITE = fp8_ops.OVERWRITE_WITH_GRADIENT


def initialized(layer, *inputs):
    return jax.eval_shape(layer.init, jax.random.key(0), *inputs)


def history(op, length=16):
    return lambda: op(amax_history_length=length)


def current_scaling(v, dtype):
    """Quantizes with the scale of the current amax, and dequantizes."""
    scale = jnp.max(jnp.abs(v)).astype(jnp.float32) / float(jnp.finfo(dtype).max)
    return fp8_ops.qdq(v, dtype, scale, v.dtype)


def train_step(model, optimizer):
    """Runs a training step: the FP8 metadata is overwritten by its gradient, all other variables are updated."""

    def loss(variables, x, y):
        return jnp.mean((model.apply(variables, x).astype(jnp.float32) - y) ** 2)

    def step(variables, state, x, y):
        value, gradient = jax.value_and_grad(loss)(variables, x, y)
        updates, state = optimizer.update(gradient["params"], state, variables["params"])
        return {"params": optax.apply_updates(variables["params"], updates), OVERWRITE: gradient[OVERWRITE]}, state, value

    return step


@program
def linen_direct_dense():
    layer = nn.Dense(64, dtype=BF16, dot_general_cls=history(fp8_ops.Fp8DirectDotGeneralOp))
    x = array((32, 64), BF16)
    return lambda v, x: nn.relu(layer.apply(v, x)), initialized(layer, x), x


@program
def linen_direct_train():
    class Mlp(nn.Module):
        @nn.compact
        def __call__(self, x):
            op = history(fp8_ops.Fp8DirectDotGeneralOp)
            x = nn.gelu(nn.Dense(128, dtype=BF16, dot_general_cls=op)(x))
            return nn.Dense(64, dtype=BF16, dot_general_cls=op)(x)

    model, optimizer = Mlp(), optax.adamw(1e-3)
    x, y = array((32, 64), BF16), array((32, 64))
    variables = initialized(model, x)
    return train_step(model, optimizer), variables, jax.eval_shape(optimizer.init, variables["params"]), x, y


@program
def linen_qdq_sgd():
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            op = history(fp8_ops.Fp8DotGeneralOp)
            return nn.Dense(32, dot_general_cls=op)(nn.relu(nn.Dense(64, dot_general_cls=op)(x)))

    model, optimizer = Net(), optax.sgd(1e-2, momentum=0.9)
    x, y = array((16, 32)), array((16, 32))
    variables = initialized(model, x)
    return train_step(model, optimizer), variables, jax.eval_shape(optimizer.init, variables["params"]), x, y


@program
def linen_einsum_experts():
    """Applies Fp8Einsum over experts, with a batch dimension on both sides."""
    layer = nn.fp8_ops.Fp8Einsum(amax_history_length=16)
    x, w = array((4, 32, 64), BF16), array((4, 64, 128), BF16)
    shapes = jax.eval_shape(lambda x, w: layer.init(jax.random.key(0), "ecd,edf->ecf", x, w), x, w)
    return lambda v, x, w: layer.apply(v, "ecd,edf->ecf", x, w), shapes, x, w


@program
def linen_attention():
    """Computes the projections of attention in FP8, and attention itself in a wide type."""
    layer = nn.MultiHeadDotProductAttention(
        num_heads=4, dtype=BF16, qkv_dot_general_cls=history(fp8_ops.Fp8DirectDotGeneralOp),
        out_dot_general_cls=history(fp8_ops.Fp8DirectDotGeneralOp))
    x = array((2, 16, 64), BF16)
    return layer.apply, initialized(layer, x), x


@program
def linen_gated_remat():
    """Computes the gated layer of a transformer with rematerialization, and its gradient."""

    class Gated(nn.Module):
        @nn.compact
        def __call__(self, x):
            op = history(fp8_ops.Fp8DirectDotGeneralOp)
            gate, up = jnp.split(nn.Dense(256, use_bias=False, dtype=BF16, dot_general_cls=op)(x), 2, axis=-1)
            return nn.silu(gate) * up

    layer = nn.remat(Gated)()
    x = array((32, 64), BF16)
    return jax.grad(lambda v, x: jnp.sum(layer.apply(v, x).astype(jnp.float32) ** 2)), initialized(layer, x), x


@program
def nnx_linear():
    """Applies an nnx layer whose dot_general quantizes to e4m3 with current scales."""

    def dot_general(x, k, dimensions, **options):
        quantized = lambda v: current_scaling(v, jnp.float8_e4m3fn)
        return jax.lax.dot_general(quantized(x), quantized(k), dimensions, **options)

    graph, state = nnx.split(nnx.eval_shape(
        lambda: nnx.Linear(64, 96, dtype=BF16, dot_general=dot_general, rngs=nnx.Rngs(0))))
    return lambda s, x: nnx.merge(graph, s)(x), state, array((32, 64), BF16)


@program
def linen_scan():
    """Applies three layers as one loop; weights, scales and histories are stacked."""

    class Layer(nn.Module):
        @nn.compact
        def __call__(self, x, _):
            return nn.relu(nn.Dense(64, dtype=BF16, dot_general_cls=history(fp8_ops.Fp8DirectDotGeneralOp))(x)), None

    layers = nn.scan(Layer, variable_axes={"params": 0, OVERWRITE: 0}, split_rngs={"params": True}, length=3)()
    x = array((32, 64), BF16)
    return lambda v, x: layers.apply(v, x, None)[0], jax.eval_shape(layers.init, jax.random.key(0), x, None), x


@program
def linen_attention_einsum():
    """Computes attention with Fp8Einsum for both products."""
    einsum = history(fp8_ops.Fp8Einsum)
    layer = nn.MultiHeadDotProductAttention(
        num_heads=2, dtype=BF16, qk_attn_weights_einsum_cls=einsum, attn_weights_value_einsum_cls=einsum)
    x = array((2, 16, 64), BF16)
    return layer.apply, initialized(layer, x), x


@program
def nnx_bridge():
    """Applies a layer of linen in an nnx model."""
    make = lambda: nnx.bridge.lazy_init(
        nnx.bridge.ToNNX(nn.Dense(96, dtype=BF16, dot_general_cls=history(fp8_ops.Fp8DirectDotGeneralOp)), rngs=nnx.Rngs(0)),
        jnp.zeros((32, 64), BF16))
    graph, state = nnx.split(nnx.eval_shape(make))
    return lambda s, x: nnx.gelu(nnx.merge(graph, s)(x)), state, array((32, 64), BF16)


@program
def nnx_straight_through():
    """Multiplies x + (q - x), rounded: this may differ from q, so the product is not converted to FP8."""

    def dot_general(x, k, dimensions, **options):
        quantized = lambda v: v + jax.lax.stop_gradient(current_scaling(v, jnp.float8_e4m3fn) - v)
        return jax.lax.dot_general(quantized(x), quantized(k), dimensions, **options)

    graph, state = nnx.split(nnx.eval_shape(lambda: nnx.Linear(64, 96, dot_general=dot_general, rngs=nnx.Rngs(0))))
    return lambda s, x: nnx.merge(graph, s)(x), state, array((32, 64))


@program
def nnx_train():
    """Runs a step of nnx's optimizer on a model of two layers: forward in e4m3, gradients in e5m2, current scales."""

    @jax.custom_vjp
    def forward(v):
        return current_scaling(v, jnp.float8_e4m3fn)

    @jax.custom_vjp
    def backward(v):
        return v

    forward.defvjp(lambda v: (forward(v), None), lambda _, g: (g,))
    backward.defvjp(lambda v: (v, None), lambda _, g: (current_scaling(g, jnp.float8_e5m2),))

    def dot_general(x, k, dimensions, **options):
        return backward(jax.lax.dot_general(forward(x), forward(k), dimensions, **options))

    class Model(nnx.Module):
        def __init__(self, rngs):
            self.up = nnx.Linear(64, 128, dot_general=dot_general, rngs=rngs)
            self.down = nnx.Linear(128, 64, dot_general=dot_general, rngs=rngs)

        def __call__(self, x):
            return self.down(nnx.relu(self.up(x)))

    def make():
        model = Model(nnx.Rngs(0))
        return model, nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)

    graph, state = nnx.split(nnx.eval_shape(make))

    def step(state, x, y):
        model, optimizer = nnx.merge(graph, state)
        loss, gradient = nnx.value_and_grad(lambda m: jnp.mean((m(x) - y) ** 2))(model)
        optimizer.update(model, gradient)
        return loss, nnx.split((model, optimizer))[1]

    return step, state, array((32, 64)), array((32, 64))


@program
def linen_nanoo():
    """Uses the fnuz types of AMD's GPUs, which cuBLASLt does not support."""
    layer = nn.Dense(64, dtype=BF16, dot_general_cls=history(fp8_ops.NANOOFp8DotGeneralOp))
    x = array((32, 64), BF16)
    return layer.apply, initialized(layer, x), x


@program
def linen_dense_general():
    """Multiplies with two contracting dimensions, and two free dimensions of the right operand."""
    layer = nn.DenseGeneral((4, 16), axis=(-2, -1), dtype=BF16, dot_general_cls=history(fp8_ops.Fp8DirectDotGeneralOp))
    x = array((8, 2, 4, 16), BF16)
    return layer.apply, initialized(layer, x), x
