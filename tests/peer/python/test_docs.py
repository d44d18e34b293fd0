#!/usr/bin/env python3
"""The Python code in docs/python.md and README.md runs: each page as one program, in a folder with testdata."""
import importlib.util
import os
import re
import sys
import tempfile

os.environ['JAX_PLATFORMS'] = 'cpu'
os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=8'

import _cases


def blocks(name):
    """The code of a page, each block at its own lines, so that a traceback names them."""
    with open(os.path.join(_cases.SOURCE, name), encoding='utf-8') as file:
        text = file.read()
    found = [(text[:block.start(1)].count('\n'), block[1]) for block in re.finditer(r'^```python\n(.*?)^```$', text, re.S | re.M)]
    if not importlib.util.find_spec('model_explorer'):
        found = [(line, block) for line, block in found if 'model_explorer' not in block]
    assert found, f'{name} has no Python'
    code = ''
    for line, block in found:
        code += '\n' * (line - code.count('\n')) + block
    return code, len(found)


def reader():
    """What a reader of README is taken to have."""
    import _functions
    case = _functions.CASES['training_step']
    return {'train_step': case.function, 'params': case.args[0], 'batch': case.args[1]}


def page(name, given=dict):
    def case(args):
        code, count = blocks(name)
        with tempfile.TemporaryDirectory(dir=args.work) as folder:
            os.symlink(os.path.dirname(args.models), os.path.join(folder, 'testdata'))
            os.chdir(folder)
            exec(compile(code, os.path.join(_cases.SOURCE, name), 'exec'), {'__name__': 'page', **given()})
            os.chdir(args.work)
        return f'{count} blocks ran'
    case.__name__ = os.path.basename(name)
    return case


def main():
    args = _cases.arguments()
    return _cases.run([page('docs/python.md'), page('README.md', reader)], args)


if __name__ == '__main__':
    sys.exit(main())
