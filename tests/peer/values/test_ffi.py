#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs typed calls of `--emit=ffi` with libhlofp8_ffi.so inside JAX, on the CPU.

Each kind of call in the models and golden tests runs separately, and calls run in every layout: XLA's result equals
that of hlo-fp8-run, bit for bit. Whole models agree within the bounds derived from the data, because XLA computes the
rest. Sharded over eight devices, on exact data, results equal JAX's. Errors become Python exceptions.
"""
import concurrent.futures
import contextlib
import ctypes
import dataclasses
import io
import itertools
import os
import re
import subprocess
import sys

os.environ['JAX_PLATFORMS'] = 'cpu'
os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=8 --xla_allow_excess_precision=false'
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')  # hides warnings about tables that a module of one call lacks

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import export  # noqa: E402
from jax._src.export import _export  # noqa: E402
from jax._src.interpreters import mlir as jax_mlir  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402
from jaxlib import _jax  # noqa: E402
from jaxlib.mlir import ir  # noqa: E402

import _script  # noqa: E402
import _xla_cpu  # noqa: E402

TESTDATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '..', 'testdata')
GOLDENS = ('run/calls-all', 'run/calls-used', 'run/calls-scaled', 'passes/emit/epilogues', 'passes/emit/f16',
           'passes/emit/gelu', 'passes/emit/measured', 'passes/emit/layouts')
WHOLE = ('seed_relu_damax', 'bias_gelu_tanh', 'residual', 'batched', 'rowwise_before', 'scan_layers', 'mlp_qdq_train',
         'encoder_qdq_fwd')
CALL = re.compile(r'= (\(.*?\)|\S+) custom-call\([^)]*\), (custom_call_target="hlofp8\.matmul", '
                  r'operand_layout_constraints=\{(.*?)\}, (?=\w+=).*?backend_config=\{.*?\})(?:, |$)', re.M)
SHAPE = re.compile(r'\w+\[[\d,]*\](?:\{[\d,]*\})?')


def opt(args, path, *options):
    """Returns the path of a module with typed calls, and its text."""
    out = os.path.join(args.work, os.path.basename(path) + '.ffi.hlo')
    subprocess.run([os.path.join(args.bin, 'hlo-fp8-opt'), '--emit=ffi', *options, path, '-o', out], check=True,
                   capture_output=True)
    with open(out) as f:
        return out, f.read()


def alone(result, attributes, constraints):
    """Returns a module with only the call, without the workspace among its results."""
    operands = SHAPE.findall(constraints)
    results = [shape for shape in SHAPE.findall(result) if not shape.startswith('s8[')]
    lines = [f'  p{i} = {shape} parameter({i})' for i, shape in enumerate(operands)]
    lines.append(f'  call = {result} custom-call({", ".join(f"p{i}" for i in range(len(operands)))}), {attributes}')
    if result.startswith('('):
        lines += [f'  r{i} = {shape} get-tuple-element(call), index={i}' for i, shape in enumerate(results)]
        lines.append(f'  ROOT all = ({", ".join(results)}) tuple({", ".join(f"r{i}" for i in range(len(results)))})')
    else:
        lines[-1] = lines[-1].replace('call =', 'ROOT call =')
    return 'HloModule alone\n\nENTRY e {\n' + '\n'.join(lines) + '\n}\n'


def known_calls(args):
    """Returns modules with one call each: every kind of call once."""
    paths = [os.path.join(TESTDATA, name + '.hlo') for name in GOLDENS]
    paths += [os.path.join(args.models, name) for name in sorted(os.listdir(args.models))
              if name.endswith('.hlo') and not name.endswith(('.xla.hlo', '.spmd.hlo'))]
    found = {}
    for path in paths:
        _, text = opt(args, path, *(['--passes='] if 'calls-' in path else []))
        calls = [CALL.search(line) for line in text.splitlines() if 'hlofp8.matmul' in line]
        if not all(calls):
            sys.exit(f'{path}: a call is not recognized')
        for call in calls:
            found.setdefault(alone(*call.groups()), os.path.basename(path))
    return [(f'{name}, call {i}', text) for i, (text, name) in enumerate(found.items())]


ORDERS = [list(order) for order in itertools.permutations(range(3))]


def layouts(args):
    """Returns a batched call with a matrix and an auxiliary result, with each array in every layout, and some
    combinations."""
    for i, order in enumerate(ORDERS):
        kinds = [order, ORDERS[-i], ORDERS[(2 * i + 1) % 6], ORDERS[(i + 3) % 6], ORDERS[(5 * i + 2) % 6]]
        a, b, c, d, aux = ('{' + ','.join(str(n) for n in kind) + '}' for kind in kinds)
        result = f'(bf16[2,16,48]{d}, bf16[2,16,48]{aux}, s8[64]{{0}})'
        text = f'''HloModule layouts

ENTRY e {{
  a = f8e4m3fn[2,16,32]{a} parameter(0)
  b = f8e4m3fn[2,32,48]{b} parameter(1)
  c = bf16[2,16,48]{c} parameter(2)
  s = f32[] parameter(3)
  v = bf16[48]{{0}} parameter(4)
  ROOT call = {result} custom-call(a, b, c, s, s, v), custom_call_target="__cublas$lt$matmul$f8", backend_config={{"gemm_backend_config":{{"alpha_real":0.5,"beta":2,"dot_dimension_numbers":{{"lhs_contracting_dimensions":["2"],"rhs_contracting_dimensions":["1"],"lhs_batch_dimensions":["0"],"rhs_batch_dimensions":["0"]}},"epilogue":"BIAS_GELU_AUX"}}}}
}}
'''
        path = os.path.join(args.work, f'layouts{i}.hlo')
        with open(path, 'w') as f:
            f.write(text)
        _, text = opt(args, path, '--passes=')
        yield f'layouts {i}', alone(*CALL.search(text).groups())


def execute(path, inputs, outputs):
    with contextlib.redirect_stdout(io.StringIO()):
        _xla_cpu.main([path, '--save-inputs', inputs, '--outputs', outputs])


def differences(args, name, text):
    """Returns the differences of a module with one call, compared bit for bit."""
    at = os.path.join(args.work, re.sub(r'\W', '_', name))
    with open(at + '.hlo', 'w') as f:
        f.write(text)
    execute(at + '.hlo', at + '.in.npz', at + '.xla.npz')
    subprocess.run([os.path.join(args.bin, 'hlo-fp8-run'), at + '.hlo', '--inputs=' + at + '.in.npz',
                    '--outputs=' + at + '.ours.npz'], check=True, capture_output=True)
    ours, theirs = np.load(at + '.ours.npz'), np.load(at + '.xla.npz')
    names = sorted(set(ours) | set(theirs))
    return [f'{name}: result {i} differs' for i in names
            if i not in ours or i not in theirs or ours[i].tobytes() != theirs[i].tobytes()]


def whole(args, name):
    path, text = opt(args, os.path.join(args.models, name + '.hlo'))
    if 'hlofp8.matmul' not in text:
        return [f'{name}: no typed call']
    inputs, outputs = path + '.in.npz', path + '.npz'
    execute(path, inputs, outputs)
    done = subprocess.run([os.path.join(args.bin, 'hlo-fp8-run'), path, '--inputs=' + inputs, '--compare=' + outputs],
                          capture_output=True, text=True)
    return [f'{name}: {done.stdout}{done.stderr}'] if done.returncode else []


# ------------------------------------------------------------------------------------------------ sharded


def rewritten(args, function, *arguments):
    """Returns the function with its module rewritten, and that module's text."""
    path = os.path.join(args.work, 'sharded.hlo')
    with open(path, 'w') as f:
        f.write(function.lower(*arguments).as_text(dialect='hlo'))
    made, text = opt(args, path)
    subprocess.run([os.path.join(args.bin, 'hlo-fp8-opt'), '--passes=', '--emit=ffi', '--format=pb', made, '-o', path + '.pb'],
                   check=True)
    with open(path + '.pb', 'rb') as f:
        code = _jax.mlir.hlo_to_stablehlo(f.read())
    with jax_mlir.make_ir_context():
        code = _export._module_to_bytecode(ir.Module.parse(code))
    exported = export.export(function)(*arguments)
    return dataclasses.replace(exported, mlir_module_serialized=code).call, text


