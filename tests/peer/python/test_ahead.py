#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests static scales and what hlofp8.jit(ahead=...) computes ahead."""
import gc
import json
import os
import sys
import warnings
import weakref

os.environ['JAX_PLATFORMS'] = 'cpu'
os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=8'

import _cases
import jax
import jax.numpy as jnp
import numpy as np

OPTIONS = {'quantize': 'current', 'min_gain': 0.001}


def fails(kind, what, call):
    try:
        call()
    except kind as error:
        assert what in str(error), error
        return
    raise AssertionError(f'nothing was raised: {what}')


def layer(weights, x, scale=1.0):
    h = jnp.tanh(x @ weights['up'] + weights['bias'])
    return {'y': h @ weights['down'] * scale, 'norm': jnp.sum(x)}


def stacked(weights, x):
    return jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, weights)[0]


def arrays(seed):
    keys = jax.random.split(jax.random.key(seed), 4)
    weights = {'up': jax.random.normal(keys[0], (32, 64), jnp.bfloat16), 'bias': jnp.ones(64, jnp.bfloat16),
               'down': jax.random.normal(keys[1], (64, 32), jnp.bfloat16), 'unused': jnp.ones(3)}
    return weights, jax.random.normal(keys[2], (16, 32), jnp.bfloat16)


def same(one, other):
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return jax.tree.structure(one) == jax.tree.structure(other) and all(
        a.dtype == b.dtype and np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)


def counted(fast):
    """Counts the runs of the ahead modules."""
    import hlofp8._ahead
    runs = []
    original = hlofp8._ahead._Pair.run_first
    hlofp8._ahead._Pair.run_first = lambda pair, leaves: (runs.append(pair), original(pair, leaves))[1]
    return runs, lambda: setattr(hlofp8._ahead._Pair, 'run_first', original)


def runs_once(args):
    """Results equal those without ahead. The ahead module runs once for each set of weights."""
    import hlofp8
    weights, x = arrays(0)
    fast, whole = hlofp8.jit(layer, ahead=0, **OPTIONS), hlofp8.jit(layer, **OPTIONS)
    runs, stop = counted(fast)
    assert fast.explain(weights, x).fp8 == 2
    for _ in range(3):
        assert same(fast(weights, x), whole(weights, x)) and len(runs) == 1
    assert same(fast(weights, x + 1), whole(weights, x + 1)) and len(runs) == 1
    assert same(fast(dict(weights), x), whole(weights, x)) and len(runs) == 1
    assert same(fast(weights, x, 2.0), whole(weights, x, 2.0)) and len(runs) == 1
    assert same(fast(weights, x, scale=2.0), whole(weights, x, scale=2.0)) and len(runs) == 1
    assert same(fast(weights, x[:8]), whole(weights, x[:8])) and len(runs) == 1
    other, _ = arrays(1)
    assert same(fast(other, x), whole(other, x)) and len(runs) == 2
    assert same(fast(weights, x), whole(weights, x)) and len(runs) == 2
    pair = runs[0]
    assert [str(one.dtype) for one in pair.first_results].count('float8_e4m3fn') == 2
    assert all(one.dtype != jnp.bfloat16 or one.size <= 64 for one in pair.first_results)
    with jax.disable_jit():
        assert same(fast(weights, x), layer(weights, x)) and len(runs) == 2
    fast.clear_cache()
    fast(weights, x)
    assert len(runs) == 3
    stacks = jax.random.normal(jax.random.key(3), (3, 32, 32), jnp.bfloat16)
    assert same(hlofp8.jit(stacked, ahead=0, **OPTIONS)(stacks, x), hlofp8.jit(stacked, **OPTIONS)(stacks, x))
    noisy = lambda w, x, key: x @ w + jax.random.normal(key, (16, 64), jnp.bfloat16)  # noqa: E731
    key = jax.random.key(5)
    assert same(hlofp8.jit(noisy, ahead=0, **OPTIONS)(weights['up'], x, key), hlofp8.jit(noisy, **OPTIONS)(weights['up'], x, key))
    stop()


def frees_weights(args):
    """Neither the weights nor what was computed from them outlive the last reference of the caller."""
    import hlofp8
    weights, x = arrays(0)
    fast = hlofp8.jit(layer, ahead=0, **OPTIONS)
    fast(weights, x)
    watched = [weakref.ref(leaf) for leaf in jax.tree.leaves(weights)]
    watched += [weakref.ref(result) for result in next(iter(fast._computed.values()))[0]]
    del weights
    gc.collect()
    assert not fast._computed and all(one() is None for one in watched)


