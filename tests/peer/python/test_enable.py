#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests hlofp8.enable, hlofp8.enabled, `python -m hlofp8` and HLOFP8: all modules that JAX compiles are rewritten."""
import concurrent.futures
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import threading
import warnings

os.environ['JAX_PLATFORMS'] = 'cpu'
os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=8 --xla_allow_excess_precision=false'

import _cases
import jax
import jax.numpy as jnp
import numpy as np

QUANTIZE = {'quantize': 'current', 'min_gain': 0.001}


def functions():
    import _functions
    return _functions


@contextlib.contextmanager
def compiling():
    """Yields a list. At the end of the body, the list has the modules that were compiled while hlofp8 was enabled."""
    from hlofp8 import _enable
    before, seen = len(_enable._compiled), []
    yield seen
    seen += _enable._compiled[before:]


def fp8(seen):
    return sum(verdict.is_fp8 for each in seen for verdict in each.verdicts)


def product(x, w):
    return x @ w


def near(found, wanted, most=0.1):
    """Checks that results differ as quantized matmuls do: not equal, and with a small error."""
    found, wanted = np.asarray(found, np.float32), np.asarray(wanted, np.float32)
    error = np.linalg.norm(found - wanted) / np.linalg.norm(wanted)
    assert 0 < error < most, error


