# SPDX-License-Identifier: Apache-2.0
"""Trains and serves a model that nobody quantized, with FP8 matmuls, and compares the results with those of jax.jit."""

import functools

import hlofp8
import jax
import jax.numpy as jnp

# A model of this size does not become faster. min_gain selects its matmuls in spite of that.
FP8 = functools.partial(hlofp8.jit, quantize="current", min_gain=0.001)


def network(params, x):
    for name in ("in", "hidden"):
        with jax.named_scope(name):
            x = jax.nn.gelu(x @ params[name])
    with jax.named_scope("out"):
        return x @ params["out"]


def loss_of(params, x, y):
    return jnp.square(network(params, x) - y).mean()


def train_step(params, x, y):
    loss, grads = jax.value_and_grad(loss_of)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), loss


def initial():
    keys = jax.random.split(jax.random.key(0), 3)
    shapes = {"in": (64, 256), "hidden": (256, 256), "out": (256, 8)}
    named = zip(keys, shapes.items(), strict=True)
    return {name: jax.random.normal(key, shape) / shape[0] ** 0.5 for key, (name, shape) in named}


def train(jit, steps=200):
    """Returns trained parameters and the last loss."""
    step, params = jit(train_step, donate_argnums=0), initial()
    for number in range(steps):
        x = jax.random.normal(jax.random.key(number), (128, 64))
        params, loss = step(params, x, jnp.sin(x[:, :8]))
    return params, float(loss)


def main():
    x = jax.random.normal(jax.random.key(-1), (128, 64))
    print(FP8(train_step).explain(initial(), x, jnp.sin(x[:, :8])).summary)  # which matmuls of a step are FP8
    _, wide = train(jax.jit)
    params, quantized = train(FP8)
    print(f"loss: {wide:.4f} with jax.jit, {quantized:.4f} in FP8")
    assert abs(quantized - wide) < 0.1 * wide

    advice = hlofp8.advise(network, params, x, max_error=0.05, min_gain=0.001)  # measures each matmul alone
    print(advice)
    serve = FP8(network, wide=advice.wide, ahead=0)  # quantizes the weights once
    y, expected = serve(params, x), jax.jit(network)(params, x)
    error = jnp.linalg.norm(y - expected) / jnp.linalg.norm(expected)
    print(f"inference: an error of {error:.3f}")
    assert error < 0.1


if __name__ == "__main__":
    main()
