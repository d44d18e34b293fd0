"""Checks that a program rejects every message that is truncated within a field.

usage: truncate.py PROGRAM FILE.pb...
"""
import subprocess
import sys

import snapshot

program, *names = sys.argv[1:]
for name in names:
    with open(name, 'rb') as file:
        data = file.read()
    # The message may end between two fields, unless its size precedes it.
    sized, ends, at = data[0] >= 32, set(), 0
    for number, value in () if sized else snapshot.fields(data):
        at += 1 + len(snapshot.varint(len(value))) + len(value)
        ends.add(at)
    assert sized or at == len(data), name
    for size in [*range(2, len(data), 61), len(data) - 1]:
        done = subprocess.run([program, '--passes=', '-o', '/dev/null', '-'], input=data[:size], capture_output=True)
        if size not in ends and (done.returncode != 1 or b'error: ' not in done.stderr):
            sys.exit(f'{name}: {size} bytes: status {done.returncode}')
# SPDX-License-Identifier: Apache-2.0