def normal(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


X, W = normal(32, 64), normal(64, 128) / 8


def every_function(args):
    """Each function of _functions.py, or every third without --long, has the results, shardings and donated arguments of
    jax.jit, with FP8 matmuls."""
    import hlofp8
    import test_jax
    count = 0
    for name, case in list(functions().CASES.items())[::1 if args.long else 3]:
        wanted = jax.jit(case.function, **case.options)(*test_jax.again(case.args), **case.kwargs)
        made = jax.jit(case.function, **case.options)
        with compiling() as seen, hlofp8.enabled(), warnings.catch_warnings():
            warnings.simplefilter('error', hlofp8.RewriteWarning)
            args_ = case.args if case.exact else test_jax.drawn(case)
            if case.exact:
                test_jax.check(case, made, args_, wanted, None)
            else:
                made(*test_jax.again(args_), **case.kwargs)
        assert fp8(seen) >= case.fp8, f'{name}: {seen}'
        count += fp8(seen)
    return f'{count} FP8 matmuls'


def switches(args):
    """enable, disable and nested contexts apply to functions that are compiled already, and compile nothing twice."""
    import hlofp8
    jitted = jax.jit(lambda x, w: x @ w)

    def f(x, w):
        return np.asarray(jitted(x, w))
    wide = f(X, W)
    with compiling() as seen:
        for _ in range(2):
            hlofp8.enable(**QUANTIZE)
            quantized = f(X, W)
            near(quantized, wide)
            with hlofp8.enabled():
                assert (f(X, W) == wide).all()
                with hlofp8.enabled(wide='jit(*)/dot_general', **QUANTIZE):
                    assert (f(X, W) == wide).all()
                with hlofp8.enabled(**QUANTIZE):
                    assert (f(X, W) == quantized).all()
                assert (f(X, W) == wide).all()
            assert (f(X, W) == quantized).all()
            hlofp8.disable()
            assert (f(X, W) == wide).all()
            hlofp8.disable()
    assert [(each.settings.text, fp8([each])) for each in seen] == [
        ('--min-gain=0.001 --quantize=current', 1), ('', 0),
        ("--min-gain=0.001 --quantize=current '--wide=jit(*)/dot_general'", 0)], seen
    with hlofp8.enabled(**QUANTIZE):
        with hlofp8.enabled(**QUANTIZE):
            assert (f(X, W) == quantized).all()
    lowered = jax.jit(lambda x, w: x @ w)
    inside, outside = (hlofp8.enabled(**QUANTIZE), contextlib.nullcontext()), (contextlib.nullcontext(), hlofp8.enabled(**QUANTIZE))
    for (lowers, compiles), wanted in ((inside, quantized), (outside, wide)):  # the options at lower() apply
        with lowers:
            made = lowered.lower(X, W)
        with compiles:
            assert (made.compile()(X, W) == wanted).all()
        with hlofp8.enabled(**QUANTIZE):
            assert (lowered(X, W) == quantized).all()
        assert (lowered(X, W) == wide).all()
    try:
        with hlofp8.enabled(**QUANTIZE):
            raise KeyError
    except KeyError:
        assert (f(X, W) == wide).all()

    @hlofp8.enabled(**QUANTIZE)
    def decorated():
        return f(X, W)
    assert (decorated() == quantized).all() and (f(X, W) == wide).all()


def transformations(args):
    """Gradients, maps, loops, shard_map, pmap, calls without jit and compiled Lowered objects are rewritten."""
    import hlofp8
    from jax.sharding import PartitionSpec as P
    mesh = jax.make_mesh((8,), ('d',), axis_types=(jax.sharding.AxisType.Auto,))

    def loss(x, w):
        return (jnp.tanh(x @ w) @ w.T).sum()

    def scanned(x, w):
        return jax.lax.scan(lambda c, _: (jnp.tanh(c @ w @ w.T), None), x, None, length=3)[0]
    calls = {
        'grad': (lambda: jax.jit(jax.grad(loss, (0, 1)))(X, W), 2), 'eager': (lambda: jnp.dot(X, W), 1),
        'eager grad': (lambda: jax.grad(lambda x, w: (x @ w).sum() ** 2)(X, W), 1),
        'vmap': (lambda: jax.jit(jax.vmap(product, (0, None)))(X[None], W), 1), 'scan': (lambda: jax.jit(scanned)(X, W), 2),
        'checkpoint': (lambda: jax.jit(jax.grad(jax.checkpoint(loss)))(X, W), 2),
        'pmap': (lambda: jax.pmap(product, in_axes=(0, None))(X.reshape(8, 4, 64), W), 1),
        'lower': (lambda: jax.jit(product).lower(X, W).compile()(X, W), 1),
        'export': (lambda: jax.jit(jax.export.export(jax.jit(product))(X, W).call)(X, W), 1)}
    for name, (call, least) in calls.items():
        wanted = call()
        with compiling() as seen, hlofp8.enabled(**QUANTIZE):
            found = call()
        if name != 'pmap':  # operands of a manual region stay wide
            assert fp8(seen) >= least, (name, seen)
            for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
                near(one, other)
    case = functions().CASES['shard_map']
    with compiling() as seen, hlofp8.enabled():
        jax.jit(lambda *args: case.function(*args), **case.options)(*case.args)
        quantized = jax.pmap(functions().mm, in_axes=(0, None))(X.reshape(8, 4, 64), W)
    assert [fp8([each]) for each in seen if each.report] == [case.fp8, 1], seen
    assert quantized.shape == (8, 4, 128)
    placed = jax.device_put(X, jax.sharding.NamedSharding(mesh, P('d')))
    wanted = jax.jit(product, out_shardings=jax.sharding.NamedSharding(mesh, P(None, 'd')))(placed, W)
    with hlofp8.enabled(**QUANTIZE):
        found = jax.jit(product, out_shardings=jax.sharding.NamedSharding(mesh, P(None, 'd')))(placed, W)
    near(found, wanted)
    assert found.sharding == wanted.sharding


def frameworks(args):
    """Flax's steps are rewritten, also with nnx.jit, and their losses are those of a wide run."""
    import flax.linen as nn
    import hlofp8
    import optax
    from flax import nnx

    def linen():
        net, optimizer = nn.Sequential([nn.Dense(128), nn.relu, nn.Dense(16)]), optax.adam(1e-2)
        params = net.init(jax.random.key(0), X)

        @jax.jit
        def step(params, state):
            loss, grads = jax.value_and_grad(lambda p: ((net.apply(p, X) - X[:, :16]) ** 2).mean())(params)
            updates, state = optimizer.update(grads, state)
            return optax.apply_updates(params, updates), state, loss
        state = optimizer.init(params)
        for _ in range(20):
            params, state, loss = step(params, state)
            yield float(loss)

    def nnx_steps():
        rngs = nnx.Rngs(0)
        net = nnx.Sequential(nnx.Linear(64, 128, rngs=rngs), nnx.relu, nnx.Linear(128, 16, rngs=rngs))
        optimizer = nnx.Optimizer(net, optax.adam(1e-2), wrt=nnx.Param)

        @nnx.jit
        def step(net, optimizer):
            loss, grads = nnx.value_and_grad(lambda n: ((n(X) - X[:, :16]) ** 2).mean())(net)
            optimizer.update(net, grads)
            return loss
        for _ in range(20):
            yield float(step(net, optimizer))
    for steps in (linen, nnx_steps):
        wanted = np.array(list(steps()))
        with compiling() as seen, hlofp8.enabled(**QUANTIZE):
            found = np.array(list(steps()))
        assert sum(fp8([each]) == 5 for each in seen) == 1, seen
        assert wanted[-1] < 0.5 * wanted[0] and found[-1] < 0.5 * found[0] and (found != wanted).any() and np.abs(found / wanted - 1)[:8].max() < 0.1, (found, wanted)


def with_hlofp8_jit(args):
    """A function of hlofp8.jit keeps its own options, and may be called inside another function."""
    import hlofp8
    f = functions()
    wide = product(X, W)

    def own(x, w):
        return x @ w
    from hlofp8._explain import watching
    with compiling() as seen, watching() as watched, hlofp8.enabled(**QUANTIZE):
        near(jax.jit(own)(X, W), wide)
        assert np.allclose(hlofp8.jit(own)(X, W), wide, 1e-4, 1e-4)
        assert np.allclose(hlofp8.jit(lambda x, w: own(x, w)).lower(X, W).compile()(X, W), wide, 1e-4, 1e-4)
        near(hlofp8.jit(lambda x, w: own(x, w), **QUANTIZE)(X, W), wide)
        hlofp8.jit(f.mm, emit='qdq')(f.X, f.W)
    assert [(fp8([each]), each.verdicts[0].quantized) for each in seen] == [
        (1, 'current'), (0, None), (0, None), (1, 'current'), (1, None)], seen
    assert [each.fp8 for each in watched] == [1, 0, 0, 1, 1], watched
    with compiling() as seen, hlofp8.enabled():
        assert (jax.jit(hlofp8.jit(f.mm))(f.X, f.W) == hlofp8.jit(f.mm)(f.X, f.W)).all()
        jax.grad(lambda x: hlofp8.jit(f.fp8_dense)(x, f.W).astype(jnp.float32).sum())(f.X)
    assert fp8(seen) >= 3, seen
    _cases.refused('apply hlofp8.jit outermost', jax.jit(hlofp8.jit(f.mm)), f.X, f.W)


def chooses(args):
    """Modules are chosen by name, and matmuls by name; the summary has what was compiled and what to do next."""
    import hlofp8
    from hlofp8 import _enable

    def first(x, w):
        return x @ w

    def second(x, w):
        with jax.named_scope('head'):
            return x @ w + 1
    report = os.path.join(args.work, 'report.html')
    with compiling() as seen, hlofp8.enabled(module='jit_sec*', report=report, **QUANTIZE):
        near(jax.jit(second)(X, W), second(X, W))
        assert np.allclose(jax.jit(first)(X, W), X @ W, 1e-4, 1e-4)
    assert {each.name: each.why or fp8([each]) for each in seen} == {'jit_second': 1, 'jit_first': 'its name does not match jit_sec*'}, seen
    with compiling() as seen, hlofp8.enabled(wide=['*/head/*', 'absent'], **QUANTIZE):
        near(jax.jit(first)(X, W), X @ W)
        assert np.allclose(jax.jit(second)(X, W), X @ W + 1, 1e-4, 1e-4)
    assert [fp8([each]) for each in seen] == [1, 0], seen
    real, _enable._compiled = _enable._compiled, []
    try:
        assert hlofp8.summary() == 'compiled modules: 0, with matmuls: 0'
        with hlofp8.enabled():
            jax.jit(first)(X, W)
            jax.jit(jnp.sin)(X)
        text = hlofp8.summary().splitlines()
        assert text[0].startswith('compiled modules: ') and text[0].endswith('with matmuls: 1') and text[1] == 'options: none', text
        assert re.fullmatch(r'  jit_first: 0 of 1 matmuls in FP8 \(0 % of FLOPs\); 1 wide: 1 not-quantized; .* us by roofline \(1.00x\)', text[2]), text
        assert text[3].startswith('next: --quantize=current'), text
        _enable._compiled = [each for each in real if each.settings.report] + seen
        text = hlofp8.summary()
        assert "no matmul matches 'absent'" in text and '1 quantized here' in text and 'jit_first: not rewritten: its name' in text, text
        assert 'options: --min-gain=0.001 \'--module=jit_sec*\' --quantize=current\n' in text, text
        with contextlib.redirect_stderr(open(os.path.join(args.work, 'summary.txt'), 'w')):
            _enable._finish()
        _enable._compiled = 2 * [_enable._compiled[0]._replace(name=f'jit_{n}') for n in range(20)]  # counts each once
        assert 'and 8 modules' in hlofp8.summary() and 'in total: 20 of 20 matmuls in FP8 (100 % of FLOPs); 20 quantized here; ' in hlofp8.summary()
    finally:
        _enable._compiled = real
    with open(os.path.join(args.work, 'summary.txt')) as file:
        assert all(line.startswith('hlofp8: ') for line in file)
    with open(report) as file:
        page = file.read()
    assert page.startswith('<!doctype html>') and 'jit(second)/head/dot_general' in page and 'jit(first)' not in page


def fails(args):
    """A module that cannot be rewritten, or that XLA does not compile, is compiled without being rewritten, with one
    warning; other errors of the program are unchanged."""
    import hlofp8
    from hlofp8 import _enable
    from jaxlib.mlir import ir
    real, wide = _enable.rewrite_module, np.asarray(jax.jit(product)(X, W))

    def refuses(*arguments):
        raise hlofp8.Error('not this one')

    def uncompilable(module, *arguments):
        _, rewritten = real(module, *arguments)
        with module.context:
            text = str(module).replace('stablehlo.dot_general', 'stablehlo.custom_call @absent').replace(
                'contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT]', '')
            text = re.sub(r'stablehlo\.custom_call @absent (%\w+), (%\w+),? *:', r'stablehlo.custom_call @absent(\1, \2) :', text)
            return ir.Module.parse(text), rewritten
    for broken, said in ((refuses, 'not this one'), (uncompilable, 'XLA cannot compile the rewritten module')):
        _enable.rewrite_module = broken
        try:
            with warnings.catch_warnings(record=True) as told, compiling() as seen, hlofp8.enabled(**QUANTIZE):
                warnings.simplefilter('always')
                f = jax.jit(lambda x, w: x @ w)
                for _ in range(3):
                    assert (np.asarray(f(X, W)) == wide).all()
        finally:
            _enable.rewrite_module = real
        assert [w.category for w in told] == [hlofp8.RewriteWarning] and said in str(told[0].message), (said, [str(w.message) for w in told])
        assert 'jit__lambda is compiled without being rewritten' in str(told[0].message) and told[0].filename == __file__
        assert len(seen) == 1 and said in seen[0].why and not fp8(seen), seen

    @jax.jit
    def raises(x):
        jax.debug.callback(lambda v: 1 / 0, x)
        return x @ W
    with hlofp8.enabled(**QUANTIZE):
        try:
            jax.block_until_ready(raises(X))
            jax.effects_barrier()
        except Exception as error:
            assert 'ZeroDivisionError' in repr(error) or 'division by zero' in str(error), error
        else:
            raise AssertionError('the callback did not raise')
    for options, said in (({'quantize': 'x'}, "invalid value 'x' for quantize"), ({'rules': 'absent'}, 'cannot read file'), ({'emit': 'cublas'}, 'one of qdq, dq, ffi')):
        _cases.refused(said, hlofp8.enable, **options)
        _cases.refused(said, hlofp8.enabled(**options).__enter__)
    for options in ({'module': 3}, {'report': 3}, {'wide': 3}, {'lint': True}):
        try:
            hlofp8.enable(**options)
        except TypeError:
            continue
        raise AssertionError(options)
    assert (jax.jit(product)(X, W) == wide).all()


def threads(args):
    """Threads compile at the same time, each with its own options."""
    import hlofp8
    ready = threading.Barrier(8)

    def work(n):
        function, x, w = jax.jit(lambda x, w: jnp.tanh(x @ w) + n), X + n, normal(64, 64 + n)
        wide = function(x, w)
        ready.wait()
        for _ in range(3):
            with hlofp8.enabled(**QUANTIZE) if n % 2 else hlofp8.enabled(), compiling():
                found = function(x, w)
            if n % 2:
                near(found, wide)
            else:
                assert (found == wide).all()
            assert (function(x, w) == wide).all()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


def python(args, *arguments, env=None, status=0, cwd=None):
    """Runs Python in a process of its own, with the installed package. Returns its output, and its errors without XLA's
    log, which mentions missing GPU drivers."""
    paths = [args.site, os.path.dirname(os.path.abspath(__file__)), os.environ['PYTHONPATH']]
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join(paths), **(env or {})}
    done = subprocess.run([sys.executable, *arguments], env=environment, cwd=cwd or args.work, capture_output=True, text=True)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done.stdout, _cases.without_log(done.stderr)


