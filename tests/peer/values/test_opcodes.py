#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every opcode on the CPU backend equals XLA's: some cases of each, or all 20 with --long, with random
shapes, layouts, types and attributes (_each.py). There are more cases of whole-array operations: random bits, matrix
factorizations, transforms, batch normalization, select-and-scatter, stochastic rounding. An opcode with neither cases
nor a reason is an error. Bits, states and selected elements must be equal. Other results may differ by some roundings
of the type, times the number of terms of a sum and, for solvers, times the condition number of the matrices.
"""
import os
import pathlib
import re
import sys

os.environ['JAX_PLATFORMS'] = 'cpu'
os.environ['JAX_SKIP_CUDA_CONSTRAINTS_CHECK'] = '1'
os.environ['XLA_FLAGS'] = '--xla_allow_excess_precision=false --xla_backend_optimization_level=0'

import jax
import ml_dtypes
import numpy as np

import _each
import _script
from test_eval import FOURS, Runner

jax.config.update('jax_enable_x64', True)
RNG = np.random.default_rng(0)
TYPES = {'f32': np.float32, 'f64': np.float64, 'f16': np.float16, 'bf16': ml_dtypes.bfloat16,
         'pred': np.bool_, 'c64': np.complex64, 'c128': np.complex128, 's8': np.int8, 's16': np.int16, 's32': np.int32,
         's64': np.int64, **FOURS, 'u8': np.uint8, 'u16': np.uint16, 'u32': np.uint32, 'u64': np.uint64}
ROUNDOFF = {'f32': 2.0 ** -24, 'c64': 2.0 ** -24, 'f64': 2.0 ** -53, 'c128': 2.0 ** -53, 'f16': 2.0 ** -11,
            'bf16': 2.0 ** -8}


class Label(str):
    """A result's name, with the function that bounds its difference from XLA's."""


class Cases:
    """Collects instructions of one module, with their inputs."""

    def __init__(self):
        self.inputs, self.parameters, self.lines, self.results, self.labels = [], [], [], [], []

    def input(self, name, array, layout=None):
        array = np.asarray(array).astype(TYPES[name])
        shape = name + dims_of(array.shape)
        if layout is not None:
            shape += '{' + ','.join(map(str, layout)) + '}'
        self.parameters.append(f'  %p{len(self.inputs)} = {shape} parameter({len(self.inputs)})')
        self.inputs.append(array)
        return f'%p{len(self.inputs) - 1}'

    def add(self, label, shapes, text, bound):
        """Adds one instruction. `bound(want)` returns the allowed difference. If `bound` is None, results must be equal."""
        made, single = f'%r{len(self.lines)}', len(shapes) == 1
        tuple_ = shapes[0] if single else f'({", ".join(shapes)})'
        self.lines.append(f'  {made} = {tuple_} {text}')
        for i, shape in enumerate(shapes):
            if not single:
                self.lines.append(f'  {made}.{i} = {shape} get-tuple-element({made}), index={i}')
            self.results.append((shape, made if single else f'{made}.{i}'))
            self.labels.append(Label(f'{label} {text.split("), ", 1)[-1]} -> {shape}'))
            self.labels[-1].bound = bound or (lambda want: 0)

    def note(self, shape, text):
        """Adds an instruction whose result is not compared."""
        self.lines.append(f'  %r{len(self.lines)} = {shape} {text}')
        return f'%r{len(self.lines) - 1}'

    def text(self, regions):
        shapes = ', '.join(s for s, _ in self.results)
        return (f'HloModule case\n\n{regions}ENTRY %main {{\n' + '\n'.join(self.parameters + self.lines)
                + f'\n  ROOT %all = ({shapes}) tuple({", ".join(n for _, n in self.results)})\n}}\n')

    def run(self, runner, regions=''):
        runner.compare('', self.text(regions), self.inputs, lambda label, want, _: label.bound(want), self.labels)


def dims_of(shape):
    return f'[{",".join(map(str, shape))}]'


def within(name, factor):
    """Returns a bound of some roundings of the largest result."""
    def bound(want):
        finite = np.abs(want[np.isfinite(want)])
        return factor * ROUNDOFF[name] * (finite.max() if finite.size else 1) + 2.0 ** -1022
    return bound


def bits(cases):
    shapes = [(), (1,), (7,), (8,), (3, 5), (3, 4, 5), (5, 3, 7), (2, 1, 6), (9, 9), (64,), (0, 3)]
    for algorithm, sizes in (('rng_three_fry', (2,)), ('rng_philox', (2, 3)), ('rng_default', (2, 3))):
        for shape in shapes:
            for name in RNG.choice(['u8', 'u16', 'u32', 'u64'], 2, replace=False):
                size = RNG.choice(sizes)
                state = RNG.integers(0, 1 << 64, size, dtype=np.uint64)
                if RNG.random() < 0.5:  # the counter overflows
                    state[1] = (1 << 64) - 2
                made = cases.input('u64', state)
                cases.add(algorithm, [f'u64[{size}]', name + dims_of(shape)],
                          f'rng-bit-generator({made}), algorithm={algorithm}', None)


def stochastic(cases):
    for to in ('s8', 's16', 's32', 's64'):
        for name, word in (('f32', 'u32'), ('f64', 'u64'), ('f16', 'u16'), ('bf16', 'u16')) * 2:
            x = RNG.standard_normal(40) * RNG.choice([1, 30, 1e3, 1e10], 40)
            x[:6] = [0, -0.5, 0.5, np.nan, np.inf, -np.inf]
            if name == 'f16':
                x = np.clip(x, -60000, 60000)
            random = RNG.integers(0, 1 << np.dtype(TYPES[word]).itemsize * 8, 40, dtype=np.uint64)
            operands = cases.input(name, x), cases.input(word, random)
            cases.add(name, [f'{to}[40]'], f'stochastic-convert({operands[0]}, {operands[1]})', None)


def matrix(name, batch, n):
    x = RNG.standard_normal((*batch, n, n))
    return x + 1j * RNG.standard_normal(x.shape) if name[0] == 'c' else x


def cholesky(cases):
    for n in (0, 1, 2, 3, 5, 8, 17):
        for name in ('f32', 'f64', 'c64', 'c128'):
            batch = ((), (2,), (2, 3))[RNG.integers(3)]
            x = matrix(name, batch, n)
            x = x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(n)
            if n == 5:
                x[..., 3, 3] = -1  # the other triangle is not part of the factor
            made, shape = cases.input(name, x), name + dims_of(x.shape)
            lower = ('true', 'false')[RNG.integers(2)]
            cases.add('cholesky', [shape], f'cholesky({made}), lower={lower}', within(name, 16 * (n + 1)))


def solves(cases):
    for n in (1, 2, 4, 9):
        for transpose in ('NO_TRANSPOSE', 'TRANSPOSE', 'ADJOINT'):
            for left in ('true', 'false'):
                name = ('f32', 'f64', 'c64', 'c128')[RNG.integers(4)]
                lower, unit = (('true', 'false')[i] for i in RNG.integers(2, size=2))
                batch, m = ((), (3,), (2, 2))[RNG.integers(3)], int(RNG.integers(1, 6))
                a = matrix(name, batch, n) / (n + 1) + 2 * np.eye(n)
                b = RNG.standard_normal((*batch, n, m) if left == 'true' else (*batch, m, n))
                made = cases.input(name, a), cases.input(name, b)
                cases.add('triangular-solve', [name + dims_of(b.shape)],
                          f'triangular-solve({made[0]}, {made[1]}), left_side={left}, lower={lower}, '
                          f'unit_diagonal={unit}, transpose_a={transpose}', within(name, 64 * (n + 1)))


def transforms(cases):
    for kind in ('FFT', 'IFFT', 'RFFT', 'IRFFT'):
        for lengths in ((1,), (2,), (8,), (7,), (12,), (31,), (64,), (3, 4), (4, 5), (2, 3, 4), (3, 2, 5)):
            wide = RNG.integers(2)
            real, complex_ = ('f32', 'f64')[wide], ('c64', 'c128')[wide]
            batch = ((), (3,))[RNG.integers(2)]
            half = (*lengths[:-1], lengths[-1] // 2 + 1)
            shape = {'RFFT': lengths, 'IRFFT': half}.get(kind, lengths)
            result = {'RFFT': half, 'IRFFT': lengths}.get(kind, lengths)
            x = RNG.standard_normal((*batch, *shape))
            if kind != 'RFFT':
                x = x + 1j * RNG.standard_normal(x.shape)
            made = cases.input(real if kind == 'RFFT' else complex_, x)
            out = real if kind == 'IRFFT' else complex_
            cases.add(kind, [out + dims_of((*batch, *result))],
                      f'fft({made}), fft_type={kind}, fft_length={{{",".join(map(str, lengths))}}}',
                      within(out, 64))


def norms(cases):
    for shape in ((4, 6), (2, 3, 5), (3, 4, 2, 5), (16,), (7, 1)):
        for name in ('f32', 'f64', 'f32', 'f64'):
            feature = int(RNG.integers(len(shape)))
            n = shape[feature]
            x = cases.input(name, RNG.standard_normal(shape) * 3 + 1)
            vectors = [cases.input(name, RNG.random(n) + 0.5) for _ in range(4)]
            grad = cases.input(name, RNG.standard_normal(shape))
            end = f'epsilon=0.001, feature_index={feature}'
            whole, vector = name + dims_of(shape), f'{name}[{n}]'
            cases.add('norm', [whole, vector, vector],
                      f'batch-norm-training({x}, {vectors[0]}, {vectors[1]}), {end}', within(name, 256))
            cases.add('norm', [whole], f'batch-norm-inference({x}, {", ".join(vectors)}), {end}',
                      within(name, 256))
            cases.add('norm', [whole, vector, vector],
                      f'batch-norm-grad({x}, {vectors[0]}, {vectors[1]}, {vectors[2]}, {grad}), {end}',
                      within(name, 256))


def select_regions(names):
    text = ''
    for name in names:
        for region, type_, op in (('ge', 'pred', 'compare(%a, %b), direction=GE'),
                                  ('lt', 'pred', 'compare(%a, %b), direction=LT'),
                                  ('add', name, 'add(%a, %b)'), ('max', name, 'maximum(%a, %b)')):
            text += (f'%{region}.{name} {{\n  %a = {name}[] parameter(0)\n  %b = {name}[] parameter(1)\n'
                     f'  ROOT %c = {type_}[] {op}\n}}\n\n')
    return text


def selects(cases):
    for _ in range(24):
        name = ('f32', 's32', 'f64')[RNG.integers(3)]
        rank = int(RNG.integers(1, 4))
        size, stride, low, high = (RNG.integers(a, b, rank) for a, b in ((1, 4), (1, 4), (0, 2), (0, 2)))
        shape = RNG.integers(3, 8, rank)
        low, high = (np.minimum(v, size - 1) for v in (low, high))
        places = (shape + low + high - size) // stride + 1
        if rank == 1:  # otherwise elements differ: of equal elements in a padded window, XLA selects any
            x = RNG.integers(-3, 4, shape)
        else:
            x = RNG.permutation(int(np.prod(shape))).reshape(shape)
        made = (cases.input(name, x), cases.input(name, RNG.integers(-50, 50, places)),
                cases.input(name, RNG.integers(0, 5)))
        window = (f'{{size={"x".join(map(str, size))} stride={"x".join(map(str, stride))} '
                  f'pad={"x".join(f"{a}_{b}" for a, b in zip(low, high))}}}')
        select, scatter = ('ge', 'lt')[RNG.integers(2)], ('add', 'max')[RNG.integers(2)]
        cases.add('select', [name + dims_of(shape)],
                  f'select-and-scatter({", ".join(made)}), window={window}, select=%{select}.{name}, '
                  f'scatter=%{scatter}.{name}', None)


def each(run, opcodes, count):
    """Adds `count` cases of each opcode."""
    for o in _each.gaps(opcodes):
        run.failures += 1
        print(o)
    wanted = sorted(_each.MAKERS)
    for some in (wanted[i::4] for i in range(4)):  # compile time is superlinear in the size of the module
        cases = Cases()
        makers = _each.Each(cases, RNG, within)
        for opcode in some:
            for _ in range(count):
                _each.MAKERS[opcode](makers, opcode)
        cases.run(run, ''.join(makers.regions.values()))


def numpys(run, count=20):
    """Compares functions that XLA's CPU compiler lacks with numpy's."""
    for name, function in _each.NUMPYS.items():
        cases = Cases()
        for i in range(count):
            kind, dims = ('f32', 'f64')[i % 2], RNG.integers(1, 5, RNG.integers(0, 4))
            made = cases.input(kind, RNG.uniform(0.1, 0.9, dims) + (name == 'acosh'))
            cases.add(name, [kind + dims_of(dims)], f'{name}({made})', within(kind, 32))
        results = run.ours(cases.text(''), cases.inputs, [x.dtype for x in cases.inputs])
        for label, x, got in zip(cases.labels, cases.inputs, results):
            want = function(x)
            run.cases += 1
            if not np.all(np.abs(got - want) <= label.bound(want)):
                run.failures += 1
                print(f'{label}: got {got}, numpy has {want}')


def mulhi(run, count=20):
    """Compares the high half of products with Python's."""
    cases, want = Cases(), []
    for _ in range(count):
        name, dims = str(RNG.choice(['s8', 's16', 's32', 's64', 'u8', 'u16', 'u32', 'u64'])), RNG.integers(1, 5, 2)
        ends = np.iinfo(TYPES[name])
        x, y = (RNG.integers(ends.min, ends.max, dims, TYPES[name], endpoint=True) for _ in range(2))
        cases.add('mulhi', [name + dims_of(dims)], f'mulhi({cases.input(name, x)}, {cases.input(name, y)})', None)
        want.append((x.astype(object) * y.astype(object)) >> ends.bits)
    results = run.ours(cases.text(''), cases.inputs, [x.dtype for x in cases.inputs[::2]])
    for label, right, got in zip(cases.labels, want, results):
        run.cases += 1
        if not (right == got).all():
            run.failures += 1
            print(f'{label}: got {got}, not {right}')


def main():
    parser = _script.parser()
    parser.add_argument('--long', action='store_true')
    args = parser.parse_args()
    run = Runner(args)
    table = pathlib.Path(__file__).parents[3] / 'ir' / 'table' / 'op.def'
    each(run, re.findall(r'^HLO_OP\(\w+, "([\w-]+)"', table.read_text(), re.M), 20 if args.long else 1)
    numpys(run)
    mulhi(run)
    for make in (bits, stochastic, cholesky, solves, transforms, norms, selects):
        cases = Cases()
        make(cases)
        cases.run(run, select_regions(('f32', 's32', 'f64')) if make is selects else '')
    print(f'{run.cases} results, {run.failures} differ')
    return run.failures != 0


if __name__ == '__main__':
    sys.exit(main())
