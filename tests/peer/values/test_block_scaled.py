#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that block-scaled products and conversions, and their FP8 calls, equal numpy's in f64, bit for bit. Elements
and scales are few small numbers, so that every sum is exact in any order, and is rounded once to the result's type; one
scale of each e8m0 array is NaN.
"""
import pathlib
import subprocess
import sys

import ml_dtypes
import numpy as np

import _script

TYPES = {'f4e2m1fn': ml_dtypes.float4_e2m1fn, 'f8e4m3fn': ml_dtypes.float8_e4m3fn, 'f8e5m2': ml_dtypes.float8_e5m2,
         'f8e8m0fnu': ml_dtypes.float8_e8m0fnu, 'bf16': ml_dtypes.bfloat16, 'f16': np.float16, 'f32': np.float32}
VALUES = [-2, -1.5, -1, -.5, 0, .5, 1, 1.5, 2, 3]
SCALES = [.25, .5, 1, 2, 4]
CALLS = 26  # expected number of calls with block scales, of the forms below
EPILOGUES = {'RELU': 3, 'BIAS': 4, 'BIAS_RELU': 1}  # expected epilogues; a relu after an MXFP8 bias is not fused


def array(rng, kind, shape):
    scale = kind == 'f8e8m0fnu'
    out = rng.choice(SCALES if scale else VALUES, shape).astype(TYPES[kind])
    if scale:
        out.reshape(-1)[rng.integers(out.size)] = np.nan
    return out


def text(kind, shape):
    return f'{kind}[{",".join(map(str, shape))}]'


def tiled(scale):
    """Returns rows and columns in the memory order of cuDNN, by the formula of the cuBLAS manual."""
    rows, columns = scale.shape
    out = np.zeros(scale.size, scale.dtype)
    for o in range(rows):
        for i in range(columns):
            out[(o // 128 * (columns // 4) + i // 4) * 512 + o % 32 * 16 + o % 128 // 32 * 4 + i % 4] = scale[o, i]
    return out.reshape(scale.shape)


def wide(x, scale, block):
    """Returns elements times the scale of their block along the last dimension, in f64."""
    if scale is None:
        return x.astype(np.float64)
    scales = np.repeat(scale.astype(np.float64), block, axis=-1)
    return x.astype(np.float64) * scales[..., :x.shape[-2], :x.shape[-1]]


def calls(rng):
    """Yields (text of the instruction, operands, results) of every form of block-scaled instruction."""
    forms = [('f8e4m3fn', 'f8e5m2', 'f8e8m0fnu', 32, 'f32'), ('f4e2m1fn', 'f4e2m1fn', 'f8e4m3fn', 16, 'f32'),
             ('f8e5m2', 'f8e5m2', 'f8e8m0fnu', 8, 'bf16'), ('f8e4m3fn', 'bf16', 'f8e8m0fnu', 32, 'bf16')]
    for a, b, s, block, result in forms:
        for batch in (), (3,):
            for padded in False, True:
                m, n, k = 5, 7, 4 * block - (3 if padded else 0)
                shape = (8, 5) if padded else (m, 4)
                x, y = array(rng, a, (*batch, m, k)), array(rng, b, (*batch, n, k))
                operands = [x, y, array(rng, s, (*batch, *shape))]
                config = ', backend_config={"scaled_dot_backend_config":{"dequantize_type":"BF16"}}'
                if padded:
                    config = f', backend_config={{"block_scaled_dot_backend_config":{{"block_size":{block}}}}}'
                if b != 'bf16':
                    operands.append(array(rng, s, (*batch, n + padded, shape[1])))
                product = wide(x, operands[2], block) @ np.swapaxes(wide(y, (operands + [None])[3], block), -1, -2)
                if b != 'bf16' and result == 'f32':
                    operands.append(np.array(1.5, np.float32))
                    product = product * 1.5
                yield ('custom-call(%s), custom_call_target="__op$block_scaled_dot"' + config, operands,
                       [product.astype(TYPES[result])])
    x, y = array(rng, 'f8e4m3fn', (130, 128)), array(rng, 'f8e4m3fn', (40, 128))
    s, t = array(rng, 'f8e8m0fnu', (256, 4)), array(rng, 'f8e8m0fnu', (128, 4))
    product = (wide(x, s, 32) @ wide(y, t, 32).T).astype(np.float32)
    yield ('custom-call(%s), custom_call_target="__cudnn$blockScaledDot"', [x, y, tiled(s), tiled(t)],
           [product, np.zeros(0, np.uint8)])
    x, y = array(rng, 'f8e4m3fn', (2, 6, 64)), array(rng, 'f8e5m2', (64, 2, 8))
    s, t = array(rng, 'f8e8m0fnu', (2, 3, 4)), array(rng, 'f8e8m0fnu', (2, 2, 8))
    left = x.astype(np.float64) * np.repeat(np.repeat(s.astype(np.float64), 16, 2), 2, 1)
    right = y.astype(np.float64) * np.repeat(t.astype(np.float64), 32, 0)
    product = np.einsum('bmk,kbn->bmn', left, right)
    dims = 'lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={1}, rhs_contracting_dims={0}'
    for kind in 'f32', 'bf16':
        yield f'scaled-dot(%s), {dims}', [x, y, s, t], [product.astype(TYPES[kind])]
    one = np.array(4, np.float32).astype(ml_dtypes.bfloat16)  # a scalar in place of an array of scales: y is not scaled
    product = np.einsum('bmk,kbn->bmn', left, y.astype(np.float64))
    yield f'scaled-dot(%s), {dims}', [x, y, s, one], [product.astype(np.float32)]
    x, y, s = array(rng, 'f8e4m3fn', (5, 64)), array(rng, 'f8e5m2', (7, 64)), array(rng, 'f8e8m0fnu', (5, 2))
    yield ('custom-call(%s), custom_call_target="__op$block_scaled_dot"', [x, y, s],
           [(wide(x, s, 32) @ y.astype(np.float64).T).astype(np.float32)])
    x, y = array(rng, 'f4e2m1fn', (5, 64)), array(rng, 'f4e2m1fn', (7, 64))
    s, t = array(rng, 'f8e8m0fnu', (5, 2)), array(rng, 'f8e8m0fnu', (7, 2))
    product = wide(x, s, 32) @ wide(y, t, 32).T
    dims = 'lhs_contracting_dims={1}, rhs_contracting_dims={1}'
    yield f'scaled-dot(%s), {dims}', [x, y, s, t], [product.astype(np.float32)]
    numbers = '"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["1"]'
    yield ('custom-call(%s), custom_call_target="__cublas$lt$matmul$mx", backend_config={"gemm_backend_config":'
           f'{{"alpha_real":1,"beta":0,"dot_dimension_numbers":{{{numbers}}},"epilogue":"DEFAULT","scale_mode":2}}}}',
           [x, y, s, t], [product.astype(TYPES['bf16'])])
    for q, scale, block in ('f8e4m3fn', 'f8e8m0fnu', 32), ('f4e2m1fn', 'f8e4m3fn', 16):
        for batch in (), (3,):
            for factor in False, True:
                yield written(rng, q, scale, block, batch, factor)
    for q, scale, block in ('f8e4m3fn', 'f8e8m0fnu', 32), ('f4e2m1fn', 'f8e4m3fn', 16):
        for steps in ('relu',), ('bias',), ('bias', 'relu'):
            yield finished(rng, q, scale, block, (), steps)
    for step in 'relu', 'bias':
        yield finished(rng, 'f8e4m3fn', 'f8e8m0fnu', 32, (3,), (step,))
    for q, largest in ('f8e4m3fn', 256), ('f8e5m2', 32768), ('f4e2m1fn', 4):
        x = rng.standard_normal((6, 96)).astype(np.float32) * np.exp2(rng.integers(-30, 30, (6, 1)))
        x[0, :32] = 0  # the scale of this block is NaN, and so are its values
        x = x.astype(np.float32)
        amax = np.abs(x.reshape(6, 3, 32)).max(-1)
        s = (amax / np.float32(largest)).astype(ml_dtypes.float8_e8m0fnu)
        values = (x / np.repeat(s.astype(np.float32), 32, 1)).astype(TYPES[q])
        yield 'custom-call(%s), custom_call_target="__op$quantize"', [x], [values, s]
        yield ('custom-call(%s), custom_call_target="__op$dequantize"', [values, s],
               [wide(values, s, 32).astype(np.float32)])


def written(rng, q, scale, block, batch, factor):
    """Writes a product as plain HLO: values times broadcast scales, optionally times a scalar."""
    sizes, k = (5, 7), 4 * block
    values = [array(rng, q, (*batch, size, k)) for size in sizes]
    scales = [array(rng, scale, (*batch, size, 4)) for size in sizes]
    product = wide(values[0], scales[0], block) @ np.swapaxes(wide(values[1], scales[1], block), -1, -2)
    operands = values + scales + ([np.array(1.5, np.float32)] if factor else [])

    def lines(names, number):
        at, sides = len(batch), []
        for i, size in enumerate(sizes):
            v, few, parts, whole = (f'v{number}_{i}_%d' % j for j in range(4)), (*batch, size, 4), (*batch, size, 4, block), \
                (*batch, size, k)
            v = list(v)
            yield f'{v[0]} = {text("f32", whole)} convert({names[i]})'
            yield f'{v[1]} = {text("f32", few)} convert({names[2 + i]})'
            dims = ",".join(map(str, range(at + 2)))
            yield f'{v[2]} = {text("f32", parts)} broadcast({v[1]}), dimensions={{{dims}}}'
            yield f'{v[3]} = {text("f32", whole)} reshape({v[2]})'
            sides.append(f's{number}_{i}')
            yield f'{sides[i]} = {text("f32", whole)} multiply({v[0]}, {v[3]})'
            if i and factor:
                yield f'g{number} = {text("f32", whole)} broadcast({names[4]}), dimensions={{}}'
                sides[i] = f't{number}'
                yield f't{number} = {text("f32", whole)} multiply(s{number}_{i}, g{number})'
        batches = 'lhs_batch_dims={0}, rhs_batch_dims={0}, ' if batch else ''
        last = at + 1
        yield f'dot({sides[0]}, {sides[1]}), {batches}lhs_contracting_dims={{{last}}}, rhs_contracting_dims={{{last}}}'
    return lines, operands, [(product * (1.5 if factor else 1)).astype(np.float32)]


def finished(rng, q, scale, block, batch, steps):
    """Writes a product, followed by an added vector or a maximum with 0."""
    (m, n), k = (5, 7), 4 * block
    values = [array(rng, q, (*batch, size, k)) for size in (m, n)]
    scales = [array(rng, scale, (*batch, size, 4)) for size in (m, n)]
    bias = array(rng, 'bf16', (n,))
    result = wide(values[0], scales[0], block) @ np.swapaxes(wide(values[1], scales[1], block), -1, -2)
    if 'bias' in steps:
        result = result + bias.astype(np.float64)
    if 'relu' in steps:
        result = np.maximum(result, 0)
    whole = text('f32', result.shape)

    def lines(names, number):
        last = f'd{number}'
        yield f'{last} = {whole} custom-call({", ".join(names[:4])}), custom_call_target="__op$block_scaled_dot"'
        if 'bias' in steps:
            yield f'c{number} = f32[{n}] convert({names[4]})'
            yield f'b{number} = {whole} broadcast(c{number}), dimensions={{{len(batch) + 1}}}'
            if 'relu' not in steps:
                yield f'add({last}, b{number})'
                return
            yield f'a{number} = {whole} add({last}, b{number})'
            last = f'a{number}'
        yield f'o{number} = f32[] constant(0)'
        yield f'z{number} = {whole} broadcast(o{number}), dimensions={{}}'
        yield f'maximum({last}, z{number})'
    return lines, values + scales + [bias], [result.astype(np.float32)]


def quantized(x, scaling):
    """Returns values after quantization to fp8 or fp4 and back, for (elements that share a scale, rounding of the
    scale)."""
    block, rounding = scaling
    parts = x.reshape(len(x), -1, block or x.shape[1])
    amax = np.abs(x if block is None else parts).max(None if block is None else -1, keepdims=block is not None)
    if rounding == 'e4m3':
        whole = np.abs(x).max() / (448 * 6)
        scale = (amax / 6 / whole).astype(TYPES['f8e4m3fn']).astype(np.float64) * whole
        values = (parts / np.where(scale, scale, np.inf)).astype(np.float32).astype(TYPES['f4e2m1fn'])
    else:
        scale = {'f32': lambda: (amax / 448).astype(np.float32), 'up': lambda: np.exp2(np.ceil(np.log2(amax / 448))),
                 'nearest': lambda: (amax / 256).astype(TYPES['f8e8m0fnu'])}[rounding]().astype(np.float64)
        values = np.clip(parts / scale, -448, 448).astype(np.float32).astype(TYPES['f8e4m3fn'])
    return (values.astype(np.float64) * scale).reshape(x.shape)


def noise():
    """Prints the table of docs/evidence.md: signal to noise ratio, in dB, of a product of quantized operands."""
    rng = np.random.default_rng(1)
    scalings = (None, 'f32'), (0, 'f32'), (128, 'f32'), (32, 'up'), (32, 'nearest'), (16, 'e4m3')
    lines = []
    for name, factor in ('normal', 1), ('8 of 1024 larger by 2^12', 2**12), ('8 of 1024 larger by 2^20', 2**20):
        columns = np.where(np.arange(1024) % 128 == 7, factor, 1)
        a, b = rng.standard_normal((64, 1024)) * columns, rng.standard_normal((64, 1024)) / columns
        exact = a @ b.T
        ratios = [(exact**2).sum() / ((exact - quantized(a, s) @ quantized(b, s).T)**2).sum() for s in scalings]
        lines.append(f'| {name} | ' + ' | '.join(f'{10 * np.log10(r):.0f}' for r in ratios) + ' |')
    return lines


def kind_of(array):
    return next((name for name, dtype in TYPES.items() if array.dtype == dtype), 'u8')


def codes(array):
    return array.view({1: np.uint8, 2: np.uint16, 4: np.uint32}[array.dtype.itemsize])


def stored(array):
    """Returns an array, as opaque bytes if numpy lacks its type."""
    return array if array.dtype in (np.float32, np.float16, np.uint8) else array.view(f'V{array.dtype.itemsize}')


def differences(args, module, wanted):
    """Returns the number of results of the module that differ from the expected ones."""
    bad = 0
    subprocess.run([f'{args.bin}/hlo-fp8-run', module, f'--inputs={args.work}/in.npz', f'--outputs={args.work}/out.npz'],
                   check=True, stdout=subprocess.DEVNULL)
    with np.load(f'{args.work}/out.npz') as found:
        for index, (_, call, expected) in enumerate(wanted):
            got = found[found.files[index]].view(expected.dtype).reshape(expected.shape)
            with np.errstate(invalid='ignore'):
                same = (codes(got) == codes(expected)) | (np.isnan(got.astype(np.float32)) &
                                                          np.isnan(expected.astype(np.float32)))
            if not same.all():
                bad += 1
                print(f'{module}: {call}: {(~same).sum()} of {same.size} elements differ: {got[~same][:3]}, '
                      f'not {expected[~same][:3]}')
    return bad


def main():
    args = _script.parser().parse_args()
    rng = np.random.default_rng(1)
    lines, inputs, wanted = [], [], []
    for number, (call, operands, results) in enumerate(calls(rng)):
        names = []
        for operand in operands:
            names.append(f'p{len(inputs)}')
            lines.append(f'{names[-1]} = {text(kind_of(operand), operand.shape)} parameter({len(inputs)})')
            inputs.append(operand)
        shapes = [text(kind_of(r), r.shape) for r in results]
        shape = shapes[0] if len(shapes) == 1 else f'({", ".join(shapes)})'
        if callable(call):
            *before, call = call(names, number)
            lines += before
        else:
            call = call % ', '.join(names)
        lines.append(f'r{number} = {shape} {call}')
        for index in range(len(results) if len(results) > 1 else 0):
            lines.append(f'r{number}_{index} = {shapes[index]} get-tuple-element(r{number}), index={index}')
        wanted += [(f'r{number}_{i}' if len(results) > 1 else f'r{number}', call, r) for i, r in enumerate(results)]
    shapes = ', '.join(text(kind_of(r), r.shape) for _, _, r in wanted)
    lines.append(f'ROOT t = ({shapes}) tuple({", ".join(name for name, _, _ in wanted)})')
    module, rewritten = f'{args.work}/module.hlo', f'{args.work}/rewritten.hlo'
    with open(module, 'w') as file:
        file.write('HloModule block_scaled\nENTRY e {\n  ' + '\n  '.join(lines) + '\n}\n')
    np.savez(f'{args.work}/in.npz', *[stored(x) for x in inputs])
    bad = differences(args, module, wanted)
    subprocess.run([f'{args.bin}/hlo-fp8-opt', module, '--target=sm_100', '--cuda=12.9', '--verify-each', '-o', rewritten],
                   check=True)
    with open(rewritten) as file:
        modes = [line for line in file if '"lhs_scale_mode":"VEC' in line]
    made = len(modes)
    epilogues = {word: sum(f'"epilogue":"{word}"' in line for line in modes) for word in EPILOGUES}
    bad += differences(args, rewritten, wanted)
    print(f'{len(wanted)} results compared, {made} calls made, {epilogues}')
    told = (pathlib.Path(__file__).parents[3] / 'docs/evidence.md').read_text().split('\n')
    untold = [line for line in noise() if line not in told]
    print('\n'.join(f'not in docs/evidence.md: {line}' for line in untold))
    return bad != 0 or made != CALLS or epilogues != EPILOGUES or untold != []


if __name__ == '__main__':
    sys.exit(main())
