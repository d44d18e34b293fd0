# SPDX-License-Identifier: Apache-2.0
"""Creates cases of dynamic shapes. A dimension of an array gets a size, and operations run on the array. The results are
the sizes of the dynamic dimensions, and the elements, padded with zeros.
"""
import numpy as np

KINDS = ['f32', 's32', 'f64', 'u8']


def shape_of(name, dims, dynamic=()):
    return f'{name}[{",".join("<=" * (i in dynamic) + str(d) for i, d in enumerate(dims))}]'


def ints(values):
    return '{' + ','.join(map(str, values)) + '}'


class Value:
    """An instruction with its element type, bounds and dynamic dimensions."""

    def __init__(self, e, name, dims, dynamic, text):
        self.e, self.name, self.dims, self.dynamic = e, name, list(map(int, dims)), sorted(map(int, dynamic))
        self.shape = shape_of(name, self.dims, self.dynamic)
        self.text = e.cases.note(self.shape, text)


def sized(e, name, dims, dynamic, sizes):
    """Returns an input; s32[] values are its sizes along the dynamic dimensions."""
    text, done = e.whole(name, dims), []
    for d, size in zip(dynamic, sizes):
        done.append(d)
        value = Value(e, name, dims, done, f'set-dimension-size({text}, {size}), dimensions={{{d}}}')
        text = value.text
    return value


def random_size(e, bound):
    return e.cases.input('s32', e.rng.integers(1, bound + 1))


def number(e, value):
    return e.cases.note('s32[]', f'constant({value})')


def reveal(e, opcode, value):
    """Adds the sizes and the real elements of a dynamic value to the results."""
    text, name, dims, left = value.text, value.name, value.dims, list(value.dynamic)
    masks, zero = [], e.cases.note(f'{name}[]', 'constant(0)')
    for d in value.dynamic:
        size = e.cases.note('s32[]', f'get-dimension-size({value.text}), dimensions={{{d}}}')
        e.add(opcode, 's32[]', None, instruction=f'copy({size})')
        index = e.cases.note(shape_of('s32', dims), f'iota(), iota_dimension={d}')
        limit = e.cases.note(shape_of('s32', dims), f'broadcast({size}), dimensions={{}}')
        masks.append(e.cases.note(shape_of('pred', dims), f'compare({index}, {limit}), direction=LT'))
    for d in value.dynamic:
        left.remove(d)
        text = e.cases.note(shape_of(name, dims, left),
                            f'set-dimension-size({text}, {number(e, dims[d])}), dimensions={{{d}}}')
    zeros = e.cases.note(shape_of(name, dims), f'broadcast({zero}), dimensions={{}}')
    for mask in masks:
        text = e.cases.note(shape_of(name, dims), f'select({mask}, {text}, {zeros})')
    e.add(opcode, shape_of(name, dims), None, instruction=f'copy({text})')


def elementwise(e, name, x, size):
    other = sized(e, name, x.dims, x.dynamic[:1], [size])
    added = Value(e, name, x.dims, x.dynamic, f'add({x.text}, {other.text})')
    return Value(e, name, x.dims, x.dynamic, f'multiply({added.text}, {x.text})')


def reduced(e, name, x, size):
    """Reduces along a dynamic dimension, or along the other dimensions."""
    along = [x.dynamic[0]] if e.rng.integers(2) else [d for d in range(len(x.dims)) if d != x.dynamic[0]]
    kept = [d for d in range(len(x.dims)) if d not in along]
    op = e.rng.choice(['add', 'maximum'])
    zero = e.cases.note(f'{name}[]', 'constant(0)')
    return Value(e, name, [x.dims[d] for d in kept], [i for i, d in enumerate(kept) if d in x.dynamic],
                 f'reduce({x.text}, {zero}), dimensions={ints(along)}, to_apply={e.region(name, op)}')


def dot(e, name, x, size):
    """Multiplies along the last dimension, which may be dynamic."""
    y = sized(e, name, [3, x.dims[-1]], [1], [size]) if x.dynamic == [len(x.dims) - 1] else None
    other = y.text if y else e.whole(name, [3, x.dims[-1]])
    return Value(e, name, [*x.dims[:-1], 3], [d for d in x.dynamic if d < len(x.dims) - 1],
                 f'dot({x.text}, {other}), lhs_contracting_dims={{{len(x.dims) - 1}}}, rhs_contracting_dims={{1}}')


def transposed(e, name, x, size):
    order = [int(d) for d in e.rng.permutation(len(x.dims))]
    return Value(e, name, [x.dims[d] for d in order], [i for i, d in enumerate(order) if d in x.dynamic],
                 f'transpose({x.text}), dimensions={ints(order)}')


def broadcasted(e, name, x, size):
    return Value(e, name, [2, *x.dims], [d + 1 for d in x.dynamic],
                 f'broadcast({x.text}), dimensions={ints(range(1, len(x.dims) + 1))}')


