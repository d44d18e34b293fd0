#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what XLA's GPU compiler makes of modules that `hlo-fp8-opt --quantize --emit=qdq` quantized.

Sharded modules for 8 devices: an all-gather of a quantized weight moves f8e4m3fn values, one all-reduce combines the
amaxes of both operands, and a tensor-parallel layer gathers no weights. A layer of Llama-8B, forward and with its
gradient, rematerialized, and with gradients that a loop accumulates over microbatches: XLA creates as many FP8 calls as
hlo-fp8-opt reports, in at most KERNELS kernels; the loop quantizes no weight. The bytes and the time that hlo-fp8-opt
predicts for the original module and for the recipes `current` and `rows` are within TOLERANCE of those of XLA's kernels.
XLA creates no FP8 calls from the plain HLO of `mx`, so that its predictions are not compared.
"""
import json
import os
import re
import subprocess
import sys

os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=8'
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

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
# Of each sharded module and recipe: number of FP8 calls in XLA's program, and all collectives, with the types and shapes of
# their results.
SHARDED = (
    ('fsdp', 'current', 1, ('all-gather f8e4m3fn[8192,4096]', 'all-reduce bf16[2]')),
    # The amax of a row of x is local. The amaxes of the columns of w are combined, and their scales gathered.
    ('fsdp', 'rows', 1, ('all-gather f8e4m3fn[8192,4096]', 'all-gather f32[8192]', 'all-gather bf16[8192]',
                             'reduce-scatter bf16[1024]')),
    # The amax of x is local: x is replicated. The weights are not gathered.
    ('tp', 'current', 2, ('all-reduce bf16[2]', 'all-reduce bf16[]', 'all-reduce bf16[8192,4096]')),
    # The products of a layer are combined, and amaxes of several operands at once. XLA merges the products for q, k and v.
    ('layer', 'current', 5, ('all-reduce bf16[3]', 'all-reduce bf16[5]', 'all-reduce bf16[]', 'all-reduce bf16[8192,4096]')))
# For each layer and recipe, None for the original module: number of FP8 calls, and upper limits of the number of kernels.
LAYERS = {('forward', None): (0, 18), ('forward', 'current'): (7, 57), ('forward', 'rows'): (6, 42), ('step', None): (0, 58), ('step', 'current'): (20, 141),
          ('step', 'rows'): (14, 117), ('remat', 'current'): (27, 177)}
# Of the loop over microbatches: number of FP8 calls, and upper limits of the number of kernels outside and in the loop.
MICROBATCHES = (20, 38, 117)
TOLERANCE = 0.1
BYTES = {'pred': 1, 's8': 1, 'f8e4m3fn': 1, 'bf16': 2, 'f32': 4, 's32': 4, 'u32': 4}
FREE = ('parameter', 'constant', 'get-tuple-element', 'tuple', 'bitcast', 'iota')
FP8_FLOPS_PER_SECOND, WIDE_FLOPS_PER_SECOND, BYTES_PER_SECOND = 1979e12, 989.5e12, 3352e9


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


def remat(weights, x, gradient):
    y, gradients = jax.vjp(jax.checkpoint(forward), weights, x)
    return y, gradients(gradient)


def accumulate(weights, xs, gradients):
    """Sums up the gradients of the weights over microbatches."""
    def add(sums, batch):
        found = jax.vjp(lambda w: forward(w, batch[0]), weights)[1](batch[1])[0]
        return jax.tree.map(lambda total, part: total + part.astype(jnp.float32), sums, found), None
    return jax.lax.scan(add, jax.tree.map(lambda w: jnp.zeros(w.shape, jnp.float32), weights), (xs, gradients))[0]


def layer(function, inputs, batches=(), **options):
    """Returns the HLO proto of a layer of width 4096, with 4 x 2048 tokens."""
    sides = dict.fromkeys('qkvo', (4096, 4096)) | {'gate': (4096, 14336), 'up': (4096, 14336), 'down': (14336, 4096),
                                                   'norm': (4096,)}
    weights = {name: jax.ShapeDtypeStruct(side, jnp.bfloat16) for name, side in sides.items()}
    tokens = [jax.ShapeDtypeStruct((*batches, 4, 2048, 4096), jnp.bfloat16)] * inputs
    return jax.jit(function, **options).lower(weights, *tokens).compiler_ir('hlo').as_serialized_hlo_module_proto()


def tensor_parallel():
    """Returns the HLO proto of the forward layer, whose weights are sharded by columns, then by rows, on 8 devices."""
    jax.config.update('jax_use_shardy_partitioner', False)
    mesh = jax.make_mesh((8,), ('x',))
    specs = dict.fromkeys(('q', 'k', 'v', 'gate', 'up'), (None, 'x')) | {'o': ('x', None), 'down': ('x', None), 'norm': ()}
    shardings = {name: NamedSharding(mesh, PartitionSpec(*spec)) for name, spec in specs.items()}
    whole = NamedSharding(mesh, PartitionSpec())
    return layer(forward, 1, in_shardings=(shardings, whole), out_shardings=whole)


def compiled(args, name, module, recipe, devices):
    """Returns XLA's program for the quantized module, and the remarks of hlo-fp8-opt. Without a recipe, returns XLA's program
    for the original module, and the remarks of `current`, which have its prediction too."""
    source, out = (os.path.join(args.work, f'{name}.{recipe}{end}') for end in ('.in.hlo', '.hlo'))
    with open(source, 'wb') as file:
        file.write(module)
    command = [os.path.join(args.bin, 'hlo-fp8-opt'), source, '-o', out]
    done = subprocess.run([*command, '--quantize=' + (recipe or 'current'), '--emit=qdq', '--remarks=all',
                           '--remarks-format=json', '--remarks-file=-'], capture_output=True, text=True, check=True)
    if not recipe:
        subprocess.run([*command, '--passes='], check=True)
    program = subprocess.run([sys.executable, os.path.join(HERE, '_xla_gpu.py'), '--default-flags',
                              f'--devices={devices}', '--kernels', os.path.join(args.work, 'kernels'), out], capture_output=True, text=True)
    assert program.stdout and not program.returncode, program.stderr[-500:]
    return program.stdout, json.loads(done.stdout)


def check_sharded(args, name, module, recipe, calls, wanted):
    text, _ = compiled(args, name, module, recipe, 8)
    found = set()
    for shape, kind in re.findall(r' = (\(.*?\)|\S+) (all-\w+|reduce-scatter)(?:-start)?\(', text):
        arrays = re.findall(r'\w+\[[\d,]*\]', shape)
        # The shape of an all-gather-start has the operands, then the results.
        results = arrays[len(arrays) // 2:] if kind == 'all-gather' and shape.startswith('(') else arrays
        found.update(f'{kind} {array}' for array in results)
    wrong = [f'expected {sorted(wanted)}, found {sorted(found)}'] * (found != set(wanted))
    found = text.count('$f8"')
    return wrong + [f'{found} FP8 calls, expected {calls}'] * (found != calls)


def size(shape):
    total = 0
    for kind, dims in re.findall(r'(\w+)\[([\d,]*)\]', shape):
        count = BYTES.get(kind, 0)
        for dim in dims.split(','):
            count *= int(dim or 1)
        total += count
    return total


def kernels(text, start='ENTRY '):
    """Returns the kernels of the computation whose text begins with `start`: for each, whether it is an FP8 call, and its
    bytes."""
    entry = text[text.index('\n' + start):]
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


def check_layer(args, name, module, recipe, calls, most):
    text, remarks = compiled(args, name, module, recipe, 1)
    summary, dots, side = remarks['summary'], remarks['dots'], '' if recipe else 'input_'
    found = kernels(text)
    moved = sum(bytes for _, bytes in found)
    wrong = []
    if sum(fp8 for fp8, _ in found) != calls or (recipe and summary['quantized'] != calls):
        wrong.append(f"{sum(fp8 for fp8, _ in found)} FP8 calls, reported {summary['quantized']}, expected {calls}")
    if len(found) > most:
        wrong.append(f'{len(found)} kernels, expected at most {most}')
    predicted, predicted_seconds = sum(dot[side + 'bytes'] for dot in dots), summary[side + 'seconds']
    if abs(predicted / moved - 1) > TOLERANCE:
        wrong.append(f'{moved / 1e9:.2f} GB, predicted {predicted / 1e9:.2f}')
    # By the roofline, FP8 calls are limited by FLOPs, and other kernels by bytes, except wide matmuls with many FLOPs.
    seconds = sum(bytes for fp8, bytes in found if not fp8) / BYTES_PER_SECOND
    for dot in dots:
        if recipe and dot['verdict'] != 'wide':
            seconds += dot['flops'] / FP8_FLOPS_PER_SECOND
        else:
            own = size((dot['input_shape'] + dot['operands']).replace('f8e4m3fn', 'bf16')) / BYTES_PER_SECOND
            seconds += max(0, dot['flops'] / WIDE_FLOPS_PER_SECOND - own)
    if abs(predicted_seconds / seconds - 1) > TOLERANCE:
        wrong.append(f'{1e6 * seconds:.0f} us, predicted {1e6 * predicted_seconds:.0f}')
    print(f"{name} {recipe or 'wide'}: {calls} FP8 calls, {len(found)} kernels, {moved / 1e9:.2f} GB, predicted {predicted / 1e9:.2f} GB; "
          f"{1e6 * seconds:.0f} us, predicted {1e6 * predicted_seconds:.0f} us", flush=True)
    return wrong


def check_microbatches(args, module):
    """Checks that the loop over microbatches contains the FP8 calls, but not the quantization of the weights."""
    text, remarks = compiled(args, 'microbatches', module, 'current', 1)
    with open(os.path.join(args.work, 'microbatches.current.hlo'), encoding='utf-8') as file:
        ours = file.read()
    loop, entry = (ours[ours.index(start):].split('\n}')[0] for start in ('\n%' + re.search(r' body=%([\w.-]+)', ours)[1] + ' ', '\nENTRY '))
    quantized = [len(re.findall(r' = f8e4m3fn\[(?:4096,4096|4096,14336|14336,4096)\]\S* convert\(', part)) for part in (entry, loop)]
    outside, inside = kernels(text), kernels(text, '%' + re.search(r' body=%([\w.-]+)', text)[1] + ' ')
    calls, limits = sum(fp8 for fp8, _ in inside), MICROBATCHES
    print(f'microbatches: {calls} FP8 calls, {len(outside)} kernels outside the loop, {len(inside)} in the loop; '
          f'{sum(bytes for _, bytes in outside) / 1e9:.2f} and {sum(bytes for _, bytes in inside) / 1e9:.2f} GB', flush=True)
    wrong = []
    if quantized != [7, 0]:
        wrong.append(f'{quantized[0]} weights are quantized outside the loop and {quantized[1]} in the loop, expected 7 and 0')
    if not calls == remarks['summary']['quantized'] == limits[0]:
        wrong.append(f"{calls} FP8 calls, reported {remarks['summary']['quantized']}, expected {limits[0]}")
    if len(outside) > limits[1] or len(inside) > limits[2]:
        wrong.append(f'{len(outside)} and {len(inside)} kernels, expected at most {limits[1]} and {limits[2]}')
    return wrong


def main():
    args = _script.parser().parse_args()
    _xla_gpu.require_plugin()
    modules = {'forward': layer(forward, 1), 'step': layer(step, 2), 'remat': layer(remat, 2)}
    bad = [f'{name} {recipe}: {line}' for (name, recipe), limits in LAYERS.items()
           for line in check_layer(args, name, modules[name], recipe, *limits)]
    bad += ['microbatches: ' + line for line in check_microbatches(args, layer(accumulate, 2, (4,)))]
    sharded = {'fsdp': FSDP.encode(), 'tp': TENSOR_PARALLEL.encode(), 'layer': tensor_parallel()}
    bad += [f'{name} {recipe}: {line}' for name, recipe, *wanted in SHARDED
            for line in check_sharded(args, name, sharded[name], recipe, *wanted)]
    print('\n'.join(bad) or f'{len(SHARDED)} sharded modules and {len(LAYERS) + 1} layers as expected')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