def saves(args):
    """What was computed ahead is saved, and used again in place of the weights."""
    import hlofp8
    weights, x = arrays(0)
    path = os.path.join(args.work, 'ahead.npz')
    fast = hlofp8.jit(layer, ahead=0, **OPTIONS)
    expected = fast(weights, x)
    fast.save_ahead(path, weights, x)
    again = hlofp8.jit(layer, ahead=0, **OPTIONS)
    abstract = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), weights)
    runs, stop = counted(again)
    fails(TypeError, 'load_ahead', lambda: again(abstract, x))
    runs.clear()
    again.load_ahead(path, abstract, x)
    assert same(again(abstract, x), expected) and not runs
    again.load_ahead(path, weights, x)
    assert same(again(weights, x), expected) and not runs
    _cases.refused('fingerprint', lambda: again.load_ahead(path, abstract, x.astype(jnp.float32)))
    np.savez(path, other=np.ones(3))
    _cases.refused('fingerprint none', lambda: again.load_ahead(path, abstract, x))
    stop()


def refuses(args):
    """Invalid arguments, donated weights, several devices and transformations are refused with a reason."""
    import hlofp8
    weights, x = arrays(0)
    fast = hlofp8.jit(layer, ahead=0, **OPTIONS)
    fails(TypeError, 'by position', lambda: fast(weights=weights, x=x))
    fails(TypeError, 'jax.Array, not ndarray', lambda: fast(jax.tree.map(np.asarray, weights), x))
    fails(ValueError, 'positions', lambda: hlofp8.jit(layer, ahead=-1))
    fails(ValueError, 'positions', lambda: hlofp8.jit(layer, ahead=()))
    fails(ValueError, 'static', lambda: hlofp8.jit(layer, ahead=0, static_argnums=0)(weights, x))
    fails(ValueError, 'out_shardings', lambda: hlofp8.jit(layer, ahead=0, out_shardings=x.sharding))
    keeps = hlofp8.jit(lambda w, x: (x @ w, w + 1), ahead=0, donate_argnums=0, **OPTIONS)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        _cases.refused('donated', lambda: keeps(weights['up'], x))
    mesh = jax.make_mesh((8,), ('d',))
    shard = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec('d'))
    _cases.refused('one device', lambda: fast(weights, jax.device_put(x, shard)))
    _cases.refused('does not use', lambda: hlofp8.jit(lambda w, x: x + 1, ahead=0)(weights, x))
    _cases.refused('outermost', lambda: jax.grad(lambda x: fast(weights, x)['y'].sum().astype(jnp.float32))(x))
    warned = hlofp8.jit(layer, ahead=0, fallback='warn', **OPTIONS)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter('always')
        result = warned(weights, jax.device_put(x, shard))
    assert any('one device' in str(one.message) for one in seen) and np.allclose(result['y'], layer(weights, x)['y'], atol=1)
    _cases.refused('random keys', lambda: hlofp8.jit(lambda w, k: (w @ w, k), ahead=0)(weights['up'][:, :32], jax.random.key(0)))
    donating = hlofp8.jit(lambda w, x: x @ w, ahead=0, donate_argnums=1, **OPTIONS)
    square, y = weights['up'] @ weights['down'], x + 0
    assert donating(square, y).shape == x.shape and y.is_deleted() and not square.is_deleted()


def debug_nans(args):
    """With jax_debug_nans, an invalid value that either module computes raises JAX's public exception."""
    import hlofp8
    weights, x = arrays(0)
    with jax.debug_nans(True):
        fails(FloatingPointError, 'invalid value (nan)', lambda: hlofp8.jit(layer, ahead=0, **OPTIONS)(weights, x * jnp.float32(np.nan)))
        fails(FloatingPointError, 'log', lambda: hlofp8.jit(lambda w, x: x @ jnp.log(w), ahead=0, **OPTIONS)(-abs(weights['up']) - 1, x))
        assert hlofp8.jit(layer, ahead=0, **OPTIONS)(weights, x)['y'].shape == (16, 32)


def explains(args):
    """explain() accepts the options of hlofp8.jit and a platform, and passes those of the function on to it."""
    import hlofp8
    weights, x = arrays(0)
    fast = hlofp8.jit(layer, ahead=0, **OPTIONS)
    assert [v.quantized for v in fast.explain(weights, x)] == ['current'] * 2
    assert [v.quantized for v in fast.explain(weights, x, quantize='rows', target='sm_90', cuda='12.9')] == ['rows'] * 2
    assert hlofp8.explain(fast, weights, x, scale=2.0, platform='cuda', wide='*').fp8 == 0
    assert [v.quantized for v in hlofp8.advise(fast, weights, x).budget.verdicts] == ['current'] * 2
    fails(TypeError, 'already jitted', lambda: fast.explain(weights, x, donate_argnums=0))
    _cases.refused('one of cpu, cuda', fast.explain, weights, x, platform='tpu')
    _cases.refused('does not use', hlofp8.jit(lambda w, x: x + 1, ahead=0).explain, weights, x)


