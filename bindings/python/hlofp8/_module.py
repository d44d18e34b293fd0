# SPDX-License-Identifier: Apache-2.0
"""Reads and rewrites modules, and has the verdict on each of their matmuls."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, Protocol, Union, runtime_checkable

from ._convert import converter, hlo_of
from ._library import Error, Sink, enumerator, ffi, free, invalid_value, lib, sink, string, written

#: The result of ``record_amaxes``, or the path of a JSON file with such a result.
Amaxes = Union[Mapping[str, Any], str, "os.PathLike[str]"]


@runtime_checkable
class HasCompilerIR(Protocol):
    """An object like ``jax.stages.Lowered``."""

    def compiler_ir(self, dialect: str | None = None) -> Any: ...


@dataclass(frozen=True)
class Verdict:
    """The result of rewriting one matmul. ``reason`` is a stable identifier that does not change between versions."""

    kind: str  #: "fp8", "missed" (FP8, but an operation is not fused), "wide", or "lint"
    instruction: str  #: the name of the FP8 call in the output; for a wide matmul, the same as input_instruction
    input_instruction: str | None  #: the name of the matmul in the input; None for a lint
    shape: str  #: the shape of the result, for example "bf16[32,64]"
    input_shape: str | None  #: the shape of the result in the input
    operands: str | None  #: the shapes of the operands
    operation: str | None  #: "dot", "ragged-dot", "convolution", or the target of a call
    fusion: str | None  #: the fusion that contains the matmul in the output
    epilogue: str | None  #: the epilogue of the call, for example "BIAS +amax +fp8-output"; "" if wide
    reason: str | None  #: for example "not-quantized"; None if the matmul is FP8 with all fusible operations
    message: str | None  #: the description of the reason
    hint: str | None  #: the smallest change of the program that makes the matmul FP8
    blocker: str | None  #: the instruction that prevents the conversion
    op_name: str | None  #: from the metadata, for example "jit(f)/dot_general"
    source_file: str | None  #: the source file of the compiled program
    source_line: int  #: 0 if unknown
    file: str | None  #: the file of the HLO text; ``line`` and ``column`` are the position in this file
    line: int
    column: int
    runs: float  #: the number of times that the matmul runs in one execution of the module
    runs_assumed: bool  #: ``runs`` counts all branches of a conditional, or one iteration of an unknown number
    flops: float  #: floating-point operations of one execution of the matmul; 0 if unknown
    input_bytes: float  #: bytes that one execution reads and writes before rewriting
    bytes: float  #: the same after rewriting
    wide_seconds: float  #: roofline time of one execution on wide types; 0 if unknown
    input_seconds: float  #: roofline time of one execution on the target before rewriting; 0 if unknown
    seconds: float  #: the same after rewriting
    compute_seconds: float  #: the time of the floating-point operations alone, at the peak of the target
    fp8_seconds: float  #: for a wide matmul, the roofline time in FP8, including quantization
    groups: int  #: the number of groups of a ragged-dot in the input; otherwise 0
    scale_modes: str | None  #: cuBLASLt scale modes of both operands, if not scalar: "VEC32_UE8M0 VEC32_UE8M0"
    block_size: int  #: elements along the contracting dimension that share a scale; 0 if all of them do
    quantized: str | None  #: the recipe by which ``quantize`` quantized the operands; None if it did not
    predicted_gain: float  #: the predicted speedup of a quantized matmul, including quantization; 0 if unknown
    predicted_saving: float  #: the predicted seconds that quantization saves in one execution of the module
    measured: bool  #: ``max_error`` measured the matmul; then these fields are also set if it is wide
    snr_db: float  #: if measured: the signal-to-noise ratio of its result in dB; NaN if unknown
    output_distance: float  #: if measured: the change of the most affected output, relative to its norm

    @property
    def name(self) -> str:
        """The name in the input and, if different, in the output: ``dot.5 -> cublas-gemm.6``."""
        return self.instruction if self.input_instruction in (None, self.instruction) else f"{self.input_instruction} -> {self.instruction}"

    @property
    def is_fp8(self) -> bool:
        """True if the kind is "fp8" or "missed"."""
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


def verdicts_of(report: Any) -> tuple[Verdict, ...]:
    """Returns the verdicts of an ``hlo_report *``, in text order."""
    return tuple(_verdict(lib.hlo_report_verdict(report, i)) for i in range(lib.hlo_report_count(report)))


_WRONG_SCALES = ("lint-other-amax", "lint-other-scale", "lint-unused-scale")


class Rewritten:
    """A rewritten module and its verdicts. The module is freed when this object is garbage-collected."""

    def __init__(self, module: Any, report: Any):
        self._module, self._report = module, report
        #: A Verdict for each matmul of the input, in text order.
        self.verdicts = verdicts_of(report)
        lints = lib.hlo_report_lint_count(report)
        #: The lints: likely mistakes with scales. Empty unless ``rewrite`` was called with ``lint=True``.
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
    def fingerprint(self) -> str:
        """A hash of the module's text without metadata."""
        import hashlib  # loads OpenSSL

        text, size, how = ffi.new("char **"), ffi.new("size_t *"), ffi.new("hlo_print_options *")
        lib.hlo_print_options_init_sized(how, ffi.sizeof(how[0]), lib.HLO_PRINT_NO_METADATA)
        with sink() as told:
            told.check(lib.hlo_module_to_text(self._module, how, text, size))
        try:
            return hashlib.sha256(ffi.buffer(text[0], size[0])).hexdigest()[:16]
        finally:
            free(text[0])

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters of the entry computation."""
        entry = lib.hlo_module_entry(self._module)
        count = lib.hlo_computation_parameter_count(entry)
        found = [lib.hlo_computation_parameter(entry, i) for i in range(count)]
        return tuple(string(lib.hlo_instruction_name(parameter)) or "" for parameter in found)

    @property
    def proto(self) -> bytes:
        """The module as a serialized HloModuleProto."""
        with sink() as told:
            status, data = written(
                lambda out: lib.hlo_module_print_proto(self._module, lib.HLO_PROTO_BINARY, told.pointer, out)
            )
            told.check(status)
        return data

    def remarks(self, format: str = "text", which: str = "all") -> str:
        """Returns the verdicts as printed by ``hlo-fp8-opt --remarks-format=FORMAT --remarks=WHICH``."""
        return remarks([self._report], format, which)

    def gate(
        self, at_least: int | str | None = None, no_reason: str | None = None, allow_empty: bool = False
    ) -> str | None:
        """Returns a line that describes the first requirement that is not met, or None if all are met.

        Args:
          at_least: the required number of FP8 matmuls: a number, a percentage ("90%"), or "all".
          no_reason: reasons, separated by commas, that no verdict may have; "" stands for every reason.
          allow_empty: accept a module without matmuls. By default such a module fails both requirements.
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
        """The lints about scales that make results wrong. Empty unless ``rewrite`` was called with ``lint=True``."""
        return tuple(lint for lint in self.lints if lint.reason in _WRONG_SCALES)

    def __repr__(self) -> str:
        return f"<hlofp8.Rewritten {self.name}: {self.fp8} of {len(self.verdicts)} matmuls in FP8>"


