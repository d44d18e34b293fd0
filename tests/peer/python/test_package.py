#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the Python package without JAX: its results for modules equal those of the programs."""
import collections
import inspect
import os
import pathlib
import re
import shutil
import subprocess
import sys
import warnings

import numpy as np

import _cases

ADD = 'HloModule m\nENTRY e {\n  a = f32[2] parameter(0)\n  ROOT b = f32[2] add(a, a)\n}\n'


def model(args, name='seed_relu_damax'):
    return pathlib.Path(args.models) / (name + '.hlo')


def program(args, *words):
    return subprocess.run([os.path.join(args.bin, words[0]), *map(str, words[1:])], check=True, capture_output=True).stdout


def same_as_program(args):
    """Text and bytes in each form equal those of hlo-fp8-opt."""
    import hlofp8
    for emit in ('cublas', 'ffi', 'qdq', 'dq'):
        made = hlofp8.rewrite(model(args), emit=emit)
        assert made.text.encode() == program(args, 'hlo-fp8-opt', '--emit=' + emit, model(args)), emit
        assert made.proto == program(args, 'hlo-fp8-opt', '--emit=' + emit, '--format=pb', model(args)), emit
        assert made.fp8 == 1, emit
    used = hlofp8.rewrite(model(args), scale_operands='used', target='sm_89', cuda='12.9', merge_dots=True)
    assert used.text.encode() == program(args, 'hlo-fp8-opt', '--scale-operands=used', '--target=sm_89', '--cuda=12.9',
                                         '--merge-dots', model(args))
    wide = 'ENTRY e { a = bf16[16,32] parameter(0) b = bf16[32,16] parameter(1) ' \
           'ROOT d = bf16[16,16] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }'
    for recipe in ('current', 'rows', 'mx'):
        quantized, = hlofp8.rewrite(wide, quantize=recipe, target='sm_100', min_gain=0.001).verdicts
        assert (quantized.kind, quantized.quantized) == ('fp8', recipe) and quantized.predicted_gain > 0, recipe
    _cases.refused("invalid value 'row' for quantize", hlofp8.rewrite, wide, quantize='row')


def read_alike(args):
    """A module can be given as a path, a file name, text, bytes, a binary module or the result of rewrite()."""
    import hlofp8
    wanted = hlofp8.rewrite(model(args), passes='')
    name = str(model(args))
    assert hlofp8.explain(name).fp8 == 1 and hlofp8.compare(name, name)
    assert all((a == b).all() for a, b in zip(hlofp8.run(name), hlofp8.run(model(args)), strict=True))
    spaced = os.path.join(args.work, 'a name {of spaces}.hlo')
    shutil.copy(name, spaced)
    _cases.refused('missing.hlo: error: cannot read file', hlofp8.rewrite, 'missing.hlo')
    _cases.refused('contains a NUL character', hlofp8.rewrite, 'a\0b')
    for module in (name, spaced, model(args).read_text(), model(args).read_bytes(), wanted, wanted.proto):
        assert hlofp8.rewrite(module).text == hlofp8.rewrite(model(args)).text, type(module)


def layers_module(args):
    return pathlib.Path(args.models).parent / 'tool' / 'layers.hlo'


