# SPDX-License-Identifier: Apache-2.0
"""Converts modules of other forms to HLO: StableHLO, and modules of JAX, TensorFlow and PyTorch."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import re
from collections.abc import Callable
from typing import Any

from ._library import Error

_TEXT = re.compile(
    r'\s*(?://[^\n]*\n\s*)*(?:module (?:@|attributes|\{(?=[\s\S]*func\.func))|"?builtin\.module|func\.func|#loc)'
)
_BYTECODE = b"ML\xefR"

#: The calls that return HLO, by framework.
_CALLS = (
    'in JAX, jax.jit(f).lower(...); in TensorFlow, f.experimental_get_compiler_ir(...)(stage="hlo_serialized"); in '
    "PyTorch/XLA, the tensors that the program computes on torch_xla.device()"
)


def is_path(text: str) -> bool:
    """Returns True for an existing file or folder, and for text without spaces, because HLO text contains spaces."""
    return os.path.exists(text) or bool(re.fullmatch(r"[^\s{]+", text.strip()))


def _part(path: str, task: str) -> Any:
    """Returns a function ``module:name`` of a package that is not required. Raises Error if the package lacks it."""
    module, name = path.split(":")
    try:
        found = importlib.import_module(module)
        for word in name.split("."):
            found = getattr(found, word)
        return found
    except (ImportError, AttributeError) as error:
        package = "; pip install jax" if module.startswith("jax") else ""
        raise Error(
            f"{task} requires {path.replace(':', '.')} ({error}){package}, or pass HLO instead: {_CALLS}"
        ) from None


def _proto(computation: Any) -> bytes:
    return bytes(computation.as_serialized_hlo_module_proto())


def stablehlo(module: str | bytes) -> bytes:
    """Converts StableHLO text or bytecode to a serialized HloModuleProto."""
    convert = _part("jaxlib._jax:mlir.mlir_module_to_xla_computation", "converting StableHLO")
    try:
        return _proto(convert(module, use_tuple_args=False, return_tuple=False))
    except (RuntimeError, ValueError) as error:
        raise Error(f"the StableHLO module cannot be converted to HLO: {error}".rstrip()) from None


def _lowered(lowered: Any) -> bytes:
    computation = lowered.compiler_ir("hlo")
    if not hasattr(computation, "as_serialized_hlo_module_proto"):
        raise Error("the lowered function does not provide an HloModuleProto", "invalid usage")
    return _proto(computation)


def _compiled(compiled: Any) -> bytes:
    modules = compiled.runtime_executable().hlo_modules()
    if len(modules) != 1:
        raise Error(f"the compiled function has {len(modules)} modules, expected one; pass jax.jit(f).lower(...)")
    return _proto(modules[0])


def _mlir_module(module: Any) -> bytes:
    bytecode = io.BytesIO()
    module.operation.write_bytecode(bytecode)
    return stablehlo(bytecode.getvalue())


def _concrete_function(function: Any) -> bytes:
    path = "tensorflow.python.eager.polymorphic_function.compiler_ir:from_concrete_function"
    try:
        return bytes(_part(path, "converting a concrete function")(function)(stage="hlo_serialized"))
    except ValueError as error:  # a dimension of an argument is unknown
        instead = "pass hlofp8.explain a tf.function, such as tf.function(f), and arguments with static shapes"
        raise Error(f"{error}; {instead}") from None


def _exported_program(program: Any) -> bytes:
    convert = _part("torch_xla.stablehlo:exported_program_to_stablehlo", "converting an ExportedProgram")
    options = _part("torch_xla.stablehlo:StableHLOExportOptions", "converting an ExportedProgram")
    # Exported weights would be NumPy arrays, which bf16 tensors cannot become.
    return stablehlo(convert(program, options(export_weights=False)).get_stablehlo_bytecode())


#: The attributes by which an object is recognized, and the function that converts it. The packages that define these
#: objects need not be installed.
_OBJECTS: tuple[tuple[tuple[str, ...], Callable[[Any], bytes]], ...] = (
    (("as_serialized_hlo_module_proto",), _proto),  # jaxlib's XlaComputation and HloModule
    (("compiler_ir",), _lowered),  # jax.stages.Lowered
    (("jaxpr", "fun_name", "lower"), lambda traced: _lowered(traced.lower())),  # jax.stages.Traced
    (("runtime_executable", "input_shardings"), _compiled),  # jax.stages.Compiled
    (("mlir_module_serialized", "in_avals"), lambda exported: stablehlo(bytes(exported.mlir_module_serialized))),
    (("operation", "body", "context"), _mlir_module),  # ir.Module
    (("get_stablehlo_bytecode",), lambda module: stablehlo(module.get_stablehlo_bytecode())),  # of torch_xla
    (("structured_input_signature", "graph"), _concrete_function),  # of TensorFlow
    (("graph_signature", "graph_module"), _exported_program),  # of torch.export
)


def _is_xla_tensor(value: Any) -> bool:
    return getattr(getattr(value, "device", None), "type", None) == "xla"


def _xla_tensors(tensors: Any) -> bytes:
    convert = _part("torch_xla:_XLAC._get_xla_tensors_hlo", "converting tensors of PyTorch/XLA")
    # Text has no stack frames, so it names the lines of torch.nn, not of the model. torch-xla 2.5 has only text.
    with contextlib.suppress(Error):
        convert = _part("torch_xla:_XLAC._get_xla_tensors_hlo_proto", "")
    data = convert(list(tensors) if isinstance(tensors, (list, tuple)) else [tensors])
    if not data:
        raise Error("the tensors have no pending operations; pass them before torch_xla.sync()")
    return data.encode() if isinstance(data, str) else bytes(data)


def converter(value: Any) -> Callable[[Any], bytes] | None:
    """Returns the function that converts an object to a serialized HloModuleProto, or None for other objects."""
    tensors = value if isinstance(value, (list, tuple)) else [value]
    if tensors and all(map(_is_xla_tensor, tensors)):
        return _xla_tensors
    for names, convert in _OBJECTS:
        if all(hasattr(value, name) for name in names):
            return convert
    return None


def _only_file(folder: Any) -> Any:
    """Returns the only MLIR file of a folder that JAX_DUMP_IR_TO names, or that torch_xla's save_as_stablehlo wrote."""
    files = os.listdir(folder)
    if "saved_model.pb" in files:
        raise Error(
            f"{os.fspath(folder)} is a SavedModel of TensorFlow; pass hlofp8.explain one of its functions, such as "
            'tf.function(tf.saved_model.load(folder).signatures["serving_default"]), and its arguments'
        )
    if os.path.isdir(functions := os.path.join(folder, "functions")):
        folder, files = functions, os.listdir(functions)
    if any(".before_optimizations." in name for name in files):
        raise Error(
            f"{os.fspath(folder)} is a folder of --xla_dump_to; pass one of its before_optimizations files, or run "
            "hlo-fp8-opt on the folder"
        )
    names = sorted(name for name in files if name.endswith(".mlir"))
    if len(names) == 1:
        return os.path.join(folder, names[0])
    if names:
        raise Error(f"{os.fspath(folder)} has {len(names)} modules; pass one of these files: {', '.join(names)}")
    raise Error(
        f"{os.fspath(folder)} has no .mlir files; pass a file. hlo-fp8-opt reports on a folder of --xla_dump_to"
    )