def _document(write: Callable[[Any], int]) -> str:
    with sink() as told:
        status, text = written(write)
        told.check(status)
    return text.decode("utf-8", "surrogateescape")


def remarks(reports: Sequence[Any], format: str = "text", which: str = "all") -> str:
    """Implements Rewritten.remarks() for several reports."""
    pointers, options = ffi.new("hlo_report *[]", list(reports)), ffi.new("hlo_remarks_options *")
    options.struct_size = ffi.sizeof(options[0])
    options.which, options.format = enumerator("hlo_remarks", which), enumerator("hlo_remarks_format", format)
    return _document(lambda out: lib.hlo_reports_print(pointers, len(reports), options, out))


def page(reports: Sequence[Any], command: str) -> str:
    """Returns the HTML page about reports, which was made with this command."""
    pointers, options, text = ffi.new("hlo_report *[]", list(reports)), ffi.new("hlo_page_options *"), encoded(command)
    options.struct_size, options.command = ffi.sizeof(options[0]), text
    return _document(lambda out: lib.hlo_reports_page(pointers, len(reports), options, out))


def unmatched_wide(reports: Sequence[Any], wide: str) -> list[str]:
    """Returns a message for each word of the option ``wide`` that matches no matmul of any report."""
    if not wide:
        return []
    pointers, told = ffi.new("hlo_report *[]", list(reports)), Sink()
    lib.hlo_reports_check_wide(pointers, len(reports), encoded(wide), ffi.NULL, told.pointer)
    return [diagnostic.message for diagnostic in told.diagnostics]


ModuleLike = Union[str, bytes, bytearray, memoryview, "os.PathLike[str]", HasCompilerIR, Rewritten, Any]


def is_module(value: Any) -> bool:
    """Returns True for objects that are read as a module. A function that also accepts arrays treats others as arrays."""
    types = (str, bytes, bytearray, memoryview, os.PathLike, Rewritten)
    return isinstance(value, types) or converter(value) is not None


def encoded(text: str | bytes | os.PathLike[str]) -> Any:
    given = text if isinstance(text, bytes) else os.fsencode(text)
    if b"\0" in given:
        raise Error(f"{text!r} contains a NUL character", "invalid usage")
    return ffi.new("char[]", given)


