# SPDX-License-Identifier: Apache-2.0
"""Tests every elementwise operation on every element type and, if there are few codes, on every code or pair.
Operations that move, compare, round to integers or read bits must have XLA's result, including the sign of every zero
and NaN. Arithmetic is done in f32 and rounded once (f64: in f64): the result must be between the roundings of XLA's f32
result plus and minus the tolerance in the table of operations. XLA itself computes the narrowest types in f16, which
rounds twice.
"""
import ml_dtypes
import numpy as np

# XLA flushes subnormal numbers of these types to zero.
FLUSHED = ('f32', 'f64', 'bf16', 'f8e8m0fnu')
FOURS = {'s2': 2, 'u2': 2, 's4': 4, 'u4': 4, 'f4e2m1fn': 4}
ULPS = {'exponential': 4, 'exponential-minus-one': 8, 'log': 4, 'log-plus-one': 4, 'logistic': 8,
        'rsqrt': 4, 'sqrt': 2, 'sine': 4, 'cosine': 4, 'tan': 8, 'tanh': 8, 'cbrt': 4, 'erf': 8}
ULPS2 = {'atan2': 4, 'power': 8, 'divide': 2, 'add': 1, 'subtract': 1, 'multiply': 1}
ULPS_F64 = {'log-plus-one': 128}  # XLA is less exact for these
# XLA's conversion from f16 makes a NaN positive; there is only one NaN.
SIGN_LOST = 'float8_e5m2', 'float8_e8m0fnu'
# For these operations, the sign of a NaN is that of the operand.
SIGNED = 'abs ceil floor negate round-nearest-afz round-nearest-even sign copy'.split()
EXACT2 = 'maximum minimum remainder'.split()
DIRECTIONS = 'EQ NE LT LE GT GE'.split()
# Omitted: abs and sign of unsigned integers, which XLA does not define, and popcnt of s4, for which
# XLA's CPU counts the bits of a byte.
INTEGER = 'negate not popcnt count-leading-zeros'.split()
INTEGER2 = ('add subtract multiply divide remainder maximum minimum and or xor shift-left '
            'shift-right-arithmetic shift-right-logical').split()
WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
SAMPLE = 1 << 16


def operands(rng, name, dtype):
    """Returns x and y: all pairs of codes; for 16 bits, all codes paired with random codes; for more bits, random
    codes."""
    bits = FOURS.get(name, np.dtype(dtype).itemsize * 8)
    word = WORDS[np.dtype(dtype).itemsize]
    if bits <= 8:
        x, y = (v.ravel().astype(word) for v in np.meshgrid(np.arange(1 << bits), np.arange(1 << bits)))
    else:
        x = np.arange(SAMPLE) if bits == 16 else rng.integers(0, 1 << (bits - 1), SAMPLE) * 2 + \
            rng.integers(0, 2, SAMPLE)
        x = x.astype(word)
        if bits > 16 and name[0] not in 'su':  # pairs of NaNs are rare among so many random codes
            x = np.where(rng.random(SAMPLE) < 0.9, x, rng.choice(nans(dtype), SAMPLE))
        small = rng.integers(0, 70, SAMPLE).astype(word)
        y = np.where(rng.random(SAMPLE) < 0.5, rng.permutation(x), small if name[0] in 'su' else x)
    x, y = x.view(dtype), y.view(dtype)
    if name in FLUSHED:
        x, y = normal(x), normal(y)
    return x, y


def nans(dtype):
    """Returns codes of NaNs with either sign."""
    info, word = np.finfo(dtype), WORDS[np.dtype(dtype).itemsize]
    least = int(np.asarray(np.inf, dtype).view(word)) + 1  # a NaN with payload 1
    codes = [least, least + (1 << info.nmant - 1) - 1, least + (1 << info.nmant) - 2]
    return np.array(codes + [c | 1 << info.bits - 1 for c in codes], word)


def normal(x):
    least = np.finfo(x.dtype).tiny if x.dtype == np.float64 else 2.0 ** -126
    with np.errstate(all='ignore'):
        return np.where(np.abs(x.astype(np.float64)) < least, np.asarray(1, x.dtype), x)


def allowed(name, op):
    return ULPS_F64.get(op, ULPS[op]) if name == 'f64' else ULPS[op]


def operations(name, is_float):
    """Yields (operation, type of the result, text, allowed units of roundoff or None)"""
    ops = [(f'{d} {k}', 'pred', f'compare(%x, %y), direction={d}{k}', None) for d in DIRECTIONS
           for k in ((', type=FLOAT', ', type=TOTALORDER') if is_float else ('',))]
    ops += [('clamp', name, 'clamp(%y, %x, %z)', None), ('select', name, 'select(%p, %x, %y)', None)]
    one = SIGNED + list(ULPS) if is_float else INTEGER + ['abs', 'sign'] * (name[0] == 's')
    one = [o for o in one if (o, name) != ('popcnt', 's4')]
    two = EXACT2 + list(ULPS2) if is_float else INTEGER2
    ops += [(o, name, f'{o}(%x)', allowed(name, o) if o in ULPS else None) for o in one]
    ops += [(o, name, f'{o}(%x, %y)', ULPS2.get(o) if is_float else None) for o in two]
    if is_float:
        ops += [('is-finite', 'pred', 'is-finite(%x)', None)]
        ops += [(f'reduce-precision {e} {m}', name,
                 f'reduce-precision(%x), exponent_bits={e}, mantissa_bits={m}', None)
                for e in (1, 2, 3, 4, 5, 8) for m in (0, 1, 2, 3, 7, 10, 23)]
    return ops


