#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the calls that stock XLA makes of each output form, for each module of testdata's models, programs and pass
tests.

Prints a row for each module that has FP8 calls: calls of hlo-fp8-opt that are not dead, XLA's calls with --emit=qdq,
and those that XLA keeps with --emit=ffi. A word of WORDS shows why the counts or the epilogues differ. Fails if a
difference is not reported by a warning of hlo-fp8-opt, or listed in docs/emit.md or KNOWN. Also fails if XLA accepts
the original module, but not the rewritten one. `tools/dev test --long` runs this script, which takes
some minutes.
"""
import collections
import multiprocessing
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import _script
import _xla_gpu

WORDS = {
    'warned': 'a warning names the calls that XLA does not create, or only in part',
    'merged': 'dots that share operands become one: none differs where XLA merges no dots',
    'split': 'of a matmul of few rows, split along the contracting dimension, the epilogue comes after the sum: none '
             'differs where XLA splits and merges none',
    'more': "what follows ours is in XLA's call",
    'before': 'XLA refuses the module as it came as well',
    'refused': 'hlo-fp8-opt refuses a form',
}
# XLA's passes that change the number or the sizes of dots.
UNMERGED = '--xla_disable_hlo_passes=dot-merger,cse'
UNSPLIT = UNMERGED + ',splitk-rewriter'
# Module: reason why the counts differ.
KNOWN = {}

CALL = re.compile(r'%(?P<name>\S+) = (?P<call>\(?(?P<type>\w+)\[.*? custom-call\((?P<operands>%[^ ,)]+, %[^ ,)]+)'
                  r'.*?custom_call_target="__cublas\$lt\$matmul\$f8".*)')
TYPED = re.compile(r'custom_call_target="hlofp8\.matmul"')
LOST = re.compile(r"XLA will not turn '(.*)' into an FP8 call: ")
PART = re.compile(r"XLA computes part of '(.*)' outside its FP8 call: ")


def calls_of(text):
    """Yields name, kind and operands of each call; the kind is the epilogue, and whether the call has an amax, a
    matrix, an fp8 result."""
    for found in CALL.finditer(text):
        call = found['call']
        beta = re.search(r'"beta":([^,}]+)', call)
        kind = (re.search(r'"epilogue":"(\w+)"', call)[1] + '+amax' * ('"damax_output":true' in call) +
                '+matrix' * bool(beta and float(beta[1])) + '->fp8' * found['type'].startswith('f8'))
        yield found['name'], kind, found['operands']


def compile_here(plugin, config, path, folder, flags):
    """Runs in a separate process: XLA's messages go to a file, and only this process aborts."""
    said = os.open(folder / 'said', os.O_WRONLY | os.O_CREAT)
    os.dup2(said, 1)
    os.dup2(said, 2)
    flags = [*_xla_gpu.FLAGS, f'--xla_dump_to={folder}', '--xla_dump_hlo_as_text', *flags]
    os.environ.update(XLA_FLAGS=' '.join(flags), JAX_PLATFORMS='cpu', TF_CPP_MIN_LOG_LEVEL='2')
    signal.alarm(60)
    try:
        _xla_gpu.child(plugin, config, path, 1, None, False)
    except RuntimeError as error:
        os.write(2, str(error).encode())
        os._exit(1)
    os._exit(0)


class Xla:
    """Runs XLA's GPU compiler with its default flags, in a process for each module."""

    def __init__(self, work):
        self.work = work / 'xla'
        self.plugin = _xla_gpu.find_plugin()
        self.config = _xla_gpu.target_config(pathlib.Path(_xla_gpu.__file__).parent / 'targets', 'sm_90', '12.8')

    def compile(self, path, *flags):
        """Returns whether XLA compiles the module, its last text, and its messages."""
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        arguments = self.plugin, self.config, str(path), self.work, flags
        process = multiprocessing.get_context('fork').Process(target=compile_here, args=arguments)
        process.start()
        process.join()
        dumps = sorted(self.work.glob('*gpu_after_optimizations.txt'))
        return not process.exitcode, dumps[0].read_text() if dumps else '', (self.work / 'said').read_text(
            errors='replace')

    def kinds(self, path, *flags):
        """Returns the kinds of XLA's FP8 calls, with counts; None if it rejects the module."""
        made, text, _ = self.compile(path, *flags)
        return collections.Counter(kind for _, kind, _ in calls_of(text)) if made else None


