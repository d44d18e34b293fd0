#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that custom calls of LAPACK routines equal those of jaxlib: every routine and flag, f32, f64, c64 and c128,
random, singular and empty matrices, matrices with NaN, and batches.

The typed call of a routine runs in XLA and in hlo-fp8-run. Vectors that are unique only up to a factor are scaled
first, so that their largest element is positive. The old call, with sizes and flags as operands, must equal the typed
call bit for bit. Factorizations are also multiplied by numpy: their product must be the matrix. With scipy, its
OpenBLAS is the library of a second run with --long; without --long, f32 and c128 of one size are tested.
"""
import glob
import os
import re
import subprocess
import sys

os.environ['JAX_PLATFORMS'] = 'cpu'
os.environ['JAX_SKIP_CUDA_CONSTRAINTS_CHECK'] = '1'

import jax
import numpy as np
from jaxlib.cpu import _lapack

import _script
from test_eval import Runner

jax.config.update('jax_enable_x64', True)
_lapack.initialize()
RNG = np.random.default_rng(0)
TYPES = {'s': np.float32, 'd': np.float64, 'c': np.complex64, 'z': np.complex128}
NAMES = {'s': 'f32', 'd': 'f64', 'c': 'c64', 'z': 'c128'}
KINDS = {NAMES[k]: v for k, v in TYPES.items()} | {'s32': np.int32}
REAL = {'s': 'f32', 'd': 'f64', 'c': 'f32', 'z': 'f64'}
COMPLEX = {'s': 'c64', 'd': 'c128', 'c': 'c64', 'z': 'c128'}


def column_major(shape, rank):
    order = list(range(len(shape)))[::-1]
    if rank == 2:
        order[:2] = order[1::-1]
    return ','.join(map(str, order))


def array(name, batch, *dims):
    """Returns the text of a shape: a matrix, vector or scalar for each element of the batch."""
    shape = (*batch, *dims)
    layout = f'{{{column_major(shape, len(dims))}}}' if shape else ''
    return f'{name}[{",".join(map(str, shape))}]' + layout


class Call:
    """A custom call: its operands, and the shapes of its results. `old` has the operands and results of the old call:
    values of scalars, operand indices as strings, and for results, indices of the typed call's or shapes."""

    def __init__(self, kind, routine, batch, operands, results, config=None, old=None, product=None, vectors=(),
                 unset=(), slack=1):
        self.kind, self.routine, self.batch, self.operands = kind, routine, batch, operands
        self.results, self.config, self.old, self.product, self.vectors = results, config or {}, old, product, vectors
        self.unset, self.slack = unset, slack

    def parameters(self):
        names = {np.dtype(v): NAMES[k] for k, v in TYPES.items()} | {np.dtype(np.int32): 's32'}
        return [array(names[x.dtype], self.batch, *x.shape[len(self.batch):]) for x in self.operands]

    def module(self, lines, target, operands, results, rest):
        parameters = [f'  %p{i} = {s} parameter({i})' for i, s in enumerate(self.parameters())]
        shape = results[0] if len(results) == 1 and self.single(target) else f'({", ".join(results)})'
        call = (f'  ROOT %r = {shape} custom-call({", ".join(n for _, n in operands)}), custom_call_target="{target}", '
                f'operand_layout_constraints={{{", ".join(s for s, _ in operands)}}}{rest}')
        return 'HloModule case\n\nENTRY %main {\n' + '\n'.join(parameters + lines + [call]) + '\n}\n'

    def single(self, target):
        return 'trsm' in target or 'mqr' in target or ('gqr' in target and target.endswith('_ffi'))

    def typed(self):
        def attribute(value):
            if isinstance(value, bool):
                return str(value).lower()
            return f'{value} : i32' if isinstance(value, int) else f'{ord(value)} : ui8'
        config = ', '.join(f'{k} = {attribute(v)}' for k, v in sorted(self.config.items()))
        return self.module([], f'lapack_{self.kind}{self.routine}_ffi',
                           [(s, f'%p{i}') for i, s in enumerate(self.parameters())], self.results,
                           f', api_version=API_VERSION_TYPED_FFI, backend_config={{{config}}}')

    def older(self):
        operands, results = self.old
        lines, given = [], []
        for i, o in enumerate(operands):
            if isinstance(o, str):
                given.append((self.parameters()[int(o)], f'%p{o}'))
                continue
            type_, value = ('u8', ord(o.decode())) if isinstance(o, bytes) else ('s32', o)
            if isinstance(o, float):
                type_, value = NAMES[self.kind], f'({o}, 0)' if self.kind in 'cz' else o
            lines.append(f'  %scalar{i} = {type_}[] constant({value})')
            given.append((type_ + '[]', f'%scalar{i}'))
        prefix = 'blas' if self.routine == 'trsm' else 'lapack'
        shapes = [self.results[r] if isinstance(r, int) else r for r in results]
        return self.module(lines, f'{prefix}_{self.kind}{self.routine}', given, shapes,
                           ', api_version=API_VERSION_STATUS_RETURNING')


