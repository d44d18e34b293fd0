#!/usr/bin/env python3
"""The Python code in docs/python.md and README.md runs: each page as one program, from the top of the tree's copy."""
import os
import re
import sys
import tempfile

import _cases


def blocks(name):
    """The code of a page, each block at its own lines, so that a traceback names them."""
    with open(os.path.join(_cases.SOURCE, name), encoding='utf-8') as file:
        text = file.read()
    found = [(text[:block.start(1)].count('\n'), block[1]) for block in re.finditer(r'^```python\n(.*?)^```$', text, re.S | re.M)]
    assert found, f'{name} has no Python'
    code = ''
    for line, block in found:
        code += '\n' * (line - code.count('\n')) + block
    return code, len(found)


def page(name):
    def case(args):
        code, count = blocks(name)
        with tempfile.TemporaryDirectory(dir=args.work) as folder:
            os.symlink(os.path.dirname(args.models), os.path.join(folder, 'testdata'))
            os.chdir(folder)
            exec(compile(code, os.path.join(_cases.SOURCE, name), 'exec'), {'__name__': 'page'})
            os.chdir(args.work)
        return f'{count} blocks ran'
    case.__name__ = os.path.basename(name)
    return case


def main():
    args = _cases.arguments()
    return _cases.run([page('docs/python.md')], args)


if __name__ == '__main__':
    sys.exit(main())
