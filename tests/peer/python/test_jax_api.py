#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests hlofp8's functions for JAX other than calls: lowering, exporting, explaining, counting, and errors."""
import contextlib
import copy
import os
import subprocess
import sys
import warnings

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


def same(one, other):
    return all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True))


def explains(args):
    """The table of explain() has the source lines of this file, however the function or module is specified."""
    import hlofp8
    f = functions()
    wanted = hlofp8.jit(half).explain(f.X, f.W)
    assert len(wanted) == 2 and wanted.fp8 == 1 and [v.kind for v in wanted] == ['fp8', 'wide'] and wanted[1].reason == 'not-quantized'
    assert str(wanted).startswith(wanted.rewritten.remarks(which='summary')) and wanted.summary == str(wanted).splitlines()[0]
    place = f'{__file__}:{wanted[1].source_line}'
    assert str(wanted).splitlines()[-1] == f'{place}: return functions().mm(x, w), x @ w', str(wanted)
    shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in (f.X, f.W)]
    for other in (hlofp8.explain(half, f.X, f.W), hlofp8.explain(jax.jit(half), *shapes), hlofp8.explain(hlofp8.jit(half), *shapes),
                  hlofp8.explain(jax.jit(half).lower(f.X, f.W))):
        assert [v.reason for v in other] == [v.reason for v in wanted] and [v.source_line for v in other] == [v.source_line for v in wanted]
    page = wanted._repr_html_()
    assert page.count('<tr>') == 3 and 'x @ w' in page and all(f'<td>{group.shape}</td>' in page for group in wanted.groups), page
    static = hlofp8.explain(jax.jit(lambda x, w, n: half(x, w) * n, static_argnums=2), f.X, f.W, 1)
    assert len(static) == 2


def to_pandas(args):
    """A pandas data frame has a row for each matmul, with units in the names of columns; without pandas, an error says so."""
    import types

    import hlofp8
    f = functions()
    found = hlofp8.explain(half, f.X, f.W)
    before = sys.modules.get('pandas')
    sys.modules['pandas'] = types.SimpleNamespace(DataFrame=list)
    try:
        rows = found.to_pandas()
        sys.modules['pandas'] = None
        try:
            found.to_pandas()
        except ImportError as error:
            assert 'to_pandas requires the package pandas' in str(error), error
        else:
            raise AssertionError('no pandas')
    finally:
        sys.modules['pandas'] = before
    assert [row['is_fp8'] for row in rows] == [True, False] and 'x @ w' in rows[1]['code'] and rows[1]['reason'] == 'not-quantized'
    for row, matmul in zip(rows, found, strict=True):
        assert (row['seconds'], row['saving_seconds'], row['layer']) == (matmul.seconds, matmul.saving_seconds, matmul.layer)
        assert 'predicted_saving' not in row and row['predicted_saving_seconds'] == 0
    assert rows[0]['fp8_seconds'] is None and rows[1]['fp8_seconds'] > 0


def asserts(args):
    import hlofp8
    f = functions()
    assert hlofp8.assert_fp8(f.mm, f.X, f.W).fp8 == 1
    hlofp8.assert_fp8(half, f.X, f.W, at_least=1)
    hlofp8.assert_fp8(half, f.X, f.W, at_least='50%')
    for function, least, said in ((half, 'all', 'x @ w'), (half, 2, '1 of 2'), (half, '51%', '1 of 2'), (lambda x, w: x, 0, 'no matmuls')):
        try:
            hlofp8.assert_fp8(function, f.X, f.W, at_least=least)
        except AssertionError as error:
            assert said in str(error), error
        else:
            raise AssertionError(f'{least} held')
    assert len(hlofp8.assert_fp8(lambda x, w: x, f.X, f.W, allow_empty=True)) == 0