def normalized(x):
    """Scales columns so that their largest element is positive."""
    if not x.size:
        return x
    largest = np.take_along_axis(x, np.abs(x).argmax(-2, keepdims=True), -2)
    size = np.abs(largest)
    return x * np.where(size > 0, np.conj(largest) / np.where(size > 0, size, 1), 1)


def t(x):
    return np.swapaxes(x, -1, -2)


def h(x):
    return np.conj(t(x))


class Maker:
    """Creates a call of each routine, for matrices of one type and batch that `make` returns."""

    def __init__(self, kind, batch, make):
        self.kind, self.batch, self.make = kind, batch, make
        self.elements, self.real, self.complex = NAMES[kind], REAL[kind], COMPLEX[kind]
        self.count = int(np.prod(batch, dtype=int))
        self.info = array('s32', batch)
        self.name = lambda real, other: other if kind in 'cz' else real

    def of(self, *dims, name=None):
        return array(name or self.elements, self.batch, *dims)

    def draw(self, *dims):
        return self.make((*self.batch, *dims)).astype(TYPES[self.kind])

    def call(self, routine, operands, results, config=None, **rest):
        return Call(self.kind, routine, self.batch, operands, results, config, **rest)

    def trsm(self):
        m, n = 4, 3
        for side, uplo, trans, diag in ('LLNN', 'RUTN', 'LUCU', 'RLNU', 'LLTN', 'RLCN'):
            q = m if side == 'L' else n
            a = (np.eye(q) + self.draw(q, q) / (2 * q)).astype(TYPES[self.kind])
            old = ([int(side == 'L'), int(uplo == 'L'), 'NTC'.index(trans), int(diag == 'U'), m, n, self.count, 1.0,
                    '0', '1'], [0])
            yield self.call('trsm', [a, self.draw(m, n)], [self.of(m, n)],
                            {'side': side, 'uplo': uplo, 'trans_x': trans, 'diag': diag}, old=old)

    def getrf(self, m, n):
        def product(a, lu, pivots, info):
            k = min(m, n)
            for i in np.ndindex(self.batch):
                order = np.arange(m)
                for j, p in enumerate(pivots[i]):
                    order[[j, p - 1]] = order[[p - 1, j]]
                lower = np.tril(lu[i], -1)[:, :k] + np.eye(m, k)
                yield a[i][order], lower @ np.triu(lu[i])[:k]
        yield self.call('getrf', [self.draw(m, n)],
                        [self.of(m, n), self.of(min(m, n), name='s32'), self.info],
                        old=([self.count, m, n, '0'], [0, 1, 2]), product=product)

    def geqrf(self, m, n):
        k = min(m, n)
        yield self.call('geqrf', [self.draw(m, n)], [self.of(m, n), self.of(k)],
                        old=([self.count, m, n, 64, '0'], [0, 1, self.info, f'{self.elements}[64]']))
        yield self.call('geqp3', [self.draw(m, n), np.zeros((*self.batch, n), np.int32)],
                        [self.of(m, n), self.of(n, name='s32'), self.of(k)])

    def orgqr(self, m, n):
        n = min(m, n)
        k = max(n - 1, min(n, 1))
        a, tau = np.zeros((*self.batch, m, n), TYPES[self.kind]), np.zeros((*self.batch, n), TYPES[self.kind])
        for i in np.ndindex(self.batch):  # the vectors of reflectors
            v = np.tril(RNG.standard_normal((m, n)), -1)
            a[i], tau[i] = v, 2 / (1 + (v * v).sum(0))
        yield self.call(self.name('orgqr', 'ungqr'), [a, tau[..., :k]], [self.of(m, n)])
        yield self.call(self.name('orgqr', 'ungqr'), [a, tau], [self.of(m, n)],
                        old=([self.count, m, n, n, 64, '0', '1'], [0, self.info, f'{self.elements}[64]']))
        for left in (True, False):
            for transpose in (True, False):
                c = (m, 3) if left else (3, m)
                yield self.call(self.name('ormqr', 'unmqr'), [a, tau, self.draw(*c)], [self.of(*c)],
                                {'left': left, 'transpose': transpose})

    def potrf(self, n):
        x = self.draw(n, n)
        x = (x @ h(x) + np.eye(n)).astype(TYPES[self.kind])
        if n == 5:
            x[..., 3, 3] = -1
        for uplo in 'LU':
            def product(a, factor, info, uplo=uplo):
                for i in np.ndindex(self.batch):
                    if info[i] == 0:
                        f = np.tril(factor[i]) if uplo == 'L' else np.triu(factor[i])
                        yield a[i], f @ h(f) if uplo == 'L' else h(f) @ f
            yield self.call('potrf', [x], [self.of(n, n), self.info], {'uplo': uplo},
                            old=([int(uplo == 'L'), self.count, n, '0'], [0, 1]), product=product)

    def gesdd(self, m, n):
        k = min(m, n)
        for mode in 'NAS':
            u, v = (m, n) if mode == 'A' else (k, k)

            def product(a, _, s, u_, v_, info, u=u):
                yield a, (u_[..., :k] * s[..., None, :]) @ v_[..., :k, :]
                yield h(u_) @ u_, np.broadcast_to(np.eye(u), (*self.batch, u, u))
            results = [self.of(m, n), self.of(k, name=self.real), self.of(m, u), self.of(v, n), self.info]
            work = ['s32[8]', f'{self.elements}[8]'] + [f'{self.real}[8]'] * (self.kind in 'cz')
            x = self.draw(m, n)
            for routine in ('gesdd', 'gesvd'):
                old = ([int(mode == 'A'), int(mode != 'N'), self.count, m, n, 64, '0'], [0, 1, 2, 3, 4, *work])
                yield self.call(routine, [x], results, {'mode': mode}, old=old if routine == 'gesdd' else None,
                                product=product if mode != 'N' else None, vectors='svd')

    def syevd(self, n):
        x = self.draw(n, n)
        x = (x + h(x)) / 2
        work = [f'{self.elements}[8]'] + [f'{self.real}[8]'] * (self.kind in 'cz') + ['s32[8]']
        for mode, uplo in ('VL', 'VU', 'NL'):
            def product(a, v, w, info):
                yield a @ v, v * w[..., None, :]
            yield self.call(self.name('syevd', 'heevd'), [x], [self.of(n, n), self.of(n, name=self.real), self.info],
                            {'mode': mode, 'uplo': uplo},
                            old=([int(uplo == 'L'), self.count, n, '0'], [0, 1, 2, *work]) if mode == 'V' else None,
                            product=product if mode == 'V' else None, vectors=(0,) if mode == 'V' else 'none')

    def geev(self, n):
        real = self.kind in 'sd'
        work = ([f'{self.elements}[{n},{n}]'] * 3 if real else
                [f'{self.elements}[{n},{n}]', f'{self.real}[{2 * n}]'])
        values = [self.of(n)] * (2 if real else 1)
        for left, right in ('VV', 'NV', 'NN'):
            def product(a, *results, left=left, right=right):
                w = results[0] + 1j * results[1] if real else results[0]
                vl, vr = results[-3:-1]
                if right == 'V':
                    yield a @ vr, vr * w[..., None, :]
                if left == 'V':
                    yield h(vl) @ a, w[..., None] * h(vl)
            results = [*values, self.of(n, n, name=self.complex), self.of(n, n, name=self.complex), self.info]
            at = len(values)
            yield self.call('geev', [self.draw(n, n)], results, {'compute_left': left, 'compute_right': right},
                            old=([self.count, n, left.encode(), right.encode(), '0'], [*work, *range(len(results))]),
                            product=product, vectors=(at, at + 1),
                            unset=[at + i for i, mode in enumerate((left, right)) if mode == 'N'])

    def gees(self, n):
        real = self.kind in 'sd'
        values = [self.of(n)] * (2 if real else 1)
        for mode in 'VN':
            def product(a, schur, *results):
                yield a, results[0] @ schur @ h(results[0])
            results = [self.of(n, n), self.of(n, n), *values, self.info, self.info]
            order = [0, *([] if real else [f'{self.real}[{n}]']), *range(2, 2 + len(values)), 1, len(results) - 2,
                     len(results) - 1]
            yield self.call('gees', [self.draw(n, n)], results, {'mode': mode, 'sort': 'N'},
                            old=([self.count, n, mode.encode(), b'N', '0'], order),
                            product=product if mode == 'V' else None, vectors='schur', slack=16)

    def gehrd(self, n):
        def norms(a, reduced, *_):
            upper = np.triu(reduced, -1)
            yield np.trace(a, axis1=-2, axis2=-1), np.trace(upper, axis1=-2, axis2=-1)
            yield np.linalg.norm(a, axis=(-2, -1)), np.linalg.norm(upper, axis=(-2, -1))

        def values(a, _, d, e, *__):
            rows = np.arange(max(n - 1, 0))
            band = d[..., None] * np.eye(n)
            band[..., rows, rows + 1] = band[..., rows + 1, rows] = e
            yield np.linalg.eigvalsh(a), np.linalg.eigvalsh(band)
        yield self.call('gehrd', [self.draw(n, n)], [self.of(n, n), self.of(max(n - 1, 0)), self.info],
                        {'low': 1, 'high': n}, product=norms,
                        old=([n, 1, n, n, self.count, 64, '0'], [0, 1, 2, f'{self.elements}[64]']))
        x = self.draw(n, n)
        for uplo in 'LU':
            yield self.call(self.name('sytrd', 'hetrd'), [((x + h(x)) / 2).astype(x.dtype)],
                            [self.of(n, n), self.of(n, name=self.real), self.of(max(n - 1, 0), name=self.real),
                             self.of(max(n - 1, 0)), self.info], {'uplo': uplo}, product=values,
                            old=([n, int(uplo == 'L'), n, self.count, 64, '0'],
                                 [0, 1, 2, 3, 4, f'{self.elements}[64]']))

    def gtsv(self, n):
        diagonals = [self.draw(n), 4 + self.draw(n), self.draw(n)]
        yield self.call('gtsv', [*(d.astype(TYPES[self.kind]) for d in diagonals), self.draw(n, 2)],
                        [self.of(n), self.of(n), self.of(n), self.of(n, 2), self.info])

    def every(self, m, n):
        yield from self.trsm()
        for make in (self.getrf, self.geqrf, self.orgqr, self.gesdd):
            yield from make(m, n)
        for make in (self.potrf, self.syevd, self.geev, self.gees, self.gehrd, self.gtsv):
            yield from make(n)


