#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the time per instruction of modules of many sizes and forms, which should not grow with the size.

  scale.py --bench BENCH --work DIR [--sizes 1000,10000,100000] [--forms chain,tuple,...] [--times N]
  scale.py --print --sizes SIZE --forms FORM

Prints a line per form and size: the number of instructions (or other units of the form), then nanoseconds per unit to
parse, verify, print and optimize. --print prints the module instead. The exit status is 1 if the library rejects a
module.
"""
import argparse
import os
import subprocess
import sys


def chain(n):
    """Yields one long chain of elementwise instructions."""
    yield 'HloModule m\n\nENTRY e {\n  x_0 = f32[8] parameter(0)\n'
    for i in range(1, n):
        op = ('negate', 'abs', 'exponential')[i % 3]
        yield f'  x_{i} = f32[8] {op}(x_{i - 1})\n'
    yield f'  ROOT r = f32[8] negate(x_{n - 1})\n}}\n'


def wide_tuple(n):
    """Yields one tuple of all values, and a get-tuple-element for each value."""
    yield 'HloModule m\n\nENTRY e {\n'
    for i in range(n // 2):
        yield f'  p_{i} = f32[] parameter({i})\n'
    names = ', '.join(f'p_{i}' for i in range(n // 2))
    shapes = ', '.join('f32[]' for _ in range(n // 2))
    yield f'  t = ({shapes}) tuple({names})\n  g_0 = f32[] get-tuple-element(t), index=0\n'
    for i in range(1, n // 2):
        yield f'  g_{i} = f32[] get-tuple-element(t), index={i}\n'
    yield f'  ROOT r = f32[] add(g_0, g_{n // 2 - 1})\n}}\n'


def users(n):
    """Yields one value with many users."""
    yield 'HloModule m\n\nENTRY e {\n  p = f32[4] parameter(0)\n'
    for i in range(n):
        yield f'  c_{i} = f32[4] custom-call(p), custom_call_target="t_{i}"\n'
    names = ', '.join(f'c_{i}' for i in range(n))
    yield f'  ROOT t = ({", ".join(["f32[4]"] * n)}) tuple({names})\n}}\n'


def computations(n):
    """Yields many small computations, each called once."""
    yield 'HloModule m\n\n'
    for i in range(n // 4):
        yield f'f_{i} {{\n  a_{i} = f32[] parameter(0)\n  ROOT b_{i} = f32[] negate(a_{i})\n}}\n\n'
    yield 'ENTRY e {\n  x_0 = f32[] parameter(0)\n'
    for i in range(n // 4):
        yield f'  x_{i + 1} = f32[] call(x_{i}), to_apply=f_{i}\n'
    yield f'  ROOT r = f32[] negate(x_{n // 4})\n}}\n'


def call_depth(n):
    """Yields computations that call each other in one long chain."""
    yield 'HloModule m\n\nf_0 {\n  a_0 = f32[] parameter(0)\n  ROOT b_0 = f32[] negate(a_0)\n}\n\n'
    for i in range(1, n // 2):
        yield (f'f_{i} {{\n  a_{i} = f32[] parameter(0)\n'
               f'  ROOT b_{i} = f32[] call(a_{i}), to_apply=f_{i - 1}\n}}\n\n')
    yield (f'ENTRY e {{\n  x = f32[] parameter(0)\n'
           f'  ROOT r = f32[] call(x), to_apply=f_{n // 2 - 1}\n}}\n')


def branches(n):
    """Yields one conditional with very many branches."""
    yield 'HloModule m\n\n'
    for i in range(n // 3):
        yield f'f_{i} {{\n  a_{i} = f32[] parameter(0)\n  ROOT b_{i} = f32[] negate(a_{i})\n}}\n\n'
    yield ('ENTRY e {\n  i = s32[] parameter(0)\n  x = f32[] parameter(1)\n'
           f'  ROOT r = f32[] conditional(i, {", ".join(["x"] * (n // 3))}), branch_computations='
           f'{{{", ".join(f"f_{i}" for i in range(n // 3))}}}\n}}\n')


def constant(n):
    """Yields one constant with many elements."""
    numbers = ', '.join(str(i % 977 / 8) for i in range(n))
    yield f'HloModule m\n\nENTRY e {{\n  ROOT c = f32[{n}] constant({{{numbers}}})\n}}\n'


def attributes(n):
    """Yields one attribute with many numbers."""
    pairs = ','.join(f'{{{i},{(i + 1) % n}}}' for i in range(n))
    yield (f'HloModule m\n\nENTRY e {{\n  p = f32[4] parameter(0)\n'
           f'  ROOT c = f32[4] collective-permute(p), source_target_pairs={{{pairs}}}\n}}\n')


def dots(n):
    """Yields layers of FP8 matmuls with their dequantization."""
    yield 'HloModule m\n\nENTRY e {\n  x_0 = f8e4m3fn[16,16] parameter(0)\n'
    yield '  w = f8e4m3fn[16,16] parameter(1)\n  s = f32[] parameter(2)\n'
    for i in range(n // 7):
        yield (f'  a_{i} = f32[16,16] convert(x_{i})\n'
               f'  b_{i} = f32[16,16] broadcast(s), dimensions={{}}\n'
               f'  c_{i} = f32[16,16] multiply(a_{i}, b_{i})\n'
               f'  v_{i} = f32[16,16] convert(w)\n  u_{i} = f32[16,16] multiply(v_{i}, b_{i})\n'
               f'  d_{i} = f32[16,16] dot(c_{i}, u_{i}), lhs_contracting_dims={{1}}, '
               f'rhs_contracting_dims={{0}}\n  x_{i + 1} = f8e4m3fn[16,16] convert(d_{i})\n')
    yield f'  ROOT r = f32[16,16] convert(x_{n // 7})\n}}\n'


def updates(n):
    """Yields one asynchronous operation with many updates."""
    state = '((f32[4]), f32[4], s32[])'
    yield ('HloModule m\n\nw {\n  a = f32[4] parameter(0)\n  ROOT b = f32[4] negate(a)\n}\n\n'
           f'ENTRY e {{\n  p = f32[4] parameter(0)\n  s_0 = {state} async-start(p), calls=w\n')
    for i in range(1, n):
        yield f'  s_{i} = {state} async-update(s_{i - 1})\n'
    yield f'  ROOT r = f32[4] async-done(s_{n - 1})\n}}\n'


def frames(n):
    """Yields dots at the end of one deep stack, whose frames have no user file."""
    yield ('HloModule m\n\nFileNames\n1 "/site-packages/a.py"\n\nFunctionNames\n1 "f"\n\nFileLocations\n'
           '1 {file_name_id=1 function_name_id=1 line=1 end_line=1 column=1 end_column=2}\n\nStackFrames\n')
    for i in range(1, n + 1):
        yield f'{i} {{file_location_id=1 parent_frame_id={i}}}\n'
    yield '\nENTRY e {\n  x_0 = f32[4,4] parameter(0)\n'
    for i in range(n):
        yield (f'  x_{i + 1} = f32[4,4] dot(x_{i}, x_0), lhs_contracting_dims={{1}}, '
               f'rhs_contracting_dims={{0}}, metadata={{stack_frame_id={n}}}\n')
    yield f'  ROOT r = f32[4,4] negate(x_{n})\n}}\n'


def control(n):
    """Yields users of one value that differ only in their control predecessors."""
    yield 'HloModule m\n\nENTRY e {\n  p = f32[8] parameter(0)\n  x_0 = f32[8] negate(p)\n'
    for i in range(1, n):
        yield f'  x_{i} = f32[8] negate(p), control-predecessors={{x_{i - 1}}}\n'
    yield f'  ROOT r = f32[8] negate(x_{n - 1})\n}}\n'


def pads(n):
    """Yields one value that is padded in many ways."""
    yield 'HloModule m\n\nENTRY e {\n  p = f32[8] parameter(0)\n  z = f32[] constant(0)\n'
    for i in range(n):
        yield f'  x_{i} = f32[{8 + n}] pad(p, z), padding={i}_{n - i}\n'
    shapes, names = ', '.join([f'f32[{8 + n}]'] * n), ', '.join(f'x_{i}' for i in range(n))
    yield f'  ROOT r = ({shapes}) tuple({names})\n}}\n'


def shared(n):
    """Yields dots with one weight, each with the result of the previous dot."""
    dims = 'lhs_contracting_dims={1}, rhs_contracting_dims={0}'
    yield ('HloModule m\n\nENTRY e {\n  q_0 = f8e4m3fn[16,16] parameter(0)\n'
           '  w8 = f8e4m3fn[16,16] parameter(1)\n  w = f32[16,16] convert(w8)\n')
    for i in range(n // 3):
        yield (f'  x_{i} = f32[16,16] convert(q_{i})\n  d_{i} = f32[16,16] dot(x_{i}, w), {dims}\n'
               f'  q_{i + 1} = f8e4m3fn[16,16] convert(d_{i})\n')
    yield f'  ROOT r = f32[16,16] convert(q_{n // 3})\n}}\n'


def dead(n):
    """Yields a chain that becomes dead if a rule replaces a maximum by its first operand."""
    yield 'HloModule m\n\nENTRY e {\n  x_0 = f32[4] parameter(0)\n'
    for i in range(1, n):
        yield f'  x_{i} = f32[4] negate(x_{i - 1})\n'
    yield f'  m = f32[4] maximum(x_0, x_{n - 1})\n  ROOT r = f32[4] abs(m)\n}}\n'


def doubled(n):
    """Yields computations that each call the previous one twice, around a dot."""
    yield 'HloModule m\n\nc_0 {\n  a_0 = f32[4] parameter(0)\n  ROOT b_0 = f32[4] negate(a_0)\n}\n\n'
    for i in range(1, n):
        yield (f'c_{i} {{\n  a_{i} = f32[4] parameter(0)\n  b_{i} = f32[4] call(a_{i}), to_apply=c_{i - 1}\n'
               f'  ROOT d_{i} = f32[4] call(b_{i}), to_apply=c_{i - 1}\n}}\n\n')
    yield ('ENTRY e {\n  x = f32[4] parameter(0)\n  y = f32[4,4] parameter(1)\n'
           '  dot = f32[4] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n'
           f'  ROOT r = f32[4] call(dot), to_apply=c_{n - 1}\n}}\n')


def prime(n):
    """Yields dots of scaled values whose contracting dimension is a large prime number."""
    size = 2**59 - 55
    yield (f'HloModule m\n\nENTRY e {{\n  q = f8e4m3fn[4,{size}] parameter(0)\n  s = bf16[4] parameter(1)\n'
           f'  c = bf16[4,{size}] convert(q)\n  w = bf16[4,{size}] broadcast(s), dimensions={{0}}\n'
           f'  x = bf16[4,{size}] multiply(c, w)\n')
    for i in range(n):
        yield (f'  d_{i} = bf16[4,4] dot(x, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}, '
               f'frontend_attributes={{n="{i}"}}\n')
    yield f'  ROOT t = ({", ".join(["bf16[4,4]"] * n)}) tuple({", ".join(f"d_{i}" for i in range(n))})\n}}\n'


def reverses(n):
    """Yields a dot with scales per block, those of one operand reversed many times."""
    yield ('HloModule m\n\nENTRY e {\n  a = f8e4m3fn[32,64] parameter(0)\n  b = f8e4m3fn[32,64] parameter(1)\n'
           '  x = f8e8m0fnu[32,2] parameter(2)\n  y = f8e8m0fnu[32,2] parameter(3)\n'
           '  a_0 = bf16[32,2] convert(x)\n  b_0 = bf16[32,2] convert(y)\n')
    for i in range(1, n):
        yield f'  a_{i} = bf16[32,2] reverse(a_{i - 1}), dimensions={{{i % 2}}}\n'
    for v, last in (('a', f'a_{n - 1}'), ('b', 'b_0')):
        yield (f'  {v}b = bf16[32,2,32] broadcast({last}), dimensions={{0,1}}\n  {v}r = bf16[32,64] reshape({v}b)\n'
               f'  {v}c = bf16[32,64] convert({v})\n  {v}m = bf16[32,64] multiply({v}c, {v}r)\n')
    yield '  ROOT d = bf16[32,32] dot(am, bm), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n}\n'


def held(n):
    """Yields constants, every second one without its value, that are control predecessors."""
    yield ('HloModule m\n\nENTRY e {\n  a = f8e4m3fn[32,64] parameter(0)\n  b = f8e4m3fn[32,64] parameter(1)\n'
           '  c = bf16[32,64] convert(a)\n  d = bf16[32,64] convert(b)\n'
           '  x = bf16[32,32] dot(c, d), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n')
    for i in range(n):
        yield f'  k_{i} = f32[2] constant({{{i}, 0}})\n' if i % 2 == 0 else f'  k_{i} = f32[2] constant({{...}})\n'
    names, shapes = ', '.join(f'k_{i}' for i in range(n)), ', '.join(['f32[2]'] * n)
    yield f'  y = bf16[32,32] negate(x), control-predecessors={{{names}}}\n'
    yield f'  ROOT r = (bf16[32,32], {shapes}) tuple(y, {names})\n}}\n'


def reshaped(n):
    """Yields a value that is reshaped many times, and then read by as many kernels."""
    yield 'HloModule m\n\nENTRY e {\n  x_0 = f32[4,4] parameter(0)\n'
    for i in range(n // 2):
        yield f'  x_{i + 1} = f32[4,4] reshape(x_{i})\n'
    for i in range(n // 2):
        yield f'  y_{i} = f32[4,4] negate(x_{n // 2})\n'
    names, shapes = ', '.join(f'y_{i}' for i in range(n // 2)), ', '.join(['f32[4,4]'] * (n // 2))
    yield '  d = f32[4,4] dot(x_0, x_0), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n'
    yield f'  ROOT r = (f32[4,4], {shapes}) tuple(d, {names})\n}}\n'


FORMS = {'chain': chain, 'tuple': wide_tuple, 'users': users, 'computations': computations,
         'calls': call_depth, 'branches': branches, 'constant': constant,
         'attributes': attributes, 'dots': dots, 'updates': updates, 'frames': frames,
         'control': control, 'pads': pads, 'shared': shared,
         'dead': dead, 'doubled': doubled, 'prime': prime, 'reverses': reverses, 'held': held,
         'reshaped': reshaped}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--bench')
    ap.add_argument('--work')
    ap.add_argument('--print', action='store_true')
    ap.add_argument('--sizes', default='1000,10000,100000')
    ap.add_argument('--forms', default=','.join(FORMS))
    ap.add_argument('--times', default='3')
    args = ap.parse_args()
    if args.print:
        sys.stdout.writelines(FORMS[args.forms](int(args.sizes)))
        return
    failed = False
    print(f'{"form":14}{"size":>9}  ns each to: parse   verify    print  optimize')
    for form in args.forms.split(','):
        for size in map(int, args.sizes.split(',')):
            path = os.path.join(args.work, f'{form}-{size}.hlo')
            with open(path, 'w') as out:
                out.writelines(FORMS[form](size))
            got = subprocess.run([args.bench, path, args.times], capture_output=True, text=True)
            os.unlink(path)
            if got.returncode:
                print(f'{form:14}{size:9}  {got.stderr.strip()}')
                failed = True
                continue
            seconds = [float(line.split()[1]) for line in got.stdout.splitlines()[:4]]
            print(f'{form:14}{size:9}         ' + ''.join(f'{s * 1e9 / size:9.0f}' for s in seconds))
    sys.exit(failed)


if __name__ == '__main__':
    main()