def concatenated(e, name, x, size):
    d = int(e.rng.integers(len(x.dims)))
    if d in x.dynamic:  # concatenates with a dynamic array, and with a static one
        dims = [*x.dims[:d], 2, *x.dims[d + 1:]]
        rest = [k for k in x.dynamic if k != d]
        parts = [x.text, e.whole(name, dims), x.text] if not rest else [x.text, x.text]
        total = x.dims[d] * 2 + (0 if rest else 2)
    else:
        parts, total = [x.text, x.text], 2 * x.dims[d]
    return Value(e, name, [*x.dims[:d], total, *x.dims[d + 1:]], x.dynamic,
                 f'concatenate({", ".join(parts)}), dimensions={{{d}}}')


def sliced(e, name, x, size):
    """Slices from the first or second element to the last, since XLA does not clip sizes to a slice's limits."""
    d, low = x.dynamic[0], int(e.rng.integers(2))
    step = int(e.rng.integers(1, x.dims[d] - low + 1))
    dims = [-(-(n - low) // step) if i == d else n for i, n in enumerate(x.dims)]
    ranges = [f'[{low}:{n}:{step}]' if i == d else f'[0:{n}]' for i, n in enumerate(x.dims)]
    # XLA does not support a dynamic dimension of one element.
    return Value(e, name, dims, x.dynamic if dims[d] > 1 else [],
                 f'slice({x.text}), slice={{{", ".join(ranges)}}}')


def padded(e, name, x, size):
    amounts = [(int(e.rng.integers(0, 3)), int(e.rng.integers(0, 3)), int(e.rng.integers(2))) for _ in x.dims]
    dims = [n + a + b + (n - 1) * i for n, (a, b, i) in zip(x.dims, amounts)]
    return Value(e, name, dims, x.dynamic, f'pad({x.text}, {e.whole(name, [])}), padding='
                 + 'x'.join('_'.join(map(str, a)) for a in amounts))


def reversed_(e, name, x, size):
    return Value(e, name, x.dims, x.dynamic, f'reverse({x.text}), dimensions={{{x.dynamic[0]}}}')


def sorted_(e, name, x, size):
    return Value(e, name, x.dims, x.dynamic,
                 f'sort({x.text}), dimensions={{{x.dynamic[0]}}}, is_stable=true, to_apply={e.less(name)}')


def collapsed(e, name, x, size):
    return Value(e, name, [int(np.prod(x.dims))], [0], f'reshape({x.text})')


def looped(e, name, x, size):
    """Carries a dynamic value through three iterations of a loop."""
    key = f'dynamic.{len(e.regions)}'
    state = f'({x.shape}, s32[])'
    e.regions[key] = (
        f'%until.{key} {{\n  %u.{key} = {state} parameter(0)\n  %i.{key} = s32[] get-tuple-element(%u.{key}), index=1\n'
        f'  %l.{key} = s32[] constant(3)\n  ROOT %t.{key} = pred[] compare(%i.{key}, %l.{key}), direction=LT\n}}\n\n'
        f'%body.{key} {{\n  %b.{key} = {state} parameter(0)\n  %v.{key} = {x.shape} get-tuple-element(%b.{key}), index=0\n'
        f'  %j.{key} = s32[] get-tuple-element(%b.{key}), index=1\n  %s.{key} = s32[] constant(1)\n'
        f'  %n.{key} = s32[] add(%j.{key}, %s.{key})\n  %w.{key} = {x.shape} add(%v.{key}, %v.{key})\n'
        f'  ROOT %o.{key} = {state} tuple(%w.{key}, %n.{key})\n}}\n\n')
    start = e.cases.note(state, f'tuple({x.text}, {number(e, 0)})')
    end = e.cases.note(state, f'while({start}), condition=%until.{key}, body=%body.{key}')
    return Value(e, name, x.dims, x.dynamic, f'get-tuple-element({end}), index=0')


def branched(e, name, x, size):
    """Passes a dynamic value through a conditional, one branch of which reduces its size."""
    keys = []
    for less in (0, 1):
        key = f'branch.{len(e.regions)}'
        d = x.dynamic[0]
        rest = shape_of(name, x.dims, x.dynamic)
        smaller = (f'  %g.{key} = s32[] get-dimension-size(%p.{key}), dimensions={{{d}}}\n'
                   f'  %h.{key} = s32[] constant(2)\n  %n.{key} = s32[] minimum(%g.{key}, %h.{key})\n'
                   f'  %s.{key} = {rest} set-dimension-size(%p.{key}, %n.{key}), dimensions={{{d}}}\n' if less else '')
        e.regions[key] = (f'%{key} {{\n  %p.{key} = {x.shape} parameter(0)\n{smaller}'
                          f'  ROOT %o.{key} = {x.shape} add(%{"s" if less else "p"}.{key}, %p.{key})\n}}\n\n')
        keys.append(key)
    return Value(e, name, x.dims, x.dynamic, f'conditional({e.whole("pred", [])}, {x.text}, {x.text}), '
                 f'true_computation=%{keys[0]}, false_computation=%{keys[1]}')


def called(e, name, x, size):
    key = f'called.{len(e.regions)}'
    e.regions[key] = (f'%{key} {{\n  %p.{key} = {x.shape} parameter(0)\n'
                      f'  ROOT %o.{key} = {x.shape} add(%p.{key}, %p.{key})\n}}\n\n')
    return Value(e, name, x.dims, x.dynamic, f'call({x.text}), to_apply=%{key}')


def listed(e, x, size, limit):
    """Returns a dynamic list of indices below `limit`, as long as the dynamic dimension of x."""
    bound = x.dims[x.dynamic[0]]
    indices = e.cases.input('s32', e.rng.permutation(max(limit, bound))[:bound])
    return Value(e, 's32', [bound], [0], f'set-dimension-size({indices}, {size}), dimensions={{0}}')


def gathered(e, name, x, size):
    """Gathers rows of a static array at a dynamic number of indices."""
    indices = listed(e, x, size, 4)
    return Value(e, name, [*indices.dims, 3], [0],
                 f'gather({e.whole(name, [4, 3])}, {indices.text}), offset_dims={{1}}, collapsed_slice_dims={{0}}, '
                 f'start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,3}}')


def scattered(e, name, x, size):
    """Scatters a dynamic number of updates into a static array."""
    indices = listed(e, x, size, 4)
    updates = sized(e, name, indices.dims, [0], [size])
    return Value(e, name, [4], [],
                 f'scatter({e.whole(name, [4])}, {indices.text}, {updates.text}), update_window_dims={{}}, '
                 f'inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, '
                 f'to_apply={e.region(name, "add")}')


def windowed(e, name, x, size):
    """Reduces windows without padding, whose number depends on the size."""
    d, stride = x.dynamic[0], int(e.rng.integers(1, 3))
    dims = [(n - 2) // stride + 1 if i == d else n for i, n in enumerate(x.dims)]
    sizes, strides = (['1'] * len(dims) for _ in range(2))
    sizes[d], strides[d] = '2', str(stride)
    return Value(e, name, dims, x.dynamic if dims[d] > 1 else [],
                 f'reduce-window({x.text}, {e.cases.note(f"{name}[]", "constant(0)")}), window={{size={"x".join(sizes)} '
                 f'stride={"x".join(strides)}}}, to_apply={e.region(name, "add")}')


def convolved(e, name, x, size):
    """Convolves with a dynamic batch or with dynamic features."""
    d = int(e.rng.integers(2))
    dims = [x.dims[x.dynamic[0]], 2, 4] if d == 0 else [2, x.dims[x.dynamic[0]], 4]
    images = sized(e, name, dims, [d], [size])
    kernel = e.whole(name, [dims[1], 3, 2])
    return Value(e, name, [dims[0], 3, 3], [0] if d == 0 else [],
                 f'convolution({images.text}, {kernel}), window={{size=2}}, dim_labels=bf0_io0->bf0')


USERS = [elementwise, reduced, dot, transposed, broadcasted, concatenated, sliced, padded, reversed_, sorted_,
         collapsed, looped, branched, called, gathered, scattered, windowed, convolved]


def of_size(e, opcode):
    """Applies all operations, each to a separate array."""
    for user in USERS:
        name = e.kind(['f32', 's32', 'f64'] if user in (dot, convolved) else KINDS)
        dims = [int(d) for d in e.rng.integers(2, 6, e.rng.integers(1 + (user in (reduced, dot, transposed)), 4))]
        dynamic = [int(e.rng.integers(len(dims)))]
        size = random_size(e, dims[dynamic[0]])
        reveal(e, f'{opcode}: {user.__name__}', user(e, name, sized(e, name, dims, dynamic, [size]), size))


def reshaped(e, opcode):
    """Reshapes elements to another shape with given sizes."""
    name = e.kind(KINDS)
    a, b = (int(n) for n in e.rng.permutation([2, 3, 4])[:2])  # for equal sizes, XLA does not move elements
    rows, columns = int(e.rng.integers(1, a + 1)), int(e.rng.integers(1, b + 1))
    x = sized(e, name, [a, b], [0, 1], [e.cases.input('s32', rows), e.cases.input('s32', columns)])
    dims, sizes = ([a * b], [rows * columns]) if e.rng.integers(2) else ([b, a], [columns, rows])
    operands = ', '.join(e.cases.input('s32', n) for n in sizes)
    reveal(e, opcode, Value(e, name, dims, range(len(dims)), f'dynamic-reshape({x.text}, {operands})'))
