# SPDX-License-Identifier: Apache-2.0
"""Defines JAX functions with quantized matmuls, their arguments, and the expected result of hlofp8.jit."""
import dataclasses
import functools
from typing import Any

import _cases
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

E4, E5 = jnp.float8_e4m3fn, jnp.float8_e5m2
MESH = Mesh(np.array(_cases.devices or jax.devices()).reshape(4, 2), ('d', 'm'))


@dataclasses.dataclass
class Case:
    function: Any
    args: tuple
    fp8: int                # expected minimum number of FP8 matmuls
    options: dict = dataclasses.field(default_factory=dict)
    kwargs: dict = dataclasses.field(default_factory=dict)
    exact: bool = True      # true if results are equal for small integers and powers of two
    emits: tuple = ('dq', 'qdq', 'ffi')


CASES = {}


def case(*args, fp8=1, kwargs=None, exact=True, emits=('dq', 'qdq', 'ffi'), **options):
    def add(function):
        CASES[function.__name__] = Case(function, args, fp8, options, kwargs or {}, exact, emits)
        return function
    return add


# XLA's partitioner makes every device execute a typed call on the whole arrays.
PLAIN = ('dq', 'qdq')


def ints(*shape, seed=0):
    """Returns small integers, whose products, sums, and quotients by powers of two are exact."""
    return np.random.default_rng(seed + sum(shape)).integers(-1, 2, shape).astype(np.float32)


def on(array, *spec):
    """Returns the array on the mesh, or only its type if the devices are those of _cases.devices."""
    sharding = NamedSharding(MESH, P(*spec))
    if _cases.devices:
        return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=sharding)
    return jax.device_put(array, sharding)


S, T = np.float32(0.5), np.float32(0.25)


def quantize(x, scale, dtype=E4):
    most = float(jnp.finfo(dtype).max)
    return jnp.clip(x / scale, -most, most).astype(dtype)


def dequantize(q, scale, dtype=jnp.bfloat16):
    return q.astype(dtype) * scale.astype(dtype)


def mm(x, w, sx=S, sw=T):
    return dequantize(quantize(x, sx), sx) @ dequantize(quantize(w, sw), sw)


@jax.custom_vjp
def fp8_dense(x, w):
    return mm(x, w)


def _forward(x, w):
    return mm(x, w), (x, w)


def _backward(saved, g):
    x, w = saved
    q = dequantize(quantize(g, S, E5), S)
    dx = q @ dequantize(quantize(w, T), T).T
    dw = dequantize(quantize(x, S), S).T @ q
    return dx.astype(x.dtype), dw.astype(w.dtype)


fp8_dense.defvjp(_forward, _backward)
X, W, V = ints(32, 64), ints(64, 128), ints(128, 64)


@case(X, W, S, T)
def plain(x, w, sx, sw):
    return mm(x, w, sx, sw)


@case(quantize(X, S), quantize(W, T), S, T)
def fp8_arguments(x, w, sx, sw):
    return dequantize(x, sx, jnp.float32) @ dequantize(w, sw, jnp.float32)


@case(X, W, ints(128))
def bias_relu(x, w, b):
    return jax.nn.relu(mm(x, w) + b.astype(jnp.bfloat16))


@case(X, W, exact=False)
def gelu(x, w):
    return jax.nn.gelu(mm(x, w))


@case(X, W, S)
def quantized_result(x, w, s):
    y = mm(x, w).astype(jnp.float32)
    return quantize(y, s), jnp.max(jnp.abs(y))


@case({'w1': W, 'w2': V, 'none': None, 's': (S, [T])}, (X,), fp8=2)
def pytrees(params, batch):
    (x,), (s, (t,)) = batch, params['s']
    h = jax.nn.relu(mm(x, params['w1'], s, t)).astype(jnp.float32)
    return {'h': h, 'y': [mm(h, params['w2'], s, t)], 'n': None, 'empty': ()}


@case(X, W, 'relu', static_argnums=2)
def static_positional(x, w, activation):
    return getattr(jax.nn, activation)(mm(x, w))


@case(X, W, static_argnames='activation', kwargs={'activation': 'relu'})
def static_keyword(x, w, *, activation=None):
    return getattr(jax.nn, activation)(mm(x, w))


@case(True, 'relu', W, static_argnums=(0, -2))
def static_negative(flag, activation, w):
    return getattr(jax.nn, activation)(mm(X, w)) if flag else w


@case(X, W, kwargs={'w2': V}, fp8=2)
def keywords(x, w, w2=None):
    return mm(mm(x, w).astype(jnp.float32), w2)


@case(X, W, 3)
def python_scalar(x, w, n):
    return mm(x, w) * n


@case(X, W, ints(3))
def unused_argument(x, w, unused):
    return mm(x, w)


@case(X, W)
def closed_over(x, w):
    return mm(x, w) + ints(32, 128, seed=5).astype(jnp.bfloat16)


@case({'w': W}, X, donate_argnums=0, fp8=1)
def donated(params, x):
    return {'w': params['w'] + 1}, mm(x, params['w'])


@case({'w1': W, 'w2': V}, X, fp8=4)
def gradients(params, x):
    def loss(p):
        return fp8_dense(jax.nn.relu(fp8_dense(x, p['w1'])).astype(jnp.float32), p['w2']).astype(jnp.float32).sum()
    return jax.value_and_grad(loss)(params)