def sharded(args):
    """Shards rows of x over one axis of a 4 x 2 mesh, and columns of w over the other; values are small enough to be
    exact."""
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ('d', 'm'))
    by_row, by_column, everywhere = PartitionSpec('d', None), PartitionSpec('m', None), PartitionSpec()

    def matmul(x, w, s, t):
        product = (x.astype(jnp.bfloat16) * s.astype(jnp.bfloat16)) @ (w.astype(jnp.bfloat16) * t.astype(jnp.bfloat16)).T
        return jax.nn.relu(product)

    specs = (by_row, by_column, everywhere, everywhere)
    placed = tuple(NamedSharding(mesh, spec) for spec in specs)
    rng = np.random.default_rng(0)
    values = [rng.integers(-2, 3, (64, 32)), rng.integers(-2, 3, (96, 32)), np.float32(2), np.float32(0.5)]
    arguments = [jax.device_put(jnp.asarray(v, jnp.float8_e4m3fn if v.ndim else jnp.float32), at)
                 for v, at in zip(values, placed)]
    wanted = np.maximum(values[0] @ values[1].T, 0)
    problems = []
    ways = {'of the compiler': matmul,
            'of the function': jax.shard_map(matmul, mesh=mesh, in_specs=specs, out_specs=PartitionSpec('d', 'm'))}
    for way, function in ways.items():
        jitted = jax.jit(function, in_shardings=placed)
        call, text = rewritten(args, jitted, *arguments)
        rows = 'f8e4m3fn[16,32]' if way == 'of the function' else 'f8e4m3fn[64,32]'
        if not re.search(r'hlofp8\.matmul.*operand_layout_constraints=\{' + re.escape(rows), text):
            problems.append(f'shards {way}: no typed call of {rows}')
        found = jax.jit(call, in_shardings=placed)(*arguments)
        if not np.array_equal(np.asarray(found, np.float32), wanted):
            problems.append(f'shards {way}: the result differs')
    return problems


