#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that SIGINT ends a run of hlofp8 with KeyboardInterrupt, without leaving a file."""
import os
import signal
import subprocess
import sys
import tempfile

import _cases

ENDLESS = """HloModule m
condition { p = f32[2] parameter(0)
  ROOT r = pred[] constant(true) }
body { p = f32[2] parameter(0)
  ROOT r = f32[2] cosine(p) }
ENTRY e { a = f32[2] parameter(0)
  ROOT w = f32[2] while(a), condition=condition, body=body }
"""
DOT = """HloModule m
ENTRY e { a = f64[8192,8192] iota(), iota_dimension=0
  d = f64[8192,8192] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f64[8192,8192] dot(d, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT f = f64[8192,8192] dot(e, e), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
"""
# Prints a line before the call; the signal is sent shortly after that line.
PROGRAM = """
import signal, sys, threading
import hlofp8
signal.signal(signal.SIGINT, signal.default_int_handler)
text = sys.stdin.read()
print('ready', flush=True)
threading.Timer(0.3, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)).start()
try:
    {call}
except KeyboardInterrupt:
    print('interrupted')
    try:
        hlofp8.run('HloModule m\\nENTRY e {{ ROOT a = f32[2] parameter(0) }}')
        print('continues')
    except BaseException as error:
        print(type(error))
"""


def interrupted(args, call, text):
    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run([sys.executable, '-c', PROGRAM.format(call=call)], input=text, capture_output=True, text=True, cwd=folder,
                             env={**os.environ, 'PYTHONPATH': args.site, 'TMPDIR': folder}, timeout=300)
        assert ran.stdout.split('\n')[:3] == ['ready', 'interrupted', 'continues'], (ran.returncode, ran.stdout, ran.stderr)
        assert ran.stderr == '', ran.stderr
        assert os.listdir(folder) == [], os.listdir(folder)


def run(args):
    interrupted(args, 'hlofp8.run(text)', ENDLESS)


def instruction(args):
    interrupted(args, 'hlofp8.run(text)', DOT)


def values(args):
    interrupted(args, "hlofp8.values(text, 'w')", ENDLESS)


def profile(args):
    interrupted(args, 'hlofp8.profile(text)', ENDLESS)


def compare(args):
    interrupted(args, 'hlofp8.compare(text, text)', ENDLESS)


def bisect(args):
    interrupted(args, 'hlofp8.bisect(text)', ENDLESS)


def handler(args):
    """If a signal handler of the program raises an exception, the call raises that exception."""
    interrupted(args, "signal.signal(signal.SIGINT, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt('own'))); hlofp8.run(text)", ENDLESS)


if __name__ == '__main__':
    sys.exit(_cases.run([run, instruction, values, profile, compare, bisect, handler], _cases.arguments()))
