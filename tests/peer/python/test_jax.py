#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that hlofp8.jit computes the same as jax.jit for each function of _functions.py, with FP8 matmuls.

On small integers and powers of two the results are equal, bit for bit; on normal numbers they are within the bound of
the rewrite, which hlofp8.compare derives from the data.
"""
import os
import re
import sys

os.environ['JAX_PLATFORMS'] = 'cpu'
os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=8 --xla_allow_excess_precision=false'

import _cases
import jax
import jax.numpy as jnp
import numpy as np


def array(leaf):
    """Converts an array to a numpy array, and a random key to its data."""
    leaf = jnp.asarray(leaf)
    return np.asarray(jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf)


def arrays(tree):
    return [array(leaf) for leaf in jax.tree.leaves(tree)]


def on_one_device(lowered):
    """Returns the module in a form for hlo-fp8-run, without instructions that only specify the location of an array."""
    import hlofp8
    text = hlofp8.rewrite(lowered, passes='').text
    return re.sub(r'custom-call\((%[\w.-]+)\), custom_call_target="(?:Sharding|xla\.sdy\.FuncResultSharding)".*', r'copy(\1)', text)


# hlo-fp8-run does not support functions of the host, or modules that describe one device's part of the arrays.
ALONE = ('callback', 'debug', 'shard_map', 'shard_map_of_one_axis')


def drawn(case):
    """Returns the arguments with normal numbers instead of integers."""
    def draw(leaf):
        if getattr(leaf, 'dtype', None) != np.float32 or not leaf.ndim:
            return leaf
        new = np.random.default_rng(leaf.size).standard_normal(leaf.shape).astype(np.float32)
        return jax.device_put(new, leaf.sharding) if isinstance(leaf, jax.Array) else new
    return jax.tree.map(draw, case.args)


def again(args):
    """Returns copies of the arguments, because they may be donated."""
    return jax.tree.map(lambda leaf: leaf.copy() if isinstance(leaf, jax.Array) else leaf, args)


def expectations(case, name):
    """Returns, for small integers and for normal numbers: arguments, results of jax.jit, and the module that bounds the
    results, or None."""
    wanted = jax.jit(case.function, **case.options)
    for args in [case.args] * case.exact + [drawn(case)]:
        module = None
        if name not in ALONE and args is not case.args:
            whole = jax.jit(case.function, keep_unused=True, **case.options)
            module = on_one_device(whole.lower(*args, **case.kwargs))
        yield args, wanted(*again(args), **case.kwargs), module


def check(case, made, args, expected, module):
    """Compares one call with jax.jit's result."""
    import hlofp8
    given = again(args)
    found = made(*given, **case.kwargs)
    assert jax.tree.structure(expected) == jax.tree.structure(found)
    for x, y in zip(jax.tree.leaves(expected), jax.tree.leaves(found)):
        assert x.dtype == y.dtype and x.shape == y.shape and x.sharding == y.sharding, (x.sharding, y.sharding)
    if args is case.args:
        for x, y in zip(arrays(expected), arrays(found)):
            assert x.tobytes() == y.tobytes(), np.abs(x.astype(float) - y.astype(float)).max()
    if module:
        agree = hlofp8.compare(module, arrays(found), arrays(made._dynamic(args, case.kwargs)))
        assert agree, agree
    if 'donate_argnums' in case.options:
        donated = jax.tree.leaves(given[case.options['donate_argnums']])
        assert all(leaf.is_deleted() for leaf in donated if isinstance(leaf, jax.Array)), 'what was donated is still there'


def one(case, name):
    import hlofp8
    from hlofp8._explain import watching
    counts, wanted = [], list(expectations(case, name))
    for emit in case.emits:
        made = hlofp8.jit(case.function, emit=emit, **case.options)
        with watching() as seen:
            for args, expected, module in wanted:
                try:
                    check(case, made, args, expected, module)
                except AssertionError as error:
                    raise AssertionError(f'{emit}: {error}') from error
        assert len(seen) == 1, 'compiled again for the same types'
        counts.append(seen[0].fp8)
    assert min(counts) >= case.fp8, f'{min(counts)} FP8 matmuls, {case.fp8} were expected'
    return f'{min(counts)} FP8 matmuls'


def cases():
    import _functions
    for name, case in _functions.CASES.items():
        def test(args, case=case, name=name):
            return one(case, name)
        test.__name__ = name
        yield test


def main():
    args = _cases.arguments()
    return _cases.run(list(cases()), args)


if __name__ == '__main__':
    sys.exit(main())
