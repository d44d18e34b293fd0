# SPDX-License-Identifier: Apache-2.0
"""Creates random cases of each opcode: shapes, layouts, types, attributes. A maker adds a case to a module. Operands
are small integers if the result is then exact, and otherwise in the domain of the function. Opcodes without a maker
have a reason in ELSEWHERE.
"""
import numpy as np

import _dynamic

FLOATS, INTEGERS = ['f32', 'f64', 'f16', 'bf16'], ['s8', 's16', 's32', 's64', 'u8', 'u16', 'u32', 'u64']
SIGNED = [n for n in INTEGERS if n[0] == 's']
REAL = FLOATS + INTEGERS
EVERY = REAL + ['c64', 'c128', 'pred']
FUNCTIONS = 'cbrt cosine erf exponential exponential-minus-one log log-plus-one logistic rsqrt sine sqrt tan tanh'.split()
# For functions that XLA's CPU compiler lacks, the functions of numpy.
NUMPYS = {'acos': np.arccos, 'acosh': np.arccosh, 'asin': np.arcsin, 'asinh': np.arcsinh,
          'atanh': np.arctanh, 'cosh': np.cosh, 'sinh': np.sinh}
PAIRS = 'add subtract multiply maximum minimum'.split()
BITS = 'and or xor'.split()
SHIFTS = 'shift-left shift-right-arithmetic shift-right-logical'.split()
OTHERS = 'all-gather all-reduce reduce-scatter all-to-all collective-permute partition-id replica-id'.split()
STARTS = 'async-start async-update async-done copy-start copy-done'.split()
TRANSFERS, HOST = 'send send-done recv recv-done'.split(), ['infeed', 'outfeed']
# For each opcode without a maker, the reason.
ELSEWHERE = {
    **{o: 'test_collectives.py compares over several devices' for o in OTHERS},
    **{o: 'XLA\'s CPU takes none; testdata/run/async.hlo has their values' for o in STARTS},
    **{o: 'XLA\'s CPU takes none; testdata/run/transfers.hlo has their values' for o in TRANSFERS},
    **{o: 'XLA waits for a host; testdata/run/feeds.hlo has their values' for o in HOST},
    **{o: 'test_opcodes.py, numpys()' for o in NUMPYS},
    'collective-broadcast': 'XLA\'s CPU takes none; testdata/run/devices.hlo has its values',
    'ragged-all-to-all': 'XLA\'s CPU takes none; testdata/run/devices-ragged.hlo has its values',
    'mulhi': 'test_opcodes.py, mulhi()',
    'bitcast': 'XLA makes them by itself: *.xla.hlo of testdata/models have them',
    'ragged-dot': 'test_ragged.py',
    'scaled-dot': 'test_block_scaled.py',
    'scan': 'this XLA has none; testdata/run/scan.hlo has its values',
    'rng': 'random; testdata/run/random.hlo has its moments',
    'rng-get-and-update-state': 'the state outlives a run of XLA; testdata/run/random.hlo has the first ones',
    'rng-bit-generator': 'test_opcodes.py, bits()', 'stochastic-convert': 'test_opcodes.py, stochastic()',
    'cholesky': 'test_opcodes.py, cholesky()', 'triangular-solve': 'test_opcodes.py, solves()',
    'fft': 'test_opcodes.py, transforms()', 'select-and-scatter': 'test_opcodes.py, selects()',
    'convolution': 'test_eval.py, convolutions of _convolution.py',
    **{f'batch-norm-{n}': 'test_opcodes.py, norms()' for n in ('training', 'inference', 'grad')},
}


def shape_of(name, dims):
    return f'{name}[{",".join(map(str, dims))}]'


def ints(values):
    return '{' + ','.join(map(str, values)) + '}'


