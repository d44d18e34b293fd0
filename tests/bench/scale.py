#!/usr/bin/env python3
"""Time per instruction of modules of many sizes and forms: it should not grow with the size.

  scale.py --bench BENCH --work DIR [--sizes 1000,10000,100000] [--forms chain,tuple,...] [--times N]

Prints a line per form and size: instructions (or what the form counts), then nanoseconds per one of
them to parse, verify, print and optimise. Exit status 1 when the library refuses a module.
"""
import argparse
import os
import subprocess
import sys


def chain(n):
    """One long chain of elementwise instructions."""
    yield 'HloModule m\n\nENTRY e {\n  x0 = f32[8] parameter(0)\n'
    for i in range(1, n):
        op = ('negate', 'abs', 'exponential')[i % 3]
        yield f'  x{i} = f32[8] {op}(x{i - 1})\n'
    yield f'  ROOT r = f32[8] negate(x{n - 1})\n}}\n'


def wide_tuple(n):
    """One tuple of everything, and an element of it taken out for each."""
    yield 'HloModule m\n\nENTRY e {\n'
    for i in range(n // 2):
        yield f'  p{i} = f32[] parameter({i})\n'
    names = ', '.join(f'p{i}' for i in range(n // 2))
    shapes = ', '.join('f32[]' for _ in range(n // 2))
    yield f'  t = ({shapes}) tuple({names})\n  g0 = f32[] get-tuple-element(t), index=0\n'
    for i in range(1, n // 2):
        yield f'  g{i} = f32[] get-tuple-element(t), index={i}\n'
    yield f'  ROOT r = f32[] add(g0, g{n // 2 - 1})\n}}\n'


def users(n):
    """One value with all the users."""
    yield 'HloModule m\n\nENTRY e {\n  p = f32[4] parameter(0)\n'
    for i in range(n):
        yield f'  c{i} = f32[4] custom-call(p), custom_call_target="t{i}"\n'
    names = ', '.join(f'c{i}' for i in range(n))
    yield f'  ROOT t = ({", ".join(["f32[4]"] * n)}) tuple({names})\n}}\n'


def computations(n):
    """Many small computations, each called once."""
    yield 'HloModule m\n\n'
    for i in range(n // 4):
        yield f'f{i} {{\n  a{i} = f32[] parameter(0)\n  ROOT b{i} = f32[] negate(a{i})\n}}\n\n'
    yield 'ENTRY e {\n  x0 = f32[] parameter(0)\n'
    for i in range(n // 4):
        yield f'  x{i + 1} = f32[] call(x{i}), to_apply=f{i}\n'
    yield f'  ROOT r = f32[] negate(x{n // 4})\n}}\n'


def call_depth(n):
    """Computations that call each other in one long chain."""
    yield 'HloModule m\n\nf0 {\n  a0 = f32[] parameter(0)\n  ROOT b0 = f32[] negate(a0)\n}\n\n'
    for i in range(1, n // 2):
        yield (f'f{i} {{\n  a{i} = f32[] parameter(0)\n'
               f'  ROOT b{i} = f32[] call(a{i}), to_apply=f{i - 1}\n}}\n\n')
    yield (f'ENTRY e {{\n  x = f32[] parameter(0)\n'
           f'  ROOT r = f32[] call(x), to_apply=f{n // 2 - 1}\n}}\n')


def branches(n):
    """One conditional of very many branches."""
    yield 'HloModule m\n\n'
    for i in range(n // 3):
        yield f'f{i} {{\n  a{i} = f32[] parameter(0)\n  ROOT b{i} = f32[] negate(a{i})\n}}\n\n'
    yield ('ENTRY e {\n  i = s32[] parameter(0)\n  x = f32[] parameter(1)\n'
           f'  ROOT r = f32[] conditional(i, {", ".join(["x"] * (n // 3))}), branch_computations='
           f'{{{", ".join(f"f{i}" for i in range(n // 3))}}}\n}}\n')


def constant(n):
    """One constant of so many elements."""
    numbers = ', '.join(str(i % 977 / 8) for i in range(n))
    yield f'HloModule m\n\nENTRY e {{\n  ROOT c = f32[{n}] constant({{{numbers}}})\n}}\n'


def attributes(n):
    """One attribute of so many numbers."""
    pairs = ','.join(f'{{{i},{(i + 1) % n}}}' for i in range(n))
    yield (f'HloModule m\n\nENTRY e {{\n  p = f32[4] parameter(0)\n'
           f'  ROOT c = f32[4] collective-permute(p), source_target_pairs={{{pairs}}}\n}}\n')


def dots(n):
    """Layers of FP8 matmuls with their dequantisation."""
    yield 'HloModule m\n\nENTRY e {\n  x0 = f8e4m3fn[16,16] parameter(0)\n'
    yield '  w = f8e4m3fn[16,16] parameter(1)\n  s = f32[] parameter(2)\n'
    for i in range(n // 7):
        yield (f'  a{i} = f32[16,16] convert(x{i})\n'
               f'  b{i} = f32[16,16] broadcast(s), dimensions={{}}\n'
               f'  c{i} = f32[16,16] multiply(a{i}, b{i})\n'
               f'  v{i} = f32[16,16] convert(w)\n  u{i} = f32[16,16] multiply(v{i}, b{i})\n'
               f'  d{i} = f32[16,16] dot(c{i}, u{i}), lhs_contracting_dims={{1}}, '
               f'rhs_contracting_dims={{0}}\n  x{i + 1} = f8e4m3fn[16,16] convert(d{i})\n')
    yield f'  ROOT r = f32[16,16] convert(x{n // 7})\n}}\n'


FORMS = {'chain': chain, 'tuple': wide_tuple, 'users': users, 'computations': computations,
         'calls': call_depth, 'branches': branches, 'constant': constant,
         'attributes': attributes, 'dots': dots}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--bench', required=True)
    ap.add_argument('--work', required=True)
    ap.add_argument('--sizes', default='1000,10000,100000')
    ap.add_argument('--forms', default=','.join(FORMS))
    ap.add_argument('--times', default='3')
    args = ap.parse_args()
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
            seconds = [float(line.split()[1]) for line in got.stdout.splitlines()]
            print(f'{form:14}{size:9}         ' + ''.join(f'{s * 1e9 / size:9.0f}' for s in seconds))
    sys.exit(failed)


if __name__ == '__main__':
    main()