def plugin(args):
    """The pytest fixture and marker work in a separate run of pytest."""
    path = os.path.join(args.work, 'test_plugin_cases.py')
    with open(path, 'w') as file:
        file.write('''
import hlofp8, jax, pytest
from _functions import X, W, mm

def test_fixture_passes(assert_fp8):
    assert_fp8(mm, X, W)

def test_fixture_fails(assert_fp8):
    assert_fp8(lambda x, w: x @ w, X, W)

@pytest.mark.fp8
def test_marker_passes():
    hlofp8.jit(mm)(X, W)

@pytest.mark.fp8(at_least=2)
def test_marker_fails():
    hlofp8.jit(mm)(X, W)

@pytest.mark.fp8
def test_marker_fails_with_jax_jit():
    jax.jit(mm)(X, W)

@pytest.mark.fp8(at_least=2)
def test_error_stays():
    raise KeyError('mine')

@pytest.mark.fp8(atleast=1)
def test_wrong_word():
    hlofp8.jit(mm)(X, W)

@pytest.mark.fp8('50%')
def test_wrong_number():
    hlofp8.jit(mm)(X, W)

@pytest.mark.fp8(at_least=0)
def test_too_few():
    hlofp8.jit(mm)(X, W)

@pytest.mark.fp8
def test_lower_passes():
    hlofp8.jit(mm).lower(X, W).compile()

@pytest.mark.fp8(at_least=2)
def test_lowered_and_called():
    made = hlofp8.jit(mm)
    made.lower(X, W)
    made(X, W)

@pytest.mark.fp8
def test_explained_and_exported(assert_fp8):
    assert_fp8(mm, X, W)
    hlofp8.explain(hlofp8.jit(mm), X, W)
    hlofp8.export(mm)(X, W)

@pytest.mark.fp8
def test_not_compiled_rewritten(monkeypatch):
    import jax._src.interpreters.pxla as pxla
    compile, failed = pxla.MeshComputation.compile, []
    def refuse(self, *args, **kwargs):
        if not failed:
            failed.append(self)
            raise RuntimeError('not this one')
        return compile(self, *args, **kwargs)
    monkeypatch.setattr(pxla.MeshComputation, 'compile', refuse)
    hlofp8.jit(mm, fallback='warn')(X, W)
    assert failed
''')
    paths = (args.site, os.path.dirname(os.path.abspath(__file__)), os.environ['PYTHONPATH'])
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join(paths), 'COLUMNS': '200'}
    done = subprocess.run([sys.executable, '-m', 'pytest', '-p', 'hlofp8.pytest_plugin', '-p', 'no:cacheprovider', '-q', '-rA',
                           '--strict-markers', path], env=environment, cwd=args.work, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    passed = sorted(line.split('::')[1] for line in lines if line.startswith('PASSED'))
    failed = sorted(line.split('::')[1].split(' ')[0] for line in lines if line.startswith('FAILED'))
    assert passed == ['test_fixture_passes', 'test_lower_passes', 'test_marker_passes'], done.stdout + done.stderr
    assert failed == ['test_error_stays', 'test_explained_and_exported', 'test_fixture_fails', 'test_lowered_and_called', 'test_marker_fails',
                      'test_marker_fails_with_jax_jit', 'test_not_compiled_rewritten', 'test_too_few', 'test_wrong_number',
                      'test_wrong_word'], failed
    none = sorted(line.split('::')[1].split(' ')[0] for line in lines if line.startswith('FAILED') and 'matmuls, found 0' in line)
    assert none == ['test_explained_and_exported', 'test_marker_fails_with_jax_jit', 'test_not_compiled_rewritten'], none
    assert "unexpected keyword argument 'atleast'" in done.stdout and "not '50%'" in done.stdout
    assert 'expected at least 2 FP8 matmuls, found 1' in done.stdout and 'KeyError' in done.stdout


def lowers(args):
    """The result of lower() has FP8 matmuls in the requested form, and compiles."""
    import hlofp8
    f = functions()
    shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in (f.X, f.W)]
    marks = {'dq': 'stablehlo.dot_general', 'qdq': 'algorithm', 'ffi': '@hlofp8.matmul'}
    for emit, mark in marks.items():
        lowered = hlofp8.jit(f.mm, emit=emit).lower(*shapes)
        assert mark in lowered.as_text(), emit
        # The handler for CPUs multiplies operands in any layout.
        assert emit != 'ffi' or 'stablehlo.transpose' not in lowered.as_text()
        assert jax.tree.structure(lowered.args_info) == jax.tree.structure(jax.jit(f.mm).lower(*shapes).args_info)
    assert same(hlofp8.jit(f.mm).lower(*shapes).compile()(f.X, f.W), jax.jit(f.mm)(f.X, f.W))
    assert hlofp8.jit(f.mm).eval_shape(*shapes) == jax.eval_shape(f.mm, *shapes)


