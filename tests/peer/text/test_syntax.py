#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests all of HLO's syntax, from the tables of _text_modules.py.

For every valid module, jaxlib reads hlo-fp8-opt's print as the same module, and printing is idempotent. For the modules
of _text_forms.py, the print equals jaxlib's. The texts of _text_wrong.py are rejected at the marked byte. The forms of
--print equal jaxlib's. Every row of the tables of HLO text, and every construct, is in some module.
"""
import os
import pathlib
import re
import subprocess
import sys

import _jaxlib_text
import _script
import _text_forms
import _text_modules
import _text_rows
import _text_wrong

SPLIT = '// -----\n'
ANOTHER = r'fusion-start|-start\((.|\n)*frontend_attributes'  # texts that are not compared in canonical form
ROUNDS = 2  # number of times that a text is read and printed until jaxlib's order of computations is stable


class Printer:
    """Runs hlo-fp8-opt on many modules at once."""

    def __init__(self, program, work):
        self.program, self.path = program, pathlib.Path(work) / 'in.hlo'

    def run(self, text, *options):
        self.path.write_bytes(text.encode('latin-1'))
        return subprocess.run([self.program, '--passes=', '--no-verify', *options, self.path], capture_output=True)

    def print_one(self, text):
        """Returns whether the module is read, and the print or the error messages."""
        ran = self.run(text)
        return ran.returncode == 0, (ran.stderr if ran.returncode else ran.stdout).decode('latin-1')

    def print_all(self, texts):
        ran = self.run(('\n' + SPLIT).join(texts))
        printed = ran.stdout.decode('latin-1').split(SPLIT)
        if ran.returncode == 0 and len(printed) == len(texts):
            return [(True, p) for p in printed]
        return [self.print_one(text) for text in texts]


def check_rows(modules):
    root = pathlib.Path(__file__).resolve().parents[3]
    missing = _text_rows.missing(modules, root)
    for row in missing:
        print(f'no module has: {row}')
    count = len(list(_text_rows.rows(root))) + len(_text_rows.CONSTRUCTS)
    return count, len(missing) + (count < 600)


def check_good(printer, modules):
    forms = ('long', 'canonical')
    wanted = _jaxlib_text.read([text for _, text in modules], forms)
    ours = printer.print_all([text for _, text in modules])
    back = _jaxlib_text.read([text if fine else '' for fine, text in ours], forms)
    again = printer.print_all([text if fine else 'HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }' for fine, text in ours])
    failed = 0
    for (name, text), want, (fine, printed), got, (_, twice) in zip(modules, wanted, ours, back, again):
        why = (f'jaxlib does not read it: {want}' if not isinstance(want, list) else
               f'refused: {printed}' if not fine else
               f'jaxlib does not read our print: {got}\n{printed}' if not isinstance(got, list) else
               'jaxlib reads our print as another module:\n' + first_difference(want[0], got[0]) if got != want else
               'not what jaxlib prints:\n' + first_difference(want[0], printed)
               if name.startswith('form ') and printed.rstrip() != want[0].rstrip() else
               'the print does not come back:\n' + first_difference(printed, twice) if twice != printed else None)
        if why:
            failed += 1
            print(f'{name}: {why}'[:2000])
    return len(modules), failed


def check_wrong(printer):
    """Checks that the status is 1, and that the first error is at the mark in the table."""
    texts = [row.replace('!', '', 1) for row in _text_wrong.WRONG]
    failed = 0
    for row, text, theirs in zip(_text_wrong.WRONG, texts, _jaxlib_text.read(texts)):
        before = row[:row.index('!')]
        wanted = f'{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}: error: '
        ran = printer.run(text)
        said = ran.stderr.decode('latin-1').split('\n')[0].removeprefix(f'{printer.path}:')
        why = ('jaxlib reads it' if isinstance(theirs, list) else
               f'status {ran.returncode}' if ran.returncode != 1 or ran.stdout else
               f'said {said}' if not said.startswith(wanted) else None)
        if why:
            failed += 1
            print(f'{row!r}: {why}, wanted {wanted}'[:600])
    return len(texts), failed


def check_forms(printer, models, modules):
    """Checks that the forms of --print equal jaxlib's for modules in jaxlib's order of computations, except for
    the numbers of stack frames, which jaxlib reassigns each time that it reads a module. Some texts are not
    compared in canonical form: jaxlib prints `calls` of a fusion-start twice, and moves the frontend attributes of a
    start to the wrapped operation."""
    failed = 0
    forms = ('long', 'short', 'canonical', 'no-metadata', 'no-large-constants')
    modules = [(path.name, path.read_text(encoding='latin-1')) for path in models] + modules
    texts = [text for _, text in modules]
    for _ in range(ROUNDS):
        texts = [answer[0] for answer in _jaxlib_text.read(texts)]
    for form in forms:
        ran = printer.run(('\n' + SPLIT).join(texts), f'--print={form}')
        printed = ran.stdout.decode('latin-1').split(SPLIT)
        wanted = _jaxlib_text.read(texts, [form])
        for (name, _), want, got in zip(modules, wanted, printed, strict=True):
            want, got = without_frames(want[0]), without_frames(got)
            if got != want and not (form == 'canonical' and re.search(ANOTHER, want)):
                failed += 1
                print(f'{name} --print={form}: not what jaxlib prints:\n' + first_difference(want, got))
    return len(modules) * len(forms), failed


def without_frames(text):
    text = re.sub(r'^\d+ (\{file_name_id=|\{file_location_id=|").*\n', '', text, flags=re.M)
    return re.sub(r' ?stack_frame_id=\d+', '', text)


def first_difference(a, b):
    lines = [(x, y) for x, y in zip(a.split('\n'), b.split('\n')) if x != y]
    return '\n'.join(lines[0])[:400] if lines else 'one is longer'


def main():
    args = _script.parser().parse_args()
    printer = Printer(os.path.join(args.bin, 'hlo-fp8-opt'), args.work)
    modules = [*_text_modules.good(), *_text_modules.lax(), *_text_forms.forms()]
    count, failed = check_good(printer, modules)
    print(f'{count} modules, {failed} failed')
    rows, wrong = check_rows(modules)
    print(f'{rows} rows and constructs, {wrong} failed')
    failed += wrong
    wrong_texts, wrong = check_wrong(printer)
    print(f'{wrong_texts} wrong texts, {wrong} failed')
    failed += wrong + (wrong_texts < 120)
    models = sorted(pathlib.Path(args.models).glob('*.hlo'))
    prints, wrong = check_forms(printer, models, modules)
    print(f'{prints} prints in other forms, {wrong} failed')
    failed += wrong + (not models)
    return 1 if failed or count < 300 else 0


if __name__ == '__main__':
    sys.exit(main())
