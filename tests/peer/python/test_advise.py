#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests hlofp8.advise, and hlofp8.bisect with max_error: the measured errors, and hlofp8.jit with the selected matmuls."""
import math
import os
import sys

os.environ['JAX_PLATFORMS'] = 'cpu'

import jax
import jax.numpy as jnp
import numpy as np

import _cases

SIZE = 32
ALL = {'min_gain': 0.001}


def block(p, x):
    with jax.named_scope('attention'):
        q, k, v = x @ p['q'], x @ p['k'], x @ p['v']
        x = x + jax.nn.softmax((q @ k.T).astype(jnp.float32) / SIZE**0.5).astype(x.dtype) @ v @ p['o']
    with jax.named_scope('mlp'):
        return x + (jax.nn.silu(x @ p['gate']) * (x @ p['up'])) @ p['down']


def loss(params, tokens, key, power):
    x = params['embed'][tokens]
    x = x + 0.1 * jax.random.normal(key, x.shape, x.dtype)
    for number, p in enumerate(params['layers']):
        with jax.named_scope(f'layer_{number}'):
            x = block(p, x)
    with jax.named_scope('logits'):
        logits = (x @ params['embed'].T).astype(jnp.float32)
    return (-jax.nn.log_softmax(logits)[jnp.arange(len(tokens)), tokens]).mean() ** power


def step(params, unused, tokens, key, power=1):
    return jax.value_and_grad(loss)(params, tokens, key, power)


def arguments():
    draw = np.random.default_rng(0)

    def weight(*shape):
        return jnp.asarray(draw.standard_normal(shape) / shape[0] ** 0.5, jnp.bfloat16)

    sides = {name: (SIZE, SIZE) for name in 'qkvo'} | {'gate': (SIZE, 4 * SIZE), 'up': (SIZE, 4 * SIZE), 'down': (4 * SIZE, SIZE)}
    params = {'embed': weight(64, SIZE), 'layers': [{name: weight(*shape) for name, shape in sides.items()}]}
    return params, 3.0, draw.integers(0, 64, 48), jax.random.key(1)


def selects(args):
    """The selection stays within the limit, hlofp8.jit quantizes exactly the selected matmuls, and the results of XLA change as measured."""
    import hlofp8
    everything = hlofp8.advise(step, *arguments(), **ALL)
    count = sum(len(layer.matmuls) for layer in everything)
    assert everything.wide == [] and everything.budget.runs == count + 2 and count > 20
    limit = 0.6 * everything.budget.measured.distance
    found = hlofp8.advise(step, *arguments(), max_error=limit, **ALL)
    assert found.wide and found.budget.runs == count + 3 and 0.3 * limit < found.budget.measured.distance <= limit
    assert [m.snr_db for layer in found for m in layer.matmuls] and all(20 < layer.snr_db < 40 for layer in found)
    assert {layer.layer for layer in found} == {f'{layer} ({way})' for layer in ('layer_0/attention', 'layer_0/mlp', 'logits') for way in ('forward', 'backward')}
    assert [layer.output_distance for layer in found] == sorted((layer.output_distance for layer in found), reverse=True)
    assert f'(limit {limit:g})' in found.summary and str(found).splitlines()[0].split()[:2] == ['layer', 'matmuls']
    assert found._repr_html_().count('<tr>') == len(found) + 1 and any(f'of {len(layer.matmuls)}' in layer.advice for layer in found)
    fast = hlofp8.jit(step, quantize='current', wide=found.wide, **ALL)
    quantized = {v.input_instruction for v in fast.explain(*arguments()) if v.quantized}
    assert quantized == {m.input_instruction for layer in found for m in layer.matmuls if m.is_fp8}
    before, after = jax.tree.leaves(jax.jit(step)(*arguments())), jax.tree.leaves(fast(*arguments()))
    moved = max(np.linalg.norm(np.float64(a) - np.float64(b)) / np.linalg.norm(np.float64(b)) for a, b in zip(after, before, strict=True))
    assert abs(moved / found.budget.measured.distance - 1) < 0.3, (moved, found.budget.measured)
    same = hlofp8.advise(fast, *arguments())
    assert len(same.wide) == len(found.wide) and same.budget.measured == found.budget.measured
    return f'{len(quantized)} of {count} matmuls, {moved:.4f} in XLA, {found.budget.measured.distance:.4f} measured'


