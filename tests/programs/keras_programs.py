# SPDX-License-Identifier: Apache-2.0
"""Defines programs of Keras: layers quantized to float8, with Keras's delayed scaling."""
import os

os.environ["KERAS_BACKEND"] = "jax"
import jax
import jax.numpy as jnp
import keras

from _jax import array, program


def stateless(layer, training):
    """Returns the layer as a function of its variables."""
    values = [array(v.shape, v.dtype) for v in layer.trainable_variables], [array(v.shape, v.dtype) for v in layer.non_trainable_variables]

    def call(trainable, rest, x):
        return layer.stateless_call(trainable, rest, x, training=training)

    return call, values


def float8(layer, shape):
    layer.build(shape)
    layer.quantize("float8")
    return layer


@program
def keras_dense():
    layer = float8(keras.layers.Dense(64, activation="relu"), (None, 32))
    call, values = stateless(layer, False)
    return call, *values, array((16, 32))


@program
def keras_dense_train():
    layer = float8(keras.layers.Dense(64, activation="gelu", dtype="mixed_bfloat16"), (None, 32))
    call, values = stateless(layer, True)

    def loss(trainable, rest, x):
        y, rest = call(trainable, rest, x)
        return jnp.mean(y.astype(jnp.float32) ** 2), rest

    return jax.value_and_grad(loss, has_aux=True), *values, array((16, 32), jnp.bfloat16)


@program
def keras_einsum_dense():
    layer = float8(keras.layers.EinsumDense("abc,cde->abde", output_shape=(None, 4, 16), bias_axes="de"), (None, 8, 64))
    call, values = stateless(layer, False)
    return call, *values, array((2, 8, 64))


@program
def keras_sequential_train():
    """Runs a step of Keras' optimizer on two layers."""
    model = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(16)])
    model.build((None, 32))
    model.quantize("float8")
    optimizer = keras.optimizers.Adam(1e-3)
    optimizer.build(model.trainable_variables)
    shapes = [[array(v.shape, v.dtype) for v in group]
              for group in (model.trainable_variables, model.non_trainable_variables, optimizer.variables)]

    def step(trainable, rest, state, x, y):
        def loss(trainable):
            out, after = model.stateless_call(trainable, rest, x, training=True)
            return jnp.mean((out - y) ** 2), after

        (value, after), gradients = jax.value_and_grad(loss, has_aux=True)(trainable)
        trainable, new = optimizer.stateless_apply(state, gradients, trainable)
        return value, trainable, after, new

    return step, *shapes, array((16, 32)), array((16, 16))
