# SPDX-License-Identifier: Apache-2.0
"""Trains a small byte-level language model on sources of JAX, with matmuls that are not quantized."""
import functools
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import optax

WIDTH, LAYERS, HEADS, HIDDEN, TOKENS, BATCH, STEPS = 64, 2, 2, 256, 64, 8, 240

# Of a training step: six products a layer and the logits, forward and for both gradients; both products of attention.
LINEAR, ATTENTION = 3 * (6 * LAYERS + 1), 3 * 2 * LAYERS


@functools.cache
def text():
    """Returns the text to train on, and the text to validate on: every twentieth block."""
    paths = sorted(pathlib.Path(jax.__file__).parent.glob('_src/numpy/*.py'))
    whole = np.frombuffer(b''.join(path.read_bytes() for path in paths), np.uint8).astype(np.int32)
    blocks = whole[:len(whole) // 4096 * 4096].reshape(-1, 4096)
    held_out = np.arange(len(blocks)) % 20 == 0
    return blocks[~held_out].ravel(), blocks[held_out].ravel()


def batches(data, seed, steps):
    random = np.random.default_rng(seed)
    for _ in range(steps):
        yield np.stack([data[at:at + TOKENS + 1] for at in random.integers(0, len(data) - TOKENS - 1, BATCH)])


def cast(x, dtype=jnp.float8_e4m3fn):
    most = float(jnp.finfo(dtype).max)
    return jnp.clip(x, -most, most).astype(dtype).astype(x.dtype)


@jax.custom_vjp
def cast_product(x, w):
    """Multiplies after a cast to fp8 without scales: operands to e4m3, and gradients to e5m2, which has a larger range."""
    return cast(x) @ cast(w)


def _backward(saved, g):
    (x, w), g = map(cast, saved), cast(g, jnp.float8_e5m2)
    return g @ w.T, jnp.einsum('bti,bto->io', x, g)


cast_product.defvjp(lambda x, w: (cast_product(x, w), (x, w)), _backward)


def initial(seed):
    random = np.random.default_rng(seed)

    def weight(rows, columns, size=1.0):
        return jnp.asarray(random.standard_normal((rows, columns)) * size / rows ** 0.5, jnp.float32)

    def layer():
        return {'qkv': [weight(WIDTH, WIDTH) for _ in range(3)], 'out': weight(WIDTH, WIDTH, 0.5), 'up': weight(WIDTH, HIDDEN),
                'down': weight(HIDDEN, WIDTH, 0.5), 'norms': jnp.ones((2, WIDTH))}
    return {'bytes': weight(256, WIDTH, 0.3), 'positions': weight(TOKENS, WIDTH, 0.15), 'layers': [layer() for _ in range(LAYERS)],
            'norm': jnp.ones(WIDTH), 'logits': weight(WIDTH, 256)}


def norm(x, gain):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * gain


def loss(params, x, product=jnp.matmul):
    h, mask = params['bytes'][x[:, :-1]] + params['positions'], jnp.tril(jnp.ones((TOKENS, TOKENS), bool))
    for layer in params['layers']:
        a = norm(h, layer['norms'][0])
        q, k, v = (product(a, w).reshape(*a.shape[:2], HEADS, -1) for w in layer['qkv'])
        scores = jnp.einsum('bqhd,bkhd->bhqk', q, k) / q.shape[-1] ** 0.5
        mixed = jnp.einsum('bhqk,bkhd->bqhd', jax.nn.softmax(jnp.where(mask, scores, -1e9)), v)
        h = h + product(mixed.reshape(h.shape), layer['out'])
        h = h + product(jax.nn.gelu(product(norm(h, layer['norms'][1]), layer['up'])), layer['down'])
    logits = product(norm(h, params['norm']), params['logits'])
    return optax.softmax_cross_entropy_with_integer_labels(logits, x[:, 1:]).mean()


def training(product=jnp.matmul):
    """Returns the optimizer and the function of a training step."""
    optimizer = optax.adamw(optax.warmup_cosine_decay_schedule(0, 5e-3, 25, STEPS), weight_decay=0.01)

    def train_step(state, x):
        params, moments = state
        value, grads = jax.value_and_grad(loss)(params, x, product)
        updates, moments = optimizer.update(grads, moments, params)
        return (optax.apply_updates(params, updates), moments), value
    return optimizer, train_step


def train(jit, seed, steps, product=jnp.matmul):
    """Returns the losses of the steps, and the loss of the trained model on the text to validate on, computed wide."""
    optimizer, step = training(product)
    params = initial(seed)
    state, run, seen = (params, optimizer.init(params)), jit(step, donate_argnums=0), []
    for x in batches(text()[0], 1000 + seed, steps):
        state, value = run(state, x)
        seen.append(value)
    validate = jax.jit(loss)
    return np.array(seen), np.mean([validate(state[0], x) for x in batches(text()[1], 7, 64)])
