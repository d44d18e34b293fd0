#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks custom calls of CPU libraries: matmuls, softmax and layer norm of oneDNN with each fused operation, Fourier
transforms of DUCC with both kinds of descriptors, and XLA's Qr, ProductOfElementaryHouseholderReflectors and Eigh.

Results of oneDNN and DUCC must be those of numpy in f64, within some roundings. Qr and the product of reflectors must
be those of XLA's own expansion; eigenvectors must have the values that numpy computes. Invalid calls must be errors
that name the place.
"""
import json
import math
import os
import re
import struct
import subprocess
import sys

os.environ['JAX_PLATFORMS'] = 'cpu'
os.environ['JAX_SKIP_CUDA_CONSTRAINTS_CHECK'] = '1'

import ml_dtypes
import numpy as np

import _script
from test_eval import Runner

RNG = np.random.default_rng(0)
TYPES = {'f32': np.float32, 'f64': np.float64, 'bf16': ml_dtypes.bfloat16, 'f16': np.float16, 'c64': np.complex64,
         'c128': np.complex128}
ROUNDOFF = {'f32': 2.0 ** -24, 'f64': 2.0 ** -53, 'bf16': 2.0 ** -8, 'f16': 2.0 ** -11, 'c64': 2.0 ** -24,
            'c128': 2.0 ** -53}


def shape_of(name, dims):
    return f'{name}[{",".join(map(str, dims))}]'


def module(names, operands, lines, result, call):
    parameters = [f'  %p{i} = {shape_of(n, x.shape)} parameter({i})' for i, (n, x) in enumerate(zip(names, operands))]
    return 'HloModule case\n\nENTRY %main {\n' + '\n'.join([*parameters, *lines, f'  ROOT %r = {result} {call}']) + '\n}\n'


def expect(run, what, text, operands, dtypes, wants, bound):
    """Runs the module and compares the first results with `wants`."""
    run.cases += 1
    try:
        results = run.ours(text, operands, dtypes)
    except subprocess.CalledProcessError as error:
        run.failures += 1
        print(f'{what}: {error}')
        return None
    for got, want in zip(results, wants):
        wide = got.astype(np.complex128 if got.dtype.kind == 'c' else np.float64)
        allowed = bound * max(1, np.abs(want).max() if np.size(want) else 0)
        if wide.shape != np.shape(want) or not np.all(np.abs(wide - want) <= allowed):
            run.failures += 1
            print(f'{what}: differs from numpy by {np.abs(wide - want).max()}, allowed is {allowed}')
    return results


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


FUSED = {
    'RELU': lambda x: np.maximum(x, 0),
    'RELU6': lambda x: np.clip(x, 0, 6),
    'TANH': np.tanh,
    'SIGMOID': sigmoid,
    'ELU': lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    'GELU_ERF': lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2,
    'GELU_TANH': lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))) / 2,
}


def bits(value):
    return struct.unpack('<i', struct.pack('<f', value))[0]


def matmuls(run):
    """Runs every fused operation, in the configs of two generations of XLA."""
    chains = [[], *([name] for name in FUSED), ['BIAS'], ['BIAS', 'GELU_TANH'], ['LINEAR', 'BINARY_ADD', 'RELU'],
              ['BIAS', 'BINARY_ADD']]
    for i, chain in enumerate(chains):
        for old in (True, False):
            name, batch = ('f32', 'bf16', 'f64')[i % 3], ((), (2,), (2, 3))[(i + old) % 3]
            left, right = bool(i % 2), bool(i // 2 % 2)
            m, k, n = 5, 7, 4
            a, b = RNG.standard_normal((*batch, m, k)), RNG.standard_normal((*batch, k, n))
            operands = [np.swapaxes(a, -1, -2) if left else a, np.swapaxes(b, -1, -2) if right else b]
            for at, fused in enumerate(chain):
                if fused in ('BIAS', 'BINARY_ADD'):
                    operands.append(RNG.standard_normal((n,) if at == 0 else (*(1 for _ in batch), m, n)))
            operands = [x.astype(TYPES[name]) for x in operands]
            wide = [x.astype(np.float64) for x in operands]
            want = (np.swapaxes(wide[0], -1, -2) if left else wide[0]) @ (np.swapaxes(wide[1], -1, -2) if right else wide[1])
            rest = iter(wide[2:])
            for fused in chain:
                want = (want + next(rest) if fused in ('BIAS', 'BINARY_ADD') else want * 0.125 if fused == 'LINEAR'
                        else FUSED[fused](want))
            config = {'transpose_a': left, 'transpose_b': right, 'weights_prepacked': False}
            if old:
                config |= {'fused_ops': chain, 'alpha_typecast': bits(0.125)}
            else:
                config |= {'fusions': {'ops': chain, 'alpha_typecast': bits(0.125)},
                           'rhs': {'tensor': {'dimensions': [str(d + 1) for d in range(len(batch) + 2)]}}}
            text = json.dumps({'outer_dimension_partitions': [], 'onednn_matmul_config': config})
            result = shape_of(name, want.shape)
            call = (f'custom-call({", ".join(f"%p{j}" for j in range(len(operands)))}), '
                    f'custom_call_target="__onednn$matmul", backend_config={text}')
            expect(run, f'matmul {name} {config}',
                   module([name] * len(operands), operands, [], result if old else f'({result}, u8[64])', call), operands,
                   [TYPES[name]] + [np.uint8] * (not old), [want], 32 * ROUNDOFF[name])


def norms(run):
    for name in ('f32', 'bf16', 'f16', 'f64'):
        for dims in ((6,), (3, 5), (2, 3, 4)):
            x = (3 * RNG.standard_normal(dims)).astype(TYPES[name])
            if len(dims) == 2:
                x[0] = -np.inf if name == 'f64' else -300
                x[0, 0] = -299
            wide = x.astype(np.float64)
            for axis in range(len(dims)):
                e = np.exp(wide - wide.max(axis, keepdims=True))
                text = json.dumps({'onednn_softmax_config': {'softmax_axis': axis}})
                expect(run, f'softmax {name} {dims} {axis}',
                       module([name], [x], [], shape_of(name, dims),
                              f'custom-call(%p0), custom_call_target="__onednn$softmax", backend_config={text}'),
                       [x], [TYPES[name]], [e / e.sum(axis, keepdims=True)], 16 * ROUNDOFF[name])
            x = RNG.standard_normal(dims).astype(TYPES[name])
            scale, shift = (RNG.standard_normal(dims[-1]).astype(TYPES[name]) for _ in range(2))
            wide = x.astype(np.float64)
            unit = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + np.float32(1e-3))
            text = json.dumps({'onednn_layer_norm_config': {'rescale': 'SCALE_AND_SHIFT',
                                                            'epsilon_typecast': bits(1e-3)}})
            expect(run, f'layer norm {name} {dims}',
                   module([name] * 3, [x, scale, shift], [], shape_of(name, dims),
                          f'custom-call(%p0, %p1, %p2), custom_call_target="__onednn$layernorm", backend_config={text}'),
                   [x, scale, shift], [TYPES[name]], [unit * scale.astype(np.float64) + shift.astype(np.float64)],
                   64 * ROUNDOFF[name])


def flatbuffer(fields):
    """Returns a table of FlatBuffers: fields are (format, value), lists of u32 or u64 are (format, list), or None."""
    inline, vectors, offsets = b'', [], []
    for field in fields:
        if field is None:
            offsets.append(0)
            continue
        format_, value = field
        size = 4 if isinstance(value, list) else struct.calcsize('<' + format_)
        inline += b'\0' * (-len(inline) % size)
        offsets.append(4 + len(inline))
        if isinstance(value, list):
            vectors.append((4 + len(inline), struct.pack(f'<I{len(value)}{format_}', len(value), *value)))
            inline += b'\0' * 4
        else:
            inline += struct.pack('<' + format_, value)
    table = 4 + 4 + 2 * len(fields)
    table += -table % 8
    inline += b'\0' * (-len(inline) % 8)
    data = bytearray(struct.pack('<I', table) + struct.pack(f'<{2 + len(fields)}H', 4 + 2 * len(fields), 4 + len(inline), *offsets))
    data += b'\0' * (table - len(data))
    data += struct.pack('<i', table - 4) + inline
    for at, vector in vectors:
        struct.pack_into('<I', data, table + at, len(data) - table - at)
        data += vector
    return bytes(data)


def transforms(run):
    for kind in ('fft', 'ifft', 'rfft', 'irfft'):
        for axes in (1, 2, 3):
            for dynamic in (True, False):
                for wide in (True, False):
                    dims = (2, 3, 4, 6)
                    half = (*dims[:-1], dims[-1] // 2 + 1)
                    from_, to = half if kind == 'irfft' else dims, half if kind == 'rfft' else dims
                    complex_, real = ('c128', 'f64') if wide else ('c64', 'f32')
                    x = RNG.standard_normal(from_)
                    if kind != 'rfft':
                        x = x + 1j * RNG.standard_normal(from_)
                    names = real if kind == 'rfft' else complex_, real if kind == 'irfft' else complex_
                    x = x.astype(TYPES[names[0]])
                    last = list(range(4 - axes, 4))
                    want = getattr(np.fft, kind + 'n')(x.astype(np.complex128 if kind != 'rfft' else np.float64),
                                                       axes=last)
                    forward, count = kind in ('fft', 'rfft'), math.prod(dims[-axes:])
                    scale = 1 if forward else 1 / count
                    if axes == 3 and not wide:  # another factor
                        scale, want = 3 * scale, 3 * want
                    code = {'rfft': 2, 'irfft': 1}.get(kind, 0)
                    if dynamic:
                        data = flatbuffer([('I', 4), ('b', int(wide)), ('b', code), ('I', last), ('b', int(forward))])
                    else:
                        data = flatbuffer([('b', int(wide)), ('b', code), ('Q', list(from_)), ('Q', [1]), ('Q', [1]),
                                           ('I', last), ('b', int(forward)) if forward else None, ('d', scale)])
                    bytes_ = ', '.join(map(str, data))
                    lines = [f'  %d = u8[{len(data)}] constant({{{bytes_}}})', '  %n = s32[4] constant({2, 3, 4, 6})',
                             f'  %s = f64[1] constant({{{scale!r}}})']
                    given = '%d, %p0, %n, %n, %n, %s, %n' if dynamic else '%d, %p0'
                    target = 'dynamic_ducc_fft' if dynamic else 'ducc_fft'
                    expect(run, f'{target} {kind} {axes} {names}',
                           module([names[0]], [x], lines, shape_of(names[1], to),
                                  f'custom-call({given}), custom_call_target="{target}"'),
                           [x], [TYPES[names[1]]], [want], 64 * ROUNDOFF[names[1]])


def factors(run):
    for name in ('f32', 'f64', 'c64', 'c128'):
        for dims in ((4, 4), (2, 5, 3), (6, 4), (1, 1)):
            x = RNG.standard_normal(dims)
            if name[0] == 'c' and name != 'c':
                x = x + 1j * RNG.standard_normal(dims)
            x = x.astype(TYPES[name])
            k = min(dims[-2:])
            pair = f'{shape_of(name, dims)}, {shape_of(name, (*dims[:-2], k))}'
            lines = [f'  %q = ({pair}) custom-call(%p0), custom_call_target="Qr"',
                     f'  %a = {shape_of(name, dims)} get-tuple-element(%q), index=0',
                     f'  %t = {shape_of(name, (*dims[:-2], k))} get-tuple-element(%q), index=1',
                     f'  %o = {shape_of(name, dims)} custom-call(%a, %t), '
                     'custom_call_target="ProductOfElementaryHouseholderReflectors"']
            text = module([name], [x], lines, f'({shape_of(name, dims)}, {pair})', 'tuple(%o, %a, %t)')
            theirs = run.xla(text, [x])
            results = expect(run, f'Qr {name} {dims}', text, [x], [TYPES[name]] * 3, theirs, 256 * ROUNDOFF[name])
            if results:
                upper = np.triu(results[1])[..., :k, :]
                if not np.all(np.abs(results[0] @ upper - x) <= 256 * ROUNDOFF[name]):
                    run.failures += 1
                    print(f'Qr {name} {dims}: the product differs from the matrix')
        for lower in (1, 0):
            n = 5
            x = RNG.standard_normal((2, n, n)) + (1j * RNG.standard_normal((2, n, n)) if name[0] == 'c' else 0)
            x = ((x + np.conj(np.swapaxes(x, -1, -2))) / 2).astype(TYPES[name])
            real = {'c64': 'f32', 'c128': 'f64'}.get(name, name)
            text = module([name], [x], [], f'({shape_of(name, x.shape)}, {shape_of(real, (2, n))})',
                          f'custom-call(%p0), custom_call_target="Eigh", backend_config="{lower},1,100,1e-6"')
            # Only one triangle is read.
            read = x * (np.tril if lower else np.triu)(np.ones((n, n), x.real.dtype))
            v, w = expect(run, f'Eigh {name}', text, [read], [TYPES[name], TYPES[real]], [], 0)
            if (np.abs(w - np.linalg.eigvalsh(x)).max() > 256 * ROUNDOFF[name]
                    or np.abs(x @ v - v * w[:, None, :]).max() > 256 * ROUNDOFF[name]):
                run.failures += 1
                print(f'Eigh {name}: wrong values or vectors')


def rejected(run):
    x = np.zeros((2, 3), np.float32)

    def call(target, operands='%p0', config='', result='f32[2,3]', lines=()):
        return module(['f32'], [x], list(lines), result,
                      f'custom-call({operands}), custom_call_target="{target}"' + (config and f', backend_config={config}'))

    def softmax(axis):
        return json.dumps({'onednn_softmax_config': {'softmax_axis': axis}})

    def matmul(**rest):
        return json.dumps({'onednn_matmul_config': {'transpose_b': True, **rest}})
    bad = flatbuffer([('I', 2), ('b', 0), ('b', 7), ('I', [1]), ('b', 1)])
    moved = flatbuffer([('I', 2), ('b', 0), ('b', 2), ('I', [0]), ('b', 1)])
    cases = [
        (call('__onednn$softmax', config=softmax(2)), 'has the axis 2 of an array with 2 dimensions'),
        (call('__onednn$softmax', '%p0, %p0', softmax(1)), 'requires an array of floats'),
        (call('__onednn$softmax', config=softmax(1), result='f32[3,2]'), 'another shape than its result'),
        (call('__onednn$layernorm', '%p0, %p0, %p0'), 'a scale and a shift'),
        (call('__onednn$matmul', '%p0, %p0', '{}'), 'equal batch and contracting dimensions'),
        (call('__onednn$matmul', '%p0', matmul()), 'two arrays of floats'),
        (call('__onednn$matmul', '%p0, %p0', matmul(weights_prepacked=True)), 'a packed format'),
        (call('__onednn$matmul', '%p0, %p0', matmul(fused_ops=['SUM'])), 'the fused operation SUM'),
        (call('__onednn$matmul', '%p0, %p0', matmul(fused_ops=['BIAS'])), 'no operand for BIAS'),
        (call('__onednn$matmul', '%p0, %p0, %p0', matmul(fused_ops=['BIAS'])), 'operand 2 does not fit'),
        (call('__onednn$matmul', '%p0, %p0, %p0', matmul()), 'has 3 operands, expected 2'),
        (call('__onednn$matmul', '%p0, %p0', matmul(lhs={'tensor': {'dimensions': [2, 1]}})), 'permutes the dimensions of its lhs'),
        (call('ducc_fft'), 'requires a constant descriptor'),
        *((call('dynamic_ducc_fft', '%d, %p0, %p0, %p0, %p0, %s',
                lines=[f'  %d = u8[{len(d)}] constant({{{", ".join(map(str, d))}}})', '  %s = f64[1] constant({1})']),
           'a descriptor that is invalid') for d in (bad, moved, b'\xff' * 40, bytes(40))),
        (call('xla_ffi_python_cpu_callback'), 'it calls a Python function'),
        (call('xla_python_cpu_callback'), 'it calls a Python function'),
        (call('Qr', result='(f32[2,3], f32[3])'), 'result 1 is f32[3]'),
        (call('Eigh', result='(f32[2,3], f32[3])'), 'expected f32[2,2]'),
        (call('ProductOfElementaryHouseholderReflectors'), 'it has 1 operand, expected 2'),
    ]
    for text, expected in cases:
        path = os.path.join(run.work, 'wrong.hlo')
        with open(path, 'w') as out:
            out.write(text)
        result = subprocess.run([run.program, path], capture_output=True, text=True)
        run.cases += 1
        if result.returncode != 1 or expected not in result.stderr or not re.search(r'wrong\.hlo:\d+:\d+: error', result.stderr):
            run.failures += 1
            print(f'{text}\nexpected: {expected}\nstatus {result.returncode}: {result.stderr}')


def main():
    run = Runner(_script.parser().parse_args())
    for part in (matmuls, norms, transforms, factors, rejected):
        part(run)
    print(f'{run.cases} calls, {run.failures} failures')
    return run.failures != 0


if __name__ == '__main__':
    sys.exit(main())
