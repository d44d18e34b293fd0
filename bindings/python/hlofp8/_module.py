"""Modules: reading them, rewriting them, and the verdict on each of their matmuls."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, Protocol, Union, runtime_checkable

from ._library import Error, Sink, enumerator, ffi, free, lib, sink, string, written


@runtime_checkable
class HasCompilerIR(Protocol):
    """What jax calls ``Lowered``."""

    def compiler_ir(self, dialect: str | None = None) -> Any: ...


@dataclass(frozen=True)
class Verdict:
    """What became of one matmul. ``reason`` is an id that does not change from version to version."""

    kind: str  #: "fp8", "missed" (FP8, but a cheaper form was missed), "wide", or "lint"
    instr: str  #: the name of the FP8 call in the output; of a wide matmul, input_instr
    input_instr: str | None  #: the name of the matmul in the input; None of a lint
    shape: str  #: of the result, "bf16[32,64]"
    input_shape: str | None
    operands: str | None  #: their shapes
    operation: str | None  #: "dot", "ragged-dot", "convolution", or the target of a call
    fusion: str | None  #: the fusion that has it at the end
    epilogue: str | None  #: of the call: "RELU", "BIAS +amax +fp8-output"; "" when wide
    reason: str | None  #: "not-quantized", say; None when nothing was missed
    message: str | None  #: the reason as a sentence
    hint: str | None  #: the smallest edit that mends it
    blocker: str | None  #: the instruction that blocked it
    op_name: str | None  #: from its metadata, "jit(f)/dot_general"
    source_file: str | None  #: of the program that was compiled
    source_line: int  #: 0 when unknown
    file: str | None  #: of the HLO text, and the place there
    line: int
    column: int
    runs: float  #: in one execution of the module
    flops: float  #: of one execution of the module; 0: not known
    input_bytes: float
    bytes: float
    input_seconds: float  #: by a roofline for the target, before; 0: not known
    seconds: float  #: and after
    fp8_seconds: float  #: wide: the time it would take in FP8, quantizing included
    groups: int  #: of a ragged-dot, as it was in the input; 0: it was none
    scale_modes: str | None  #: of both operands of a call, cuBLASLt's names, if they are not scalars: "VEC32_UE8M0 VEC32_UE8M0"
    block_size: int  #: elements along the contracting dimension that share a scale of a call; 0: all of them

    @property
    def name(self) -> str:
        """The name in the input and, if it differs, in the output: ``dot.5 -> cublas-gemm.6``."""
        return self.instr if self.input_instr in (None, self.instr) else f"{self.input_instr} -> {self.instr}"

    @property
    def is_fp8(self) -> bool:
        """True if the matmul is FP8, with or without something missed."""
        return self.kind in ("fp8", "missed")


def _verdict(pointer: Any) -> Verdict:
    values: dict[str, Any] = {}
    for field in fields(Verdict):
        value = getattr(pointer, field.name)
        if isinstance(value, ffi.CData):
            value = string(value)
        values[field.name] = value
    values["kind"] = ffi.string(ffi.cast("hlo_verdict_kind", pointer.kind)).rsplit("_", 1)[1].lower()
    return Verdict(**values)


_WRONG_SCALES = ("lint-other-amax", "lint-other-scale", "lint-unused-scale")


class Rewritten:
    """A module after the passes, and its verdicts. Frees the module when it is collected."""

    def __init__(self, module: Any, report: Any):
        self._module, self._report = module, report
        count = lib.hlo_report_count(report)
        #: A Verdict for each instruction of the input that multiplies matrices, in text order.
        self.verdicts = tuple(_verdict(lib.hlo_report_verdict(report, i)) for i in range(count))
        lints = lib.hlo_report_lint_count(report)
        #: Likely faults of scales, with ``lint=True``.
        self.lints = tuple(_verdict(lib.hlo_report_lint(report, i)) for i in range(lints))

    @property
    def name(self) -> str:
        """The name of the module."""
        return string(lib.hlo_module_name(self._module)) or ""

    @property
    def fp8(self) -> int:
        """The number of matmuls that are FP8."""
        return sum(verdict.is_fp8 for verdict in self.verdicts)

    @property
    def text(self) -> str:
        """The module as HLO text, in XLA's long form."""
        text, size = ffi.new("char **"), ffi.new("size_t *")
        with sink() as told:
            told.check(lib.hlo_module_to_text(self._module, ffi.NULL, text, size))
        try:
            return bytes(ffi.buffer(text[0], size[0])).decode("utf-8", "surrogateescape")
        finally:
            free(text[0])

    @property
    def proto(self) -> bytes:
        """The module as a serialized HloModuleProto."""
        with sink() as told:
            status, data = written(
                lambda file: lib.hlo_module_print_proto(self._module, lib.HLO_PROTO_BINARY, told.pointer, file)
            )
            told.check(status)
        return data

    def remarks(self, format: str = "text", which: str = "all") -> str:
        """The verdicts as one document, as ``hlo-fp8-opt --remarks-format=FORMAT --remarks=WHICH`` writes it."""
        what, how = enumerator("hlo_remarks", which), enumerator("hlo_remarks_format", format)
        reports = ffi.new("hlo_report *[]", [self._report])
        with sink() as told:
            status, text = written(lambda file: lib.hlo_reports_print(reports, 1, what, how, file))
            told.check(status)
        return text.decode()

    def gate(
        self, at_least: int | str | None = None, no_reason: str | None = None, allow_empty: bool = False
    ) -> str | None:
        """The requirement that does not hold, as a line; None when all hold.

        ``at_least`` is a number, a percentage ("90%") or "all"; ``no_reason`` has ids of reasons that no verdict
        may have, separated by commas, "" for any. A module without matmuls fails both unless ``allow_empty``.
        """
        if not isinstance(allow_empty, bool):
            raise TypeError(f"allow_empty must be a bool, not {type(allow_empty).__name__}")
        why = ffi.new("char[]", 1024)
        reports = ffi.new("hlo_report *[]", [self._report])
        expect = ffi.NULL if at_least is None else encoded(str(at_least))
        fail_on = ffi.NULL if no_reason is None else encoded(no_reason)
        status = lib.hlo_reports_gate(reports, 1, expect, fail_on, allow_empty, why, len(why))
        line = string(why)
        if status == lib.HLO_INVALID_USAGE:
            raise Error(line or "", "invalid usage")
        return line if status == lib.HLO_MISMATCH else None

    @property
    def wrong_scales(self) -> tuple[Verdict, ...]:
        """The lints about scales that make the results wrong, with ``lint=True``."""
        return tuple(lint for lint in self.lints if lint.reason in _WRONG_SCALES)

    def __repr__(self) -> str:
        return f"<hlofp8.Rewritten {self.name}: {self.fp8} of {len(self.verdicts)} matmuls in FP8>"


