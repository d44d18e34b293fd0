#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what XLA's GPU compiler makes of modules that `hlo-fp8-opt --quantize --emit=qdq` quantized.

Sharded modules for 8 devices: an all-gather of a quantized weight moves f8e4m3fn values, and one all-reduce combines the
amaxes of both operands. A layer of Llama-8B, forward and with its gradient: XLA creates as many FP8 calls as
hlo-fp8-opt reports, in at most KERNELS kernels, and the bytes and the time that hlo-fp8-opt predicts are within
TOLERANCE of those of XLA's kernels.
"""
import json
import os
import re
import subprocess
import sys

import jax
import jax.numpy as jnp

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import _script
import _xla_gpu

HERE = os.path.dirname(os.path.abspath(__file__))
FSDP = """HloModule fsdp
ENTRY e {
  x = bf16[8192,4096] parameter(0), sharding={devices=[8,1]<=[8]}
  w = bf16[4096,8192] parameter(1), sharding={devices=[8,1]<=[8]}
  ROOT d = bf16[8192,8192] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={devices=[8,1]<=[8]}
}
"""
TENSOR_PARALLEL = """HloModule tp
ENTRY e {
  x = bf16[8192,4096] parameter(0), sharding={replicated}
  w = bf16[4096,8192] parameter(1), sharding={devices=[1,8]<=[8]}
  v = bf16[8192,4096] parameter(2), sharding={devices=[8,1]<=[8]}
  h = bf16[8192,8192] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={devices=[1,8]<=[8]}
  t = bf16[8192,8192] tanh(h), sharding={devices=[1,8]<=[8]}
  ROOT d = bf16[8192,4096] dot(t, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={replicated}
}
"""
# Of each sharded module and recipe: all collectives in XLA's program, with the types and shapes of their results.
SHARDED = (
    ('fsdp', FSDP, 'current', ('all-gather f8e4m3fn[8192,4096]', 'all-reduce bf16[2]')),
    # The amax of a row of x is local. The amaxes of the columns of w are combined, and their scales gathered.
    ('fsdp', FSDP, 'rows', ('all-gather f8e4m3fn[8192,4096]', 'all-gather f32[8192]', 'all-gather bf16[8192]',
                             'reduce-scatter bf16[1024]')),
    # The amax of x is local: x is replicated. The weights are not gathered.
    ('tp', TENSOR_PARALLEL, 'current', ('all-reduce bf16[2]', 'all-reduce bf16[]', 'all-reduce bf16[8192,4096]')))
KERNELS = {'forward': 66, 'step': 158}
TOLERANCE = 0.1
BYTES = {'pred': 1, 's8': 1, 'f8e4m3fn': 1, 'bf16': 2, 'f32': 4, 's32': 4, 'u32': 4}
FREE = ('parameter', 'constant', 'get-tuple-element', 'tuple', 'bitcast', 'iota')
FP8_FLOPS_PER_SECOND, BYTES_PER_SECOND = 1979e12, 3352e9


def norm(x, gain):
    y = x.astype(jnp.float32)
    return (y * jax.lax.rsqrt(jnp.mean(y * y, -1, keepdims=True) + 1e-6)).astype(x.dtype) * gain


def forward(weights, x, heads=32):
    batch, tokens, width = x.shape
    a = norm(x, weights['norm'])
    q, k, v = (jnp.reshape(a @ weights[name], (batch, tokens, heads, width // heads)) for name in 'qkv')
    scores = jnp.einsum('bqhd,bkhd->bhqk', q, k).astype(jnp.float32) * (width // heads)**-.5
    scores = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((tokens, tokens), bool)), scores, -1e9), -1).astype(x.dtype)
    x = x + jnp.einsum('bhqk,bkhd->bqhd', scores, v).reshape(x.shape) @ weights['o']
    a = norm(x, weights['norm'])
    return x + (jax.nn.silu(a @ weights['gate']) * (a @ weights['up'])) @ weights['down']


def step(weights, x, gradient):
    return jax.vjp(forward, weights, x)[1](gradient)


def layer(function, inputs):
    """Returns the HLO proto of a layer of width 4096, with 4 x 2048 tokens."""
    sides = dict.fromkeys('qkvo', (4096, 4096)) | {'gate': (4096, 14336), 'up': (4096, 14336), 'down': (14336, 4096),
                                                   'norm': (4096,)}
    weights = {name: jax.ShapeDtypeStruct(side, jnp.bfloat16) for name, side in sides.items()}
    tokens = [jax.ShapeDtypeStruct((4, 2048, 4096), jnp.bfloat16)] * inputs
    return jax.jit(function).lower(weights, *tokens).compiler_ir('hlo').as_serialized_hlo_module_proto()


def compiled(args, name, module, recipe, devices):
    """Returns XLA's program for the quantized module, and the remarks of hlo-fp8-opt."""
    source, out = (os.path.join(args.work, f'{name}.{recipe}{end}') for end in ('.in.hlo', '.hlo'))
    with open(source, 'wb') as file:
        file.write(module)
    done = subprocess.run([os.path.join(args.bin, 'hlo-fp8-opt'), '--quantize=' + recipe, '--emit=qdq', source, '-o', out,
                           '--remarks=all', '--remarks-format=json', '--remarks-file=-'],
                          capture_output=True, text=True, check=True)
    program = subprocess.run([sys.executable, os.path.join(HERE, '_xla_gpu.py'), '--default-flags',
                              f'--devices={devices}', out], capture_output=True, text=True)
    assert program.stdout and not program.returncode, program.stderr[-500:]
    return program.stdout, json.loads(done.stdout)


def check_sharded(args, name, module, recipe, wanted):
    text, _ = compiled(args, name, module.encode(), recipe, 8)
    found = set()
    for shape, kind in re.findall(r' = (\(.*?\)|\S+) (all-\w+|reduce-scatter)(?:-start)?\(', text):
        arrays = re.findall(r'\w+\[[\d,]*\]', shape)
        # The shape of an all-gather-start has the operands, then the results.
        results = arrays[len(arrays) // 2:] if kind == 'all-gather' and shape.startswith('(') else arrays
        found.update(f'{kind} {array}' for array in results)
    return [f'expected {sorted(wanted)}, found {sorted(found)}'] * (found != set(wanted))


def size(shape):
    total = 0
    for kind, dims in re.findall(r'(\w+)\[([\d,]*)\]', shape):
        count = BYTES.get(kind, 0)
        for dim in dims.split(','):
            count *= int(dim or 1)
        total += count
    return total


def kernels(text):
    """Returns the kernels of the entry: for each, whether it is an FP8 call, and its bytes."""
    entry = text[text.index('\nENTRY '):]
    rows = re.findall(r'\n  (?:ROOT )?%?([\w.-]+) = (\(.*?\)|\S+) ([\w-]+)\((.*?)\)(.*)', entry[:entry.index('\n}')])
    shapes = {name: shape for name, shape, *_ in rows}
    found = []
    for _, shape, kind, operands, rest in rows:
        if kind in FREE:
            continue
        written = re.sub(r's8\[\d+\]', '', shape) if kind == 'custom-call' else shape  # without the workspace
        read = sum(size(shapes.get(name, '')) for name in set(re.findall(r'%([\w.-]+)', operands)))
        found.append(('$f8"' in rest, size(written) + read))
    return found


def check_layer(args, name, module, matmuls):
    text, remarks = compiled(args, name, module, 'current', 1)
    summary, dots = remarks['summary'], remarks['dots']
    found = kernels(text)
    calls = sum(fp8 for fp8, _ in found)
    moved = sum(bytes for _, bytes in found)
    wrong = []
    if not calls == summary['quantized'] == matmuls:
        wrong.append(f"{calls} FP8 calls, reported {summary['quantized']}, expected {matmuls}")
    if len(found) > KERNELS[name]:
        wrong.append(f'{len(found)} kernels, expected at most {KERNELS[name]}')
    predicted = sum(dot['bytes'] for dot in dots)
    if abs(predicted / moved - 1) > TOLERANCE:
        wrong.append(f'{moved / 1e9:.2f} GB, predicted {predicted / 1e9:.2f}')
    # By the roofline, FP8 calls are limited by FLOPs, and the matmuls of attention, like all other kernels, by bytes.
    seconds = sum(bytes for fp8, bytes in found if not fp8) / BYTES_PER_SECOND
    seconds += sum(dot['flops'] for dot in dots if dot['verdict'] != 'wide') / FP8_FLOPS_PER_SECOND
    if abs(summary['seconds'] / seconds - 1) > TOLERANCE:
        wrong.append(f"{1e6 * seconds:.0f} us, predicted {1e6 * summary['seconds']:.0f}")
    print(f"{name}: {calls} FP8 calls, {len(found)} kernels, {moved / 1e9:.2f} GB, predicted {predicted / 1e9:.2f} GB; "
          f"{1e6 * seconds:.0f} us, predicted {1e6 * summary['seconds']:.0f} us")
    return wrong


def main():
    args = _script.parser().parse_args()
    _xla_gpu.require_plugin()
    bad = [f'{name} {recipe}: {line}' for name, module, recipe, wanted in SHARDED
           for line in check_sharded(args, name, module, recipe, wanted)]
    for name, function, inputs, matmuls in (('forward', forward, 1, 7), ('step', step, 2, 20)):
        bad += [f'{name}: {line}' for line in check_layer(args, name, layer(function, inputs), matmuls)]
    print('\n'.join(bad) or f'{len(SHARDED)} sharded modules and {len(KERNELS)} layers as expected')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
