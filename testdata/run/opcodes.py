# SPDX-License-Identifier: Apache-2.0
"""Prints the opcodes that docs/cpu.md lists wrongly, and the opcodes and custom calls that no module of a folder executes.

usage: opcodes.py RUN OP_DEF DOCS FOLDER

OP_DEF has the opcodes. Each is in one row of the table in cpu.md; rows whose restriction is "rejected" are not executed.
The custom calls are those of the corpora in versions.md, unless limitations.md names them; test_versions.py executes
those of the versions. RUN is hlo-fp8-run, which makes a plan for every module of FOLDER.
"""
import collections
import pathlib
import re
import subprocess
import sys

run, op_def, docs, folder = sys.argv[1:]
docs = pathlib.Path(docs)
opcodes = set(re.findall(r'^HLO_OP\(\w+, "([^"]+)"', pathlib.Path(op_def).read_text(), re.M))
listed, rejected = collections.Counter(), set()
table = (docs / "cpu.md").read_text().split('## Opcodes')[1]
for names, restriction in re.findall(r'^\| (`.*?) \|(.*)\|$', table, re.M):
    names = re.findall(r'`([^`]+)`', names)
    listed.update(names)
    if restriction.strip() == 'rejected':
        rejected.update(names)
calls = set(re.findall(r'^\| custom-call `(.*?)` [| ]*\| x \|$', (docs / "versions.md").read_text(), re.M))
named = {call for call in calls if f'`{call}`' in (docs / "limitations.md").read_text()}
print('not listed once:', *sorted(n for n in opcodes | set(listed) if listed[n] != 1 or n not in opcodes))

executed = set()
wanted = opcodes - rejected | calls - named
for path in sorted(pathlib.Path(folder).glob('*.hlo')):
    text = path.read_text(errors='replace')
    if wanted <= executed:
        break
    counts = [int(n) for n in re.findall(r'(?:replica_count|num_partitions)=(\d+)', text[:2000])] + [1, 1]
    devices = counts[0] * counts[1]
    found = set(re.findall(r'= (?:\([^=]*\)|[\w<=,\[\]]+(?:\{[^}]*\})?) ([a-z][\w-]*)\(', text))
    found |= set(re.findall(r'custom_call_target="([^"]+)"', text))
    if found & wanted - executed and subprocess.run([run, '--plan', f'--devices={devices}', path], capture_output=True).returncode == 0:
        executed |= found
print('not executed:', *sorted(wanted - executed))
print('rejected, but executed:', *sorted((rejected | named) & executed))
# SPDX-License-Identifier: Apache-2.0