TRAIN = '''
import os, sys
os.environ['JAX_PLATFORMS'] = 'cpu'
import jax, jax.numpy as jnp, numpy as np

@jax.jit
def train_step(w, x):
    loss, grads = jax.value_and_grad(lambda w: jnp.square(jnp.tanh(x @ w) @ w.T - x).mean())(w)
    return w - grads, loss

def arguments():
    random = np.random.default_rng(0)
    return random.standard_normal((64, 128)).astype('f') / 8, jax.jit(jnp.exp)(random.standard_normal((32, 64)).astype('f')) / 3

def child(n):
    return float(train_step(*arguments())[1])

if __name__ == '__main__':
    print(sys.argv[1:], os.path.basename(__file__), __spec__ and __spec__.name, os.path.basename(sys.path[0]))
    w, x = arguments()
    for _ in range(3):
        w, loss = train_step(w, x)
        print('loss', float(loss))
    if 'spawn' in sys.argv:
        import multiprocessing
        with multiprocessing.get_context('spawn').Pool(1) as pool:
            print('child', *pool.map(child, [0]))
    if 'children' in sys.argv:
        import subprocess
        subprocess.run([sys.executable, __file__], check=True, stdout=subprocess.DEVNULL)
    if 'chdir' in sys.argv:
        os.chdir('/')
    if 'raise' in sys.argv:
        raise ValueError('mine')
    if 'exit' in sys.argv:
        sys.exit(7)
'''