ModuleLike = Union[str, bytes, bytearray, memoryview, "os.PathLike[str]", HasCompilerIR, Rewritten]
#: The types of what is read as a module; others are arrays, where there may be either.
MODULE_TYPES = (str, bytes, bytearray, memoryview, os.PathLike, HasCompilerIR, Rewritten)


def encoded(text: str | bytes | os.PathLike[str]) -> Any:
    given = text if isinstance(text, bytes) else os.fsencode(text)
    if b"\0" in given:
        raise Error(f"there is a NUL in {text!r}", "invalid usage")
    return ffi.new("char[]", given)


def _is_path(text: str) -> bool:
    """True for the name of a file, also of a missing one: HLO text has spaces."""
    return os.path.isfile(text) or bool(re.fullmatch(r"[^\s{]+", text.strip()))


def read(module: ModuleLike, name: str | None, told: Sink) -> Any:
    """The ``hlo_module *`` of what a caller calls a module, verified, and freed when it is collected."""
    made = ffi.new("hlo_module **")
    if isinstance(module, Rewritten):
        told.check(lib.hlo_module_clone(module._module, made))
        return ffi.gc(made[0], lib.hlo_module_free)
    if isinstance(module, os.PathLike) or isinstance(module, str) and _is_path(module):
        told.check(lib.hlo_module_parse_file(encoded(module), told.pointer, made))
    else:
        if isinstance(module, str):
            data = module.encode("utf-8", "surrogateescape")
        elif isinstance(module, (bytes, bytearray, memoryview)):
            data = bytes(module)
        elif isinstance(module, HasCompilerIR):
            data = lowered_proto(module)
        else:
            kinds = "HLO text, the bytes of an HloModuleProto, a path, or what jax lowered"
            raise TypeError(f"a module is {kinds}, not {type(module).__name__}")
        if name is not None and not isinstance(name, (str, bytes, os.PathLike)):
            raise TypeError(f"name must be a str, not {type(name).__name__}")
        shown = encoded(name or "<module>")
        if lib.hlo_proto_recognize(data, len(data)):
            told.check(lib.hlo_module_parse_proto(data, len(data), shown, told.pointer, made))
        else:
            told.check(lib.hlo_module_parse(data, len(data), shown, told.pointer, made))
    result = ffi.gc(made[0], lib.hlo_module_free)
    told.check(lib.hlo_module_verify(result, ffi.NULL, told.pointer))
    return result


def lowered_proto(lowered: HasCompilerIR) -> bytes:
    """The HloModuleProto of what jax lowered, source lines included."""
    computation = lowered.compiler_ir("hlo")
    if not hasattr(computation, "as_serialized_hlo_module_proto"):
        raise Error("this lowering has no HLO: it gives no HloModuleProto", "invalid usage")
    return bytes(computation.as_serialized_hlo_module_proto())


def target_number(target: str | int) -> int:
    """90 of 90, "sm_90", "sm_90a" or the compute capability "9.0"."""
    found = re.fullmatch(r"(?:sm_)?(\d{1,6})a?|(\d{1,5})\.(\d)", str(target))
    if not found:
        raise Error(f"no such target: {target!r}; write sm_90, or 9.0", "invalid usage")
    return int(found[1] or found[2] + found[3])