def tolerance(call, *arrays):
    largest = max((np.abs(a[np.isfinite(a)]).max() for a in arrays if np.isfinite(a).any()), default=0)
    order = max(call.operands[0].shape[-2:], default=1)
    return 64 * call.slack * (1 + order) * np.finfo(TYPES[call.kind]).eps * max(largest, 1)


def ready(call, results):
    """Returns the results that are unique, normalized."""
    results = list(results)
    if call.vectors in ('svd', 'schur', 'none'):
        return [r for r in results if r.ndim == len(call.batch) + 1]
    return [normalized(r) if i in call.vectors else r for i, r in enumerate(results) if i not in call.unset]


def check(run, call, environment):
    """Runs a call in XLA, twice here, and multiplies its factors."""
    def fail(what):
        run.failures += 1
        print(f'{call.kind}{call.routine} {call.config} {[x.shape for x in call.operands]}: {what}')
    run.cases += 1
    if all(x.size and np.isfinite(x).all() for x in call.operands):
        theirs = run.xla(call.typed(), call.operands)
    else:  # without elements, jax calls no routine, and some handlers divide by zero
        theirs = [np.zeros([int(d) for d in re.findall(r'\d+', s.split('[')[1].split(']')[0])], KINDS[s.split('[')[0]])
                  for s in call.results]
    os.environ.update(environment)
    try:
        return compare(run, call, theirs, fail)
    except subprocess.CalledProcessError as error:
        fail(error)
        return theirs