def trains(args):
    folder = os.path.join(args.work, 'program')
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, 'train.py')
    with open(path, 'w') as file:
        file.write(TRAIN)
    return path


def losses(output):
    return np.array([float(line.split()[1]) for line in output.splitlines() if line.startswith('loss')])


def command(args):
    """`python -m hlofp8 train.py` runs the program as `python train.py` does, with FP8 matmuls and a summary."""
    path, options = trains(args), ('-m', 'hlofp8', '--quantize=current', '--min-gain=0.001')
    plain, quiet = python(args, path, '--quantize=mine', 'x y')
    assert not quiet, quiet
    found, said = python(args, *options, path, '--quantize=mine', 'x y')
    assert found.splitlines()[0] == plain.splitlines()[0] == "['--quantize=mine', 'x y'] train.py None program", found
    assert (losses(found) != losses(plain)).any() and np.allclose(losses(found), losses(plain), 0.1), (found, plain)
    lines = said.splitlines()
    assert all(line.startswith('hlofp8: ') for line in lines), said
    assert said.count('jit_train_step: 5 of 5 matmuls in FP8 (100 % of FLOPs); 5 quantized here') == 1, said  # compiled once
    assert python(args, path, '--quantize=mine', 'x y', env={'HLOFP8': '--quantize=current --min-gain=0.001'})[0] == found
    assert python(args, '-m', 'hlofp8', '--quantize=current', path, '--quantize=mine', 'x y', env={'HLOFP8': '--min-gain=0.001'})[0] == found
    as_module = python(args, *options, '-m', 'train', '-m', 'hlofp8', cwd=os.path.dirname(path))[0]
    assert as_module.splitlines()[0] == "['-m', 'hlofp8'] train.py train program" and (losses(as_module) == losses(found)).all(), as_module
    for flags in (('-X', 'dev', '-Wignore'), ('-Bum',), ('-Bumhlofp8',))[0 if args.long else 2:]:
        rest = options[2:] if 'hlofp8' in flags[-1] else options[1:] if 'um' in flags[-1] else options
        assert (losses(python(args, *flags, *rest, path)[0]) == losses(found)).all(), flags
    for name in ('page.html', os.path.join('absent', 'page.html')):
        said = python(args, *options, '--report=' + name, path, 'chdir')[1]
        assert os.path.exists(os.path.join(args.work, name)) == ('cannot write the report' not in said) == (name == 'page.html'), said
    for launcher in (('-m', 'hlofp8'), ()):
        folder = tempfile.mkdtemp(dir=args.work)
        report = '--report=' + os.path.join(folder, 'job.html')
        env = {} if launcher else {'HLOFP8': ' '.join((*options[2:], report))}
        said = python(args, *launcher, *((*options[2:], report) if launcher else ()), path, 'children', env=env)[1]
        reports = re.findall(r'hlofp8: report: (.*)\n', said)
        assert {os.path.join(folder, name) for name in os.listdir(folder)} == set(reports) and len(reports) == 2, said
        assert re.fullmatch(r'job-\d+\.html', os.path.basename(reports[0])) and os.path.basename(reports[1]) == 'job.html', reports
    assert python(args, *options, path, 'exit', status=7)[0].startswith("['exit']")
    _, plain = python(args, path, 'raise', status=1)
    _, said = python(args, *options, path, 'raise', status=1)
    trace = ''.join(line for line in said.splitlines(keepends=True) if not line.startswith('hlofp8: '))
    assert trace == plain and 'ValueError: mine' in plain, said
    out, said = python(args, *options, path, 'spawn')
    inside = float(re.search(r'child (\S+)', out)[1])
    assert inside == losses(out)[0] and said.count('compiled modules') == 1, (out, said)
    assert not python(args, *options, os.devnull)[1]
    for arguments, status, text in ((('--help',), 0, ''), ((), 2, 'expected a program'), (('-m',), 2, 'expected a program'),
                                    (('--quantized=current', path), 2, 'unrecognized arguments: --quantized=current'),
                                    (('--quantize=x', path), 2, "error: invalid value 'x' for quantize"),
                                    (('--min-gain=x', path), 2, "invalid float value: 'x'"), (('--quantize', path), 2, 'expected a program'),
                                    (('--module', path), 2, 'expected a program'), (('absent.py',), 2, 'absent.py'),
                                    (('--rules=absent', path), 2, 'absent: error: cannot read file')):
        assert text in python(args, '-m', 'hlofp8', *arguments, status=status)[1], arguments
    for number, (options, text) in enumerate((('--quantize=x', "HLOFP8: error: invalid value 'x' for quantize"), ('train.py', 'HLOFP8: error: unrecognized arguments: train.py'),
                          ('-m train', 'HLOFP8: error: unrecognized arguments: -m train'), ('"', 'HLOFP8: error: No closing quotation'),
                          ('--rules=absent', 'absent: error: cannot read file'))):
        for launcher in ((), ('-m', 'hlofp8'))[number > 1 or not args.long:]:
            assert text in python(args, *launcher, path, env={'HLOFP8': options}, status=2)[1], (launcher, options)
    own = os.path.join(args.work, 'own.py')
    with open(own, 'w') as file:
        file.write(TRAIN.replace('import jax,', 'import hlofp8, jax,', 1).replace("if __name__ == '__main__':", "hlofp8.disable()\nif __name__ == '__main__':"))
    assert not python(args, own, env={'HLOFP8': '--quantize=current --min-gain=0.001'})[1]
    with open(own, 'w') as file:
        file.write(TRAIN.replace('import jax,', 'import hlofp8, jax,', 1) + """    with hlofp8.enabled(quantize='current', min_gain=0.001):
        train_step(w, x)
""")
    said = python(args, own, env={'HLOFP8': '--quantize=current --min-gain=0.001'})[1]
    assert said.count('jit_train_step: ') == said.count('options: ') == 1, said  # compiled once


