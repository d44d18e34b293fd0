# SPDX-License-Identifier: Apache-2.0
"""Prints the opcodes that docs/cpu.md lists wrongly, and those that no module of a folder executes.

usage: opcodes.py RUN OP_DEF CPU_MD FOLDER

OP_DEF has the opcodes. Each is in one row of the table in CPU_MD; rows whose restriction is "rejected" are not executed.
RUN is hlo-fp8-run, which makes a plan for every module of FOLDER.
"""
import collections
import pathlib
import re
import subprocess
import sys

run, op_def, cpu_md, folder = sys.argv[1:]
opcodes = set(re.findall(r'^HLO_OP\(\w+, "([^"]+)"', pathlib.Path(op_def).read_text(), re.M))
listed, rejected = collections.Counter(), set()
table = pathlib.Path(cpu_md).read_text().split('## Opcodes')[1]
for names, restriction in re.findall(r'^\| (`.*?) \|(.*)\|$', table, re.M):
    names = re.findall(r'`([^`]+)`', names)
    listed.update(names)
    if restriction.strip() == 'rejected':
        rejected.update(names)
print('not listed once:', *sorted(n for n in opcodes | set(listed) if listed[n] != 1 or n not in opcodes))

executed = set()
for path in sorted(pathlib.Path(folder).glob('*.hlo')):
    text = path.read_text(errors='replace')
    if opcodes - rejected <= executed:
        break
    counts = [int(n) for n in re.findall(r'(?:replica_count|num_partitions)=(\d+)', text[:2000])] + [1, 1]
    devices = counts[0] * counts[1]
    found = set(re.findall(r'= (?:\([^=]*\)|[\w<=,\[\]]+(?:\{[^}]*\})?) ([a-z][\w-]*)\(', text))
    if found - executed and subprocess.run([run, '--plan', f'--devices={devices}', path], capture_output=True).returncode == 0:
        executed |= found
print('not executed:', *sorted(opcodes - rejected - executed))
print('rejected, but executed:', *sorted(rejected & executed))
# SPDX-License-Identifier: Apache-2.0