class Each:
    """Creates the cases of test_opcodes.py, in `cases`."""

    def __init__(self, cases, rng, within):
        self.cases, self.rng, self.within = cases, rng, within
        self.regions = {}

    def kind(self, names):
        return str(self.rng.choice(names))

    def dims(self, low=0, high=4):
        return [int(d) for d in self.rng.integers(1, 5, self.rng.integers(low, high))]

    def whole(self, name, dims, low=-3, high=4):
        """Returns an array of small integers, sometimes with a random layout."""
        if name == 'pred':
            low, high = 0, 2
        x = self.rng.integers(0 if name[0] == 'u' else low, high, dims)
        if name[0] == 'c':
            x = x + 1j * self.rng.integers(low, high, dims)
        return self.cases.input(name, x, self.rng.permutation(len(dims)) if dims and self.rng.random() < 0.3 else None)

    def within_domain(self, name, dims, low, high):
        return self.cases.input(name, self.rng.uniform(low, high, dims))

    def add(self, opcode, shape, text, bound=None, instruction=None):
        self.cases.add(opcode, [shape] if isinstance(shape, str) else shape, instruction or f'{opcode}({text}', bound)

    def region(self, name, op):
        key = f'{op}.{name}'
        self.regions[key] = (f'%{key} {{\n  %a.{key} = {name}[] parameter(0)\n  %b.{key} = {name}[] parameter(1)\n'
                             f'  ROOT %c.{key} = {name}[] {op}(%a.{key}, %b.{key})\n}}\n\n')
        return '%' + key

    def less(self, name):
        key = f'less.{name}'
        self.regions[key] = (f'%{key} {{\n  %a.{key} = {name}[] parameter(0)\n  %b.{key} = {name}[] parameter(1)\n'
                             f'  ROOT %c.{key} = pred[] compare(%a.{key}, %b.{key}), direction=LT\n}}\n\n')
        return '%' + key

    def same(self, opcode, kinds, arity=1, low=-3, high=4, end=''):
        """Adds an exact elementwise operation."""
        name, dims = self.kind(kinds), self.dims()
        operands = ', '.join(self.whole(name, dims, low, high) for _ in range(arity))
        self.add(opcode, shape_of(name, dims), f'{operands}){end}')

    def function(self, opcode, low=0.1, high=0.9, arity=1):
        name, dims = self.kind(FLOATS), self.dims()
        operands = ', '.join(self.within_domain(name, dims, low, high) for _ in range(arity))
        self.add(opcode, shape_of(name, dims), f'{operands})', self.within(name, 32))


def compare(e, opcode):
    name, dims = e.kind(EVERY[:-3]), e.dims()
    e.add(opcode, shape_of('pred', dims), f'{e.whole(name, dims)}, {e.whole(name, dims)}), direction='
          + e.kind(['EQ', 'NE', 'LT', 'LE', 'GT', 'GE']))


def part(e, opcode):
    name, dims = e.kind(['c64', 'c128']), e.dims()
    e.add(opcode, shape_of('f32' if name == 'c64' else 'f64', dims), f'{e.whole(name, dims)})')


def complex_(e, opcode):
    name, dims = e.kind(['f32', 'f64']), e.dims()
    e.add(opcode, shape_of('c64' if name == 'f32' else 'c128', dims), f'{e.whole(name, dims)}, {e.whole(name, dims)})')


def convert(e, opcode):
    dims = e.dims()
    e.add(opcode, shape_of(e.kind(EVERY), dims), f'{e.whole(e.kind(REAL), dims, 0)})')


def bitcast_convert(e, opcode):
    if e.rng.integers(2):
        return other_width(e, opcode)
    dims, names = e.dims(), e.kind(['f32 s32', 'f64 u64', 'bf16 u16', 's16 f16', 'u8 s8', 'u32 s32']).split()
    e.add(opcode, shape_of(names[1], dims), f'{e.whole(names[0], dims)})')


def other_width(e, opcode):
    """Adds a bitcast-convert that splits wider elements into parts, or joins parts."""
    dims, (wide, narrow, parts) = e.dims(), e.kind(['u8 u4 2', 's8 s4 2', 's16 u4 4', 'u32 s4 8', 'u8 u2 4', 's32 u8 4',
                                                    'f64 f32 2', 'u64 bf16 4', 's4 u2 2']).split()
    if e.rng.integers(2):
        e.add(opcode, shape_of(narrow, [*dims, parts]), f'{e.whole(wide, dims, -8, 8)})')
    else:
        e.add(opcode, shape_of(wide, dims), f'{e.whole(narrow, [*dims, int(parts)], 0, 2)})')


