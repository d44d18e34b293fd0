"""Modules as graphs: computations and their instructions, read from what the library prints of a module."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ._library import Sink, ffi, lib, string
from ._module import module_proto, module_text

# Field numbers of XLA's messages (xla/service/hlo.proto, xla/xla_data.proto), by message.
_MODULE = {"entry_id": 6, "computations": 3, "frames": 17}
_COMPUTATION = {"name": 1, "instructions": 2, "id": 5, "root_id": 6}
_INSTRUCTION = {"name": 1, "opcode": 2, "metadata": 7, "target": 28, "id": 35, "operands": 36, "called": 38}
_METADATA = {"op_name": 2, "file": 3, "line": 4, "frame": 15}
_FRAMES = {"files": 1, "locations": 3, "frames": 4}
_LOCATION = {"file": 1, "line": 3}
_FRAME = {"location": 1}


@dataclass(frozen=True)
class Instruction:
    """One instruction of a module."""

    name: str
    opcode: str
    target: str  #: of a custom call; else ""
    shape: str  #: as in HLO text, with the layout
    attributes: str  #: as in HLO text, without metadata
    operands: tuple[str, ...]  #: their names, in this computation
    called: tuple[str, ...]  #: the names of the computations that it calls
    is_root: bool
    op_name: str  #: "" when there is none
    source_file: str  #: of its innermost frame; "" when it is not known
    source_line: int  #: 0 when it is not known


@dataclass(frozen=True)
class Computation:
    """A computation, operands before their users."""

    name: str
    instructions: tuple[Instruction, ...]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message, by number: integers, and the bytes of all others."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value: Any
            value, at = _varint(data, at)
        else:
            size, at = _varint(data, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
            value, at = data[at : at + size], at + size
        yield key >> 3, value


def _message(data: bytes, names: dict[str, int]) -> dict[str, list[Any]]:
    """The values of the fields that have a name."""
    by_number: dict[int, list[Any]] = {number: [] for number in names.values()}
    for number, value in _fields(data):
        if number in by_number:
            by_number[number].append(value)
    return {name: by_number[number] for name, number in names.items()}


def _text(values: list[Any]) -> str:
    return values[-1].decode("utf-8", "backslashreplace") if values else ""


def _number(values: list[Any]) -> int:
    return int(values[-1]) if values else 0


def _numbers(values: list[Any]) -> list[int]:
    """A repeated integer, packed or not."""
    found = []
    for value in values:
        if isinstance(value, int):
            found.append(value)
            continue
        at = 0
        while at < len(value):
            number, at = _varint(value, at)
            found.append(number)
    return found


class _Sources:
    """The stack frames of a module."""

    def __init__(self, data: bytes):
        table = _message(data, _FRAMES)
        self.files = [_text([name]) for name in table["files"]]
        self.locations = [_message(entry, _LOCATION) for entry in table["locations"]]
        self.frames = [_number(_message(entry, _FRAME)["location"]) for entry in table["frames"]]

    def place(self, metadata: dict[str, list[Any]]) -> tuple[str, int]:
        """The file and the line of an instruction's innermost frame."""
        frame = _number(metadata["frame"])
        if not 0 < frame <= len(self.frames):
            return _text(metadata["file"]), _number(metadata["line"])
        location = self.locations[self.frames[frame - 1] - 1]
        return self.files[_number(location["file"]) - 1], _number(location["line"])


def _print_lines(module: Any) -> dict[tuple[str, str], tuple[str, str]]:
    """Shape and attributes of each instruction as in HLO text, by the names of its computation and itself."""
    how = ffi.new("hlo_print_options *")
    lib.hlo_print_options_init_sized(how, ffi.sizeof(how[0]), lib.HLO_PRINT_NO_LARGE_CONSTANTS)
    how.percent = how.signature = how.operand_shapes = how.operand_index = how.metadata = False
    computation, found = "", {}
    for line in module_text(module, how).splitlines():
        header = re.match(r"(?:ENTRY )?([^ ,]+) .*\{$", line)
        if header:
            computation = header[1]
        instruction = re.match(r" +(?:ROOT )?([^ ]+) = (.*?) [a-z][\w-]*\((.*)$", line)
        if instruction:
            shape = re.sub(r"/\*index=\d+\*/", "", instruction[2])
            found[computation, instruction[1]] = shape, instruction[3].partition("), ")[2]
    return found


def computations(module: Any) -> list[Computation]:
    """The computations of an ``hlo_module *``: the entry first."""
    proto = _message(module_proto(module, Sink()), _MODULE)  # what HLO text alone has is not missed
    sources, lines = _Sources(b"".join(proto["frames"])), _print_lines(module)
    read = [_message(data, _COMPUTATION) for data in proto["computations"]]
    names = {_number(each["id"]): _text(each["name"]) for each in read}
    read.sort(key=lambda each: _number(each["id"]) != _number(proto["entry_id"]))
    made = []
    for each in read:
        instructions = [_message(data, _INSTRUCTION) for data in each["instructions"]]
        own = {_number(instruction["id"]): _text(instruction["name"]) for instruction in instructions}
        computation, root = _text(each["name"]), _number(each["root_id"])
        listed = []
        for instruction in instructions:
            name, metadata = _text(instruction["name"]), _message(b"".join(instruction["metadata"]), _METADATA)
            shape, attributes = lines[computation, name]
            source_file, source_line = sources.place(metadata)
            listed.append(
                Instruction(
                    name,
                    _text(instruction["opcode"]),
                    _text(instruction["target"]),
                    shape,
                    attributes,
                    tuple(own[number] for number in _numbers(instruction["operands"])),
                    tuple(names[number] for number in _numbers(instruction["called"])),
                    _number(instruction["id"]) == root,
                    _text(metadata["op_name"]),
                    source_file,
                    source_line,
                )
            )
        made.append(Computation(computation, tuple(listed)))
    return made


def module_name(module: Any) -> str:
    """The name of an ``hlo_module *``."""
    return string(lib.hlo_module_name(module)) or ""