def exports(args):
    """jax.export's object contains the rewritten module, also after writing and reading it, and over eight devices."""
    import hlofp8
    f = functions()
    made = hlofp8.export(f.mm)(f.X, f.W)
    assert made.platforms == ('cpu',) and made.mlir_module() != jax.export.export(jax.jit(f.mm))(f.X, f.W).mlir_module()
    assert same(jax.export.deserialize(made.serialize()).call(f.X, f.W), jax.jit(f.mm)(f.X, f.W))
    for name in ('pytrees', 'static_positional', 'tensor_parallel', 'fsdp_step', 'scan', 'shard_map'):
        case = f.CASES[name]
        options = {k: v for k, v in case.options.items() if 'donate' not in k}
        made = hlofp8.export(jax.jit(case.function, **options), emit='dq')(*case.args, **case.kwargs)
        static = options.get('static_argnums')
        dynamic = [a for i, a in enumerate(case.args) if i != static]
        assert same(jax.jit(made.call)(*dynamic, **case.kwargs), jax.jit(case.function, **options)(*case.args, **case.kwargs)), name
    both = hlofp8.export(f.mm, platforms=('cpu', 'cuda'))(f.X, f.W)
    assert both.platforms == ('cpu', 'cuda') and 'algorithm' in both.mlir_module()
    symbolic = jax.export.symbolic_shape('n, 64')
    _cases.refused('symbolic shapes', hlofp8.export(f.mm), jax.ShapeDtypeStruct(symbolic, np.float32), f.W)


def caches(args):
    """There is one compilation per set of types, static arguments and shardings, as with jax.jit."""
    import hlofp8
    from hlofp8._explain import watching
    f = functions()
    made = hlofp8.jit(f.static_positional, static_argnums=2)
    with watching() as seen:
        for _ in range(3):
            made(f.X, f.W, 'relu')
            made(jnp.asarray(f.X), f.W, 'relu')
        assert len(seen) == 1
        made(f.X, f.W, 'tanh')
        made(f.X[:16], f.W, 'tanh')
        made(f.on(f.X, 'd', None), f.on(f.W), 'tanh')
        made(f.on(f.X, None, 'd'), f.on(f.W), 'tanh')
        assert len(seen) == 5
        with jax.default_matmul_precision('highest'):
            made(f.X, f.W, 'tanh')
        assert len(seen) == 6
        made.clear_cache()
        made(f.X, f.W, 'relu')
        assert len(seen) == 7
    assert copy.deepcopy({'step': made})['step'] is made


