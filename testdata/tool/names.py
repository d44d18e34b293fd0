"""Checks that JSON remarks on standard input name each matmul as the input does at the remark's line and column."""

import collections
import json
import sys

operations = collections.Counter()
for dot in json.load(sys.stdin)['dots']:
    with open(dot['file'], encoding='latin-1') as file:
        text = file.read().splitlines()[dot['line'] - 1][dot['column'] - 1 :]
    name = text.removeprefix('ROOT ').split('=')[0].strip().lstrip('%')
    assert dot['input_instruction'] == name, (dot, text)
    assert (dot['instruction'] != name) == dot['instruction'].startswith('cublas-gemm'), dot
    operations[dot['operation'], dot['verdict'] != 'wide'] += 1
for (operation, fp8), count in sorted(operations.items()):
    print(operation, 'FP8' if fp8 else 'wide', count)
# SPDX-License-Identifier: Apache-2.0