def verdicts(args):
    """Every field of a verdict, a group and the totals equals that of the JSON remarks."""
    import json

    import hlofp8
    for module in (layers_module(args), model(args), model(args, 'llama_train'), model(args, 'rowwise_before')):
        made = hlofp8.rewrite(module)
        document, found = json.loads(made.remarks('json')), hlofp8.explain(module)
        assert len(document['dots']) == len(made.verdicts) == len(found) > 0 and found.matmuls[0] == found[0]
        for dot, verdict, matmul in zip(document['dots'], made.verdicts, found, strict=True):
            assert dot['verdict'] == verdict.kind and dot['instruction'] == verdict.instruction and dot['input_instruction'] == verdict.input_instruction
            for key in set(dot) - {'verdict', 'instruction', 'input_instruction'}:
                assert (dot[key] or None) == (getattr(matmul, key) or None) or np.isclose(dot[key], getattr(matmul, key)), key
            assert all(getattr(matmul, key) == value or value != value for key, value in vars(verdict).items()), matmul
        assert len(document['groups']) == len(found.groups)
        for group, wanted in zip(found.groups, document['groups'], strict=True):
            renamed = {**wanted, 'kind': wanted.pop('verdict'), 'count': wanted.pop('matmuls'), 'source_line': wanted['source_line'] or 0}
            assert vars(group) == {key: renamed[key] for key in vars(group)} and set(wanted) < set(vars(group)), group
        assert vars(found.totals) == {**document['summary'], 'fp8': found.fp8}
        assert [sum(m.group == i for m in found) for i in range(len(found.groups))] == [group.count for group in found.groups]
    wide = hlofp8.rewrite(ADD.replace('add(a, a)', 'dot(a, a), lhs_contracting_dims={0}, rhs_contracting_dims={0}').replace('b = f32[2]', 'b = f32[]'))
    assert wide.gate('all') and wide.gate(1) and wide.gate('50%') and wide.gate(no_reason='') and not wide.gate(0)
    assert not made.gate('all') and wide.verdicts[0].hint and not wide.verdicts[0].is_fp8
    _cases.refused('most', wide.gate, 'most')


def explains(args):
    """explain() prints the summary of hlo-fp8-opt, writes its HTML page, and escapes what a notebook shows."""
    import hlofp8
    found = hlofp8.explain(layers_module(args))
    remarks = subprocess.run([os.path.join(args.bin, 'hlo-fp8-opt'), '--remarks=summary', '--remarks-file=/dev/stdout', '-o', '/dev/null',
                              layers_module(args)], check=True, capture_output=True, text=True).stdout
    assert str(found) + '\n' == remarks == found.rewritten.remarks(which='summary')
    written = os.path.join(args.work, 'report.html'), os.path.join(args.work, 'wanted.html')
    found.report(pathlib.Path(written[0]))
    subprocess.run([os.path.join(args.bin, 'hlo-fp8-opt'), '--report=' + written[1], '-o', os.devnull, layers_module(args)], check=True,
                   env={'PATH': ''})  # without Graphviz
    pages = [open(path).read() for path in written]
    first, second = (re.sub(r'<p class="dim">Target.*?</p>', '', page, count=1, flags=re.S) for page in pages)
    assert 'mlp/up' in first and first == second and '<code>hlofp8.explain(layers)</code>' in pages[0]
    named = layers_module(args).read_text().replace('/mlp/up/', '/m&lt<b>/up/').replace('model.py', 'a<i>.py')
    shown = hlofp8.explain(named)._repr_html_()
    assert 'm&amp;lt&lt;b&gt;/up' in shown and '<b>' not in shown and '<i>' not in shown and 'a&lt;i&gt;.py' in shown, shown
    assert shown.count('<tr>') == len(found.groups) + 1 and '1 of 17 matmuls in FP8' in shown