def dispatches(args):
    """Calls that jax.jit dispatches without Python are also dispatched without Python; calls that jax.jit recompiles
    are recompiled, with the same result."""
    import hlofp8
    from hlofp8 import _jax
    f = functions()
    on, other = (jax.device_put(f.X, device) for device in jax.devices()[:2])
    at = {device: jax.device_put(f.W, device) for device in jax.devices()[:2]}
    calls = [(f.X, f.W, 2), (f.X, f.W, 2.0), (f.X, f.W, np.float32(2)), (f.X, f.W, jnp.int8(2)), (f.X[:16], f.W, 2),
             (f.X.astype(jnp.bfloat16), f.W, 2), (on, at[jax.devices()[0]], 2), (other, at[jax.devices()[1]], 2),
             (f.on(f.X, 'd', None), f.on(f.W), 2), (f.on(f.X, None, 'd'), f.on(f.W), 2), (f.X, {'w': f.W}, 2), (f.X, [f.W], 2)]

    def scaled(x, w, n):
        return f.mm(x, *jax.tree.leaves(w)) * n

    made, wanted, missed, real = hlofp8.jit(scaled), jax.jit(scaled), [], _jax.execute
    try:
        _jax.execute = lambda *arguments: missed.append(1) or real(*arguments)
        for turn in range(3):
            for call in calls:
                found, expected = made(*call), wanted(*call)
                assert same(found, expected) and (found.dtype, found.sharding) == (expected.dtype, expected.sharding), call
                assert found.weak_type == expected.weak_type and found.committed == expected.committed, call
            assert len(missed) == len(calls), (turn, len(missed))
        for context in (jax.enable_x64(True), jax.default_device(jax.devices()[3]), jax.default_matmul_precision('highest'),
                        jax.set_mesh(f.MESH)):
            before = len(missed)
            with context:
                assert made(*calls[0]).sharding == wanted(*calls[0]).sharding and same(made(*calls[0]), wanted(*calls[0]))
            assert len(missed) == before + 1, context
        for call in calls:
            made(*call)
        assert len(missed) == len(calls) + 4
    finally:
        _jax.execute = real


def forgets(args):
    """Compiled functions live no longer than JAX's caches and the function."""
    import gc
    import weakref

    import hlofp8
    f = functions()
    made = hlofp8.jit(lambda x, w: f.mm(x, w))
    for _ in range(4):
        made(f.X, f.W)
        made(f.X[:16], f.W)
        jax.clear_caches()
        gc.collect()
        assert len(made._compiled) == 0, len(made._compiled)
    made(f.X, f.W)
    assert len(made._compiled) == 1
    gone = weakref.ref(made)
    del made
    gc.collect()
    assert gone() is None


def transformed(args):
    """JAX's functions that only trace accept a function of hlofp8.jit; those that would execute it without FP8 are
    rejected or reported."""
    import hlofp8
    f = functions()

    def loss(x, w):
        return f.fp8_dense(x, w).astype(jnp.float32).sum()
    made, wanted = hlofp8.jit(loss), jax.jit(loss)
    assert jax.eval_shape(made, f.X, f.W) == jax.eval_shape(wanted, f.X, f.W)
    assert jax.make_jaxpr(made)(f.X, f.W).out_avals == jax.make_jaxpr(wanted)(f.X, f.W).out_avals
    assert jax.make_jaxpr(jax.grad(made))(f.X, f.W).out_avals == jax.make_jaxpr(jax.grad(wanted))(f.X, f.W).out_avals
    traced = made.trace(f.X, f.W)
    assert isinstance(traced, jax.stages.Traced) and traced.jaxpr.out_avals == wanted.trace(f.X, f.W).jaxpr.out_avals
    assert traced.lower().as_text() == made.lower(f.X, f.W).as_text() != wanted.lower(f.X, f.W).as_text()
    assert 'algorithm' in traced.lower(lowering_platforms=('cuda',)).as_text()
    assert same(traced.lower().compile()(f.X, f.W), wanted(f.X, f.W))

    def scan(function):
        return lambda xs, w: jax.lax.scan(lambda c, x: (c, function(x, w)), 0, xs)
    around = {
        'grad': lambda function: jax.grad(function, (0, 1)), 'jit(grad)': lambda function: jax.jit(jax.grad(function)),
        'checkpoint': lambda function: jax.grad(jax.checkpoint(function)), 'jit': jax.jit,
        'vmap': lambda function: lambda x, w: jax.vmap(function, (0, None))(x[None], w),
        'scan': lambda function: lambda x, w: scan(function)(x[None], w)}
    for name, transform in around.items():
        inner = hlofp8.jit(loss)  # the function was traced before: JAX's cached trace is also rejected
        jax.eval_shape(inner, f.X, f.W)
        _cases.refused('apply hlofp8.jit outermost', transform(inner), f.X, f.W)
        outer = hlofp8.jit(transform(inner))
        assert same(outer(f.X, f.W), transform(wanted)(f.X, f.W)) and outer.explain(f.X, f.W).fp8, name
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter('always')
            assert same(transform(hlofp8.jit(loss, fallback='warn'))(f.X, f.W), transform(wanted)(f.X, f.W)), name
        assert told and all(w.category is hlofp8.RewriteWarning and w.filename == __file__ for w in told), (name, told)