@case({'w': W}, X, donate_argnums=0, fp8=2)
def training_step(params, x):
    loss, grads = jax.value_and_grad(lambda p: fp8_dense(x, p['w']).astype(jnp.float32).sum())(params)
    return jax.tree.map(lambda p, g: p - g * 0.5, params, grads), loss


@case(jax.random.key(0), X, W)
def typed_key(key, x, w):
    key, sub = jax.random.split(key)
    return key, mm(x, w) * jax.random.bernoulli(sub, 0.5, (32, 128))


@case(jax.random.PRNGKey(0), X, W)
def raw_key(key, x, w):
    return jax.random.split(key)[0], mm(x, w) * jax.random.bernoulli(key, 0.5, (32, 128))


@case(X, np.stack([np.eye(64, dtype=np.float32)] * 5))
def scan(x, ws):
    return jax.lax.scan(lambda c, w: (mm(c, w).astype(jnp.float32), c.sum()), x, ws)


@case(X, np.eye(64, dtype=np.float32))
def fori(x, w):
    return jax.lax.fori_loop(0, 3, lambda i, c: mm(c, w).astype(jnp.float32), x)


@case(X, np.eye(64, dtype=np.float32))
def while_loop(x, w):
    return jax.lax.while_loop(lambda c: c[1] < 3, lambda c: (mm(c[0], w).astype(jnp.float32), c[1] + 1), (x, 0))


@case(X, W)
def cond(x, w):
    return jax.lax.cond(x.sum() > 0, lambda: mm(x, w), lambda: mm(-x, w))


@case(X, W, V, fp8=3)
def remat(x, w, v):
    def block(w):
        return fp8_dense(jax.nn.relu(fp8_dense(x, w)).astype(jnp.float32), v).astype(jnp.float32).sum()
    return jax.grad(jax.checkpoint(block))(w)


@case(ints(5, 32, 64), W)
def vmap(xs, w):
    return jax.vmap(mm, in_axes=(0, None))(xs, w)


@case(ints(5, 32, 64), ints(5, 64, 128))
def batched(xs, ws):
    return jax.vmap(mm)(xs, ws)


@case(X, W)
def inner_jit(x, w):
    return jax.jit(mm, inline=False)(x, w) + 1


@case(X, W, np.ones(32, np.complex64))
def other_types(x, w, c):
    return mm(x, w), c * 2, x > 0, jnp.uint8(3), jnp.int4(-3)


@case(X.astype(jnp.bfloat16), ints(16, 4, 64), fp8=2, exact=False)
def attention(x, k):
    q = x.reshape(16, 2, 64)
    scores = jnp.einsum('tbd,shd->bhts', dequantize(quantize(q, S), S), dequantize(quantize(k, S), S))
    return mm(jax.nn.softmax(scores.astype(jnp.float32)).reshape(-1, 16), ints(16, 64))


@case(X, W, fp8=1)
def callback(x, w):
    y = mm(x, w)
    return jax.pure_callback(lambda v: v + 1, jax.ShapeDtypeStruct(y.shape, y.dtype), y)


@case(X, W, fp8=1)
def debug(x, w):
    y = mm(x, w).astype(jnp.float32)
    jax.debug.callback(lambda total: None, y.sum())
    return y, y[0]  # XLA's CPU compiler fails on a matmul that is the only result and has other uses


@case(on(X, 'd', None), on(W, None, None), on(S), emits=PLAIN)
def data_parallel(x, w, s):
    return mm(x, w, s)


@case(on(X, 'd', None), on(W, None, 'm'), emits=PLAIN)
def tensor_parallel(x, w):
    return jax.lax.with_sharding_constraint(mm(x, w), NamedSharding(MESH, P('d', 'm')))


@case({'w': on(W, ('d', 'm'), None)}, on(X, 'd', None), fp8=2, donate_argnums=0, emits=PLAIN,
      out_shardings=({'w': NamedSharding(MESH, P(('d', 'm'), None))}, None))
def fsdp_step(params, x):
    loss, grads = jax.value_and_grad(lambda p: fp8_dense(x, p['w']).astype(jnp.float32).sum())(params)
    return jax.tree.map(lambda p, g: p - g * 0.5, params, grads), loss


@case(X, W, emits=PLAIN, in_shardings=(NamedSharding(MESH, P('d')), NamedSharding(MESH, P())))
def given_shardings(x, w):
    return mm(x, w)


@case(on(X, 'd', 'm'), on(W, 'm', None), emits=PLAIN)
def shard_map(x, w):
    def local(x, w):
        return jax.lax.psum(mm(x, w).astype(jnp.float32), 'm')
    return jax.shard_map(local, mesh=MESH, in_specs=(P('d', 'm'), P('m', None)), out_specs=P('d', None))(x, w)


@case(on(X, None, 'm'), on(W, 'm', None), emits=PLAIN)
def shard_map_of_one_axis(x, w):
    def local(x, w):  # manual along 'm' and automatic along the other axis, also in JAX's functions and in a reducer
        return jax.lax.psum(jax.nn.relu(mm(x, w)).astype(jnp.float32), 'm')
    return jax.shard_map(local, mesh=MESH, in_specs=(P(None, 'm'), P('m', None)), out_specs=P(), axis_names={'m'})(x, w)


@case(X, W)
def partial_function(x, w):
    return functools.partial(mm, sx=S)(x, w, sw=T)
