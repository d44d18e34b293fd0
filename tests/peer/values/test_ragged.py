#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that ragged-dot on the CPU backend, or with --cuda on the cuda backend, equals its definition, bit for bit on
integers.

XLA's CPU does not support the opcode, so the reference is implemented here: a mask of the group of each index of the
ragged dimension, and one sum in f64. Modules are random: all three modes, any order of dimensions, group sizes as a
vector or for each index before the ragged dimension, with sums below and above its extent. Then the operands are fp8
values times factors that do not vary along the summed dimensions: each ragged-dot must become FP8, dense and kept, with
the same result. Factors of rows, batches and groups that are in no product are NaN. --cuda runs fewer modules, on a
device or, with --standin, with the fake library (tests/cuda/README.md).
"""
import os
import subprocess
import sys

import ml_dtypes
import numpy as np

import _script

E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
FLOATS = {'f64': np.float64, 'f32': np.float32, 'bf16': ml_dtypes.bfloat16, 'f16': np.float16,
          'f8e4m3fn': E4M3, 'f8e5m2': E5M2, 'f8e4m3b11fnuz': ml_dtypes.float8_e4m3b11fnuz}
INTEGERS = {t: np.dtype(n) for t, n in (('s8', 'i1'), ('s16', 'i2'), ('s32', 'i4'), ('s64', 'i8'), ('u8', 'u1'),
                                        ('u16', 'u2'), ('u32', 'u4'), ('u64', 'u8'))}
TYPES = {**FLOATS, **INTEGERS, 'c64': np.complex64}
# Element types of left operand, right operand and result.
TRIPLES = [('f32', 'f32', 'f32'), ('f64', 'f64', 'f64'), ('bf16', 'bf16', 'bf16'), ('bf16', 'bf16', 'f32'),
           ('f16', 'f16', 'f16'), ('f8e4m3fn', 'f8e4m3fn', 'f32'), ('f8e4m3fn', 'f8e5m2', 'bf16'),
           ('f8e5m2', 'f8e4m3fn', 'f8e4m3fn'), ('f8e4m3fn', 'f32', 'f16'), ('f32', 'f32', 'bf16'),
           ('f8e4m3b11fnuz', 'f8e4m3fn', 'f32'), ('s8', 's8', 's32'), ('s32', 's32', 's8'), ('u8', 'u8', 'u64'),
           ('c64', 'c64', 'c64')]
RNG = np.random.default_rng(0)


def braces(dims):
    return '{' + ','.join(map(str, dims)) + '}'


def text_of(name, shape):
    return f'{name}[{",".join(map(str, shape))}]'


def masks(sizes, extent):
    """Returns an array [.., extent, groups]: 1 if the index belongs to the group."""
    out = np.zeros(sizes.shape[:-1] + (extent, sizes.shape[-1]))
    for at in np.ndindex(sizes.shape[:-1]):
        ends = np.cumsum([int(s) for s in sizes[at]], dtype=object)
        for i in range(extent):
            groups = [g for g, end in enumerate(ends) if i < end]
            if groups:
                out[at + (i, groups[0])] = 1
    return out


class Case:
    def __init__(self, number, large=0, quantized=False):
        self.mode = 'MKB'[number % 3]
        names = iter('abcdefhijklmnopqrstuvwxyz')
        counts = [RNG.integers(0, 3), RNG.integers(1, 3), RNG.integers(0, 3), RNG.integers(0, 3)]
        if large:
            counts = [0, 1, 1, 1]
        if self.mode == 'B':
            counts[0] = max(counts[0], 1)
        if self.mode == 'M':
            counts[2] = max(counts[2], 1)
        batch, summed, rows, columns = ([next(names) for _ in range(c)] for c in counts)
        size = {n: int(RNG.integers(0 if RNG.random() < .05 and not quantized else 1, 6)) for n in batch + summed + rows + columns}
        self.ragged = {'M': rows, 'K': summed, 'B': batch}[self.mode][-1 if large else RNG.integers(
            len({'M': rows, 'K': summed, 'B': batch}[self.mode]))]
        size[self.ragged] = int(RNG.integers(1, 14))
        size['g'] = int(RNG.integers(1, 5))
        if large:
            size = dict.fromkeys(size, large) | {self.ragged: 7 * large // 2, 'g': 5}
        left = ''.join(RNG.permutation(batch + summed + rows)) if not large else ''.join(rows + summed)
        right = ''.join(RNG.permutation(batch + summed + columns + ['g'] * (self.mode == 'M')))
        rows, columns = sorted(rows, key=left.index), sorted(columns, key=right.index)
        batch, summed = list(RNG.permutation(batch)), list(RNG.permutation(summed))
        before = {'M': batch + rows, 'K': batch + summed, 'B': batch}[self.mode]
        before = before[:before.index(self.ragged)]
        if RNG.random() < .4:
            before = []
        result = ['g'] * (self.mode == 'K') + batch + rows + columns
        self.types = TRIPLES[0 if large else RNG.integers(len(TRIPLES))]
        if quantized:
            self.types = [('f8e4m3fn', 'f8e4m3fn'), ('f8e4m3fn', 'f8e5m2'), ('f8e5m2', 'f8e4m3fn')][RNG.integers(3)]
            self.types += (('f32', 'bf16', 'f16')[RNG.integers(3)],)
        self.size_type = list(INTEGERS)[RNG.integers(len(INTEGERS))] if not large else 's32'
        shapes = [[size[n] for n in of] for of in (left, right, before + ['g'], result)]
        low = 0 if self.types[0][0] == 'u' else -2
        self.inputs = [RNG.integers(low, 3, s).astype(TYPES[t]) for s, t in zip(shapes[:2], self.types)]
        most = 2 * size[self.ragged] // size['g'] + 1
        sizes = RNG.integers(0, most, shapes[2]) * (RNG.random(shapes[2]) < .8)
        dtype = INTEGERS[self.size_type]
        if RNG.random() < .1:
            sizes = np.where(RNG.random(sizes.shape) < .3, np.iinfo(dtype).max, sizes)
        self.inputs.append(sizes.astype(dtype))
        self.shapes = [text_of(t, s) for t, s in zip((*self.types[:2], self.size_type, self.types[2]), shapes)]
        dims = [('lhs_batch_dims', [left.index(n) for n in batch]),
                ('lhs_contracting_dims', [left.index(n) for n in summed]),
                ('rhs_batch_dims', [right.index(n) for n in batch]),
                ('rhs_contracting_dims', [right.index(n) for n in summed]),
                ('lhs_ragged_dims', [left.index(self.ragged)]),
                ('rhs_group_dims', [right.index('g')] if self.mode == 'M' else [])]
        self.attributes = ', '.join(f'{k}={braces(v)}' for k, v in dims if v)
        if quantized:
            self.unread = {} if before else self.find_unread(size)
            self.body = [self.dequantized(i, of, summed) for i, of in enumerate((left, right))]
            return
        mask = masks(self.inputs[2], size[self.ragged])
        mask_names = ''.join(before) + self.ragged + 'g'
        if self.mode == 'B':
            mask, mask_names = mask.sum(-1), mask_names[:-1]
        narrow = FLOATS.get(self.types[2], None)
        wide = complex if self.types[2] == 'c64' else np.int64 if narrow is None else np.float64
        operands = [(v.astype(narrow) if narrow else v).astype(wide) for v in self.inputs[:2]]
        self.want = np.einsum(f'{left},{right},{mask_names}->{"".join(result)}', *operands, mask.astype(wide),
                              optimize=True).astype(TYPES[self.types[2]])

    def find_unread(self, size):
        """Returns indices of the ragged dimension, and groups, that are in no product."""
        used = masks(self.inputs[2], size[self.ragged]) > 0
        if self.mode == 'K':
            return {}
        return {self.ragged: ~used.any(1)} | ({'g': ~used.any(0)} if self.mode == 'M' else {})

    def dequantized(self, side, names, summed):
        """Returns instructions that scale operand `side`; %N is the number of the case."""
        wide = self.types[2] if RNG.random() < .5 or self.types[2] == 'f16' else 'f32'
        shape = self.shapes[side].replace(self.types[side], wide)
        lines, last = [f'  w%N_{side} = {shape} convert(p%N_{side})'], f'w%N_{side}'
        for i in range(RNG.integers(0, 3)):
            dims = [d for d, n in enumerate(names) if n not in summed and RNG.random() < .5]
            extents = [self.inputs[side].shape[d] for d in dims]
            at = len(self.inputs)
            factors = RNG.uniform(.3, 3, extents)
            for axis, d in enumerate(dims):
                if names[d] in self.unread and extents[axis] > 1:  # one factor for all elements
                    np.moveaxis(factors, axis, 0)[self.unread[names[d]]] = np.nan
            self.inputs.append(factors.astype(TYPES[wide]))
            self.shapes.append(text_of(wide, extents))
            lines += [f'  b%N_{at} = {shape} broadcast(p%N_{at}), dimensions={braces(dims)}',
                      f'  s%N_{at} = {shape} {("multiply", "divide")[RNG.integers(2)]}({last}, b%N_{at})']
            last = f's%N_{at}'
        return lines, last


def module(cases):
    lines, at = [], 0
    for i, case in enumerate(cases):
        shapes = case.shapes[:3] + case.shapes[4:]
        for j, shape in enumerate(shapes):
            lines.append(f'  p{i}_{j} = {shape} parameter({at})')
            at += 1
        operands = [f'p{i}_0', f'p{i}_1']
        for side, (body, last) in enumerate(getattr(case, 'body', [])):
            lines += [line.replace('%N', str(i)) for line in body]
            operands[side] = last.replace('%N', str(i))
        lines.append(f'  r{i} = {case.shapes[3]} ragged-dot({", ".join(operands)}, p{i}_2), {case.attributes}')
    shapes = ', '.join(case.shapes[3] for case in cases)
    names = ', '.join(f'r{i}' for i in range(len(cases)))
    return '\n'.join(['HloModule ragged', 'ENTRY e {', *lines, f'  ROOT all = ({shapes}) tuple({names})', '}', ''])


def plain(array):
    return array.view(f'V{array.dtype.itemsize}') if array.dtype in map(np.dtype, (
        ml_dtypes.bfloat16, E4M3, E5M2, ml_dtypes.float8_e4m3b11fnuz)) else array


def write(work, cases):
    """Returns the paths of the module and of its inputs."""
    paths = [os.path.join(work, n) for n in ('ragged.hlo', 'ragged_in.npz')]
    with open(paths[0], 'w') as out:
        out.write(module(cases))
    inputs = [v for case in cases for v in case.inputs]
    np.savez(paths[1], **{str(i): plain(v) for i, v in enumerate(inputs)})
    return paths


def quantized(args):
    """Checks ragged-dots of dequantized values, one module for each form of --ragged."""
    cases, failures = [Case(i, quantized=True) for i in range(150)], 0
    path, inputs = write(args.work, cases)
    for form in 'dense', 'keep':
        made = os.path.join(args.work, 'ragged_made.hlo')
        rewritten = subprocess.run([os.path.join(args.bin, 'hlo-fp8-opt'), path, '--ragged=' + form, '-o', made,
                                    '--verify-each', '--expect-fp8=all', '--remarks=missed'], capture_output=True, text=True)
        ran = subprocess.run([os.path.join(args.bin, 'hlo-fp8-run'), path, '--optimize', '--ragged=' + form,
                              '--inputs=' + inputs, '--compare=before', '--outputs=' + made + '.npz'],
                             capture_output=True, text=True)
        found = np.load(made + '.npz') if ran.returncode == 0 else {}
        numbers = [np.isfinite(found[str(i)].view(TYPES[case.types[2]]).astype(np.float32)).all()
                   for i, case in enumerate(cases) if str(i) in found]
        if rewritten.returncode or ran.returncode or not all(numbers):
            failures += 1
            print(form, rewritten.stderr[:2000], ran.stderr[:2000], ran.stdout[-2000:])
    print(f'{len(cases)} quantized ragged-dots, {failures} forms fail')
    return failures


def main():
    parser = _script.parser()
    parser.add_argument('--cuda', action='store_true')
    parser.add_argument('--standin')
    args = parser.parse_args()
    environment = dict(os.environ)
    for library in ('DRIVER', 'CUBLASLT', 'NVRTC') if args.standin else ():
        environment[f'HLO_CUDA_{library}'] = args.standin
    cases = [Case(i) for i in range(120 if args.cuda else 600)] + [Case(i, 40 if args.standin else 200) for i in range(2)]
    if args.cuda:
        cases = [case for case in cases if case.types[2] != 'c64']
    path, inputs = write(args.work, cases)
    outputs = os.path.join(args.work, 'ragged_out.npz')
    subprocess.run([os.path.join(args.bin, 'hlo-fp8-run'), path, '--inputs=' + inputs, '--outputs=' + outputs,
                    *['--backend=cuda'] * args.cuda], check=True, stdout=subprocess.DEVNULL, env=environment)
    found, failures = np.load(outputs), 0
    for i, case in enumerate(cases):
        got = found[str(i)]
        got = got if got.dtype == case.want.dtype else got.view(case.want.dtype)
        if got.shape == case.want.shape and (got == case.want).all():
            continue
        failures += 1
        print(f'{case.shapes[3]} ragged-dot({", ".join(case.shapes[:3])}), {case.attributes}\n'
              f'  sizes {case.inputs[2].tolist()}\n  got {got.tolist()}\n  want {case.want.tolist()}'[:3000])
    print(f'{len(cases)} ragged-dots, {failures} differ; sizes of modes and types: '
          f'{len({(c.mode, c.types) for c in cases})}')
    return failures + (0 if args.cuda else quantized(args)) != 0


if __name__ == '__main__':
    sys.exit(main())