def reduce_precision(e, opcode):
    e.same(opcode, FLOATS, low=-99, high=100,
           end=f', exponent_bits={e.rng.integers(3, 9)}, mantissa_bits={e.rng.integers(1, 9)}')


def is_finite(e, opcode):
    name, dims = e.kind(FLOATS), e.dims()
    x = e.rng.choice([1, 0, -2, np.inf, -np.inf, np.nan], dims)
    e.add(opcode, shape_of('pred', dims), f'{e.cases.input(name, x)})')


def divide(e, opcode):
    name, dims = e.kind(REAL), e.dims()
    divisor = e.cases.input(name, e.rng.choice([1, 2, 4], dims))
    e.add(opcode, shape_of(name, dims), f'{e.whole(name, dims, -8, 9)}, {divisor})')


def shift(e, opcode):
    name, dims = e.kind(INTEGERS), e.dims()
    e.add(opcode, shape_of(name, dims), f'{e.whole(name, dims, -99, 100)}, {e.whole(name, dims, 0, 9)})')


def clamp(e, opcode):
    name, dims = e.kind(REAL), e.dims()
    ends = [[], dims][e.rng.integers(2)]
    e.add(opcode, shape_of(name, dims), f'{e.whole(name, ends, -2, 1)}, {e.whole(name, dims, -5, 6)}, '
          f'{e.whole(name, ends, 1, 3)})')


def select(e, opcode):
    name, dims = e.kind(EVERY), e.dims()
    e.add(opcode, shape_of(name, dims), f'{e.whole("pred", dims)}, {e.whole(name, dims)}, {e.whole(name, dims)})')


def iota(e, opcode):
    dims = e.dims(1)
    e.add(opcode, shape_of(e.kind(REAL), dims), f'), iota_dimension={e.rng.integers(len(dims))}')


def reshape(e, opcode):
    name, dims = e.kind(EVERY), e.dims()
    flat = [int(np.prod(dims))]
    e.add(opcode, shape_of(name, e.rng.permutation(dims) if e.rng.integers(2) else flat), f'{e.whole(name, dims)})')


def broadcast(e, opcode):
    name, dims = e.kind(EVERY), e.dims()
    out = [*dims, *e.dims(1, 3)]
    order = e.rng.permutation(len(out))
    places = np.sort(np.argsort(order)[:len(dims)])
    result = [0] * len(out)
    for i, d in zip(places, dims):
        result[i] = d
    result = [d or int(e.rng.integers(1, 4)) for d in result]
    e.add(opcode, shape_of(name, result), f'{e.whole(name, dims)}), dimensions={ints(places)}')


def concatenate(e, opcode):
    name, dims = e.kind(EVERY), e.dims(1)
    along, sizes = int(e.rng.integers(len(dims))), e.rng.integers(1, 4, e.rng.integers(1, 4))
    each = [[*dims[:along], int(s), *dims[along + 1:]] for s in sizes]
    e.add(opcode, shape_of(name, [*dims[:along], int(sizes.sum()), *dims[along + 1:]]),
          ', '.join(e.whole(name, d) for d in each) + f'), dimensions={{{along}}}')