def differs(args):
    """diff() has the matmuls that became FP8, that no longer are, that are new, and that are gone."""
    import hlofp8
    dot = '  {0} = f32[8,{1}] dot({0}1, {0}2), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, metadata={{op_name="jit(f)/{0}/dot"}}'

    def module(*names):
        lines = []
        for index, name in enumerate(names):
            columns = 16 if name == 'big' else 8
            lines += [f'  {name}1 = f32[8,8] parameter({2 * index})', f'  {name}2 = f32[8,{columns}] parameter({2 * index + 1})',
                      dot.format(name, columns)]
        return '\n'.join(['HloModule m', 'ENTRY e {', *lines, f'  ROOT t = tuple({", ".join(names)})', '}'])
    options = {'quantize': 'current', 'min_gain': 0.001}
    wide, fp8 = hlofp8.explain(module('x', 'y', 'z')), hlofp8.explain(module('y', 'z', 'big'), wide='z', **options)
    assert [m.kind for m in wide] == ['wide'] * 3 and [m.kind for m in fp8] == ['fp8', 'wide', 'fp8']

    def names(found):
        return [[m.input_instruction for m in each] for each in (found.newly_fp8, found.lost_fp8, found.new, found.gone)]
    forth, back, same = wide.diff(fp8), fp8.diff(wide), fp8.diff(fp8)
    assert names(forth) == [['y'], [], ['big'], ['x']] and names(back) == [[], ['y'], ['x'], ['big']] and names(same) == [[]] * 4
    assert forth.newly_fp8[0].is_fp8 and not back.lost_fp8[0].is_fp8 and back.lost_fp8[0] is wide[1] and forth.gone[0] is wide[0]
    assert (forth.before, forth.after) == (wide.totals, fp8.totals)
    lines = str(forth).splitlines()
    assert lines[0] == '0 of 3 -> 2 of 3 matmuls in FP8' and lines[3] == 'newly FP8: 1 x y, f32[8,8] k=8', lines
    assert lines[4:] == ['new: 1 x big, f32[8,16] k=8', 'gone: 1 x x, f32[8,8] k=8, not-quantized'] and len(str(same).splitlines()) == 3, lines
    quantized = hlofp8.explain(layers_module(args), quantize='current').diff(hlofp8.explain(layers_module(args)))
    assert 'lost FP8: 3 x LM/layers_*/mlp/down (forward), bf16[8192,4096] k=14336, not-quantized' in str(quantized).splitlines()
    none = hlofp8.explain(ADD)
    assert names(none.diff(none)) == [[]] * 4 and names(none.diff(wide)) == [[], [], ['x', 'y', 'z'], []]


def runs(args):
    """Outputs equal those of hlo-fp8-run, on random and on given inputs; every type of array is supported."""
    import hlofp8
    import ml_dtypes
    for name in ('seed_relu_damax', 'mlp_qdq_fwd'):
        npz = os.path.join(args.work, 'out.npz')
        program(args, 'hlo-fp8-run', model(args, name), '--outputs=' + npz)
        wanted, found = np.load(npz), hlofp8.run(model(args, name))
        given = hlofp8.run(hlofp8.rewrite(model(args, name), passes=''), hlofp8.draw(model(args, name)))
        assert len(wanted.files) == len(found) == len(given)
        for key, one, other in zip(wanted.files, found, given):
            assert wanted[key].tobytes() == one.tobytes() == other.tobytes(), name
    for hlo, dtype in (('pred', bool), ('s4', ml_dtypes.int4), ('u2', ml_dtypes.uint2), ('s64', np.int64), ('u8', np.uint8),
                       ('f8e4m3fn', ml_dtypes.float8_e4m3fn), ('f8e5m2', ml_dtypes.float8_e5m2), ('bf16', ml_dtypes.bfloat16),
                       ('f8e8m0fnu', ml_dtypes.float8_e8m0fnu), ('f4e2m1fn', ml_dtypes.float4_e2m1fn),
                       ('f6e2m3fn', ml_dtypes.float6_e2m3fn), ('f6e3m2fn', ml_dtypes.float6_e3m2fn), ('f16', np.float16),
                       ('c64', np.complex64), ('f64', np.float64)):
        array = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
        module = f'HloModule m\nENTRY e {{\n  a = {hlo}[2,3] parameter(0)\n  ROOT t = {hlo}[3,2] transpose(a), dimensions={{1,0}}\n}}\n'
        result, = hlofp8.run(module, {'x': [array]})
        assert result.dtype == array.dtype and result.tobytes() == array.T.tobytes(), hlo
    assert hlofp8.run(ADD.replace('[2]', '[0]'), [np.zeros(0, np.float32)])[0].shape == (0,)
    for array in (np.arange(4, dtype=np.float32)[::2], np.array([0, 2], '>f4')):
        assert hlofp8.run(ADD, [array])[0].tolist() == [0, 4]
    difference = ADD.replace('  ROOT b = f32[2] add(a, a)', '  c = f32[2] parameter(1)\n  ROOT b = f32[2] subtract(a, c)')
    ones, twos = np.ones(2, np.float32), np.full(2, 2, np.float32)
    assert hlofp8.run(difference, {'z': ones, 'a': twos})[0].tolist() == [1, 1]
    assert hlofp8.run(difference, collections.OrderedDict(z=ones, a=twos))[0].tolist() == [-1, -1]


