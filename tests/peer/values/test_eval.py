#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that single operations on the CPU backend equal XLA's.

Each case is a small module that both backends run on the same inputs. The cases are every conversion, every elementwise
operation on every type that XLA's CPU compiler supports (_sweep.py), convolutions (_convolution.py), and jax's
lowerings of slicing, indexing, sorting, reducing and multiplying. Sizes are such that indices are out of bounds, and
windows overlap edges. Integers, predicates, conversions and moved elements must be equal. Other results may differ by
the rounding error of a sum of that length.
"""
import os
import subprocess
import sys

os.environ['JAX_PLATFORMS'] = 'cpu'
os.environ['JAX_SKIP_CUDA_CONSTRAINTS_CHECK'] = '1'
os.environ['XLA_FLAGS'] = '--xla_allow_excess_precision=false --xla_backend_optimization_level=0'

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax
from jax._src.lib import xla_client
from jaxlib import _hlo, _jax

import _convolution
import _script
import _sweep

FLOATS = {'f32': np.float32, 'f64': np.float64, 'f16': np.float16, 'bf16': ml_dtypes.bfloat16,
          'f8e4m3fn': ml_dtypes.float8_e4m3fn, 'f8e5m2': ml_dtypes.float8_e5m2,
          'f8e4m3': ml_dtypes.float8_e4m3, 'f8e3m4': ml_dtypes.float8_e3m4,
          'f8e4m3fnuz': ml_dtypes.float8_e4m3fnuz, 'f8e5m2fnuz': ml_dtypes.float8_e5m2fnuz,
          'f8e4m3b11fnuz': ml_dtypes.float8_e4m3b11fnuz, 'f8e8m0fnu': ml_dtypes.float8_e8m0fnu,
          'f4e2m1fn': ml_dtypes.float4_e2m1fn}
INTEGERS = {'s8': np.int8, 's16': np.int16, 's32': np.int32, 's64': np.int64,
            'u8': np.uint8, 'u16': np.uint16, 'u32': np.uint32, 'u64': np.uint64}
FOURS = {'s2': ml_dtypes.int2, 'u2': ml_dtypes.uint2, 's4': ml_dtypes.int4, 'u4': ml_dtypes.uint4}
TYPES = {**FLOATS, **INTEGERS, **FOURS, 'pred': np.bool_}
NARROW = [d for d in [*FLOATS.values(), *FOURS.values()] if d not in (np.float32, np.float64, np.float16)]
COUNT = 1 << 12
ROUNDOFF = {np.dtype(np.float32): 2.0 ** -24, np.dtype(ml_dtypes.bfloat16): 2.0 ** -8,
            np.dtype(np.complex64): 2.0 ** -24}

jax.config.update('jax_enable_x64', True)
RNG = np.random.default_rng(0)


class Runner:
    def __init__(self, args):
        self.program = os.path.join(args.bin, 'hlo-fp8-run')
        self.work = args.work
        self.failures = self.cases = 0

    def xla(self, text, inputs):
        module = _hlo.hlo_module_from_text(text)
        computation = _hlo.XlaComputation(module.as_serialized_hlo_module_proto())
        device = jax.devices('cpu')[0]
        mlir = xla_client._xla.mlir.xla_computation_to_mlir_module(computation)
        executable = device.client.compile_and_load(mlir, _jax.DeviceList((device,)),
                                                    xla_client.CompileOptions())
        buffers = [jax.device_put(np.array(v), device) for v in inputs]
        results = executable.execute_sharded(buffers).disassemble_into_single_device_arrays()
        return [np.asarray(r[0]) for r in results]

    def execute(self, text, inputs, *options):
        files = {n: os.path.join(self.work, n) for n in ('case.hlo', 'in.npz', 'out.npz')}
        with open(files['case.hlo'], 'w') as out:
            out.write(text)
        np.savez(files['in.npz'], **{str(i): v.view(f'V{v.dtype.itemsize}')
                                     if v.dtype in NARROW else v for i, v in enumerate(inputs)})
        subprocess.run([self.program, files['case.hlo'], '--inputs=' + files['in.npz'],
                        '--outputs=' + files['out.npz'], *options], check=True, stdout=subprocess.DEVNULL)
        return np.load(files['out.npz'])

    def ours(self, text, inputs, dtypes):
        arrays = self.execute(text, inputs)
        return [arrays[str(i)] if arrays[str(i)].dtype == d else arrays[str(i)].view(d)
                for i, d in enumerate(dtypes)]

    def compare(self, name, text, inputs, allowed, labels=None):
        """Compares results. `allowed(label, theirs, type)` returns the allowed absolute difference."""
        theirs = self.xla(text, inputs)
        try:
            results = self.ours(text, inputs, [t.dtype for t in theirs])
        except subprocess.CalledProcessError as error:
            self.failures += 1
            print(f'{name}: {error}')
            return
        for i, (want, got) in enumerate(zip(theirs, results)):
            self.cases += 1
            label = labels[i] if labels else name
            wide = np.complex128 if want.dtype.kind == 'c' else np.float64
            with np.errstate(all='ignore'):
                w, g = want.astype(wide), got.astype(wide)
                exact = (want == got) if want.dtype.kind in 'iub' else w == g
                same = exact | (np.isnan(w) & np.isnan(g))
                wrong = ~same & ~(np.abs(w - g) <= allowed(label, w, want.dtype))
            if wrong.any():
                self.failures += 1
                at = np.argwhere(wrong)[0]
                print(f'{name} {label}: {wrong.sum()} of {wrong.size} differ, first at {at}: '
                      f'got {got[tuple(at)]}, XLA has {want[tuple(at)]}')


def exactly(label, want, dtype):
    return 0


def module(parameters, lines):
    """Returns a module whose results are `lines`: (label, type, operation)."""
    shape = {t: f'{t}[{COUNT}]{{0}}' for t in TYPES}
    body = [f'  %{n} = {shape[t]} parameter({i})' for i, (n, t) in enumerate(parameters)]
    body += [f'  %result.{i} = {shape[t]} {op}' for i, (_, t, op) in enumerate(lines)]
    types = ', '.join(shape[t] for _, t, _ in lines)
    names = ', '.join(f'%result.{i}' for i in range(len(lines)))
    head = ', '.join(f'{n}: {t}[{COUNT}]' for n, t in parameters)
    return ('HloModule case\n\nENTRY %main (' + head + f') -> ({types}) {{\n' + '\n'.join(body)
            + f'\n  ROOT %all = ({types}) tuple({names})\n}}\n')


def numbers(name):
    if name == 'pred':
        return RNG.integers(0, 2, COUNT).astype(bool)
    if name in FOURS:
        return RNG.integers(0, 16, COUNT).astype(np.uint8).view(np.int8).astype(TYPES[name])
    if name in INTEGERS:
        limits = np.iinfo(TYPES[name])
        wide = RNG.integers(limits.min, limits.max, COUNT, dtype=TYPES[name], endpoint=True)
        small = RNG.integers(max(-4, limits.min), 20, COUNT).astype(TYPES[name])
        out = np.where(RNG.random(COUNT) < 0.5, wide, small)
        out[:4] = [limits.min, limits.max, 0, 1]
        return RNG.permutation(out)
    x = np.concatenate([RNG.standard_normal(COUNT // 4) * s for s in (1, 10, 300)]
                       + [np.exp(RNG.uniform(-20, 45, COUNT // 4)) * RNG.choice([-1, 1], COUNT // 4)])
    x[:16] = [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 2.5, 3.5, 2.0 ** 31, -2.0 ** 31,
              2.0 ** 32, 2.0 ** 63, 2.0 ** 64]
    with np.errstate(all='ignore'):
        return RNG.permutation(x).astype(TYPES[name])


def conversions(run):
    for source in TYPES:
        # XLA's CPU converts every f4e2m1fn except 0 to the largest integer.
        lines = [(f'to {t}', t, 'convert(%x)') for t in TYPES
                 if source != 'f4e2m1fn' or t in FLOATS or t == 'pred']
        run.compare(f'convert {source}', module([('x', source)], lines), [numbers(source)], exactly,
                    [label for label, _, _ in lines])


def real(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def whole(low, high, *shape):
    return RNG.integers(low, high, shape).astype(np.int32)


def half(*shape):
    return real(*shape).astype(ml_dtypes.bfloat16)


def quarter(*shape):
    return real(*shape).astype(ml_dtypes.float8_e4m3fn)


G, S = lax.GatherDimensionNumbers, lax.ScatterDimensionNumbers
MOVES = [
    (lambda a, b: a[b], real(10, 4), whole(0, 10, 7)),
    (lambda a, b: jnp.take(a, b, axis=1), real(10, 4), whole(-3, 9, 2, 7)),
    (lambda a, b: jnp.take_along_axis(a, b, 1), real(10, 4), whole(0, 4, 10, 2)),
    (lambda a, b: lax.gather(a, b, G((1, 2), (1,), (0, 1)), (2, 1, 3), mode='clip'),
     real(6, 5, 4), whole(-2, 8, 9, 2)),
    (lambda a, b: lax.gather(a, b, G((1,), (), (1,), (0,), (0,)), (1, 2), mode='clip'),
     real(6, 5), whole(-2, 8, 6, 1)),
    (lambda a, b, c: a.at[b, :].set(c, unique_indices=True), real(10, 4),
     np.array([3, 1, 7], np.int32), real(3, 4)),
    (lambda a, b, c: a.at[b].max(c), real(10, 4), whole(0, 13, 7), real(7, 4)),
    (lambda a, b: lax.dynamic_slice(a, (b, b + 2), (3, 4)), real(6, 7), np.int32(2)),
    (lambda a, b: lax.dynamic_slice(a, (b, b - 20), (3, 4)), real(6, 7), np.int32(12)),
    (lambda a, u, b: lax.dynamic_update_slice(a, u, (b, b)), real(6, 7), real(3, 3), np.int32(5)),
    (lambda a: lax.pad(a, np.float32(7), ((1, 2, 0), (-1, 3, 2))), real(6, 7)),
    (lambda a: lax.pad(a, np.float32(7), ((-5, -4, 2), (-3, 2, 1))), real(6, 7)),
    (lambda a: a[::-1, ::2], real(6, 7)),
    (lambda a, b: jnp.concatenate([a, b, a], 1), real(6, 7), real(6, 2)),
    (lambda a: a.transpose(2, 0, 1).reshape(35, 6), real(6, 7, 5)),
    (lambda a: jnp.broadcast_to(a[:, None], (6, 9)), real(6)),
    (lambda a: lax.broadcasted_iota(jnp.float32, (6, 7), 0) + 0 * a, real(6, 7)),
    (lambda a: lax.bitcast_convert_type(a, jnp.uint8), real(6, 7)),
    (lambda a: lax.bitcast_convert_type(a, jnp.float32), whole(0, 127, 6, 4).astype(np.uint8)),
    (lambda a, b: jnp.where(a > 0, a, b), real(6, 7), real(6, 7)),
    (lambda a: jnp.sort(a, 1), real(10, 33)),
    (lambda a: jnp.argsort(a, 0), real(10, 33)),
    (lambda a, b: lax.sort((a, b), dimension=0, num_keys=1), whole(0, 5, 20), real(20)),
    (lambda a: lax.top_k(a, 5), real(3, 10, 33)),
    (lambda a: lax.top_k(jnp.where(a < 1, a, jnp.sign(a - 2) * jnp.nan), 33), half(10, 33)),
    (lambda a: lax.top_k(a, 300), whole(-4, 5, 2, 400)),
    (lambda a: a.max(1), real(10, 33)),
    (lambda a: a.min(), half(10, 33)),
    (lambda a: (a > -1).all(0), real(5, 7)),
    (lambda a: (a > 1).any(), real(5, 7)),
    (lambda a: a.sum(0), whole(-9, 9, 5, 7)),
    (lambda a: jnp.argmax(a, 1), real(10, 33)),
    (lambda a: lax.cummax(a, axis=0), real(10, 33)),
    (lambda a: lax.reduce_window(a, -np.inf, lax.max, (1, 3, 2), (1, 2, 1), ((0, 0), (1, 1), (0, 1))),
     real(2, 9, 8)),
    (lambda a, b: lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32),
     whole(-100, 100, 33, 64).astype(np.int8), whole(-100, 100, 64, 16).astype(np.int8)),
]
# The number of terms in each result's sum; terms are about 1.
SUMS = [
    (47, lambda a, b: a @ b, real(33, 47), real(47, 21)),
    (47, lambda a, b: lax.dot_general(a, b, (((1,), (1,)), ((), ()))), half(33, 47), half(21, 47)),
    (7, lambda a, b: jnp.einsum('bijk,bkjl->bjil', a, b), real(3, 5, 7, 11), real(3, 11, 7, 4)),
    (385, lambda a, b: jnp.einsum('abcd,cebd->ae', a, b), real(3, 5, 7, 11), real(7, 4, 5, 11)),
    (64, lambda a, b: lax.dot_general(a, b, (((1,), (0,)), ((), ())),
                                      preferred_element_type=jnp.float32), quarter(33, 64),
     quarter(64, 16)),
    (1, jnp.outer, real(9), real(7)),
    (99, lambda a, b: a @ b, real(99), real(99)),
    (100, lambda a: a.sum(0), real(100, 33)),
    (330, lambda a: a.sum((0, 2)), real(10, 33, 33)),
    (5, lambda a: a.prod(0), real(5, 7)),
    (33, lambda a: jnp.cumsum(a, 1), real(10, 33)),
    (6, lambda a: lax.reduce_window(a, 0., lax.add, (3, 2), (2, 1), ((2, 1), (1, 2)),
                                    base_dilation=(2, 3), window_dilation=(2, 1)), real(9, 8)),
    (7, lambda a, b, c: a.at[b].add(c), real(10, 4), whole(0, 13, 7), real(7, 4)),
    (5, lambda a, b, c: lax.scatter_add(a, b, c, S((1, 2), (), (0, 1))), real(10, 8),
     whole(-1, 9, 5, 2), real(5, 2, 3)),
    (5, lambda a, b, c: lax.scatter_mul(a, b, c, S((1,), (0,), (0,))), real(10, 4),
     whole(-1, 11, 7, 1), real(7, 4)),
    (5, lambda a, b, c: lax.scatter_add(a, b, c, S((1,), (), (1,), (0,), (0,))), real(6, 5),
     whole(-2, 8, 6, 1), real(6, 2)),
    (20, lambda a, b: jnp.abs(jnp.exp(a + 1j * b) * (a - 1j)), real(6, 7), real(6, 7)),
    (9, jax.nn.softmax, real(6, 7)),
    (9, jax.nn.gelu, half(6, 7)),
]


def arrays(run):
    jax.config.update('jax_enable_x64', False)

    def lowered(function, inputs):
        return jax.jit(function).lower(*inputs).compiler_ir('hlo').as_hlo_text()

    for i, (function, *inputs) in enumerate(MOVES):
        run.compare(f'movement {i}', lowered(function, inputs), inputs, exactly)
    for i, (terms, function, *inputs) in enumerate(SUMS):
        def within_sum(label, want, dtype, terms=terms):
            return 8 * ROUNDOFF[dtype] * (np.abs(want) + terms ** 0.5)
        run.compare(f'sum {i}', lowered(function, inputs), inputs, within_sum)


def starts(run):
    """Compares dynamic slices and updates with any start index, also below 0, and the largest of each type."""
    x, update = np.arange(6, dtype=np.float32), np.array([-1, -2], np.float32)
    for name, dtype in INTEGERS.items():
        limits = np.iinfo(dtype)
        at = [a for a in (-limits.max - 1, -limits.max, -2, -1, 0, 1, 3, 4, 5, 6, 7, limits.max // 2, limits.max // 2 + 1,
                          limits.max - 1, limits.max) if a >= limits.min]
        places = range(len(at))
        shape = ', '.join(['f32[2]', 'f32[6]'] * len(at))
        lines = [f'  %at{i} = {name}[] parameter({i + 2})\n'
                 f'  %slice{i} = f32[2] dynamic-slice(%x, %at{i}), dynamic_slice_sizes={{2}}\n'
                 f'  %update{i} = f32[6] dynamic-update-slice(%x, %u, %at{i})\n' for i in places]
        text = (f'HloModule starts\nENTRY %main {{\n  %x = f32[6] parameter(0)\n  %u = f32[2] parameter(1)\n'
                + ''.join(lines) + f'  ROOT %all = ({shape}) tuple('
                + ', '.join(f'%slice{i}, %update{i}' for i in places) + ')\n}\n')
        run.compare(f'start {name}', text, [x, update] + [np.array(a, dtype) for a in at], exactly,
                    [f'{what} at {a}' for a in at for what in ('slice', 'update')])


def main():
    parser = _script.parser()
    parser.add_argument('--few', action='store_true', help='leave out conversions and elementwise operations')
    options = parser.parse_args()
    run = Runner(options)
    if not options.few:
        conversions(run)
        _sweep.sweep(run, FLOATS, {**INTEGERS, **FOURS}, RNG)
    starts(run)
    _convolution.convolutions(run, TYPES, RNG, exactly)
    arrays(run)  # must be last, since it disables 64-bit types
    print(f'{run.cases} results, {run.failures} differ')
    return run.failures != 0


if __name__ == '__main__':
    sys.exit(main())
