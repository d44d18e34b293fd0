# SPDX-License-Identifier: Apache-2.0
"""Write a module with fp8 matmuls whose addend or output scale is computed from a chain of values after them.

python3 far.py addend DOTS VALUES | python3 far.py scale VALUES
"""

import sys

KIND, COUNTS = sys.argv[1], [int(count) for count in sys.argv[2:]]
DIMS = 'lhs_contracting_dims={1}, rhs_contracting_dims={1}'
LINES, OUT = [], []
if KIND == 'addend':
    dots, values = COUNTS
    LINES += ['c = f32[16,16] parameter(0)', 'b = f8e4m3fn[16,16] parameter(1)']
    LINES += [f'a{i} = f8e4m3fn[16,16] parameter({i + 2})' for i in range(dots)]
    LINES += [f'd{i} = f32[16,16] dot(a{i}, b), {DIMS}' for i in range(dots)]
    LINES += ['v0 = f32[16,16] negate(c)']
    LINES += [f'v{i} = f32[16,16] add(v{i - 1}, c)' for i in range(1, values)]
    LINES += [f'z{i} = f32[16,16] add(d{i}, v{values - 1})' for i in range(dots)]
    OUT = [('f32[16,16]', f'z{i}') for i in range(dots)]
else:
    (values,) = COUNTS
    LINES += ['s = f32[] parameter(0)', 'a = f8e4m3fn[16,16] parameter(1)', 'b = f8e4m3fn[16,16] parameter(2)',
              'zero = f32[] constant(0)', 'low = f32[] constant(-448)', 'high = f32[] constant(448)',
              f'd = f32[16,16] dot(a, b), {DIMS}', 'x = f32[16,16] abs(d)',
              'amax = f32[] reduce(x, zero), dimensions={0,1}, to_apply=max', 'v0 = f32[] add(s, s)']
    LINES += [f'v{i} = f32[] add(v{i - 1}, s)' for i in range(1, values)]
    LINES += [f'scale = f32[16,16] broadcast(v{values - 1}), dimensions={{}}', 'm = f32[16,16] multiply(d, scale)',
              'l = f32[16,16] clamp(low, m, high)', 'q = f8e4m3fn[16,16] convert(l)']
    OUT = [('f8e4m3fn[16,16]', 'q'), ('f32[]', 'amax')]
    print('max {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT m = f32[] maximum(x, y)\n}\n')
types, names = zip(*OUT)
LINES += [f'ROOT t = ({", ".join(types)}) tuple({", ".join(names)})']
print('ENTRY e {')
for line in LINES:
    print(f'  {line}')
print('}')