def _exported(data: bytes) -> bytes:
    deserialize = _part("jax.export:deserialize", "converting a serialized Exported")
    try:
        module = bytes(deserialize(bytearray(data)).mlir_module_serialized)
    except Exception as error:  # jax reads the bytes without checking them
        raise Error(f"the serialized jax.export.Exported cannot be read: {error}") from None
    return stablehlo(module)


def _may_be_mlir(head: bytes) -> bool:
    """Returns False if a file with these first bytes is neither MLIR nor a serialized Exported, without reading it."""
    return head[1:4] == b"\0\0\0" or head.lstrip()[:1] in (b"M", b"m", b"b", b"f", b"#", b"/", b'"')


def _bytes(data: bytes) -> bytes | None:
    if data[:4] == _BYTECODE:
        return stablehlo(data)
    if data[1:4] == b"\0\0\0" and _BYTECODE in data:
        return _exported(data)
    text = data.decode("utf-8", "surrogateescape") if _may_be_mlir(data[:4096]) else ""
    return stablehlo(text) if _TEXT.match(text) else None


def hlo_of(module: Any) -> tuple[Any, bytes | None]:
    """Converts a module that is not HLO.

    Returns:
      The path of the module if it is a file, otherwise None; and the serialized HloModuleProto, or None if the module
      is HLO text or a message with a module.
    """
    if isinstance(module, os.PathLike) or isinstance(module, str) and is_path(module):
        path = _only_file(module) if os.path.isdir(module) else module
        if os.path.isfile(path):
            with contextlib.suppress(OSError), open(path, "rb") as file:
                head = file.read(4096)
                return path, _bytes(head + file.read()) if _may_be_mlir(head) else None
        return path, None  # the library reads it, or reports the error
    if isinstance(module, str):
        return None, stablehlo(module) if _TEXT.match(module) else None
    if isinstance(module, (bytes, bytearray, memoryview)):
        return None, _bytes(bytes(module))
    convert = converter(module)
    if convert is None:
        raise TypeError(
            "module must be HLO text, StableHLO, a serialized message with a module, a path, or an object of JAX, "
            f"TensorFlow or PyTorch that has a module, not {type(module).__name__}; to get HLO: {_CALLS}"
        )
    return None, convert(module)
