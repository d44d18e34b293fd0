#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the forms of modules that the package converts to HLO, and the snapshots that it runs, also those of XLA."""
import base64
import os
import pathlib
import re
import shutil
import subprocess
import sys
import types

os.environ['JAX_PLATFORMS'] = 'cpu'
os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=8'

import _cases
import jax
import jax.export
import jax.numpy as jnp
import numpy as np


def functions():
    import _functions
    return _functions


def half(x, w):
    """Computes one FP8 matmul and one wide matmul."""
    return functions().mm(x, w), x @ w


def lowered():
    f = functions()
    return jax.jit(half).lower(f.X, f.W)


def exported():
    f = functions()
    return jax.export.export(jax.jit(half))(f.X, f.W)


def forms():
    """Yields the name of a form, and the same function in that form."""
    low, exp, f = lowered(), exported(), functions()
    yield 'StableHLO text', low.as_text()
    yield 'StableHLO text with locations', low.as_text(debug_info=True)
    yield 'bytes of StableHLO text', low.as_text().encode()
    yield 'StableHLO bytecode', exp.mlir_module_serialized
    yield 'bytearray', bytearray(exp.mlir_module_serialized)
    yield 'ir.Module', low.compiler_ir()
    yield 'XlaComputation', low.compiler_ir('hlo')
    yield 'Exported', exp
    yield 'serialized Exported', exp.serialize()
    yield 'Traced', jax.jit(half).trace(f.X, f.W)
    yield 'Lowered', low


def converts(args):
    """Every form of a function has the verdicts, the source lines and the results of the function."""
    import hlofp8
    f = functions()
    wanted = jax.jit(half)(f.X, f.W)
    for name, module in forms():
        found = hlofp8.rewrite(module)
        assert [v.kind for v in found.verdicts] == ['fp8', 'wide'], name
        if 'text' not in name or 'locations' in name:
            assert all(v.source_file and v.source_file.endswith('.py') for v in found.verdicts), name
        explained = hlofp8.explain(module)
        assert [v.kind for v in explained] == ['fp8', 'wide'], name
        inputs = [np.asarray(f.X), np.asarray(f.W)]
        assert hlofp8.compare(module, found, inputs), name
        assert hlofp8.compare(module, [np.asarray(y) for y in wanted], inputs), name
        assert hlofp8.compare(found, module, inputs), name
        assert len(hlofp8.run(module, inputs)) == 2, name
    compiled = lowered().compile()
    assert len(hlofp8.explain(compiled)) == len(hlofp8.rewrite(compiled).verdicts) > 0
    assert hlofp8.compare(compiled, [np.asarray(y) for y in wanted], inputs)
    amaxes = hlofp8.record_amaxes(lowered().as_text(), *inputs)
    assert amaxes['amaxes']
    return f'{len(list(forms()))} forms'