def slices(e, opcode):
    name, dims = e.kind(EVERY), e.dims()
    low = [int(e.rng.integers(0, d)) for d in dims]
    high = [int(e.rng.integers(a + 1, d + 1)) for a, d in zip(low, dims)]
    step = [int(e.rng.integers(1, 3)) for _ in dims]
    e.add(opcode, shape_of(name, [-(-(b - a) // s) for a, b, s in zip(low, high, step)]), e.whole(name, dims)
          + '), slice={' + ', '.join(f'[{a}:{b}:{s}]' for a, b, s in zip(low, high, step)) + '}')


def dynamic_slice(e, opcode):
    name, dims = e.kind(EVERY), e.dims(1)
    sizes = [int(e.rng.integers(1, d + 1)) for d in dims]
    at = ', '.join(e.whole('s32', [], -2, 6) for _ in dims)
    e.add(opcode, shape_of(name, sizes), f'{e.whole(name, dims)}, {at}), dynamic_slice_sizes={ints(sizes)}')


def dynamic_update_slice(e, opcode):
    name, dims = e.kind(EVERY), e.dims(1)
    sizes = [int(e.rng.integers(1, d + 1)) for d in dims]
    at = ', '.join(e.whole('s32', [], -2, 6) for _ in dims)
    e.add(opcode, shape_of(name, dims), f'{e.whole(name, dims)}, {e.whole(name, sizes)}, {at})')


def gather(e, opcode):
    name, (n, m, k) = e.kind(EVERY), e.rng.integers(1, 5, 3)
    e.add(opcode, shape_of(name, [k, m]), f'{e.whole(name, [n, m])}, {e.whole("s32", [k, 1], -1, 6)}), offset_dims={{1}}, '
          f'collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,{m}}}')


def scatter(e, opcode):
    name, (n, m, k) = e.kind(REAL), e.rng.integers(1, 5, 3)
    e.add(opcode, shape_of(name, [n, m]),
          f'{e.whole(name, [n, m])}, {e.whole("s32", [k, 1], -1, 6)}, {e.whole(name, [k, m])}), update_window_dims={{1}}, '
          f'inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, '
          f'to_apply={e.region(name, e.kind(["add", "maximum"]))}')


def pad(e, opcode):
    name, dims = e.kind(EVERY), e.dims(1)
    low, high, inside = (e.rng.integers(a, b, len(dims)) for a, b in ((0, 3), (0, 3), (0, 2)))
    result = [int(a + b + d + (d - 1) * i) for a, b, i, d in zip(low, high, inside, dims)]
    e.add(opcode, shape_of(name, result), f'{e.whole(name, dims)}, {e.whole(name, [])}), padding='
          + 'x'.join(f'{a}_{b}_{i}' for a, b, i in zip(low, high, inside)))


def reverse(e, opcode):
    name, dims = e.kind(EVERY), e.dims(1)
    e.add(opcode, shape_of(name, dims), f'{e.whole(name, dims)}), dimensions={{{e.rng.integers(len(dims))}}}')


def transpose(e, opcode):
    name, dims = e.kind(EVERY), e.dims(1)
    order = e.rng.permutation(len(dims))
    e.add(opcode, shape_of(name, [dims[i] for i in order]), f'{e.whole(name, dims)}), dimensions={ints(order)}')


def dot(e, opcode):
    name, (b, m, k, n) = e.kind(['f32', 'f64', 's32', 'bf16', 'f16', 'c64']), e.rng.integers(1, 5, 4)
    text = f'{e.whole(name, [b, m, k])}, {e.whole(name, [b, n, k])}), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, '
    e.add(opcode, shape_of(name, [b, m, n]), text + 'lhs_contracting_dims={2}, rhs_contracting_dims={2}')


def reduce(e, opcode):
    name, dims = e.kind(REAL), e.dims(1)
    kept = [bool(k) for k in e.rng.integers(0, 2, len(dims))]
    along = ints(i for i, k in enumerate(kept) if not k)
    # If there is only one element to reduce, XLA ignores the initial value, even if it would change the result.
    op, start = e.rng.permutation(np.array([('add', 0), ('maximum', 0 if name[0] == 'u' else -9), ('minimum', 9)], object))[0]
    e.add(opcode, shape_of(name, [d for d, k in zip(dims, kept) if k]),
          f'{e.whole(name, dims)}, {e.cases.input(name, start)}), dimensions={along}, to_apply={e.region(name, op)}')


def reduce_window(e, opcode):
    name, (n, m) = e.kind(['f32', 'f64', 's32', 'bf16']), e.rng.integers(3, 7, 2)
    size, stride = e.rng.integers(1, 4, 2), e.rng.integers(1, 3, 2)
    result = [int((d - s) // t + 1) for d, s, t in zip((n, m), size, stride)]
    e.add(opcode, shape_of(name, result), f'{e.whole(name, [n, m])}, {e.whole(name, [])}), '
          f'window={{size={size[0]}x{size[1]} stride={stride[0]}x{stride[1]}}}, '
          f'to_apply={e.region(name, e.kind(["add", "maximum"]))}')


def sort(e, opcode):
    name, dims = e.kind(REAL), e.dims(1)
    e.add(opcode, shape_of(name, dims), f'{e.whole(name, dims, -9, 10)}), dimensions={{{e.rng.integers(len(dims))}}}, '
          f'is_stable=true, to_apply={e.less(name)}')


def map_(e, opcode):
    name, dims = e.kind(REAL), e.dims()
    e.add(opcode, shape_of(name, dims), f'{e.whole(name, dims)}, {e.whole(name, dims)}), '
          f'dimensions={ints(range(len(dims)))}, to_apply={e.region(name, e.kind(PAIRS))}')


def topk(e, opcode):
    name, dims = e.kind(['f32', 's32']), [*e.dims(0, 2), int(e.rng.integers(2, 9))]
    k = int(e.rng.integers(1, dims[-1] + 1))
    x = np.stack([e.rng.permutation(dims[-1]) for _ in range(int(np.prod(dims[:-1])))]).reshape(dims)
    e.add(opcode, [shape_of(name, [*dims[:-1], k]), shape_of('s32', [*dims[:-1], k])],
          f'{e.cases.input(name, x)}), k={k}, largest=true')


def topk_call(e, opcode):
    """Adds XLA's custom call TopK, which supports only f32."""
    dims = [*e.dims(0, 2), int(e.rng.integers(2, 9))]
    k = int(e.rng.integers(1, dims[-1] + 1))
    x = np.stack([e.rng.permutation(dims[-1]) for _ in range(int(np.prod(dims[:-1])))]).reshape(dims)
    e.add(opcode, [shape_of('f32', [*dims[:-1], k]), shape_of('s32', [*dims[:-1], k])],
          f'{e.cases.input("f32", x)}), custom_call_target="TopK"')


def fusion(e, opcode):
    name, dims = e.kind(REAL), e.dims()
    key, shape = f'fused.{len(e.regions)}', shape_of(name, dims)
    e.regions[key] = (f'%{key} {{\n  %p.{key} = {shape} parameter(0)\n  %q.{key} = {shape} parameter(1)\n'
                      f'  ROOT %o.{key} = {shape} {e.kind(PAIRS)}(%p.{key}, %q.{key})\n}}\n\n')
    e.add(opcode, shape, f'{e.whole(name, dims)}, {e.whole(name, dims)}), kind=kLoop, calls=%{key}')


def domain(e, opcode):
    e.same(opcode, REAL, end=', domain={kind="sharding", entry={maximal device=0}, exit={maximal device=0}}')


def started(e, opcode):
    """Adds a collective's start and done, on one device."""
    kind = opcode.rsplit('-', 1)[0]
    name, dims = e.kind(REAL), e.dims(1)
    shape, x = shape_of(name, dims), e.whole(name, dims)
    end = {'all-gather': ', dimensions={0}, replica_groups={{0}}', 'collective-permute': ', source_target_pairs={{0,0}}'}
    if kind == 'all-reduce':
        start = e.cases.note(shape, f'{kind}-start({x}), replica_groups={{{{0}}}}, to_apply={e.region(name, "add")}')
    else:
        start = e.cases.note(f'({shape}, {shape})', f'{kind}-start({x}){end[kind]}')
    e.add(opcode, shape, None, instruction=f'{kind}-done({start})')


def call(e, opcode):
    name = e.kind(REAL)
    e.add(opcode, f'{name}[]', f'{e.whole(name, [])}, {e.whole(name, [])}), to_apply={e.region(name, e.kind(PAIRS))}')


def conditional(e, opcode):
    name, dims = e.kind(FLOATS), e.dims()
    shape = shape_of(name, dims)
    keys = []
    for op in e.rng.choice(['negate', 'abs', 'floor'], 2, replace=False):
        key = f'{op}.{len(e.regions)}'
        e.regions[key] = f'%{key} {{\n  %p.{key} = {shape} parameter(0)\n  ROOT %o.{key} = {shape} {op}(%p.{key})\n}}\n\n'
        keys.append(key)
    operand = e.cases.input(name, e.rng.integers(-3, 4, dims))
    e.add(opcode, shape, f'{e.whole("pred", [])}, {operand}, {operand}), true_computation=%{keys[0]}, '
          f'false_computation=%{keys[1]}')


def while_(e, opcode):
    key, limit = f'loop.{len(e.regions)}', e.rng.integers(0, 9)
    e.regions[key] = (
        f'%until.{key} {{\n  %u.{key} = s32[] parameter(0)\n  %l.{key} = s32[] constant({limit})\n'
        f'  ROOT %t.{key} = pred[] compare(%u.{key}, %l.{key}), direction=LT\n}}\n\n'
        f'%body.{key} {{\n  %b.{key} = s32[] parameter(0)\n  %s.{key} = s32[] constant({e.rng.integers(1, 4)})\n'
        f'  ROOT %n.{key} = s32[] add(%b.{key}, %s.{key})\n}}\n\n')
    e.add(opcode, 's32[]', f'{e.whole("s32", [])}), condition=%until.{key}, body=%body.{key}')


def tuple_(e, opcode):
    name, dims = e.kind(EVERY), e.dims()
    shape = shape_of(name, dims)
    e.add('tuple', [shape, shape], f'{e.whole(name, dims)}, {e.whole(name, dims)})')


def constant(e, opcode):
    name, count = e.kind(REAL), int(e.rng.integers(1, 5))
    e.add(opcode, shape_of(name, [count]), ints(e.rng.integers(0, 9, count)) + ')')


def size(e, opcode):
    name, dims = e.kind(EVERY), e.dims(1)
    e.add(opcode, 's32[]', f'{e.whole(name, dims)}), dimensions={{{e.rng.integers(len(dims))}}}')


def token(e, opcode):
    name, dims = e.kind(EVERY), e.dims()
    made = e.cases.note('token[]', f'after-all({e.cases.note("token[]", "after-all()")})')
    e.add('add-dependency', shape_of(name, dims), f'{e.whole(name, dims)}, {made})')


def plain(kinds, **rest):
    return lambda e, opcode: e.same(opcode, kinds, **rest)


def of(maker, opcodes):
    return {o: maker for o in opcodes}


MAKERS = {
    **of(plain(FLOATS + SIGNED), ['abs', 'sign', 'negate']),
    **of(plain(FLOATS), 'ceil floor round-nearest-afz round-nearest-even'.split()),
    **of(plain(INTEGERS + ['pred']), ['not']), **of(plain(INTEGERS), ['popcnt', 'count-leading-zeros']),
    **of(lambda e, o: e.function(o), FUNCTIONS),
    **of(lambda e, o: e.function(o, arity=2), ['atan2', 'power']),
    **of(plain(REAL, arity=2), PAIRS), **of(plain(INTEGERS + ['pred'], arity=2), BITS),
    **of(part, ['real', 'imag']), **of(divide, ['divide', 'remainder']), **of(shift, SHIFTS),
    **of(plain(EVERY), ['copy', 'opt-barrier']), **of(token, ['after-all', 'add-dependency']),
    **of(tuple_, ['tuple', 'get-tuple-element', 'parameter']), 'constant': constant,
    'compare': compare, 'complex': complex_, 'convert': convert, 'bitcast-convert': bitcast_convert,
    'reduce-precision': reduce_precision, 'is-finite': is_finite, 'clamp': clamp, 'select': select, 'iota': iota,
    'reshape': reshape, 'broadcast': broadcast, 'concatenate': concatenate, 'slice': slices,
    'dynamic-slice': dynamic_slice, 'dynamic-update-slice': dynamic_update_slice, 'gather': gather,
    'scatter': scatter, 'pad': pad, 'reverse': reverse, 'transpose': transpose, 'dot': dot, 'reduce': reduce,
    'reduce-window': reduce_window, 'sort': sort, 'map': map_, 'topk': topk, 'call': call,
    'conditional': conditional, 'while': while_, 'get-dimension-size': size,
    'custom-call': topk_call, 'fusion': fusion, 'domain': domain,
    **of(started, [f'{k}-{end}' for k in ('all-gather', 'all-reduce', 'collective-permute') for end in ('start', 'done')]),
    'set-dimension-size': _dynamic.of_size, 'dynamic-reshape': _dynamic.reshaped,
}


def gaps(opcodes):
    """Returns the opcodes that have neither cases nor a reason, those that have both, and those that do not exist."""
    return ([f'{o}: neither cases nor a reason' for o in opcodes if o not in MAKERS and o not in ELSEWHERE]
            + [f'{o}: both cases and a reason' for o in MAKERS if o in ELSEWHERE]
            + [f'{o}: no opcode' for o in [*MAKERS, *ELSEWHERE] if o not in opcodes])
