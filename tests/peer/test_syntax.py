#!/usr/bin/env python3
"""All of HLO's syntax, by the tables of _text_modules.py.

Of every module there that is right: jaxlib reads our print as the same module, and our print of our print is that print.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys

import _jaxlib_text
import _text_modules

SPLIT = '// -----\n'


class Printer:
    """hlo-fp8-opt, on many modules at once."""

    def __init__(self, program, work):
        self.program, self.path = program, pathlib.Path(work) / 'in.hlo'

    def run(self, text, *options):
        self.path.write_bytes(text.encode('latin-1'))
        return subprocess.run([self.program, '--passes=', '--no-verify', *options, self.path], capture_output=True)

    def print_one(self, text):
        """The print, or what is said instead."""
        ran = self.run(text)
        return ran.returncode == 0, (ran.stderr if ran.returncode else ran.stdout).decode('latin-1')

    def print_all(self, texts):
        ran = self.run(('\n' + SPLIT).join(texts))
        printed = ran.stdout.decode('latin-1').split(SPLIT)
        if ran.returncode == 0 and len(printed) == len(texts):
            return [(True, p) for p in printed]
        return [self.print_one(text) for text in texts]


def check_good(printer):
    modules = list(_text_modules.good())
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
               'jaxlib reads our print as another module:\n' + first_difference(want[0], got[0]) if not same(name, got, want) else
               'the print does not come back:\n' + first_difference(printed, twice) if twice != printed else None)
        if why:
            failed += 1
            print(f'{name}: {why}'[:2000])
    return len(modules), failed


def same(name, got, want):
    """jaxlib numbers equal names in the order of computations, an inline one before the one that it stands in."""
    unnamed = [re.sub(r'^_(\.\d+)? \{', '_ {', text, flags=re.M) for text in (got[1], want[1])]
    return unnamed[0] == unnamed[1] and (got[0] == want[0] or name.startswith('inline'))


def first_difference(a, b):
    lines = [(x, y) for x, y in zip(a.split('\n'), b.split('\n')) if x != y]
    return '\n'.join(lines[0])[:400] if lines else 'one is longer'


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--bin', required=True)
    parser.add_argument('--models', required=True)
    parser.add_argument('--work', required=True)
    args = parser.parse_args()
    printer = Printer(os.path.join(args.bin, 'hlo-fp8-opt'), args.work)
    count, failed = check_good(printer)
    print(f'{count} modules, {failed} failed')
    return 1 if failed or count < 300 else 0


if __name__ == '__main__':
    sys.exit(main())