def files(args):
    """A file of each form is converted, also by `python -m hlofp8 to-hlo`, and a folder of JAX_DUMP_IR_TO."""
    import hlofp8
    folder = pathlib.Path(args.work) / 'forms'
    folder.mkdir(exist_ok=True)
    made = 0
    for name, module in forms():
        if not isinstance(module, (str, bytes, bytearray)):
            continue
        made += 1
        path = folder / f'{made}.in'
        path.write_bytes(module.encode() if isinstance(module, str) else module)
        for given in (path, str(path)):
            assert [v.kind for v in hlofp8.rewrite(given).verdicts] == ['fp8', 'wide'], name
        for out, start in ((folder / 'out.hlo', b'HloModule jit_half'), (folder / 'out.hlo.pb', b'\n\x08jit_half')):
            done = to_hlo(args, str(path), '-o', str(out))
            assert done.returncode == 0 and not done.stdout and not _cases.without_log(done.stderr.decode()), (name, done)
            assert out.read_bytes().startswith(start), name
            assert [v.kind for v in hlofp8.rewrite(out).verdicts] == ['fp8', 'wide'], name
    dump = folder / 'dump'
    shutil.rmtree(dump, ignore_errors=True)
    code = 'import jax; jax.jit(lambda x: x @ x).lower(jax.ShapeDtypeStruct((8, 8), "float32")).compile()'
    subprocess.run([sys.executable, '-c', code], env={**os.environ, 'JAX_DUMP_IR_TO': str(dump)}, check=True)
    assert len(hlofp8.rewrite(dump).verdicts) == len(hlofp8.rewrite(str(dump)).verdicts) == 1
    assert to_hlo(args, str(dump)).stdout.startswith(b'HloModule')
    (dump / 'other.mlir').write_text('module @m {}')
    fails(hlofp8.Error, 'dump has 2 modules; pass one of these files: jax_ir', lambda: hlofp8.rewrite(dump))
    fails(hlofp8.Error, 'has no .mlir files', lambda: hlofp8.rewrite(folder / '..'))
    saved = folder / 'saved'
    shutil.rmtree(saved, ignore_errors=True)
    (saved / 'functions').mkdir(parents=True)
    shutil.copy(folder / '1.in', saved / 'functions' / 'forward.mlir')
    assert len(hlofp8.rewrite(saved).verdicts) == 2  # as save_as_stablehlo of torch_xla writes it
    (saved / 'saved_model.pb').touch()
    fails(hlofp8.Error, 'saved is a SavedModel of TensorFlow; pass hlofp8.explain one of its functions, such as tf.function(', lambda: hlofp8.rewrite(saved))
    return f'{made} files'


def to_hlo(args, *arguments):
    command = [sys.executable, '-m', 'hlofp8', 'to-hlo', *arguments]
    return subprocess.run(command, env={**os.environ, 'PYTHONPATH': args.site}, capture_output=True)


def fails(kind, said, call):
    try:
        call()
    except kind as error:
        assert said in str(error), error
    else:
        raise AssertionError(f'not refused: {said}')


def refuses(args):
    """Modules that cannot be converted are rejected with the reason."""
    import hlofp8
    from hlofp8 import _convert
    cannot = 'the StableHLO module cannot be converted to HLO: '
    fails(hlofp8.Error, cannot, lambda: hlofp8.rewrite('module @m { func.func public @main() { foo } }'))
    fails(hlofp8.Error, cannot, lambda: hlofp8.rewrite(b'ML\xefR' + b'x' * 100))
    size, = jax.export.symbolic_shape('n')
    dynamic = jax.export.export(jax.jit(lambda x: x * 2))(jax.ShapeDtypeStruct((size,), jnp.float32))
    fails(hlofp8.Error, "op can't be translated to XLA HLO", lambda: hlofp8.rewrite(dynamic))
    fails(hlofp8.Error, 'the serialized jax.export.Exported cannot be read', lambda: hlofp8.rewrite(b'<\0\0\0' + b'ML\xefR' * 9))
    fails(TypeError, 'to get HLO: in JAX, jax.jit(f).lower(...); in TensorFlow, f.experimental_get', lambda: hlofp8.rewrite(3))
    fails(TypeError, 'arguments require a function', lambda: hlofp8.explain(exported(), 1))
    done = to_hlo(args, 'nowhere.mlir', '-o', os.path.join(args.work, 'none.hlo'))
    assert done.returncode == 1 and b'nowhere.mlir: error: cannot read file' in done.stderr, done
    done = to_hlo(args, __file__)
    assert done.returncode == 1 and re.search(rb'test_forms.py:\d+:\d+: error:', done.stderr), done
    part = _convert.importlib.import_module
    try:
        _convert.importlib = types.SimpleNamespace(import_module=lambda name: part('absent.' + name))
        fails(hlofp8.Error, 'converting StableHLO requires jaxlib._jax.mlir', lambda: hlofp8.rewrite(lowered().as_text()))
        fails(hlofp8.Error, 'pass HLO instead: in JAX, jax.jit(f).lower(...)', lambda: hlofp8.rewrite(lowered().as_text()))
    finally:
        import importlib
        _convert.importlib = importlib