def module(name, ops, count):
    inputs = [('x', name), ('y', name), ('z', name), ('p', 'pred')]
    lines = [f'  %{n} = {t}[{count}] parameter({i})' for i, (n, t) in enumerate(inputs)]
    lines += [f'  %r{i} = {t}[{count}] {text}' for i, (_, t, text, _) in enumerate(ops)]
    types = ', '.join(f'{t}[{count}]' for _, t, _, _ in ops)
    names = ', '.join(f'%r{i}' for i in range(len(ops)))
    head = ', '.join(f'{n}: {t}[{count}]' for n, t in inputs)
    return (f'HloModule sweep\n\nENTRY %main ({head}) -> ({types}) {{\n' + '\n'.join(lines)
            + f'\n  ROOT %all = ({types}) tuple({names})\n}}\n')


def minus(x):
    """Returns the sign bits of the elements, including NaNs."""
    return x.view(WORDS[x.dtype.itemsize]) >> (x.dtype.itemsize * 8 - 1) != 0


def exact_differences(op, want, got):
    if want.dtype.kind in 'biu' or want.dtype.name.startswith(('int', 'uint')):
        return want.astype(np.int64) != got.astype(np.int64) if want.dtype != np.uint64 else want != got
    w, g = want.astype(np.float64), got.astype(np.float64)
    nan = np.isnan(w)
    wrong = np.where(nan, ~np.isnan(g), (w != g) | (np.signbit(w) != np.signbit(g)))
    if want.dtype.name not in SIGN_LOST and (op in SIGNED or op.startswith('reduce-precision')):
        wrong |= nan & (minus(want) != minus(got))
    if op == 'remainder' and want.dtype.name == 'float4_e2m1fn':
        wrong &= w != g  # a zero of either sign replaces the NaN that the type lacks
    return wrong


def rounded_differences(wide, got, ulps):
    """Returns which roundings are wrong. `wide`: XLA's result in a type that represents all values of the type of
    `got`."""
    t, g = wide.astype(np.float64), got.astype(np.float64)
    unit = 2.0 ** -53 if wide.dtype == np.float64 else 2.0 ** -24
    least = np.finfo(np.float64).tiny if wide.dtype == np.float64 else 2.0 ** -126
    by = np.where(np.isinf(t), 0, ulps * unit * np.abs(t) + least)
    low, high = ((t + s * by).astype(got.dtype).astype(np.float64) for s in (-1, 1))
    over = np.isnan(low) | np.isnan(high)  # the type has no infinity
    inside = (low <= g) & (g <= high) | over & (np.isnan(g) | (np.abs(g) == np.max(np.abs(g[np.isfinite(g)]))))
    no_nan = got.dtype.name == 'float4_e2m1fn'
    inside = np.where(np.isnan(t), (g == 0) if no_nan else np.isnan(g), inside)
    if got.dtype.name == 'float8_e8m0fnu':
        inside |= g <= 2.0 ** -126  # XLA flushes smaller numbers to zero
    return ~inside


def differences(op, want, wide, got, ulps):
    with np.errstate(all='ignore'):
        return exact_differences(op, want, got) if ulps is None else rounded_differences(wide, got, ulps)


def powers(run, name, x, y):
    """Compares integer powers. XLA reads only the six lowest bits of exponents, so only these are set."""
    y = (y.astype(np.int64) & 63).astype(y.dtype)
    run.compare(f'{name} power', module(name, [('power', name, 'power(%x, %y)', None)], len(x)),
                [x, y, x, x.astype(bool)], lambda *_: 0)


def sweep(run, floats, integers, rng):
    for name, dtype in {**floats, **integers}.items():
        x, y = operands(rng, name, dtype)
        inputs = [x, y, rng.permutation(x), rng.random(len(x)) < 0.5]
        ops = operations(name, name in floats)
        text = module(name, ops, len(x))
        theirs = run.xla(text, inputs)
        ours = run.ours(text, inputs, [t.dtype for t in theirs])
        computed = [o for o in ops if o[3] is not None]
        wide = iter(())
        if computed and np.dtype(dtype).itemsize < 4:
            f32 = [(o, 'f32', line, u) for o, _, line, u in computed]
            wide = iter(run.xla(module('f32', f32, len(x)),
                                [v.astype(np.float32) for v in inputs[:3]] + inputs[3:]))
        elif computed:
            wide = iter([t for t, o in zip(theirs, ops) if o[3] is not None])
        for (op, _, _, ulps), want, got in zip(ops, theirs, ours):
            run.cases += 1
            reference = next(wide) if ulps is not None else want
            wrong = differences(op, want, reference, got, ulps)
            if wrong.any():
                i = np.argmax(wrong)
                run.failures += 1
                print(f'{name} {op}: {wrong.sum()} of {wrong.size} differ, first of {x[i]!r}, {y[i]!r}, '
                      f'{inputs[2][i]!r}: got {got[i]!r}, XLA has {want[i]!r} ({reference[i]!r})')
        if name in integers and name not in FOURS:
            powers(run, name, x, y)