def read(module: ModuleLike, name: str | None, told: Sink) -> Any:
    """Reads and verifies a module. Returns an ``hlo_module *`` that is freed when it is garbage-collected."""
    made = ffi.new("hlo_module **")
    if isinstance(module, Rewritten):
        told.check(lib.hlo_module_clone(module._module, made))
        return ffi.gc(made[0], lib.hlo_module_free)
    if name is not None and not isinstance(name, (str, bytes, os.PathLike)):
        raise TypeError(f"name must be a str, not {type(name).__name__}")
    path, data = hlo_of(module)
    if path is not None and data is None:
        told.check(lib.hlo_module_parse_file(encoded(path), told.pointer, made))
    else:
        if data is None:
            data = module.encode("utf-8", "surrogateescape") if isinstance(module, str) else bytes(module)  # type: ignore[arg-type]
        shown = encoded(name or path or "<module>")
        parse = lib.hlo_module_parse_proto if lib.hlo_proto_recognize(data, len(data)) else lib.hlo_module_parse
        told.check(parse(data, len(data), shown, told.pointer, made))
    result = ffi.gc(made[0], lib.hlo_module_free)
    told.check(lib.hlo_module_verify(result, ffi.NULL, told.pointer))
    return result


def joined(names: Any, option: str) -> str:
    """Returns a list of names, the value of an option, as one str."""
    if isinstance(names, str):
        return names
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"{option} must be a str or a sequence of str, not {names!r}")
    return ",".join(names)


def _option(key: str, value: Any) -> dict[str, Any]:
    """Returns the fields of ``hlo_pass_options`` that a keyword argument of rewrite() sets."""
    if key == "emit":
        return {"emit": enumerator("hlo_emit_form", value)}
    if key == "ragged":
        return {"ragged": enumerator("hlo_ragged_form", value)}
    if key == "scale_operands":
        if value not in ("all", "used"):
            raise invalid_value("scale_operands", value, "one of all, used")
        return {"scales_used": value == "used"}
    if key in ("wide", "ahead"):
        value = joined(value, key)
    if key == "amaxes" and isinstance(value, Mapping):
        return {"amaxes_text": encoded(json.dumps(value))}
    if key in ("target", "cuda", "passes", "framework_files", "rules", "wide", "quantize", "amaxes", "ahead"):
        if not isinstance(value, (str, os.PathLike) if key in ("rules", "amaxes") else str):
            raise TypeError(f"{key} must be a str, not {value!r}")
        return {key: encoded(value)}
    if key == "min_gain":
        if not isinstance(value, Real):
            raise TypeError(f"{key} must be a number, not {value!r}")
        return {key: float(value)}
    if key not in ("allow_bias_rounding", "merge_dots", "lint", "surroundings", "wide_unmatched"):
        raise TypeError(f"rewrite() has no option {key!r}")
    if value not in (True, False):
        raise TypeError(f"{key} must be a bool, not {value!r}")
    return {key: bool(value)}


@contextmanager
def pass_options(told: Sink, **options: Any) -> Iterator[Any]:
    """Checks keyword arguments of rewrite(), and yields an ``hlo_pass_options *``. None selects the default."""
    made = ffi.new("hlo_pass_options *")
    lib.hlo_pass_options_init_sized(made, ffi.sizeof(made[0]))
    made.sink = told.pointer
    kept = [_option(key, value) for key, value in options.items() if value is not None]
    for part in kept:
        for key, value in part.items():
            setattr(made, key, value)
    told.check(lib.hlo_pass_options_check(made))
    yield made


def split(module: ModuleLike, parameters: str | Sequence[str]) -> tuple[Rewritten, Rewritten]:
    """Splits off the values that depend only on certain parameters, such as weights.

    Args:
      module: as for ``rewrite``, or the result of ``rewrite``.
      parameters: names of parameters of the entry computation, or globs.

    Returns:
      Two modules. The first one has the selected parameters, and its results are further parameters of the second one,
      after the other parameters. Together they compute the same bits as the module.

    Raises:
      Error: a name matches no parameter, or a selected parameter is donated or has a dynamic size.
    """
    with sink() as told, pass_options(told, passes="") as how:
        second, first = read(module, None, told), ffi.new("hlo_module **")
        names = _option("ahead", parameters)["ahead"]
        told.check(lib.hlo_module_split(second, names, told.pointer, first))
        made = []
        for part in (ffi.gc(first[0], lib.hlo_module_free), second):
            report = ffi.new("hlo_report **")
            told.check(lib.hlo_module_optimize(part, how, report))
            made.append(Rewritten(part, ffi.gc(report[0], lib.hlo_report_free)))
    return made[0], made[1]