def accepts_arguments(args):
    """Static arguments, keyword arguments and unused arguments; arguments that are not arrays are rejected."""
    import hlofp8
    params, unused, tokens, key = arguments()
    plain = hlofp8.advise(step, params, unused, tokens, key, **ALL)
    static = hlofp8.advise(step, params, unused, tokens=tokens, key=key, power=1, static_argnames='power', **ALL)
    jitted = hlofp8.advise(hlofp8.jit(step, static_argnums=4), params, unused, tokens, key, 1, **ALL)
    assert str(plain.budget.measured) == str(static.budget.measured) == str(jitted.budget.measured)
    for call, words in ((lambda: hlofp8.advise(jax.jit(step, static_argnums=4), params, unused, tokens, key, 1, **ALL), 'static arguments'),
                        (lambda: hlofp8.advise(step, params, unused, jax.ShapeDtypeStruct(tokens.shape, tokens.dtype), key, **ALL), 'must be arrays'),
                        (lambda: hlofp8.advise(step, params, unused, tokens, key, max_error='x'), 'max_error')):
        try:
            call()
        except TypeError as error:
            assert words in str(error), error
        else:
            raise AssertionError(words)
    slow = hlofp8.advise(step, params, unused, tokens, key, max_error=1)
    assert len(slow) == 0 and slow.summary.endswith('30 more stay wide: gain-below-minimum'), slow
    none = hlofp8.advise(jax.jit(lambda x: x + 1), jnp.ones(3))
    assert len(none) == 0 and str(none).splitlines()[-1] == 'quantize 0 of 0 matmuls: an output changes by 0'


def modules(args):
    """bisect with max_error on a module, and invalid limits."""
    import hlofp8
    text = open(os.path.join(os.path.dirname(args.models), 'run', 'budget.hlo')).read()
    options = {'quantize': 'current', **ALL}
    found = hlofp8.bisect(text, max_error=0.045, draw='normal', **options)
    assert found.budget.wide == ['%inner', '%a', '%d'] and found.budget.runs == 9 and str(found).startswith('max-error 0.045: 3 of 6')
    assert {m.matmul for m in found if m.chosen} == {'b', 'e', 'f'} and all(m.without is None for m in found)
    assert math.isnan(next(m.snr_db for m in found if m.matmul == 'inner')) and all(m.predicted_saving < 0 for m in found)
    rewritten = hlofp8.rewrite(text, wide=found.budget.wide, **options)
    assert [v.kind for v in rewritten.verdicts] == [v.kind for v in found.budget.verdicts]
    assert not any(v.measured for v in rewritten.verdicts) and all(v.measured for v in found.budget.verdicts)
    assert hlofp8.rewrite(text, wide=[], **options).fp8 == 8
    layers = {layer.layer: len(layer.matmuls) for layer in hlofp8.advise(text, max_error=0.045, **ALL)}
    assert layers == {'dot bf16[32,64] k=64': 2, 'a': 4, 'b': 1, 'dot f32[64,64] k=64': 1}, layers
    plain = hlofp8.bisect(text, **options)
    assert plain.budget is None and plain[0].without and len(plain) == 6
    _cases.refused('max_error must not be negative or NaN', hlofp8.bisect, text, max_error=-1, **options)
    _cases.refused('max_error must not be negative or NaN', hlofp8.bisect, text, max_error=math.nan, **options)
    _cases.refused('a budget requires quantize', hlofp8.bisect, text, max_error=1)


if __name__ == '__main__':
    sys.exit(_cases.run([selects, accepts_arguments, modules], _cases.arguments()))