def compare(run, call, theirs, fail):
    regular = all(np.isfinite(x).all() for x in call.operands)
    dtypes = [x.dtype for x in theirs]
    ours = run.ours(call.typed(), call.operands, dtypes)
    if call.old:
        old = run.ours(call.older(), call.operands,
                       [dtypes[r] if isinstance(r, int) else np.dtype(KINDS[r.split('[')[0]]) for r in call.old[1]])
        for r, x in zip(call.old[1], old):
            if isinstance(r, int) and x.tobytes() != ours[r].tobytes():
                fail(f'result {r} of the old call differs')
    if not regular:
        return ours
    empty = not all(x.size for x in call.operands)
    if empty and call.routine[2:] == 'mqr' and (ours[0] != call.operands[2]).any():
        fail('a product without reflectors differs from the matrix')
    # The reductions of large matrices are accurate, but amplify roundings.
    large = call.product and call.operands[0].shape[-1] > 8
    for i, (want, got) in enumerate(() if large or empty else zip(ready(call, theirs), ready(call, ours))):
        if got.shape != want.shape:
            fail(f'result {i} has the dimensions {got.shape}, not {want.shape}')
        elif want.dtype.kind == 'i' and not (got == want).all():
            fail(f'result {i} is {got}, not {want}')
        elif want.dtype.kind != 'i' and not np.all(np.abs(got - want) <= tolerance(call, want)):
            fail(f'result {i} differs from XLA by {np.abs(got - want).max()}')
    wide = [x.astype(np.complex128) if x.dtype.kind != 'i' else x for x in (call.operands[0], *ours)]
    for want, got in call.product(*wide) if call.product else ():
        if not np.all(np.abs(got - want) <= tolerance(call, want, *wide[1:])):
            fail(f'a product of its results differs from the matrix by {np.abs(got - want).max()}')
    return ours