def versions(args):
    """For an unknown version of JAX, enable() raises an error and changes nothing, and HLOFP8 causes a warning."""
    path = trains(args)
    with open(path) as file:
        text = file.read().replace('@jax.jit', 'jax.__version__ = "0.99.1"\n@jax.jit', 1)
    unknown = os.path.join(args.work, 'unknown.py')
    with open(unknown, 'w') as file:
        file.write(text)
    plain = python(args, path)[0]
    out, said = python(args, '-m', 'hlofp8', '--quantize=current', '--min-gain=0.001', unknown)
    assert losses(out).tolist() == losses(plain).tolist()
    assert 'RewriteWarning: hlofp8.enable() supports jax 0.8, 0.9, 0.10, 0.11, 0.12, not 0.99.1' in said and 'compiled modules' not in said, said
    changes = {'jax.__version__ = "0.99.1"': 'supports jax 0.8, 0.9, 0.10, 0.11, 0.12, not 0.99.1',
               'jaxlib.__version__ = "1.0.0"': 'supports jaxlib 0.8, 0.9, 0.10, 0.11, 0.12, not 1.0.0',
               'compiler.compile_or_get_cached = lambda computation: 0': 'does not support compile_or_get_cached of jax',
               'del cache_key.custom_hook': 'has no jax._src.cache_key.custom_hook',
               'del jax.make_user_context': 'make_user_context'}
    code = f'''
import hlofp8, jax, jaxlib
import jax._src.compiler as compiler, jax._src.cache_key as cache_key
parts, calls = (jax, jaxlib, compiler, cache_key), (hlofp8.enable, lambda: hlofp8.enabled().__enter__())
for change, text in {changes!r}.items():
    kept = [dict(vars(part)) for part in parts]
    exec(change)
    changed = [dict(vars(part)) for part in parts]
    for call in calls:
        try:
            call()
        except hlofp8.Error as error:
            assert text in str(error), error
        else:
            raise AssertionError(change)
        hlofp8.disable()
        assert changed == [dict(vars(part)) for part in parts]
    for part, names in zip(parts, kept):
        vars(part).update(names)
hlofp8.enable()
assert compiler.compile_or_get_cached is not kept[2]['compile_or_get_cached']
'''
    python(args, '-c', code)


