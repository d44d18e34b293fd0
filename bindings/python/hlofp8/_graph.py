# SPDX-License-Identifier: Apache-2.0
"""Represents modules as graphs: computations and their instructions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ._library import Sink, ffi, lib, string


@dataclass(frozen=True)
class Instruction:
    """One instruction of a module."""

    name: str
    opcode: str
    target: str  #: the target of a custom call; otherwise ""
    shape: str  #: in the notation of HLO text, with the layout
    attributes: str  #: in the notation of HLO text, sorted by name, without metadata
    operands: tuple[str, ...]  #: the names of the operands
    called: tuple[str, ...]  #: the names of the called computations
    is_root: bool
    op_name: str  #: "" if the metadata has no op_name
    source_file: str  #: the file of the innermost stack frame; "" if unknown
    source_line: int  #: 0 if unknown


@dataclass(frozen=True)
class Computation:
    """A computation, with its instructions in topological order."""

    name: str
    instructions: tuple[Instruction, ...]


def _text(pointer: Any) -> str:
    return string(pointer) or ""


def _shape(shape: Any) -> str:
    size = lib.hlo_shape_format(shape, True, ffi.NULL, 0) + 1
    text = ffi.new("char[]", size)
    lib.hlo_shape_format(shape, True, text, size)
    return re.sub(r"/\*index=\d+\*/", "", _text(text))


def _attribute(instruction: Any, name: Any) -> str:
    value = ffi.new("const char **")
    Sink().check(lib.hlo_instruction_attribute(instruction, name, value))
    return _text(value[0])


def _attributes(instruction: Any) -> dict[str, str]:
    """Returns the attributes of an instruction, by name."""
    count = lib.hlo_instruction_attribute_count(instruction)
    names = [lib.hlo_instruction_attribute_name(instruction, i) for i in range(count)]
    return {_text(name): _attribute(instruction, name) for name in names}


def _instruction(at: Any, root: Any) -> Instruction:
    attributes, line = _attributes(at), ffi.new("int64_t *")
    source = _text(lib.hlo_instruction_source(at, line))
    operands = [lib.hlo_instruction_operand(at, i) for i in range(lib.hlo_instruction_operand_count(at))]
    called = [lib.hlo_instruction_called(at, i) for i in range(lib.hlo_instruction_called_count(at))]
    return Instruction(
        name=_text(lib.hlo_instruction_name(at)),
        opcode=_text(lib.hlo_opcode_name(lib.hlo_instruction_opcode(at))),
        target=attributes.get("custom_call_target", "").strip('"'),
        shape=_shape(lib.hlo_instruction_shape(at)),
        attributes=", ".join(f"{name}={value}" for name, value in sorted(attributes.items()) if name != "metadata"),
        operands=tuple(_text(lib.hlo_instruction_name(operand)) for operand in operands),
        called=tuple(_text(lib.hlo_computation_name(computation)) for computation in called),
        is_root=at == root,
        op_name=_text(lib.hlo_instruction_op_name(at)),
        source_file=source,
        source_line=line[0],
    )


def _list(first: Any, following: Any) -> Iterator[Any]:
    while first:
        yield first
        first = following(first)


def _computation(at: Any) -> Computation:
    root = lib.hlo_computation_root(at)
    instructions = _list(lib.hlo_computation_first(at), lib.hlo_instruction_next)
    return Computation(_text(lib.hlo_computation_name(at)), tuple(_instruction(each, root) for each in instructions))


def computations(module: Any) -> list[Computation]:
    """Returns the computations of an ``hlo_module *``: the entry first, then the others, callees before callers."""
    entry = lib.hlo_module_entry(module)
    every = list(_list(lib.hlo_module_first_computation(module), lib.hlo_computation_next))
    return [_computation(at) for at in [entry, *(each for each in every if each != entry)]]


def module_name(module: Any) -> str:
    """Returns the name of an ``hlo_module *``."""
    return _text(lib.hlo_module_name(module))
