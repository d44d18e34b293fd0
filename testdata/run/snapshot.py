"""Writes the messages of XLA that contain a module.

usage: snapshot.py FORM MODULE.pb OUT [INPUTS.npz... [OUTPUTS.npz]]

FORM is proto (HloProto), config (HloModuleProtoWithConfig), snapshot (HloSnapshot, with outputs), unoptimized
(HloUnoptimizedSnapshot, with the inputs of each device), or sized (the same, as XLA's SerializeHloUnoptimizedSnapshot()
writes it). The files have the arrays in the order of the leaves.
"""
import sys

import numpy as np

# By element type: the number of the field of a LiteralProto, and the bits of an element.
FIELDS = {1: (2, 1), 11: (8, 32), 4: (4, 32), 16: (13, 16), 20: (20, 8), 21: (21, 4)}
PRED, S32, TUPLE = 1, 4, 13


def varint(value):
    out = b''
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def field(number, value):
    return varint(number << 3 | 2) + varint(len(value)) + value


def number(number, value):
    return varint(number << 3) + varint(value)


def fields(message):
    """Yields the number and the value of each field."""
    at = 0

    def read():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
            if byte < 128:
                return value

    while at < len(message):
        tag = read()
        value = read()
        if tag & 7 == 2:
            value, at = message[at:at + value], at + value
        yield tag >> 3, value


def of(message, wanted):
    return [value for key, value in fields(message) if key == wanted]


def in_memory_order(array, shape):
    layout = of(shape, 5)
    order = [*of(layout[0], 1)[0]][::-1] if layout and of(layout[0], 1) else range(array.ndim)
    return array.transpose(*order).reshape(-1)


def literal(shape, arrays):
    """Returns a LiteralProto."""
    kind = of(shape, 2)[0]
    if kind == TUPLE:
        return field(1, shape) + b''.join(field(10, literal(part, arrays)) for part in of(shape, 4))
    array = in_memory_order(next(arrays), shape)
    if kind in (PRED, S32):
        values = b''.join(varint(int(value) & (1 << 64) - 1) for value in array)
    else:
        values = array.tobytes()
    return field(1, shape) + field(FIELDS[kind][0], values)


def serialized(shape, arrays):
    """Returns the values as Literal::Serialize() writes them."""
    kind = of(shape, 2)[0]
    if kind == TUPLE:
        return b''.join(serialized(part, arrays) for part in of(shape, 4))
    array, bits = in_memory_order(next(arrays), shape), FIELDS[kind][1]
    if bits >= 8:
        return array.tobytes()
    each = array.view(np.uint8)[:, None] >> np.arange(bits, dtype=np.uint8) & 1
    return np.packbits(each.reshape(-1), bitorder='little').tobytes()


def load(path):
    with np.load(path) as file:
        return iter([file[name] for name in file.files])


def main(form, module, out, *files):
    with open(module, 'rb') as file:
        hlo = file.read()
    program = of(hlo, 4)[0]
    parameters, result = of(program, 1), of(program, 2)[0]
    inputs = lambda arrays: [literal(shape, arrays) for shape in parameters]
    made, rest = field(1, hlo), b''
    if form == 'proto':
        made += field(3, b'')
    elif form == 'config':
        made += field(2, field(1, program) + number(2, 7) + number(4, 2) + number(5, 4) + number(7, 1))
    elif form == 'snapshot':
        made = field(1, made) + b''.join(field(2, each) for each in inputs(load(files[0])))
        made += field(3, literal(result, load(files[1]))) + field(4, b'Host')
    elif form == 'unoptimized':
        made += b''.join(field(2, b''.join(field(1, each) for each in inputs(load(file)))) for file in files)
    else:
        for arrays in map(load, files):
            parts = [len(shape).to_bytes(8, 'little') + shape + serialized(shape, arrays) for shape in parameters]
            made += field(2, b''.join(field(2, number(2, len(part))) for part in parts))
            rest += b''.join(parts)
        made = varint(len(made)) + made
    with open(out, 'wb') as file:
        file.write(made + rest)


if __name__ == '__main__':
    main(*sys.argv[1:])
# SPDX-License-Identifier: Apache-2.0