def distinguishes(args):
    """Results are not shared between calls that differ in a static argument, or that use another weight. Results keep
    their weak types."""
    import hlofp8
    _, x = arrays(0)
    weights = {name: jax.random.normal(jax.random.key(i), (x.shape[1], 32), x.dtype) for i, name in enumerate(('a.b', 'a_b'))}
    for options in ({'static_argnums': 2}, {'static_argnums': -1}, {'static_argnames': 'which'}):
        chosen = hlofp8.jit(lambda w, x, which: x @ w[which], ahead=0, **options, **OPTIONS)
        for name in weights:
            y = chosen(weights, x, which=name) if 'static_argnames' in options else chosen(weights, x, name)
            assert np.linalg.norm(np.float32(y - x @ weights[name])) < 0.1 * np.linalg.norm(np.float32(y)), (options, name)
    typed = hlofp8.jit(lambda w, x, one: (x @ w['a.b'], 1.0 if one is True else 2.0), ahead=0, static_argnums=2, **OPTIONS)
    assert [float(typed(weights, x, one)[1]) for one in (1, True, 1.0)] == [2, 1, 2]
    assert (typed(weights, x, 1)[1] * x).dtype == x.dtype
    _cases.refused('callbacks', lambda: hlofp8.jit(lambda w, x: jax.debug.print('{}', x[0, 0]) or x @ w['a.b'], ahead=0, **OPTIONS)(weights, x))


def static_scales(args):
    """Amaxes that are recorded for a function or a module give static scales; those of another function are rejected."""
    import hlofp8
    weights, x = arrays(0)
    amaxes = hlofp8.record_amaxes(layer, weights, x)
    assert max(amaxes['amaxes'].values()) >= float(jnp.abs(weights['up']).max())
    more = hlofp8.record_amaxes(layer, weights, 2 * x, previous=amaxes)
    assert all(more['amaxes'][name] >= amax for name, amax in amaxes['amaxes'].items()) and more != amaxes
    options = {'quantize': 'static', 'min_gain': 0.001}
    path = os.path.join(args.work, 'amaxes.json')
    with open(path, 'w') as file:
        json.dump(amaxes, file)
    assert hlofp8.record_amaxes(hlofp8.jit(layer), weights, 2 * x, previous=path) == more
    dropped = lambda w, x, key: x * jax.random.bernoulli(key, 0.5, x.shape) @ w['up']  # noqa: E731
    for key in (jax.random.key(0), jax.random.PRNGKey(0)):
        recorded = hlofp8.record_amaxes(dropped, weights, x, key)
        kept = x * jax.random.bernoulli(key, 0.5, x.shape)
        assert sorted(recorded['amaxes'].values()) == sorted(float(abs(a).max()) for a in (kept, weights['up']))
        assert hlofp8.jit(dropped, amaxes=recorded, **options).explain(weights, x, key).fp8 == 1
    fails(TypeError, 'must be arrays', lambda: hlofp8.record_amaxes(layer, weights, jax.ShapeDtypeStruct(x.shape, x.dtype)))
    fast = hlofp8.jit(layer, amaxes=amaxes, **options)
    assert all(v.quantized == 'static' for v in fast.explain(weights, x))
    exact, found = layer(weights, x)['y'], fast(weights, x)['y']
    assert 0 < float(jnp.linalg.norm(found - exact) / jnp.linalg.norm(exact)) < 0.1
    assert same(hlofp8.jit(layer, amaxes=path, ahead=0, **options)(weights, x), fast(weights, x))
    _cases.refused('fingerprint', lambda: hlofp8.jit(layer, amaxes=amaxes, **options)(weights, x[:8]))
    _cases.refused('requires amaxes', lambda: hlofp8.jit(layer, **options))
    _cases.refused('quantize=static', lambda: hlofp8.jit(layer, amaxes=amaxes, quantize='current'))
    _cases.refused('same module', lambda: hlofp8.record_amaxes(layer, weights, x[:8], previous=amaxes))
    _cases.refused('NaN', lambda: hlofp8.record_amaxes(layer, weights, x * jnp.nan))
    scaled = hlofp8.record_amaxes(hlofp8.jit(layer, static_argnums=2), weights, x, 2.0)
    assert scaled['fingerprint'] != amaxes['fingerprint'] and len(scaled['amaxes']) == len(amaxes['amaxes'])
    fails(TypeError, 'static arguments', lambda: hlofp8.record_amaxes(jax.jit(layer, static_argnums=2), weights, x, 2.0))
    module = jax.jit(layer).lower(weights, x)
    drawn = hlofp8.draw(module)
    recorded = hlofp8.record_amaxes(module, *drawn)
    assert hlofp8.rewrite(module, amaxes=recorded, **options).fp8 == 2
    ahead, main = hlofp8.split(hlofp8.rewrite(module, **OPTIONS), 'weights__*')
    names = module.compiler_ir('hlo') and hlofp8.rewrite(module, passes='').parameters
    first = hlofp8.run(ahead, [leaf for name, leaf in zip(names, drawn, strict=True) if name in ahead.parameters])
    rest = [leaf for name, leaf in zip(names, drawn, strict=True) if name not in ahead.parameters]
    whole = hlofp8.run(hlofp8.rewrite(module, **OPTIONS), drawn)
    assert same(hlofp8.run(main, [*rest, *first]), whole)
    _cases.refused('no parameter is named', lambda: hlofp8.split(module, 'none'))


if __name__ == '__main__':
    sys.exit(_cases.run([runs_once, frees_weights, saves, refuses, debug_nans, explains, distinguishes, static_scales], _cases.arguments()))