#: What torch_xla 2.9.0 makes of relu(Linear(32, 16)) in bf16, exported without weights: exported_program_to_stablehlo cannot
#: export bf16 weights.
TORCH_BF16 = base64.b64decode(
    'TUzvUg1TdGFibGVITE9fdjEuMTMuMAABIwUBBRMBAwsDEQ8TFxsfIycrA4tZHwE9BwsPKwsLCwsLDwsPCw8LDwsbCwsPCw8LDwsPCw8LAx0LCw'
    '8vCwsLCxdPC08TLwEDCwMdFwcHExcXEx8XEwcTBxMCcgMfAQERAQADCQkDCwMNBQ8FBRcFGQUbBR0FHx0VAQUhHRkBBSMdHQEFJR0hAQUnAwUl'
    'TydRBSkFKx0rAQUtHS8BBS8dMwEFMR03AQUzHTsBBTUjGwMBHx0BHw8RAQAAAAAAAAAXASMRHTcdOR8DBQAAHxUhAAAAAAAAAAABAAAAAAAAAB'
    '07HxkhAQAAAAAAAAAAAAAAAAAAAAMFRUUfDxEAAAAAAAAAAAEJKQUhQQUFHSkDQQUpBUGBBSkFIYEFKQMFBxEHCQsNAwMpBYFBBSkDCRcTKQMJ'
    'B0MpAwEHBKcFAVEBBwEHBJUDAQUDUAEDBwSBAxMfBxMTFxcbGwAFQh8FAwMHRykjBwMTAwMJRi0JAwMFBQkLRjELAwMDAQ0GNQMDBQsNDwY5Aw'
    'MFDwcRBAEDEQYDAQUBAP4FPSMDCxcPGQ0ZFR0bCwsLF0EhMT0VFw8pHxsZEQ8LEWJ1aWx0aW4AdmhsbwBtb2R1bGUAZnVuY192MQBjb25zdGFu'
    'dF92MQB0cmFuc3Bvc2VfdjEAZG90X2dlbmVyYWxfdjIAYnJvYWRjYXN0X2luX2RpbV92MQBhZGRfdjEAbWF4aW11bV92MQByZXR1cm5fdjEAbW'
    'hsby5jcm9zc19wcm9ncmFtX3ByZWZldGNoZXMAbWhsby5pbnB1dF9vdXRwdXRfYWxpYXMAbWhsby5pc19keW5hbWljAG1obG8udXNlX2F1dG9f'
    'c3BtZF9wYXJ0aXRpb25pbmcASXJUb0hsby4xNQBwMC4xAHAxLjIAcDIuNABicm9hZGNhc3QuMTIAcmVzdWx0X2xheW91dAB4bGFfc2hhcGUAdH'
    'JhbnNwb3NlLjMAZG90LjUAYnJvYWRjYXN0LjkAYWRkLjEwAG1heGltdW0uMTMAbWFpbgAAYmYxNlszMiwxNl17MCwxfQAIOw0FIwELP0c/SUsD'
    'TQNTGT09QT1DPT1VQT1XPQND')


class ConcreteFunction:
    """A fake of TensorFlow's class."""
    graph, structured_input_signature = None, ()

    def __call__(self):
        raise AssertionError


class Tensor:
    """A fake of a class of torch or TensorFlow."""
    shape = ()

    def __init__(self, device):
        self.device = types.SimpleNamespace(type=device)


class ExportedProgram:
    """A fake of torch.export's class."""
    graph_signature = graph_module = None

    def __call__(self):
        raise AssertionError


