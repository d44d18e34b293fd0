#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the FLOPs counted by --stats equal those of XLA's cost analysis: for elementwise opcodes, for opcodes
that apply a computation, and for the models, except loops (XLA counts their bodies once)."""
import os
import pathlib
import re
import subprocess
import sys

import jax
from jaxlib import _hlo, _jax

import _script
import _text_rows

SPLIT = '// -----\n'
ROUNDED = 1e-6  # XLA adds FLOPs in f32
COUNTED = ('FLOPs of dots', 'FLOPs of elementwise ops', 'FLOPs of reductions')
NOT_COUNTED = re.compile(r' (while|sort|fft|cholesky|triangular-solve|select-and-scatter|convolution|custom-call)\(')

PRELUDE = '''HloModule m
add {
 x = f32[] parameter(0)
 y = f32[] parameter(1)
 ROOT z = f32[] add(x, y)
}
two {
 x = f32[] parameter(0)
 y = f32[] parameter(1)
 w = f32[] exponential(x)
 ROOT z = f32[] add(w, y)
}
max2 {
 a = f32[] parameter(0)
 i = s32[] parameter(1)
 b = f32[] parameter(2)
 j = s32[] parameter(3)
 g = pred[] compare(a, b), direction=GT
 v = f32[] select(g, a, b)
 k = s32[] select(g, i, j)
 ROOT t = (f32[], s32[]) tuple(v, k)
}
once {
 p = f32[] parameter(0)
 ROOT q = f32[] add(p, p)
}
thrice {
 p = f32[] parameter(0)
 q = f32[] add(p, p)
 r = f32[] sine(q)
 s = f32[] call(r, q), to_apply=two
 ROOT t = f32[] call(s, q), to_apply=two
}
ENTRY e {
 a = f32[4,6] parameter(0)
 z = f32[] parameter(1)
 v = f32[4] parameter(2)
 s = s32[4,6] parameter(3)
 i = s32[] parameter(4)
 m = f32[8,4] parameter(5)
 n = s32[2,1] parameter(6)
 u = f32[2,4] parameter(7)
 b = f32[4,4] parameter(8)
 p = pred[] parameter(9)
 ROOT c = %s
}
'''
SCATTER = ', update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply='
APPLIED = [
    'f32[4] reduce(a, z), dimensions={1}, to_apply=add', 'f32[] reduce(a, z), dimensions={0,1}, to_apply=two',
    '(f32[4], s32[4]) reduce(a, s, z, i), dimensions={1}, to_apply=max2', 'f32[4,4] reduce-window(a, z), window={size=1x3}, to_apply=add',
    'f32[4,5] reduce-window(a, z), window={size=1x3 pad=0_0x1_0}, to_apply=two', 'f32[4,6] map(a, a), dimensions={0,1}, to_apply=two',
    'f32[2,2] reduce-window(a, z), window={size=2x3 stride=2x3}, to_apply=add', 'f32[8,4] scatter(m, n, u)' + SCATTER + 'add',
    'f32[8,4] scatter(m, n, u)' + SCATTER + 'two', 'f32[4,6] all-reduce(a), to_apply=add', '(f32[4,6], f32[4]) all-reduce(a, v), to_apply=two',
    'f32[2,6] reduce-scatter(a), dimensions={0}, replica_groups={{0,1}}, to_apply=add', 'f32[] call(z, z), to_apply=two',
    'f32[] fusion(z, z), kind=kLoop, calls=two', 'f32[] call(z), to_apply=thrice', 'f32[4,6] rng(z, z), distribution=rng_uniform',
    'f32[] conditional(p, z, z), true_computation=once, false_computation=thrice', 's32[4,6] bitcast-convert(a)', 'f32[4,6] copy(a)',
    'f32[4,4] dot(b, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}', 'f32[6,4] transpose(a), dimensions={1,0}',
    'f32[4,6] broadcast(z), dimensions={}', 'f32[4,6] all-gather(a), dimensions={0}']
MORE = {'compare': ', direction=LT', 'reduce-precision': ', exponent_bits=5, mantissa_bits=10'}


def elementwise(root):
    for row in _text_rows.table(root, 'ir/table/op.def', r'HLO_OP\(([^;]*?)\)\s*(?=HLO_OP|\Z)'):
        op, count = re.search(r'"([^"]+)", (\d)', row).groups()
        if 'HLO_ELEMENTWISE' in row:
            operands = ''.join(f' p{i} = f32[2,3] parameter({i})\n' for i in range(int(count)))
            names = ', '.join(f'p{i}' for i in range(int(count)))
            yield f'HloModule m\nENTRY e {{\n{operands} ROOT c = f32[2,3] {op}({names}){MORE.get(op, "")}\n}}\n'


def main():
    args = _script.parser().parse_args()
    client = jax.devices('cpu')[0].client
    texts = [*elementwise(pathlib.Path(__file__).resolve().parents[3]), *(PRELUDE % row for row in APPLIED)]
    models = [path.read_text(encoding='latin-1') for path in sorted(pathlib.Path(args.models).glob('*.hlo'))]
    texts += [text for text in models if not NOT_COUNTED.search(text)]
    path = pathlib.Path(args.work) / 'in.hlo'
    path.write_text(('\n' + SPLIT).join(texts), encoding='latin-1')
    ran = subprocess.run([os.path.join(args.bin, 'hlo-fp8-opt'), '--passes=', '--no-verify', '--stats', '-o', '/dev/null', path],
                         capture_output=True, text=True)
    ours = [dict(re.findall(r'^  (\S.*?) +(\d+)$', part, re.M)) for part in ran.stderr.split('module ')[1:]]
    failed = len(ours) != len(texts) or len(models) < 40
    for text, counts in zip(texts, ours):
        theirs = _jax.hlo_module_cost_analysis(client, _hlo.hlo_module_from_text(text))
        wanted = [int(theirs.get(name, 0)) for name in ('flops', 'transcendentals')]
        got = [sum(int(counts[name]) for name in COUNTED), int(counts['transcendentals'])]
        if any(abs(ours - theirs) > ROUNDED * theirs for ours, theirs in zip(got, wanted)):
            failed = True
            print(f'{text[-300:]}=> {got}, XLA {wanted}')
    print(f'{len(ours)} modules')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