def explains_by_options(args):
    """explain() accepts the options of jit and a platform; a parameter of the function with such a name takes
    precedence."""
    import hlofp8
    f = functions()

    def scaled(x, w, n=1, target=0):
        with jax.named_scope('Block_3'):
            return f.mm(x, w) * n + target
    assert hlofp8.explain(scaled, f.X, f.W, 2, static_argnums=2, keep_unused=True, emit='dq').fp8 == 1
    assert hlofp8.explain(scaled, f.on(f.X, 'd'), f.on(f.W), in_shardings=(f.on(f.X, 'd').sharding, None)).fp8 == 1
    for how in (scaled, jax.jit(scaled), hlofp8.jit(scaled)):
        found = hlofp8.explain(how, f.X, f.W, target=1.0, platform='cuda', framework_files='*_functions.py')
        assert found.fp8 == 1 and found[0].source_file == __file__, found
        assert '  Block_3\n' in str(found) and '<td>Block_3</td>' in found._repr_html_(), found
        assert hlofp8.explain(how, f.X, f.W)[0].source_file.endswith('_functions.py')
    assert 'algorithm' in hlofp8.explain(hlofp8.jit(scaled), f.X, f.W, platform='cuda').rewritten.text
    assert 'algorithm' not in hlofp8.explain(hlofp8.jit(scaled), f.X, f.W).rewritten.text
    assert hlofp8.explain(hlofp8.jit(f.mm), f.X, f.W, min_gain=1e3)[0].reason == 'gain-below-minimum'
    assert hlofp8.explain(jax.jit(f.mm).trace(f.X, f.W), min_gain=1e3)[0].reason == 'gain-below-minimum'
    assert hlofp8.explain(hlofp8.jit(f.mm, min_gain=1e3).trace(f.X, f.W))[0].reason == 'gain-below-minimum'
    assert hlofp8.explain(jax.pmap(f.mm), f.X[None], f.W[None], min_gain=1e3)[0].reason == 'gain-below-minimum'
    _cases.refused("invalid value 'gpus' for platform: expected one of cpu, cuda", hlofp8.explain, f.mm, f.X, f.W, platform='gpus')
    for how, options, said in ((f.mm, {'platform': 3}, 'platform must be a str, not 3'),
                               (jax.jit(f.mm), {'static_argnums': 1}, 'already jitted; pass static_argnums to hlofp8.jit'),
                               (hlofp8.jit(f.mm), {'donate_argnums': 1}, 'already jitted; pass donate_argnums to hlofp8.jit'),
                               (jax.pmap(f.mm), {'platform': 'cuda'}, 'which can only be lowered'),
                               (3, {}, 'arguments require a function, not int'),
                               (jax.jit(f.mm).lower(f.X, f.W).compile(), {}, 'arguments require a function, not Compiled')):
        try:
            hlofp8.explain(how, f.X, f.W, **options)
        except TypeError as error:
            assert said in str(error), (said, error)
        else:
            raise AssertionError(said)


