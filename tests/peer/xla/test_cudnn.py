#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Executes modules before and after XLA's GPU compiler replaces opcodes by calls of cuDNN: convolutions of one to three
dimensions and of each type, their gradients, fused operations, FP8 convolutions, layer norms, and attention. The
results must agree within their error bounds, and each kind of call must occur. The same holds for the fusions of
convolutions that XLA makes with an experimental flag.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

os.environ['JAX_PLATFORMS'] = 'cpu'
os.environ['JAX_SKIP_CUDA_CONSTRAINTS_CHECK'] = '1'

import jax
import jax.numpy as jnp
from jax import lax

import _script
import _xla_gpu

HERE = pathlib.Path(__file__).parent
CALLS = {'convForward', 'convBackwardInput', 'convBackwardFilter', 'convBiasActivationForward', 'norm'}
FP8 = jnp.float8_e4m3fn


def convolution(spatial, groups=1, strides=None, padding=None, dilation=None, first=False):
    """Returns a convolution whose features are the first or the last dimension after the batch."""
    dims = 'DHW'[-spatial:]
    numbers = (f'NC{dims}', f'OI{dims}', f'NC{dims}') if first else (f'N{dims}C', f'{dims}IO', f'N{dims}C')
    return lambda x, w, **options: lax.conv_general_dilated(
        x, w, strides or [1] * spatial, padding or [(1, 1)] * spatial, rhs_dilation=dilation, dimension_numbers=numbers,
        feature_group_count=groups, **options)


def with_gradients(f):
    def run(x, w, dy):
        y, gradient = jax.vjp(f, x, w)
        return y, *gradient(dy)
    return run


def integer(x, w, bias):
    y = convolution(2)(x, w, preferred_element_type=jnp.int32).astype(jnp.float32)
    return lax.clamp(-128.0, jax.nn.relu(y * 0.25 + bias), 127.0).astype(jnp.int8)


def fp8(x, w, scale, added):
    y = jax.nn.relu(convolution(2)(x.astype(jnp.float32) * scale, w.astype(jnp.float32)) + added)
    return lax.clamp(-448.0, y / scale, 448.0).astype(FP8), jnp.max(jnp.abs(y))


def layer_norm(x, scale, shift):
    apart = x - jnp.mean(x, -1, keepdims=True)
    return apart * lax.rsqrt(jnp.mean(apart * apart, -1, keepdims=True) + 1e-5) * scale + shift


def shapes(dtype, *dims):
    return [jax.ShapeDtypeStruct(d, dtype) for d in dims]


def cases():
    """Returns functions and the shapes of their arguments."""
    f32, f16, bf16 = jnp.float32, jnp.float16, jnp.bfloat16
    image, kernel, result = (2, 9, 8, 4), (3, 3, 4, 8), (2, 9, 8, 8)
    square = convolution(2)
    norm = (6, 5, 32), (32,), (32,), (6, 5, 32)
    return [
        (with_gradients(square), shapes(f32, image, kernel, result)),
        (with_gradients(convolution(2, strides=(2, 1), padding=((1, 2), (0, 1)))), shapes(bf16, image, kernel, (2, 5, 7, 8))),
        (with_gradients(convolution(1, dilation=(2,), first=True)), shapes(f32, (2, 4, 11), (6, 4, 3), (2, 6, 9))),
        (with_gradients(convolution(3, strides=(1, 2, 1))), shapes(f16, (1, 4, 5, 6, 2), (3, 3, 3, 2, 4), (1, 4, 3, 6, 4))),
        (with_gradients(convolution(2, groups=2)), shapes(f32, image, (3, 3, 2, 8), result)),
        (with_gradients(convolution(2, groups=4)), shapes(bf16, image, (3, 3, 1, 8), result)),
        (lambda x, w, b: jax.nn.relu(square(x, w) * 2 + b), shapes(bf16, image, kernel, (8,))),
        (lambda x, w, b: jax.nn.elu(square(x, w) + b), shapes(f16, image, kernel, (8,))),
        (lambda x, w, z: jax.nn.relu(square(x, w) + z * 0.5), shapes(f32, image, kernel, result)),
        (integer, shapes(jnp.int8, image, kernel) + shapes(f32, (8,))),
        (lambda x, g, b, dy: (layer_norm(x, g, b), *jax.vjp(layer_norm, x, g, b)[1](dy)), shapes(f32, *norm)),
    ]


def compare(args, path, compiled):
    done = subprocess.run([args.bin / 'hlo-fp8-run', compiled, f'--compare={path}'], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f'{compiled}: status {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-1000:]}')


def compile_and_compare(args, name, text, calls):
    """Compiles the module, which XLA must replace by these calls, and compares it with the result."""
    path, compiled = args.work / f'{name}.hlo', args.work / f'{name}.xla.hlo'
    path.write_text(text)
    flags = '--xla_gpu_enable_cudnn_layer_norm=true --xla_gpu_use_runtime_fusion=true'
    with open(compiled, 'w') as out:
        subprocess.run([sys.executable, HERE / '_xla_gpu.py', path, f'--xla-flags={flags}'], check=True, stdout=out)
    found = set(re.findall(r'"__cudnn\$(\w+)"', compiled.read_text()))
    if found != calls:
        sys.exit(f'{compiled} has calls of {", ".join(sorted(found))}, expected {", ".join(sorted(calls))}')
    compare(args, path, compiled)


def compare_fusions(args, text):
    """Compares the module with the stage in which XLA has made fusions of convolutions. Compiling these needs a GPU."""
    path, folder = args.work / 'fusions.hlo', args.work / 'fusions'
    path.write_text(text)
    shutil.rmtree(folder, ignore_errors=True)
    flags = '--xla_gpu_experimental_enable_conv_fusion=true --xla_dump_hlo_pass_re=conv-fusion-rewriter'
    subprocess.run([sys.executable, HERE / '_xla_gpu.py', path, '--keep', folder, f'--xla-flags={flags}'], capture_output=True)
    [stage] = folder.glob('*.after_conv-fusion-rewriter.*.txt')
    kinds = set(re.findall(r'convolution_kind=(\w+)', stage.read_text()))
    assert kinds == {'fprop', 'dgrad', 'wgrad'}, kinds
    compare(args, path, stage)


def main():
    args = _script.parser(pathlib.Path).parse_args()
    _xla_gpu.require_plugin()
    functions, arguments = zip(*cases())
    text = jax.jit(lambda all: [f(*each) for f, each in zip(functions, all)]).lower(list(arguments)).as_text('hlo')
    compile_and_compare(args, 'calls', text, CALLS)
    # XLA fuses nothing else in a computation with an FP8 convolution.
    arguments = shapes(FP8, (2, 9, 8, 16), (3, 3, 16, 16)) + shapes(jnp.float32, (), (2, 9, 8, 16))
    compile_and_compare(args, 'fp8', jax.jit(fp8).lower(*arguments).as_text('hlo'), {'convForwardGraph'})
    text = (args.models.parent / 'run' / 'cudnn-attention.hlo').read_text()
    compile_and_compare(args, 'attention', text, {'fmhaSoftmax', 'fmhaScaleBiasSoftmax', 'fmhaScaleBiasSoftmaxBackward'})
    gradients, arguments = cases()[0]
    compare_fusions(args, jax.jit(gradients).lower(*arguments).as_text('hlo'))


if __name__ == '__main__':
    main()