def persistent_cache(args):
    """Each set of options has separate entries in the persistent compilation cache, and a later run uses them."""
    path, folder = trains(args), os.path.join(args.work, 'cache')
    subprocess.run(['rm', '-rf', folder], check=True)
    env = {'JAX_COMPILATION_CACHE_DIR': folder, 'JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS': '0', 'JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES': '-1'}

    def entries():
        return {name for name in os.listdir(folder) if name.endswith('-cache')}
    runs, seen, wanted = [(), ('--quantize=current', '--min-gain=0.001'), ('--quantize=current', '--min-gain=0.002')], [], []
    for options in runs:
        before = set().union(*seen)
        wanted.append(python(args, *(('-m', 'hlofp8', *options) if options else ()), path, env=env)[0])
        seen.append(entries() - before)
    steps = [sum(name.startswith('jit_train_step-') for name in new) for new in seen]
    assert steps == [1, 1, 1] and len({len(new) for new in seen}) == 1 and len(seen[0]) > 1, seen
    before = entries()
    for options, out in list(zip(runs, wanted, strict=True))[:2]:
        assert python(args, *(('-m', 'hlofp8', *options) if options else ()), path, env=env)[0] == out
    assert entries() == before


WORKER = '''
import jax
jax.distributed.initialize(shutdown_timeout_seconds=5)
import jax.numpy as jnp, numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
assert jax.device_count() == 8 and jax.local_device_count() == 4
import hlofp8._enable
hlofp8._enable._WAIT_S = 10
mesh = jax.make_mesh((8,), ('d',), axis_types=(AxisType.Auto,))
random = np.random.default_rng(0)

def whole(array, *spec):
    return jax.make_array_from_callback(array.shape, NamedSharding(mesh, P(*spec)), lambda at: array[at])

def train_step(w, x):
    loss, grads = jax.value_and_grad(lambda w: jnp.square(jnp.tanh(x @ w) @ w.T - x).mean())(w)
    return w - grads, loss
w, x = whole(random.standard_normal((64, 128)).astype('f') / 8, 'd'), whole(random.standard_normal((64, 64)).astype('f'), 'd')
step = jax.jit(train_step, donate_argnums=0)
for _ in range(4):
    w, loss = step(w, x)
    print('loss', float(loss))
'''


