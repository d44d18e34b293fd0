#!/usr/bin/env python3
"""The Python code of README.md and docs/ runs: that of each page as one program, in a folder with testdata."""
import importlib.util
import os
import sys
import tempfile

os.environ['JAX_PLATFORMS'] = 'cpu'
os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=8'

import _cases

sys.path.insert(0, os.path.join(_cases.SOURCE, 'tests'))
import blocks


def code(page):
    """The code of a page, each block at its own lines, so that a traceback names them; and the number of blocks."""
    found = [block for block in blocks.of('tests/peer/python/test_docs.py') if block.page == page]
    if not importlib.util.find_spec('model_explorer'):
        found = [block for block in found if 'model_explorer' not in block.code]
    text = ''
    for block in found:
        text += '\n' * (block.line - 1 - text.count('\n')) + block.code
    return text, len(found)


def reader():
    """What a reader of README is taken to have."""
    import _functions
    case = _functions.CASES['training_step']
    return {'train_step': case.function, 'params': case.args[0], 'batch': case.args[1]}


def typed_calls():
    """What stands around the code of docs/emit.md: the library is in the folder."""
    import ctypes

    import jax
    return {'ctypes': ctypes, 'jax': jax}


GIVEN = {'README.md': reader, 'docs/emit.md': typed_calls}


def case(page):
    def run(args):
        text, count = code(page)
        with tempfile.TemporaryDirectory(dir=args.work) as folder:
            os.symlink(os.path.dirname(args.models), os.path.join(folder, 'testdata'))
            os.symlink(os.path.join(args.site, 'hlofp8', 'libhlofp8_ffi.so'), os.path.join(folder, 'libhlofp8_ffi.so'))
            os.chdir(folder)
            exec(compile(text, os.path.join(_cases.SOURCE, page), 'exec'), {'__name__': 'page', **GIVEN.get(page, dict)()})
            os.chdir(args.work)
        return f'{count} blocks ran'
    run.__name__ = os.path.basename(page)
    return run


def main():
    args = _cases.arguments()
    return _cases.run([case(page) for page in dict.fromkeys(block.page for block in blocks.of('tests/peer/python/test_docs.py'))], args)


if __name__ == '__main__':
    sys.exit(main())