def has_values(args):
    """A run returns values by name, and reports names that match nothing."""
    import hlofp8
    found = hlofp8.values(ADD, ['a', 'b'], [np.array([1, 2], np.float32)])
    assert list(found) == ['a', 'b'] and found['b'].tolist() == [2, 4]
    assert sorted(hlofp8.values(ADD, '?')) == ['a', 'b']
    _cases.refused('no executed instruction is named `bb`', hlofp8.values, ADD, 'bb')
    _cases.refused('backend', hlofp8.values, ADD, 'b', backend='tpu')


def looks_inside(args):
    """Tests random inputs of both kinds, the first NaN, other accumulation, times, bisection, and extraction of one
    matmul."""
    import hlofp8
    text = model(args)
    assert [a.shape for a in hlofp8.draw(text)] == [a.shape for a in hlofp8.draw(text, kind='realistic')]
    assert any((a != b).any() for a, b in zip(hlofp8.run(text), hlofp8.run(text, draw='realistic')))
    _cases.refused('normal, realistic', hlofp8.run, ADD, draw='real')
    after = hlofp8.rewrite(text)
    assert hlofp8.run(after, accumulate='hopper')[0].shape == hlofp8.run(after)[0].shape
    _cases.refused('f32, hopper', hlofp8.run, after, accumulate='f16')
    assert hlofp8.run(ADD, [np.ones(2, np.float32)], check_nan=True)[0].tolist() == [2, 2]
    told = _cases.refused('produces an infinity at [1] from %a', hlofp8.run, ADD, [np.array([1, 3e38], np.float32)], check_nan=True)
    assert ':4:8:' in told, told
    profile = hlofp8.profile(text, runs=3)
    assert 'ms per run, mean of 3' in str(profile) and len(profile.trace['traceEvents']) > 3 and profile.seconds > 0
    found = hlofp8.bisect(text, emit='cublas', target='sm_90')
    assert len(found) == after.fp8 == text_matmuls(after) and found[0].alone.distance >= found[-1].alone.distance
    assert found.rounding.distance >= 0 and found.all.output >= 0 and str(found).startswith('bisect: ')
    _cases.refused('no matmul matches', hlofp8.bisect, text, wide='none')
    _cases.refused('no matmul matches', hlofp8.rewrite, text, wide=['none*'])
    empty = hlofp8.rewrite(ADD)
    assert 'has no matmuls' in empty.gate('all') and 'has no matmuls' in empty.gate(0) and empty.gate() is None
    assert empty.gate('all', '', allow_empty=True) is None
    small = hlofp8.extract(text, found[0].matmul)
    assert hlofp8.rewrite(small).fp8 == 1 and hlofp8.compare(small, hlofp8.rewrite(small))
    _cases.refused('none', hlofp8.extract, text, 'none')


def text_matmuls(rewritten):
    return rewritten.text.count('custom_call_target="__cublas$lt$matmul$f8"')


def compares(args):
    """The original and the rewritten module agree, and an output with a wrong value is named."""
    import hlofp8
    after = hlofp8.rewrite(model(args))
    assert hlofp8.compare(model(args), after) and hlofp8.compare(model(args), after, hlofp8.draw(after, 7))
    outputs = hlofp8.run(model(args), seed=3)
    assert hlofp8.compare(model(args), outputs, seed=3)

    class Array:  # like a jax array, neither a sequence nor a numpy array
        def __array__(self, dtype=None, copy=None):
            return np.array([2, 4], np.float32)
    assert hlofp8.compare(ADD, Array(), [np.array([1, 2], np.float32)])
    assert hlofp8.compare(bytearray(ADD.encode()), bytearray(ADD.encode()))
    outputs[1] *= 2
    found = hlofp8.compare(model(args), outputs, seed=3)
    assert not found and 'reduce_max' in str(found) and '1 of 2 outputs differ' in found.text