def other_frameworks(args):
    """Objects of TensorFlow and PyTorch are converted by their packages, here by fakes."""
    import hlofp8
    proto = lowered().compiler_ir('hlo').as_serialized_hlo_module_proto()
    stages = []

    def compiler_ir(stage):
        stages.append(stage)
        return proto

    tensorflow = 'tensorflow.python.eager.polymorphic_function.compiler_ir'
    program = types.SimpleNamespace(get_stablehlo_bytecode=lambda: exported().mlir_module_serialized)
    fails(hlofp8.Error, f'converting a concrete function requires {tensorflow}.from_concrete_function', lambda: hlofp8.rewrite(ConcreteFunction()))
    fails(hlofp8.Error, 'converting an ExportedProgram requires torch_xla.stablehlo.exported_program_to_stablehlo', lambda: hlofp8.rewrite(ExportedProgram()))
    fakes = {tensorflow: types.SimpleNamespace(from_concrete_function=lambda function: compiler_ir),
             'torch_xla.stablehlo': types.SimpleNamespace(StableHLOExportOptions=types.SimpleNamespace,
                                                        exported_program_to_stablehlo=lambda given, options: options.export_weights or program)}
    pending, given = [proto], []
    xlac = types.SimpleNamespace(_get_xla_tensors_hlo=lambda tensors: hlofp8.rewrite(proto, passes='').text,
                                 _get_xla_tensors_hlo_proto=lambda tensors: given.append(tensors) or pending[0])
    fakes['torch_xla'] = types.SimpleNamespace(_XLAC=xlac)
    for path in list(fakes):
        for i in range(path.count('.') + 1):
            fakes.setdefault(path.rsplit('.', i)[0], types.ModuleType(path.rsplit('.', i)[0]))
    seen = []

    def function(a, b):
        raise AssertionError

    function.experimental_get_compiler_ir = None
    function.get_concrete_function = lambda *given, **named: seen.append((given, named)) or ConcreteFunction()
    before = set(sys.modules)
    sys.modules.update(fakes)
    try:
        for module in (ConcreteFunction(), ExportedProgram(), program):
            assert [v.kind for v in hlofp8.rewrite(module).verdicts] == [v.kind for v in hlofp8.explain(module)] == ['fp8', 'wide']
        program.get_stablehlo_bytecode = lambda: TORCH_BF16
        assert [v.shape for v in hlofp8.explain(ExportedProgram())] == ['bf16[8,16]']
        assert [v.kind for v in hlofp8.explain(function, 1, b=2, target='sm_100')] == ['fp8', 'wide'] and seen == [((1,), {'b': 2})]
        tensor, other = Tensor('xla'), Tensor('cpu')
        for module in tensor, [tensor, tensor], (tensor,):
            assert [v.kind for v in hlofp8.explain(module)] == ['fp8', 'wide']
        assert given == [[tensor], [tensor, tensor], [tensor]]
        pending[0] = b''
        fails(hlofp8.Error, 'the tensors have no pending operations; pass them before torch_xla.sync()', lambda: hlofp8.explain(tensor))
        del xlac._get_xla_tensors_hlo_proto
        assert [v.kind for v in hlofp8.explain(tensor)] == ['fp8', 'wide'] and len(given) == 4
        for module in other, [tensor, other], []:
            fails(TypeError, 'module must be HLO text', lambda: hlofp8.explain(module))
        fakes[tensorflow].from_concrete_function = lambda function: lambda stage: int('?')
        fails(hlofp8.Error, "'?'; pass hlofp8.explain a tf.function, such as tf.function(f), and arguments with static", lambda: hlofp8.explain(function, 1, b=2))
    finally:
        for name in set(sys.modules) - before:
            del sys.modules[name]
    assert set(stages) == {'hlo_serialized'}
    fails(TypeError, 'advise accepts no tf.function; pass f.get_concrete_function(...)', lambda: hlofp8.advise(function, 1, 2))


def instead(args):
    """For a model or a function of another framework, the error says what to pass instead."""
    import hlofp8

    def of(package, base=object, **members):
        return type('Model', (type('Base', (base,), {'__module__': package + '.base', **members}),), {'__call__': lambda self, *args: args})

    def model(x):
        raise AssertionError

    f = '; pass tf.function(f), and its arguments'
    torch = '; pass the tensors that it returns on torch_xla.device(), or torch.export.export(model, args)'
    for what, given, said in ((of('keras')(), (), 'Model is neither a function of JAX nor a module' + f), (model, (of('tensorflow', Tensor)('cpu'),), 'function is neither a function of JAX nor a module' + f),
                              (of('tensorflow', signatures={})(), (1,), 'a module; pass tf.function(model.signatures["serving_default"]), and its arguments'),
                              (of('tensorflow', ConcreteFunction)(), (1,), 'arguments require a function, not Model' + f),
                              (of('torch')(), (1,), 'Model is neither a function of JAX nor a module' + torch), (model, (of('torch', Tensor)('cpu'),), torch)):
        fails(TypeError, said, lambda: hlofp8.explain(what, *given))
    fails(TypeError, 'arguments require a function, not Model', lambda: hlofp8.explain(of('torch', ExportedProgram)(), 1))