# ------------------------------------------------------------------------------------------------- direct


def called(epilogue='RELU', beta=0.0):
    """Tests a JAX function that makes a typed call directly, without a module of hlo-fp8."""
    call = jax.ffi.ffi_call('hlofp8.matmul', jax.ShapeDtypeStruct((16, 48), jnp.float32))
    dims = np.array([1], np.int64)
    return jax.jit(lambda a, b, s: call(a, b, s, s, alpha_real=np.float64(1), beta=np.float64(beta), epilogue=epilogue,
                                        lhs_contracting_dimensions=dims, rhs_contracting_dimensions=dims))


def direct():
    rng = np.random.default_rng(1)
    values = [rng.integers(-2, 3, (16, 32)), rng.integers(-2, 3, (48, 32))]
    a, b = (jnp.asarray(v, jnp.float8_e4m3fn) for v in values)
    one, wanted, problems = jnp.float32(1), np.maximum(values[0] @ values[1].T, 0), []
    function = called()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: np.asarray(function(a, b, one)), range(200)):
            if not np.array_equal(found, wanted):
                problems.append('a call among others differs')
                break
    for wrong, why in ((lambda: called('RELUU')(a, b, one), "did you mean 'RELU'?"),
                       (lambda: called(beta=1.0)(a, b, one), 'c and the result have different dimensions'),
                       (lambda: called()(a, b[:, :16], one), 'the contracting dimensions of the operands have different sizes'),
                       (lambda: called()(a, b.astype(jnp.float32), one), 'a or b is not fp8')):
        try:
            jax.block_until_ready(wrong())
            problems.append(f'no error: {why}')
        except jax.errors.JaxRuntimeError as error:
            if why not in str(error) or 'hlofp8.matmul(f8e4m3fn[16,32], ' not in str(error):
                problems.append(f'another error: {error}')
    return problems


def main():
    args = _script.parser().parse_args()
    library = ctypes.CDLL(os.path.join(args.bin, '..', 'libhlofp8_ffi.so'))
    jax.ffi.register_ffi_target('hlofp8.matmul', jax.ffi.pycapsule(library.hlofp8_ffi_matmul_cpu), platform='cpu')
    calls = known_calls(args)
    problems, several = [], list(layouts(args))
    for name, text in calls + several:
        problems += differences(args, name, text)
    for name in WHOLE:
        problems += whole(args, name)
    problems += sharded(args) + direct()
    print('\n'.join(problems))
    print(f'{len(calls)} calls, {len(several)} layouts, {len(WHOLE)} models; {len(problems)} problems')
    return 1 if problems or not calls else 0


if __name__ == '__main__':
    sys.exit(main())