def random(shape):
    x = RNG.standard_normal(shape)
    return x + 1j * RNG.standard_normal(shape)


def drop_imaginary(kind, make):
    return make if kind in 'cz' else lambda shape: make(shape).real


def libraries():
    """Yields the environment of each run: that of the system's library and, if scipy has one, that of its OpenBLAS."""
    import scipy
    folder = os.path.join(os.path.dirname(os.path.dirname(scipy.__file__)), 'scipy.libs')
    yield {'HLO_LAPACK': ''}
    yield from ({'HLO_LAPACK': f} for f in sorted(glob.glob(os.path.join(folder, 'libscipy_openblas-*.so')))[:1])


def rejected(run, call, edits):
    """Checks that edits of the typed call's module are errors that name the place, not crashes."""
    for old, new, expected in edits:
        text = call.typed() if old in call.typed() else call.older()
        assert old in text, old
        path = os.path.join(run.work, 'wrong.hlo')
        with open(path, 'w') as out:
            out.write(text.replace(old, new))
        result = subprocess.run([run.program, path], capture_output=True, text=True)
        run.cases += 1
        if result.returncode != 1 or expected not in result.stderr or 'wrong.hlo:' not in result.stderr:
            run.failures += 1
            print(f'{new}: status {result.returncode}: {result.stderr}')


