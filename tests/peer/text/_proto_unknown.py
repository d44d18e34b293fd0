# SPDX-License-Identifier: Apache-2.0
"""Adds unknown fields to every message of a binary module, and finds these fields again."""
import re


def schema(path):
    """Returns {message: {field number: name of the field's message type}}, by the names in hlo.proto."""
    text = re.sub(r'//[^\n]*', '', path.read_text())
    messages, names = {}, []
    for token in re.finditer(r'(message|enum|oneof)\s+(\w+)\s*\{|(\})|(?:repeated\s+)?([\w.]+)\s+\w+\s*=\s*(\d+);', text):
        kind, name, close, field, number = token.groups()
        if kind:
            scope = next((n for k, n in reversed(names) if k == 'message'), '')
            names.append((kind, f'{scope}.{name}'.lstrip('.') if kind == 'message' else name))
            if kind == 'message':
                messages[names[-1][1]] = {}
        elif close:
            names.pop()
        elif field:
            scope = next((n for k, n in reversed(names) if k == 'message'), None)
            if scope:
                messages[scope][int(number)] = field
    for name, fields in messages.items():
        for number, field in list(fields.items()):
            fields[number] = next((n for n in (f'{name}.{field}', field) if n in messages), None)
            if fields[number] is None:
                del fields[number]
    return messages


def varint(value):
    out = b''
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


def fields(data):
    """Yields (number, wire type, bytes of the value) of each field."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        if tag & 7 == 0:
            end = read_varint(data, at)[1]
        elif tag & 7 == 2:
            size, at = read_varint(data, at)
            end = at + size
        else:
            end = at + (8 if tag & 7 == 1 else 4)
        yield tag >> 3, tag & 7, data[at:end]
        at = end


UNKNOWN = 9999


def inject(messages, data, kind, state):
    """Returns the message with an unknown field in it and in each nested message; `state` counts these fields."""
    out = b''
    for number, wire, value in fields(data):
        inner = messages[kind].get(number)
        if inner and wire == 2:
            value = inject(messages, value, inner, state)
        out += varint(number << 3 | wire) + (varint(len(value)) if wire == 2 else b'') + value
    state.append(kind)
    return out + varint(UNKNOWN << 3) + varint(len(state)) + varint(UNKNOWN + 1 << 3 | 2) + b'\2hi'


def found(messages, data, kind, out):
    """Returns {the number that was added: the kind of message that now contains it}."""
    for number, wire, value in fields(data):
        inner = messages[kind].get(number)
        if inner and wire == 2:
            found(messages, value, inner, out)
        if number == UNKNOWN:
            out[read_varint(value, 0)[0]] = kind
    return out