def decorates(args):
    """hlofp8.jit works as a decorator, with and without arguments, and for a method."""
    import hlofp8
    f = functions()

    @hlofp8.jit
    def one(x, w):
        """Its docstring."""
        return f.mm(x, w)

    @hlofp8.jit(emit='dq', static_argnames=('n',))
    def two(x, w, n=1):
        return f.mm(x, w) * n

    class Layer:
        @hlofp8.jit(static_argnums=0)
        def __call__(self, x, w):
            return f.mm(x, w)
    wanted = jax.jit(f.mm)(f.X, f.W)
    assert same(one(f.X, f.W), wanted) and same(two(f.X, f.W, n=1), wanted) and same(two(f.X, w=f.W), wanted)
    assert same(Layer()(f.X, f.W), wanted)
    assert one.__name__ == 'one' and one.__doc__ == 'Its docstring.' and 'one' in repr(one)
    with jax.disable_jit():
        assert same(one(f.X, f.W), wanted)


def nested(args):
    """hlofp8.jit has no effect within a function that is rewritten as a whole. Within any other function, it raises an
    error or, with fallback='warn', has no effect and warns."""
    import hlofp8
    from hlofp8._explain import watching
    f = functions()
    inner = hlofp8.jit(f.mm)
    outer = hlofp8.jit(lambda xs, w: jax.vmap(inner, (0, None))(xs, w) + 1)
    with watching() as seen:
        outer(f.X[None], f.W)
    assert [module.fp8 for module in seen] == [1]
    for around in (jax.jit(inner), lambda x, w: jax.vmap(inner, (0, None))(x[None], w), jax.jit(lambda x, w: inner(f.X, f.W) + x[0, 0])):
        _cases.refused('apply hlofp8.jit outermost', around, f.X, f.W)
    soft = hlofp8.jit(f.mm, fallback='warn')
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter('always')
        assert same(jax.jit(soft)(f.X, f.W), jax.jit(f.mm)(f.X, f.W))
    assert [w.category for w in told] == [hlofp8.RewriteWarning] and 'runs as with jax.jit' in str(told[0].message), told
    sharded = f.CASES['data_parallel']
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter('always')
        assert same(hlofp8.jit(sharded.function, emit='ffi')(*sharded.args), jax.jit(sharded.function)(*sharded.args))
    assert 'not-partitioned' in str(told[0].message) and told[0].filename == __file__, told[0]


def another_jax(args):
    """If JAX's private functions differ, jax.export is used; without jax.export, the error names the missing
    function."""
    import hlofp8
    from hlofp8 import _jax
    f = functions()
    wanted, real, real_swap = jax.jit(f.static_positional, static_argnums=2)(f.X, f.W, 'relu'), _jax._part, _jax.swap

    def moved(*_):
        raise _jax._Unsupported('it keeps its modules elsewhere')
    try:
        _jax.swap = moved
        made = hlofp8.jit(f.static_positional, static_argnums=2)
        assert same(made(f.X, f.W, 'relu'), wanted)
        _cases.refused('keeps its modules elsewhere', made.lower, f.X, f.W, 'relu')
        _jax.swap = real_swap

        class Broken:
            def compile(self):
                raise RuntimeError('XLA is not able to')
        _jax.swap = lambda lowered, rewritten: Broken()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter('always')
            assert same(hlofp8.jit(f.mm, fallback='warn')(f.X, f.W), jax.jit(f.mm)(f.X, f.W))
        assert 'XLA cannot compile the rewritten module: XLA is not able to' in str(told[0].message)
        try:
            hlofp8.jit(f.mm)(f.X, f.W)
            raise AssertionError('what XLA does not compile was run')
        except RuntimeError as error:
            assert str(error) == 'XLA is not able to'
        _jax.swap = real_swap

        def old(*_, **__):
            raise RuntimeError("the handler's API version is incompatible")
        _jax._register_calls.cache_clear()
        _jax._part = lambda path: old if path.endswith('register_ffi_target') else real(path)
        _cases.refused("handler's API version", hlofp8.jit(f.mm, emit='ffi'), f.X, f.W)
        assert hlofp8.jit(f.mm, emit='ffi').explain(f.X, f.W).fp8 == 1
        _jax._part = lambda path: real(path.replace('hlo_to_stablehlo', 'gone'))
        said = _cases.refused('has no jaxlib._jax.mlir.gone', hlofp8.jit(f.mm), f.X, f.W)
        assert f'jax {jax.__version__}' in said
        _cases.refused('cannot be rewritten for export', hlofp8.export(f.mm), f.X, f.W)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter('always')
            assert same(hlofp8.jit(f.mm, fallback='warn')(f.X, f.W), jax.jit(f.mm)(f.X, f.W))
        assert any('mm is not rewritten and runs as with jax.jit' in str(w.message) for w in told)
    finally:
        _jax._part, _jax.swap = real, real_swap