def refusals(args):
    """Exceptions contain a location and a reason."""
    import hlofp8
    text = _cases.refused('<module>:2:26: error: use of undefined instruction', hlofp8.rewrite, 'HloModule x\nENTRY e { a = f32[2] add(b, c) }')
    assert text.splitlines()[2] == ' ' * 25 + '^', text
    _cases.refused('mine.hlo:1:', hlofp8.rewrite, 'no module', name='mine.hlo')
    _cases.refused('binary HLO module', hlofp8.rewrite, b'\x01\x02')
    _cases.refused('error', hlofp8.rewrite, pathlib.Path('none.hlo'))
    _cases.refused('dq', hlofp8.rewrite, ADD, emit='cubals')
    for options in ({'target': 'sm_1'}, {'target': 'hopper'}, {'target': '9' * 20}, {'cuda': '12'}, {'cuda': '9' * 20 + '.1'},
                    {'passes': 'none'}, {'scale_operands': 'some'}):
        _cases.refused(str(next(iter(options.values()))), hlofp8.rewrite, ADD, **options)
    _cases.refused('NUL', hlofp8.rewrite, ADD, passes='dce\0')
    for options in ({'passes': ['dce']}, {'cuda': 12.8}, {'target': 90}, {'rules': b'x'}, {'framework_files': 3}, {'min_gain': '1'}, {'lint': 'yes'}, {'merge_dots': 2}):
        (key, value), = options.items()
        try:
            hlofp8.rewrite(ADD, **options)
        except TypeError as error:
            assert f'{key} must be ' in str(error) and f', not {value!r}' in str(error), error
        else:
            raise AssertionError(options)
    _cases.refused('2 inputs are given', hlofp8.run, ADD, [1, 2])
    _cases.refused('f32[2]', hlofp8.run, ADD, [np.zeros(3, np.float32)])
    _cases.refused('backend', hlofp8.run, ADD, backend='tpu')
    for wrong in (3, None, [ADD]):
        try:
            hlofp8.rewrite(wrong)
        except TypeError as error:
            assert type(wrong).__name__ in str(error)
        else:
            raise AssertionError(wrong)
    try:
        hlofp8.run(ADD, [np.array(['a', 'b'])])
    except TypeError as error:
        assert 'str' in str(error)
    else:
        raise AssertionError('an array of text was run')
    broken = ADD.replace('add(a, a)', 'add(a, a), frontend_attributes={a="b"}, unknown=3')
    try:
        hlofp8.rewrite(broken)
    except hlofp8.Error as error:
        assert error.status == 'invalid input' and error.diagnostics[0].line == 4 and error.diagnostics[0].severity == 'error'
    else:
        raise AssertionError('an unknown attribute was read')


def warns(args):
    """A warning of the library becomes a Python warning."""
    import hlofp8
    module = 'HloModule m, replica_count=2\n' + ADD.split('\n', 1)[1]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter('always')
        assert hlofp8.rewrite(module).proto
    assert [w.category for w in told] == [hlofp8.RewriteWarning] and 'replica_count' in str(told[0].message), told


def threads(args):
    """Eight threads rewrite a module concurrently, with equal results."""
    import concurrent.futures

    import hlofp8
    wanted = hlofp8.rewrite(model(args, 'mlp_qdq_fwd')).text
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(lambda _: hlofp8.rewrite(model(args, 'mlp_qdq_fwd')).text, range(16)))
    assert set(texts) == {wanted}


def typed(args):
    """The package is marked as typed, and every public name has a docstring."""
    import hlofp8
    assert os.path.exists(os.path.join(args.site, 'hlofp8', 'py.typed'))
    for name in hlofp8.__all__:
        if name in ('ModuleLike', 'Jitted', 'export', 'jit'):  # ModuleLike is a type alias; the others need JAX
            continue
        public = getattr(hlofp8, name)
        members = vars(public).items() if inspect.isclass(public) else ()
        for member, value in [(name, public), *(each for each in members if not each[0].startswith('_'))]:
            assert not (callable(value) or isinstance(value, property)) or inspect.getdoc(value), (name, member)
    assert os.path.exists(os.path.join(hlofp8.get_include(), 'hlo', 'pass.h'))


