# SPDX-License-Identifier: Apache-2.0
"""Reads the arguments that a program compiled by XLA's GPU compiler passes to cuBLASLt.

XLA serializes a compiled program as a protobuf of its buffers and its steps ("thunks"). A matmul's step
specifies the buffers of a, b, c, d, the bias, each scale and the amax, and the layouts of the matrices. Therefore two
programs can be compared by meaning, not by the form of their HLO. The file is one protobuf field around a
snappy-compressed riegeli file. Field numbers are those of XLA's thunk.proto, derived from programs with known meaning.
A test checks that every compiled model of the corpus has as many matmuls as its HLO text.
"""
import struct

BUFFERS = 2     # fields of the program
LT_MATMUL = 22  # fields of a thunk
CONFIG, EPILOGUE = 1, 2
ROLES = {5: 'a', 6: 'b', 7: 'c', 8: 'd', 9: 'bias', 10: 'aux', 11: 'a_scale', 12: 'b_scale',
         13: 'c_scale', 14: 'd_scale', 15: 'd_amax', 16: 'workspace'}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """Yields (number, value) of the fields of a protobuf message; raises ValueError or IndexError for other data."""
    at, out = 0, []
    while at < len(data):
        tag, at = varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value, at = data[at:at + size], at + size
        elif wire == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            if len(value) != size:
                raise ValueError('truncated field')
        else:
            raise ValueError('no such wire type')
        out.append((number, value))
    return out


def first(message, number, missing=None):
    return next((v for n, v in fields(message) if n == number), missing)


def unsnappy(data):
    size, at = varint(data, 0)
    out = bytearray()
    while at < len(data):
        tag = data[at]
        at += 1
        if tag & 3 == 0:
            length = tag >> 2
            if length >= 60:
                width = length - 59
                length = int.from_bytes(data[at:at + width], 'little')
                at += width
            out += data[at:at + length + 1]
            at += length + 1
            continue
        if tag & 3 == 1:
            length, offset = (tag >> 2 & 7) + 4, tag >> 5 << 8 | data[at]
            at += 1
        else:
            width = 2 if tag & 3 == 2 else 4
            length, offset = (tag >> 2) + 1, int.from_bytes(data[at:at + width], 'little')
            at += width
        for _ in range(length):
            out.append(out[-offset])
    assert len(out) == size
    return bytes(out)


def chunks(data):
    """Yields the chunks of a riegeli file, without the block headers at each multiple of 64 KiB."""
    block, header = 1 << 16, 24
    plain = b''.join(data[at + header:at + block] for at in range(0, len(data), block))
    at = 0
    while at < len(plain):
        size, = struct.unpack_from('<Q', plain, at + 8)
        kind = chr(plain[at + 24])
        records = int.from_bytes(plain[at + 25:at + 32], 'little')
        yield kind, plain[at + 40:at + 40 + size]
        # A chunk occupies at least one byte per record.
        at += 40 + max(size, records)


def decompress(kind, data):
    if kind == ord('s'):
        return unsnappy(data[varint(data, 0)[1]:])
    if kind == 0:
        return data
    raise ValueError(f'chunks are compressed by {chr(kind)!r}')


def records(path):
    with open(path, 'rb') as f:
        data = first(f.read(), 1)
    for kind, chunk in chunks(data):
        if kind != 'r':
            continue
        width, at = varint(chunk, 1)
        sizes = decompress(chunk[0], chunk[at:at + width])
        values = decompress(chunk[0], chunk[at + width:])
        at = taken = 0
        while at < len(sizes):
            size, at = varint(sizes, at)
            yield values[taken:taken + size]
            taken += size


def messages(data):
    """Yields every message inside `data`, including `data` itself."""
    try:
        inside = fields(data)
    except (ValueError, IndexError):
        return
    yield inside
    for _, value in inside:
        if isinstance(value, bytes) and len(value) > 1:
            yield from messages(value)


def lt_matmuls(path):
    """Returns one dict per matmul: role -> (bytes, type) of the buffer in that role, and `config`, `epilogue`."""
    out = []
    for record in records(path):
        for message in messages(record):
            for number, value in message:
                if number == LT_MATMUL and isinstance(value, bytes):
                    thunk = lt_matmul(value)
                    if thunk:
                        out.append(thunk)
    return out


def lt_matmul(value):
    try:
        inside = dict(fields(value))
        if not {CONFIG, 4, 5, 6, 8} <= set(inside) or b'__cublas$lt' not in inside[4]:
            return None
        out = {'config': inside[CONFIG], 'epilogue': inside.get(EPILOGUE)}
        for number, role in ROLES.items():
            if number in inside:
                part = dict(fields(inside[number]))
                where = dict(fields(part[1]))
                out[role] = {'allocation': where.get(3, 0), 'offset': where.get(1, 0),
                             'bytes': where.get(2, 0), 'type': where.get(4, 0)}
        return out
    except (ValueError, IndexError, KeyError, TypeError):
        return None


def parameters(path):
    """Returns a dict: allocation -> number of the entry parameter in it."""
    for record in records(path):
        try:
            out = {}
            for kind, allocation in fields(first(record, BUFFERS, b'')):
                if kind == 3:
                    a = dict(fields(allocation))
                    if a.get(5):
                        out[a.get(1, 0)] = a.get(6, 0)
        except (ValueError, IndexError, TypeError):  # the contents of a constant
            continue
        if out:
            return out
    return {}