def wrong(run):
    maker = Maker('s', (), lambda shape: random(shape).real)
    factor = next(maker.potrf(4))
    rejected(run, factor, [
        ('uplo = 76', 'uplo = 77', 'attribute uplo is not one of the letters UL'),
        ('{uplo = 76 : ui8}', '{}', 'attribute uplo'),
        ('(f32[4,4]{0,1}, s32[])', '(f32[4,4]{0,1}, s32[1]{0})', 'result 1 is s32[1]'),
        ('f32[4,4]{0,1}', 'f32[4,4]{1,0}', 'column-major'),
        ('f32[4,4]{0,1}', 'f32[4,5]{0,1}', 'expected f32[4,4]'),
        ('f32[4,4]{0,1}', 'f64[4,4]{0,1}', 'expected f32'),
        ('lapack_spotrf_ffi', 'lapack_spotri_ffi', 'unknown custom call target'),
        ('constant(4)', 'constant(5)', 'operand 2 is 5, expected 4'),
        ('lapack_spotrf"', 'lapack_dpotrf"', 'expected f64'),
    ])
    rejected(run, next(maker.gehrd(4)), [('high = 4', 'high = 5', 'low and high'), ('low = 1', 'low = 0', 'low and high')])
    rejected(run, next(maker.gees(4)), [('sort = 78', 'sort = 83', 'attribute sort')])
    rejected(run, next(maker.gesdd(5, 4)), [
        ('f32[4,4]{0,1}, s32[])', 'f32[5,4]{0,1}, s32[])', 'the dimensions of the singular vectors'),
        ('f32[4]{0}', 'f32[5]{0}', 'expected f32[4]'), ('mode = 78', 'mode = 65', 'do not match its mode')])
    rejected(run, next(maker.orgqr(5, 4)), [('f32[5,4]', 'f32[3,4]', 'n is 4, expected at most m')])
    rejected(run, next(maker.trsm()), [('side = 76', 'side = 82', 'the first matrix has 4 rows, expected 3')])


def with_factor(run):
    """Checks the typed trsm of JAX 0.4.37, which has a third operand: the factor of the right-hand sides."""
    call = next(Maker('c', (2,), random).trsm())
    plain = run.ours(call.typed(), call.operands, [np.complex64])[0]
    text = call.typed().replace('(%p0, %p1)', '(%p0, %p1, %f)')
    text = re.sub(r'(\{1,2,0\})\}, api', r'\1, c64[]}, api', text).replace('  ROOT', '  %f = c64[] constant((0, 2))\n  ROOT')
    run.cases += 1
    if not np.allclose(run.ours(text, call.operands, [np.complex64])[0], 2j * plain):
        run.failures += 1
        print('trsm: the factor has no effect')


def main():
    parser = _script.parser()
    parser.add_argument('--long', action='store_true', help='all types and sizes, and the OpenBLAS of scipy')
    parser.add_argument('--few', action='store_true', help='c128 only')
    args = parser.parse_args()
    run = Runner(args)
    for environment in list(libraries())[:None if args.long else 1]:
        for kind in 'sdcz' if args.long and not environment['HLO_LAPACK'] else 'z' if args.few else 'sz':
            sizes = [((), 5, 4), ((2, 3), 3, 6), ((2,), 1, 1), ((0,), 3, 3), ((), 40, 33)] if args.long else [((2, 3), 3, 6)]
            for batch, m, n in sizes[-1:] if environment['HLO_LAPACK'] else sizes:
                for call in Maker(kind, batch, drop_imaginary(kind, random)).every(m, n):
                    check(run, call, environment)
            # Singular matrices: zeros, and equal rows of powers of two, whose quotients are exact.
            for make in (np.zeros, lambda shape: np.broadcast_to(2.0 ** RNG.integers(0, 4, shape[-1:]), shape).copy()):
                maker = Maker(kind, (2,), drop_imaginary(kind, make))
                for call in (*maker.getrf(4, 4), *maker.potrf(4), *maker.gesdd(4, 4)):
                    call.slack = 16
                    if call.routine == 'gesdd' or call.routine == 'gesvd':
                        call.vectors = 'svd'
                    check(run, call, environment)
            # Empty matrices: nothing is computed.
            for m, n in (0, 3), (3, 0):
                for call in Maker(kind, (), drop_imaginary(kind, random)).every(m, n):
                    check(run, call, environment)
            # NaN: info or the results show it, and the routines end.
            def with_nan(shape):
                x = random(shape)
                x.reshape(-1)[x.size // 2] = np.nan
                return x
            for call in Maker(kind, (), drop_imaginary(kind, with_nan)).every(4, 4):
                if all(np.isfinite(x).all() for x in call.operands):
                    continue
                results = check(run, call, environment)
                floats = [r for r in results if r.dtype.kind != 'i' and r.size]
                if not any(np.isnan(r).any() for r in floats) and all((r == 0).all() for r in results if r.dtype.kind == 'i'):
                    run.failures += 1
                    print(f'{call.kind}{call.routine} {call.config}: a NaN disappears')
    with_factor(run)
    wrong(run)
    print(f'{run.cases} calls, {run.failures} failures')
    return run.failures != 0


if __name__ == '__main__':
    sys.exit(main())