def others(args):
    """Results equal those of jax.jit for functions without matmuls, and for arguments in other places."""
    import hlofp8
    from jax.experimental import io_callback
    from jax.experimental.layout import Format, Layout
    from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding
    f = functions()
    devices = np.array(jax.devices()).reshape(4, 2)
    mesh, explicit = (Mesh(devices, ('d', 'm'), axis_types=(kind,) * 2) for kind in (AxisType.Auto, AxisType.Explicit))

    def ordered(x, w):
        y = f.mm(x, w)
        jax.debug.callback(lambda total: None, y.sum(), ordered=True)
        return y, y[0]

    def asking(x, w):
        y = f.mm(x, w).astype(jnp.float32)
        return y + io_callback(lambda total: np.float32(total + 1), jax.ShapeDtypeStruct((), jnp.float32), y.sum(), ordered=True)

    def check(function, *args, **options):
        made = hlofp8.jit(function, **options)
        assert same(made(*args), jax.jit(function, **options)(*args)), function
        jax.effects_barrier()
        return made
    check(ordered, f.X, f.W)
    check(asking, f.X, f.W)
    check(lambda x, w: (f.mm(x, w), jnp.linalg.cholesky(x @ x.T + 1e3 * jnp.eye(32)), jnp.fft.fft(x)), f.X, f.W)
    check(lambda x, w: jax.lax.top_k(f.mm(x, w).astype(jnp.float32), 4), f.X, f.W)
    check(lambda key, x, w: f.mm(x, w) * jax.random.bernoulli(key, 0.5, (32, 128)), jax.random.key(0, impl='rbg'), f.X, f.W)
    check(lambda: f.mm(jnp.asarray(f.X), jnp.asarray(f.W)))
    check(f.mm, *(jax.device_put(a, jax.devices()[3]) for a in (f.X, f.W)))
    check(f.mm, f.X, f.W, keep_unused=True, compiler_options={'xla_embed_ir_in_executable': True})
    with jax.set_mesh(mesh):
        check(lambda x, w: jax.lax.with_sharding_constraint(f.mm(x, w), PartitionSpec('d', 'm')), f.X, f.W)
    with jax.set_mesh(explicit):
        check(f.mm, jax.device_put(f.X, NamedSharding(explicit, PartitionSpec('d'))),
              jax.device_put(f.W, NamedSharding(explicit, PartitionSpec(None, 'm'))))
    column = jax.device_put(f.X, Format(Layout(major_to_minor=(1, 0)), SingleDeviceSharding(jax.devices()[0])))
    made = check(f.mm, column, f.W)
    assert same(made(f.X, f.W), jax.jit(f.mm)(f.X, f.W))


def targets(args):
    """A GPU that is not a target uses the nearest lower target."""
    from hlofp8._module import nearest_target
    found = {capability: nearest_target(capability) for capability in ('8.0', '8.6', '8.9', '9.0', '10.3', '12.1')}
    assert found == {'8.0': 'sm_80', '8.6': 'sm_80', '8.9': 'sm_89', '9.0': 'sm_90', '10.3': 'sm_103', '12.1': 'sm_121'}, found


