#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that stock XLA, without disabled passes or flags, accepts the output of `hlo-fp8-opt --emit=`.

With --emit=ffi, XLA's GPU compiler keeps every call, and then requires the handler of the calls. With --emit=qdq, it
creates as many FP8 calls, with the same epilogues, except for LIKE. With --emit=qdq and --emit=dq, the results of XLA's
CPU backend, of hlo-fp8-run, and of hlo-fp8-run on the original module agree, each within the bound derived from the
data. The modules include one of f16 whose unscaled products exceed the range of f16.
"""
import collections
import contextlib
import io
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import _script
import _xla_cpu
import _xla_gpu

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, '..', '..', '..', 'testdata', 'passes', 'emit')
MODELS = ('seed_relu_damax', 'bias_relu', 'bias_gelu_tanh', 'residual', 'batched', 'rowwise_before', 'scan_layers')
GOLDENS = ('epilogues', 'f16', 'gelu', 'held', 'measured', 'shared')
# Differences between the epilogues of XLA's calls and those of hlo-fp8-opt: an f16 matmul becomes an f32 one, rounded
# after the call; a call for XLA has no auxiliary result, since XLA cannot run one.
LIKE = {'f16': ('DEFAULT',), 'gelu': ('DEFAULT', 'DEFAULT', 'DEFAULT', 'GELU', 'GELU')}
CALL = {'cublas': r'custom_call_target="__cublas\$lt\$matmul\$f8"', 'ffi': r'custom_call_target="hlofp8\.matmul"'}


def path_of(args, name):
    return os.path.join(GOLDEN if name in GOLDENS else args.models, name + '.hlo')


def emit(args, name, form):
    """Returns the path of the module in that form, and its text."""
    out = os.path.join(args.work, f'{name}.{form}.hlo')
    subprocess.run([os.path.join(args.bin, 'hlo-fp8-opt'), '--emit=' + form, path_of(args, name), '-o', out], check=True,
                   capture_output=True)
    with open(out) as f:
        return out, f.read()


def gpu(args, path):
    """Returns XLA's GPU compiler's output for a module, and its messages."""
    done = subprocess.run([sys.executable, os.path.join(HERE, '_xla_gpu.py'), '--default-flags',
                           '--kernels', os.path.join(args.work, 'kernels'), path],
                          capture_output=True, text=True)
    return done.stdout, done.stderr


def epilogues(text):
    calls = [line for line in text.splitlines() if re.search(CALL['cublas'], line)]
    return collections.Counter(re.search(r'"epilogue":"(\w+)"', line)[1] for line in calls)


def fused(args, name):
    """Returns FP8 calls by epilogue: those of hlo-fp8-opt, and XLA's for the module with --emit=qdq, or None; and XLA's
    messages."""
    _, ours = emit(args, name, 'cublas')
    path, _ = emit(args, name, 'qdq')
    text, said = gpu(args, path)
    if not text or said:
        return epilogues(ours), None, said
    return epilogues(ours), epilogues(text), ''


def kept(args, name):
    """Returns the number of typed calls; of those that XLA keeps until it requires their handler, or None; and XLA's
    messages."""
    path, ours = emit(args, name, 'ffi')
    text, said = gpu(args, path)
    wanted = len(re.findall(CALL['ffi'], ours))
    if wanted and 'No FFI handler registered for hlofp8.matmul' not in said:
        return wanted, None, said
    return wanted, len(re.findall(CALL['ffi'], text)), ''


def check_gpu(args, name):
    ours, theirs, said = fused(args, name)
    if theirs is None:
        return ['XLA refuses --emit=qdq: ' + said[-300:]]
    wanted = LIKE.get(name, tuple(sorted(ours.elements())))
    problems = []
    if tuple(sorted(theirs.elements())) != wanted:
        problems.append(f'--emit=qdq: XLA makes {dict(theirs)}, we {dict(ours)}')
    ours, theirs, said = kept(args, name)
    if theirs != ours:
        problems.append(f'--emit=ffi: of {ours} calls XLA keeps {theirs} {said[-300:]}')
    return problems


def check_cpu(args, name):
    problems = []
    model, inputs = path_of(args, name), os.path.join(args.work, name + '.in.npz')
    for form in ('qdq', 'dq'):
        path, _ = emit(args, name, form)
        outputs = os.path.join(args.work, f'{name}.{form}.npz')
        with contextlib.redirect_stdout(io.StringIO()):
            _xla_cpu.main([path, '--save-inputs', inputs, '--outputs', outputs])
        for wanted in (outputs, model):
            done = subprocess.run([os.path.join(args.bin, 'hlo-fp8-run'), path, '--inputs=' + inputs,
                                   '--compare=' + wanted], capture_output=True, text=True)
            if done.returncode:
                problems.append(f'--emit={form} and {wanted}: {done.stdout}{done.stderr}')
    return problems


def main():
    parser = _script.parser()
    parser.add_argument('names', nargs='*', help='models; some by default')
    args = parser.parse_args()
    _xla_gpu.require_plugin()
    failed = 0
    names = args.names or MODELS + GOLDENS
    for name in names:
        problems = check_gpu(args, name) + check_cpu(args, name)
        failed += bool(problems)
        if problems:
            print(f'{name}: ' + '\n    '.join(problems))
    print(f'{len(names) - failed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