# The options of rewrite() that hlofp8.jit and hlofp8.enable() accept.
JAX_OPTIONS = (
    "emit",
    "target",
    "cuda",
    "min_gain",
    "quantize",
    "amaxes",
    "wide",
    "rules",
    "allow_bias_rounding",
    "merge_dots",
    "ragged",
    "framework_files",
)


def jax_options(options: dict[str, Any]) -> dict[str, Any]:
    """Returns the options that are not None. Raises Error or TypeError if one is invalid."""
    options = {key: value for key, value in options.items() if value is not None}
    if options.get("emit", "dq") not in ("qdq", "dq", "ffi"):
        raise invalid_value("emit", options["emit"], "one of qdq, dq, ffi, which jax can run")
    with sink() as told, pass_options(told, **options):
        pass
    return options


def enable_options(options: dict[str, Any]) -> dict[str, Any]:
    """Implements jax_options() for enable(). Also raises Error if the file of ``rules`` is missing or invalid."""
    options = jax_options(options)
    if "rules" in options:
        rewrite("HloModule rules\nENTRY e { ROOT r = f32[] constant(0) }", rules=options["rules"])
    return options


def option_text(options: dict[str, Any]) -> str:
    """Returns options in the form of the command line."""
    words = []
    for name, value in sorted(options.items()):
        flag = "--" + name.replace("_", "-")
        if value is not False:
            words.append(flag if value is True else f"{flag}={value}")
    return shlex.join(words)


def nearest_target(capability: str) -> str:
    """Returns the target for a compute capability ("sm_90" for "9.0"), or the nearest lower target that is supported."""
    own = int(capability.replace(".", ""))
    for number in range(own, 0, -1):
        try:
            with pass_options(Sink(), target=f"sm_{number}"):
                return f"sm_{number}"
        except Error:
            continue
    return f"sm_{own}"


def rewrite(
    module: ModuleLike,
    *,
    emit: str = "cublas",
    target: str = "sm_90",
    cuda: str = "12.8",
    passes: str = "default",
    scale_operands: str = "all",
    min_gain: float = 0.0,
    quantize: str | None = None,
    amaxes: Amaxes | None = None,
    ahead: str | Sequence[str] | None = None,
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
      module: HLO text, StableHLO text or bytecode, a serialized message with a module, a path of a file with one of
        these (a string is accepted), or a folder that ``JAX_DUMP_IR_TO`` names, if it has one module. Or an object with
        a module: of JAX (``Traced``, ``Lowered``, ``Compiled``, ``Exported``, ``ir.Module``), a concrete function of
        TensorFlow, an ``ExportedProgram`` of PyTorch, or a tensor of PyTorch/XLA, or a list of tensors.
      emit: the output form of FP8 matmuls: "cublas", "ffi", "qdq" or "dq" (docs/emit.md).
      target: the target GPU architecture, such as "sm_90".
      cuda: the version of the target CUDA toolkit, which provides cuBLASLt, such as "12.8".
      passes: names of passes, separated by commas; "" runs none.
      scale_operands: the scale operands that each FP8 call has: "all", or only those "used" by it (for XLA of 2026).
      min_gain: convert a matmul only if the roofline model predicts at least this speedup.
      quantize: "current", "rows", "mx" or "static", possibly followed by ",attention", quantizes the operands of wide
        matmuls, which changes the results (docs/quantize.md).
      amaxes: the result of ``record_amaxes``, or a path of such a JSON file, which "static" requires.
      ahead: names or globs of parameters for ``split``, to select matmuls for ``quantize``: values that depend only on
        these parameters are quantized at no cost.
      wide: matmuls that are not converted: names of instructions (``Verdict.input_instruction``, or else ``Verdict.instruction``),
        op_names, "model.py:12", or globs of these. "%NAME" is exactly the instruction ``Verdict.input_instruction``.
      rules: a file of additional rewrite rules (docs/rules.md).
      allow_bias_rounding: allow rounding an f32 bias to bf16.
      merge_dots: merge matmuls that share an operand, and whose other operands have the same scale, into one.
      ragged: the lowering of ragged-dots on FP8 operands: "auto", "dense" or "keep".
      framework_files: globs of source files that are skipped when a verdict is attributed to a source line.
      lint: also report likely mistakes with scales.
      name: the file name that messages show for the module.

    Raises:
      Error: the module or the value of an option is invalid.
    """
    return optimized(**locals())


def optimized(module: ModuleLike, name: str | None = None, **options: Any) -> Rewritten:
    """Implements rewrite(), also with the options ``surroundings`` and ``wide_unmatched`` of the library."""
    report = ffi.new("hlo_report **")
    with sink() as told, pass_options(told, **options) as how:
        made = read(module, name, told)
        told.check(lib.hlo_module_optimize(made, how, report))
    return Rewritten(made, ffi.gc(report[0], lib.hlo_report_free))
