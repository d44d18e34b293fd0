#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the Python code of README.md and docs/, each page as one program in a folder with testdata, and checks its output.
Runs the Python programs in examples/. Skips code that requires a package that is not installed."""
import contextlib
import glob
import importlib.util
import io
import linecache
import os
import re
import runpy
import sys
import tempfile

os.environ['JAX_PLATFORMS'] = 'cpu'
os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=8'

import _cases

sys.path.insert(0, os.path.join(_cases.SOURCE, 'tests'))
import blocks


def run(page, names):
    """Runs the code blocks of a page, with the given names defined and with the line numbers of the page. Returns
    how many blocks ran."""
    found = [block for block in blocks.of('tests/peer/python/test_docs.py') if block.page == page]
    absent = [word for word, package in OPTIONAL.items() if not importlib.util.find_spec(package)]
    count, skipped = 0, False
    # With a relative name, the widths of tables with source files do not depend on the folder of the checkout.
    with open(os.path.join(_cases.SOURCE, page)) as file:
        lines = file.readlines()
    linecache.cache[page] = sum(map(len, lines)), None, lines, page
    for block in found:
        skipped = skipped if block.output else any(re.search(word, block.code) for word in absent)
        if skipped:
            continue
        count += 1
        if block.output:
            assert printed.getvalue() == block.code, f'{page}:{block.line}: the output is\n{printed.getvalue()}'
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile('\n' * (block.line - 1) + block.code, page, 'exec'), names)
    return f'{count} of {len(found)} blocks'


# Code that uses these words requires these packages.
OPTIONAL = {'model_explorer': 'model_explorer', r'\beqx\b': 'equinox'}


def typed_calls():
    """Returns the names that the code of docs/emit.md uses and does not define."""
    import ctypes

    import jax
    return {'ctypes': ctypes, 'jax': jax}


GIVEN = {'docs/emit.md': typed_calls}


def case(page):
    def run_page(args):
        with tempfile.TemporaryDirectory(dir=args.work) as folder:
            os.symlink(os.path.dirname(args.models), os.path.join(folder, 'testdata'))
            os.symlink(os.path.join(args.site, 'hlofp8', 'libhlofp8_ffi.so'), os.path.join(folder, 'libhlofp8_ffi.so'))
            os.chdir(folder)
            count = run(page, {'__name__': 'page', **GIVEN.get(page, dict)()})
            os.chdir(args.work)
        return f'{count} ran'
    run_page.__name__ = os.path.basename(page)
    return run_page


def examples(args):
    """Runs the Python programs in examples/, which check their results."""
    paths = glob.glob(os.path.join(_cases.SOURCE, 'examples', '*.py'))
    assert paths
    for path in paths:
        runpy.run_path(path, run_name='__main__')


def main():
    args = _cases.arguments()
    pages = dict.fromkeys(block.page for block in blocks.of('tests/peer/python/test_docs.py'))
    return _cases.run([*map(case, pages), examples], args)


if __name__ == '__main__':
    sys.exit(main())