def _option(key: str, value: Any) -> dict[str, Any]:
    """The fields of ``hlo_pass_options`` that a keyword argument of rewrite() stands for."""
    if key == "emit":
        return {"emit": enumerator("hlo_emit_form", value)}
    if key == "ragged":
        return {"ragged": enumerator("hlo_ragged_form", value)}
    if key == "target":
        return {"target": target_number(value)}
    if key == "cuda":
        version = re.fullmatch(r"(\d{1,4})\.(\d{1,4})", value) if isinstance(value, str) else None
        if not version:
            raise Error(f"no such CUDA version: {value!r}; write '12.8'", "invalid usage")
        return {"cuda_major": int(version[1]), "cuda_minor": int(version[2])}
    if key == "scale_operands":
        if value not in ("all", "used"):
            raise Error(f"no such scale operands: {value!r}; there are all, used", "invalid usage")
        return {"scales_used": value == "used"}
    if key == "wide" and not isinstance(value, str):
        if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
            raise TypeError(f"wide is {value!r}, and has to be text or a sequence of it")
        value = ",".join(value)
    if key in ("passes", "framework_files", "rules", "wide"):
        if not isinstance(value, (str, os.PathLike) if key == "rules" else str):
            raise TypeError(f"{key} is {value!r}, and has to be text")
        return {key: encoded(value)}
    if key == "min_gain":
        if not isinstance(value, Real):
            raise TypeError(f"{key} is {value!r}, and has to be a number")
        return {key: float(value)}
    if key not in ("allow_bias_rounding", "merge_dots", "lint"):
        raise TypeError(f"rewrite() has no option {key!r}")
    if value not in (True, False):
        raise TypeError(f"{key} is {value!r}, and has to be True or False")
    return {key: bool(value)}


@contextmanager
def pass_options(told: Sink, **options: Any) -> Iterator[Any]:
    """The ``hlo_pass_options *`` of keyword arguments of rewrite(), checked; None leaves the default."""
    made = ffi.new("hlo_pass_options *")
    lib.hlo_pass_options_init_sized(made, ffi.sizeof(made[0]))
    made.sink = told.pointer
    kept = [_option(key, value) for key, value in options.items() if value is not None]
    for part in kept:
        for key, value in part.items():
            setattr(made, key, value)
    told.check(lib.hlo_pass_options_check(made))
    yield made


def nearest_target(capability: str) -> int:
    """The target of a GPU of that compute capability: sm_90 of "9.0", and the one before it of one that is none."""
    own = target_number(capability)
    for number in range(own, 0, -1):
        try:
            with pass_options(Sink(), target=number):
                return number
        except Error:
            continue
    return own


def rewrite(
    module: ModuleLike,
    *,
    emit: str = "cublas",
    target: str | int = "sm_90",
    cuda: str = "12.8",
    passes: str = "default",
    scale_operands: str = "all",
    min_gain: float = 0.0,
    wide: str | Sequence[str] | None = None,
    rules: str | os.PathLike[str] | None = None,
    allow_bias_rounding: bool = False,
    merge_dots: bool = False,
    ragged: str = "auto",
    framework_files: str | None = None,
    lint: bool = False,
    name: str | None = None,
) -> Rewritten:
    """Rewrites the matmuls of a module to FP8.

    Args:
      module: HLO text, the bytes of an HloModuleProto, a path, also as a string, or what ``jax.jit(f).lower(...)``
        returned.
      emit: what an FP8 matmul is in the result: "cublas", "ffi", "qdq" or "dq" (docs/emit.md).
      target: of the GPU, "sm_90" or "9.0".
      cuda: the version of the toolkit whose cuBLASLt runs it.
      passes: names separated by commas; "" for none, which reads, verifies and prints.
      scale_operands: "all", or "used" for XLA of 2026.
      min_gain: leaves wide what FP8 does not speed up by that factor.
      wide: matmuls that stay wide: names of instructions (``Verdict.input_instr``, or else ``Verdict.instr``),
        op_names, "model.py:12", or globs of these.
      rules: a file of further rules (docs/rules.md).
      allow_bias_rounding: an f32 bias may be rounded to bf16.
      merge_dots: makes one matmul of several that share an operand and a scale.
      ragged: what becomes of ragged-dots of fp8 values: "auto", "dense" or "keep".
      framework_files: globs of source files that a verdict's place is not in.
      lint: looks for likely mistakes with scales, too.
      name: the file name that messages show.

    Raises:
      Error: the module is not valid, or an option has no such value; its text shows the place.
    """
    report = ffi.new("hlo_report **")
    with (
        sink() as told,
        pass_options(
            told,
            emit=emit,
            target=target,
            cuda=cuda,
            passes=passes,
            scale_operands=scale_operands,
            min_gain=min_gain,
            wide=wide,
            rules=rules,
            allow_bias_rounding=allow_bias_rounding,
            merge_dots=merge_dots,
            ragged=ragged,
            framework_files=framework_files,
            lint=lint,
        ) as how,
    ):
        made = read(module, name, told)
        told.check(lib.hlo_module_optimize(made, how, report))
    return Rewritten(made, ffi.gc(report[0], lib.hlo_report_free))
