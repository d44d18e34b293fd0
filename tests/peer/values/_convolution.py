# SPDX-License-Identifier: Apache-2.0
"""Draws random convolutions: any order of dimensions, strides, padding on either side (also negative), dilation of the
input and the window, reversed windows, feature or batch groups, every real type. Elements are small integers, so
that every sum is exact.
"""
COUNT = 60
# Result types that differ from the operands' type.
RESULTS = {'bf16': ['bf16', 'f32'], 'f16': ['f16', 'f32'], 's8': ['s8', 's32'], 'f8e4m3fn': ['f32'],
           'f8e5m2': ['bf16']}
TYPES = 'f32 f64 bf16 f16 s8 s32 u8 u32 s64 f8e4m3fn f8e5m2'.split()
WORDS = 'size stride pad lhs_dilate rhs_dilate rhs_reversal'.split()


def window(rng):
    """Returns one spatial dimension: the input's size, the window attributes, the result's size."""
    while True:
        n, size, stride = rng.integers(1, 7), rng.integers(1, 5), rng.integers(1, 4)
        low, high = rng.integers(-1, 4, 2)
        holes, apart = rng.choice([1, 1, 2, 3]), rng.choice([1, 1, 2])
        room = (n - 1) * holes + 1 + low + high - ((size - 1) * apart + 1)
        if room >= 0:
            return n, (size, stride, f'{low}_{high}', holes, apart, rng.choice([0, 0, 1])), room // stride + 1


def labels(rng, letters, rank):
    return ''.join(rng.permutation([*letters, *(str(i) for i in range(rank - 2))]))


def draw(rng, number):
    """Returns the type and the two shapes of the operands, the shape of the result, and a random convolution."""
    rank = 2 + rng.choice([0, 1, 1, 2, 2, 3])
    features = rng.choice([1, 1, 2, 3])
    batches = rng.choice([1, 2]) if features == 1 else 1
    batch, takes, gives = rng.integers(1, 4, 3)
    dims = [window(rng) for _ in range(rank - 2)]
    names = [labels(rng, letters, rank) for letters in ('bf', 'io', 'bf')]
    sizes = [{'b': batch * batches, 'f': takes * features, **{str(i): d[0] for i, d in enumerate(dims)}},
             {'i': takes, 'o': gives * features * batches, **{str(i): d[1][0] for i, d in enumerate(dims)}},
             {'b': batch, 'f': gives * features * batches, **{str(i): d[2] for i, d in enumerate(dims)}}]
    x, w, out = ([int(size[n]) for n in name] for size, name in zip(sizes, names))
    kind = str(rng.choice(TYPES))
    result = str(rng.choice(RESULTS.get(kind, [kind])))
    words = ' '.join(f'{word}=' + 'x'.join(str(d[1][i]) for d in dims) for i, word in enumerate(WORDS)) if dims else ''
    groups = ''.join(f', {name}_group_count={count}' for name, count in (('feature', features), ('batch', batches))
                     if count > 1)
    shape = f'{result}[{",".join(map(str, out))}]'
    return kind, x, w, shape, (f'%c{number} = {shape} convolution(%x{number}, %w{number}), window={{{words}}}, '
                               f'dim_labels={names[0]}_{names[1]}->{names[2]}{groups}')


def convolutions(run, types, rng, exactly):
    parameters, body, shapes, inputs = [], [], [], []
    for number in range(COUNT):
        kind, x, w, shape, line = draw(rng, number)
        for letter, dims in (('x', x), ('w', w)):
            parameters.append(f'  %{letter}{number} = {kind}[{",".join(map(str, dims))}] parameter({len(inputs)})')
            low = 0 if kind[0] == 'u' else -3
            inputs.append(rng.integers(low, 4, dims).astype(types[kind]))
        body.append('  ' + line)
        shapes.append(shape)
    names = ', '.join(f'%c{i}' for i in range(COUNT))
    text = '\n'.join(['HloModule convolutions', 'ENTRY %main {', *parameters, *body,
                      f'  ROOT %all = ({", ".join(shapes)}) tuple({names})', '}', ''])
    run.compare('convolution', text, inputs, exactly, body)