def processes(args):
    """Two processes with four devices each rewrite a sharded step alike; different options are an error."""
    def run(*options):
        return _cases.processes(args, ['-c', WORKER], *({'HLOFP8': each} if each else {} for each in options))
    quantize = '--quantize=current --min-gain=0.001'
    plain, found = run('', ''), run(quantize, quantize)
    assert all(status == 0 for _, _, status in plain + found), (plain, found)
    one, other, wide = losses(found[0][0]), losses(found[1][0]), losses(plain[0][0])
    assert len(one) == 4 and (one == other).all() and (one != wide).any() and np.allclose(one, wide, 0.02), (one, other, wide)
    said = [errors for _, errors, _ in found]
    assert 'jit_train_step: 5 of 5 matmuls in FP8' in said[0] and 'hlofp8' not in said[1], said
    mixed = run(quantize, '--min-gain=0.001')
    assert any(status for _, _, status in mixed), mixed
    assert 'processes rewrite jit_train_step in different ways' in mixed[0][1] + mixed[1][1], mixed
    if args.long:  # waits for the other process until a timeout
        alone = run(quantize, '')
        assert alone[0][2] and 'hlofp8 is not enabled in all processes' in alone[0][1], alone
    return f'losses {one[0]:.4f} to {one[-1]:.4f}, wide {wide[-1]:.4f}'


def main():
    args = _cases.arguments()
    return _cases.run([every_function, switches, transformations, frameworks, with_hlofp8_jit, chooses, fails, threads, command,
                       versions, persistent_cache, processes], args)


if __name__ == '__main__':
    sys.exit(main())
