#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that arguments with a wrong type or value raise a TypeError or a ValueError that names the argument."""
import sys

import _cases

MODULE = 'HloModule m\nENTRY e { ROOT a = f32[2] parameter(0) }'


def deep(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


def wrong(call, kind, words):
    try:
        call()
    except kind as error:
        assert words in str(error), f'{words!r} is not in {str(error)!r}'
        return
    raise AssertionError(f'not refused: {words}')


def types(args):
    import hlofp8
    for call, name in ((lambda: hlofp8.extract(MODULE, 3), 'matmul'), (lambda: hlofp8.run(MODULE, seed='x'), 'seed'),
                       (lambda: hlofp8.run(MODULE, seed=True), 'seed'), (lambda: hlofp8.run(MODULE, backend=3), 'backend'),
                       (lambda: hlofp8.run(MODULE, draw=3), 'draw'), (lambda: hlofp8.run(MODULE, accumulate=3), 'accumulate'),
                       (lambda: hlofp8.run(MODULE, check_nan=3), 'check_nan'), (lambda: hlofp8.values(MODULE, 3), 'names'),
                       (lambda: hlofp8.values(MODULE, [3]), 'name'), (lambda: hlofp8.rewrite(MODULE, wide=3), 'wide'),
                       (lambda: hlofp8.rewrite(MODULE, wide=[3]), 'wide'), (lambda: hlofp8.rewrite(MODULE, name=3), 'name'),
                       (lambda: hlofp8.extract(MODULE, 'a', struct_size=1), 'struct_size'), (lambda: hlofp8.bisect(MODULE, foo=1), 'foo'),
                       (lambda: hlofp8.assert_fp8(MODULE, at_least=None), 'at_least'),
                       (lambda: hlofp8.assert_fp8(MODULE, allow_empty='no'), 'allow_empty'),
                       (lambda: hlofp8.rewrite(MODULE, emit=3), 'emit'), (lambda: hlofp8.profile(MODULE, runs='x'), 'runs')):
        wrong(call, TypeError, name)


def values(args):
    import hlofp8
    for call, words in ((lambda: hlofp8.run(MODULE, seed=-1), 'seed is -1'), (lambda: hlofp8.draw(MODULE, 2**64), 'seed is'),
                        (lambda: hlofp8.compare(MODULE, MODULE, seed=-1), 'seed is -1'), (lambda: hlofp8.profile(MODULE, runs=0), 'runs is 0'),
                        (lambda: hlofp8.run(MODULE, deep(100000)), 'nested more than 100 levels deep'),
                        (lambda: hlofp8.run(MODULE, deep(102)), 'nested more than 100 levels deep')):
        wrong(call, ValueError, words)
    _cases.refused('0 inputs are given', hlofp8.run, MODULE, deep(100))
    assert len(hlofp8.draw(MODULE, 2**64 - 1)) == 1
    for call in (lambda: hlofp8.values(MODULE, 'a\0b'), lambda: hlofp8.extract(MODULE, 'a\0b'), lambda: hlofp8.rewrite(MODULE, name='a\0b'),
                 lambda: hlofp8.rewrite(MODULE).gate('all\0')):
        _cases.refused('contains a NUL character', call)


if __name__ == '__main__':
    sys.exit(_cases.run([types, values], _cases.arguments()))