def wheel(args):
    """In a fresh environment, the wheel contains programs and manuals, needs no library of this machine except zlib and
    glibc 2.27, and README's code runs with JAX."""
    made, folder = os.path.join(args.work, 'wheels'), os.path.join(args.work, 'venv')
    for each in (made, folder):
        shutil.rmtree(each, ignore_errors=True)
    # Compile without optimization, which takes half the time: the library's results are tested elsewhere.
    # Debian 12's pip only supports the long form of -C.
    settings = ['cmake.build-type=Custom', 'build-dir=' + os.path.join(args.work, 'wheel')]
    subprocess.run([os.path.join(_cases.SOURCE, 'tools', 'dev'), 'wheel', made, *('--config-settings=' + each for each in settings)],
                   check=True, capture_output=True)
    file, = os.listdir(made)
    assert re.fullmatch(r'hlofp8-[\d.]+-py3-none-manylinux_2_27_x86_64\.whl', file), file
    subprocess.run([sys.executable, '-m', 'venv', folder], check=True)
    python = os.path.join(folder, 'bin', 'python')
    subprocess.run([python, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', os.path.join(made, file)], check=True)
    environment = {**os.environ, 'PATH': os.path.join(folder, 'bin') + ':' + os.environ['PATH'], 'JAX_PLATFORMS': 'cpu'}
    environment.pop('PYTHONPATH', None)

    def ask(*words):
        done = subprocess.run(words, env=environment, cwd=folder, capture_output=True, text=True)
        assert not done.returncode, done
        return done.stdout
    for name in ('hlo-fp8-opt', 'hlo-fp8-run'):
        assert ask('sh', '-c', 'command -v ' + name).strip() == os.path.join(folder, 'bin', name)
        assert 'usage' in ask(name, '--help').lower()
        for manual in (f'man/man1/{name}.1', f'bash-completion/completions/{name}'):
            assert os.path.getsize(os.path.join(folder, 'share', manual)), manual
    assert 'compare: 2 outputs agree' in ask('hlo-fp8-run', '--optimize', '--compare=before', str(model(args)))
    said = ask('python', '-c', 'import hlofp8, importlib.metadata as m, pathlib, sys\n'
               f'r = hlofp8.rewrite(pathlib.Path({str(model(args))!r}))\n'
               'print(hlofp8.__file__, m.version("hlofp8"), r.fp8, bool(hlofp8.compare(r, r)), "jax" in sys.modules)\n'
               'print(open("/proc/self/maps").read())')
    place, version, fp8, equal, jax = said.splitlines()[0].split()
    assert place.startswith(folder) and (fp8, equal, jax) == ('1', 'True', 'False'), said
    assert version in program(args, 'hlo-fp8-opt', '--version').decode()
    mapped = set(re.findall(r'/\S*/lib(?:jansson|zip|xxhash|crypto)\S*', said))
    assert not mapped, mapped
    done = subprocess.run([python, '-m', 'hlofp8', '-m', 'this'], env=environment, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 2 and 'error: JAX is not installed, and only modules that JAX compiles are rewritten' in done.stderr, done
    # Use the JAX of this Python.
    packages = os.path.dirname(os.path.dirname(place))
    with open(os.path.join(packages, 'jax.pth'), 'w') as path:
        path.write('\n'.join(each for each in sys.path if each.endswith('-packages')))
    here = os.path.dirname(os.path.abspath(__file__))
    assert ask('python', '-c', f'import sys; sys.path[:0] = [{here!r}, {os.path.dirname(here)!r}]\nimport hlofp8, test_docs\n'
               'test_docs.run("README.md", {})\nprint(hlofp8.__file__)').splitlines()[-1] == place


def main():
    args = _cases.arguments()
    return _cases.run([same_as_program, read_alike, verdicts, explains, differs, runs, has_values, looks_inside, compares, refusals, warns, threads, typed, wheel], args)


if __name__ == '__main__':
    sys.exit(main())