def explained(ours, told, theirs):
    """Returns the words for the differences, or None. The second argument: the names of calls in warnings."""
    had = collections.Counter(kind for _, kind, _ in ours)
    lost, made, words = had - theirs, theirs - had, set()
    for name, kind, _ in ours:
        if lost[kind] and name in told['lost'] + told['part']:
            lost[kind] -= 1
            words.add('warned')
            if name in told['part']:
                made -= collections.Counter(list(made)[:1])
    if 0 < made.total() <= lost['DEFAULT']:
        words.add('more')
        lost['DEFAULT'] -= made.total()
        made.clear()
    plain = [operands for _, kind, operands in ours if kind == 'DEFAULT']
    if 0 < lost['DEFAULT'] <= len(plain) - len(set(plain)):
        words.add('merged')
        lost['DEFAULT'] = 0
    return None if +lost or +made else words


def why(xla, path, ours, told, theirs):
    """Returns the words for XLA's result for the plain form, or None."""
    for word, flag in ((None, None), ('merged', UNMERGED), ('split', UNSPLIT)):
        made = xla.kinds(path, flag) if flag else theirs
        words = None if made is None else explained(ours, told, made)
        if words is not None:
            return words | {word} - {None}
    return None


class Row:
    """A module in each output form, with the counts of its calls."""

    def __init__(self, args, path):
        self.program, self.path, self.out = args.bin / 'hlo-fp8-opt', path, args.work / 'emitted.hlo'

    def emit(self, *options, of=None):
        done = subprocess.run([self.program, *options, of or self.path, '-o', self.out], capture_output=True, text=True)
        return '' if done.returncode else self.out.read_text(), done.stderr

    def plain(self, xla):
        """Returns the number of XLA's calls for the plain form, and the words for the differences."""
        text, said = self.emit('--emit=qdq')
        if not text:
            return '-', {'refused'}
        theirs = xla.kinds(self.out)
        if theirs is None:
            return '-', None if xla.compile(self.path)[0] else {'before'}
        told = {'lost': LOST.findall(said), 'part': PART.findall(said)}
        return theirs.total(), why(xla, self.out, self.ours, told, theirs)

    def typed(self, xla):
        """Returns the number of typed calls that XLA keeps, and the words for the differences."""
        text, _ = self.emit('--emit=ffi')
        if not text:
            return '-', {'refused'}
        _, left, said = xla.compile(self.out)
        count, kept = len(TYPED.findall(text)), len(TYPED.findall(left))
        if 'No FFI handler registered for hlofp8.matmul' in said or not count:
            return kept, set() if kept in (count, len(self.ours)) else None
        return '-', None if xla.compile(self.path)[0] else {'before'}

    def check(self, xla):
        """Returns the row of the table, or None, and whether its differences are known."""
        text, _ = self.emit('--emit=cublas')
        if not any(calls_of(text)):
            return None, True
        live, _ = self.emit('--passes=dce', of=self.out)
        self.ours = list(calls_of(live))
        (plain, words), (typed, others) = self.plain(xla), self.typed(xla)
        fine = words is not None and others is not None
        known = KNOWN.get('/'.join(self.path.with_suffix('').parts[-2:]))
        told = ', '.join(sorted(words | others)) if fine else known or 'UNEXPLAINED'
        return f'{len(self.ours):4} {plain:>4} {typed:>4}  {told}', fine == (known is None)


def main():
    parser = _script.parser(pathlib.Path)
    parser.add_argument('files', nargs='*', type=pathlib.Path, help='modules; all of testdata by default')
    args = parser.parse_args()
    _xla_gpu.require_plugin()
    root, xla = args.models.parent, Xla(args.work)
    paths = args.files or [path for folder in ('models', 'programs', 'passes')
                           for path in sorted((root / folder).rglob('*.hlo')) if '.xla' not in path.suffixes]
    failed = rows = 0
    print('ours  qdq  ffi  module, why they differ')
    for path in paths:
        row, fine = Row(args, path).check(xla)
        failed += not fine
        rows += row is not None
        if row:
            print(f'{row[:16]}{"/".join(path.with_suffix("").parts[-2:])}: {row[16:]}', flush=True)
    print(*(f'{word}: {what}' for word, what in WORDS.items()), f'{rows} modules, {failed} failed', sep='\n')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