def refusals(args):
    """Invalid options are rejected immediately, invalid arguments when jax.jit rejects them."""
    import hlofp8
    f = functions()
    _cases.refused("invalid value 'never' for fallback", hlofp8.jit, f.mm, fallback='never')
    _cases.refused("invalid value 'cublas' for emit", hlofp8.jit, f.mm, emit='cublas')
    _cases.refused('hopper', hlofp8.jit, f.mm, target='hopper')
    _cases.refused('sm_1', hlofp8.export, f.mm, target='sm_1')
    rules = os.path.join(args.work, 'wrong.rules')
    with open(rules, 'w') as file:
        file.write('rule {')
    _cases.refused('wrong.rules:1:', hlofp8.jit(f.mm, rules=rules), f.X, f.W)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter('always')
        assert same(hlofp8.jit(f.mm, rules=rules, fallback='warn')(f.X, f.W), jax.jit(f.mm)(f.X, f.W))
    assert 'wrong.rules:1:' in str(told[0].message)
    for call, said in ((lambda: hlofp8.jit(3), 'function must be callable, not int'), (lambda: hlofp8.jit(f.mm)(f.X), 'missing'),
                       (lambda: hlofp8.jit(f.mm)(f.X, 'text'), 'str'), (lambda: hlofp8.jit(f.mm, no_such=1), 'no_such'),
                       (lambda: hlofp8.jit(f.mm)(f.X, f.W[:3]), '(64,)'), (lambda: hlofp8.explain(None), 'NoneType')):
        try:
            call()
        except TypeError as error:
            assert said in str(error), (said, error)
        else:
            raise AssertionError(said)


def invalid_values(args):
    """With JAX's checks for NaN or infinity enabled, the same error is raised as by jax.jit; for an infinity with donated
    arguments, an error that names the function."""
    import hlofp8
    f = functions()

    def root(x, w):
        return jnp.sqrt(f.mm(x, w).astype(jnp.float32) - 1e6)

    def inverse(x, w):
        return x, 1 / (f.mm(x, w) * 0)
    for kind, function, options in (('nan', root, {}), ('nan', root, {'donate_argnums': 0}), ('inf', inverse, {}),
                                    ('inf', inverse, {'donate_argnums': 0})):
        made, said = hlofp8.jit(function, **options), []
        with getattr(jax, f'debug_{kind}s')(True):
            for call in (jax.jit(function), made, made):
                try:
                    with contextlib.redirect_stdout(None):
                        call(jnp.array(f.X), f.W)
                    raise AssertionError(f'{kind} passes')
                except FloatingPointError as error:
                    said.append(str(error))
        assert all(kind in text for text in said), said
        assert said[1] == said[2] == ('invalid value (inf) in the result of inverse, which was rewritten' if options and kind == 'inf' else said[0]), said
    with jax.debug_nans(True):
        assert same(hlofp8.jit(f.mm)(f.X, f.W), jax.jit(f.mm)(f.X, f.W))


def without_jax(args):
    """Without jax, the package can be imported and works on modules; hlofp8.jit reports that it needs jax."""
    code = '''
import sys
sys.modules['jax'] = None
import hlofp8
print(hlofp8.explain('HloModule m\\nENTRY e {\\n  ROOT a = f32[2] parameter(0)\\n}\\n'))
try:
    hlofp8.jit
except ImportError as error:
    print(error)
'''
    done = subprocess.run([sys.executable, '-c', code], env={**os.environ, 'PYTHONPATH': args.site}, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert lines[0] == '0 of 0 matmuls in FP8' and lines[-1].startswith('hlofp8.jit requires jax'), done


def main():
    args = _cases.arguments()
    return _cases.run([explains, explains_by_options, to_pandas, asserts, plugin, lowers, exports, caches, dispatches, forgets,
                       transformed, decorates, nested, others, another_jax, targets,
                       refusals, invalid_values, without_jax], args)


if __name__ == '__main__':
    sys.exit(main())