def snapshots(args):
    """run() and the like use the inputs of a snapshot, and compare() its result."""
    import hlofp8
    sys.path.insert(0, os.path.join(_cases.SOURCE, 'testdata', 'run'))
    import snapshot
    module, work = os.path.join(_cases.SOURCE, 'testdata', 'run', 'snapshot.hlo'), pathlib.Path(args.work)
    (work / 'm.pb').write_bytes(hlofp8.rewrite(module, passes='').proto)
    inputs = hlofp8.draw(module, seed=5)
    outputs = hlofp8.run(module, inputs)
    np.savez(work / 'in.npz', *[x.view(f'u{x.itemsize}') if x.dtype.kind == 'V' else x for x in inputs])
    np.savez(work / 'out.npz', *[x.view(f'u{x.itemsize}') if x.dtype.kind == 'V' else x for x in outputs])
    snapshot.main('snapshot', work / 'm.pb', work / 's.pb', work / 'in.npz', work / 'out.npz')
    equal = lambda found: all(np.array_equal(a, b) for a, b in zip(found, outputs, strict=True))
    for given in (work / 's.pb', (work / 's.pb').read_bytes(), hlofp8.rewrite(work / 's.pb')):
        assert equal(hlofp8.run(given)) and hlofp8.compare(given), given
    assert not equal(hlofp8.run(module))
    drawn = hlofp8.draw(work / 's.pb')
    assert not hlofp8.compare(work / 's.pb', None, drawn)
    fails(hlofp8.Error, 'the module has no recorded result', lambda: hlofp8.compare(module))


# Runs a function with arguments of types that the messages store in different ways, and saves the results.
DUMPED = """
import jax
import jax.numpy as jnp
import numpy as np
draw = np.random.default_rng(0)
normal = lambda dtype, *shape: jnp.asarray(draw.standard_normal(shape), dtype)
args = [normal('float32', 3, 5), jnp.asarray(draw.integers(0, 2, 13), bool), jnp.asarray(draw.integers(-8, 8, 7), 'int4'),
        jnp.asarray(draw.integers(0, 4, 9), 'uint2'), normal('float8_e4m3fn', 4, 4), normal('complex64', 3), normal('float16', 2, 2),
        jnp.asarray([1, -2], 'int8'), jnp.zeros((0, 3)), normal('float4_e2m1fn', 6), jnp.asarray([7, -1], 'int32')]
wide = lambda x: x.astype({'i': 'int32', 'u': 'int32', 'V': 'float32', 'f': x.dtype, 'c': x.dtype, 'b': bool}[x.dtype.kind])
f = jax.jit(lambda *args: [~x if x.dtype == bool else wide(x) * 2 for x in args])
np.savez('results.npz', *f(*args))
"""


def dumped_by_xla(args):
    """The snapshots that XLA writes have the arguments and the results of the call."""
    import hlofp8
    for option, form in ('snapshots', 'snapshot.*'), ('unoptimized_snapshots', '*.hlo_unoptimized_snapshot'):
        folder = pathlib.Path(args.work) / option
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        flags = f'--xla_dump_to=. --xla_dump_hlo_as_proto --xla_dump_hlo_{option}'
        subprocess.run([sys.executable, '-c', DUMPED], env={**os.environ, 'XLA_FLAGS': flags}, cwd=folder, check=True)
        path, = folder.glob(f'*jit__lambda.{form}.pb')
        with np.load(folder / 'results.npz') as file:
            assert hlofp8.compare(path, [file[name] for name in file.files]), path
        assert option == 'unoptimized_snapshots' or hlofp8.compare(path), path


if __name__ == '__main__':
    args = _cases.arguments()
    sys.exit(_cases.run([converts, files, refuses, other_frameworks, instead, snapshots, dumped_by_xla], args))
