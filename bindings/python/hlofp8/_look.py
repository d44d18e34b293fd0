# SPDX-License-Identifier: Apache-2.0
"""Inspects runs: profiles, the effect of each rewritten matmul on the outputs, and extraction of one matmul."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any

from ._library import ffi, integer_of, lib, sink, string, text_of, written
from ._module import ModuleLike, encoded, pass_options, read
from ._report import Matmul, model_of
from ._run import inputs_of, plan_options, ran


@dataclass(frozen=True)
class Profile:
    """The run time of the instructions of a module."""

    text: str  #: two tables of times, by instruction and by op_name, longest time first
    trace: dict[str, Any]  #: all steps in the Trace Event Format; ``json.dump`` it to a file for ui.perfetto.dev
    seconds: float  #: the duration of the last run, without copies of inputs and outputs

    def __str__(self) -> str:
        return self.text


def profile(
    module: ModuleLike,
    args: Any = None,
    *,
    runs: int = 1,
    seed: int = 0,
    draw: str = "normal",
    backend: str = "cpu",
    accumulate: str = "f32",
) -> Profile:
    """Measures the time of each instruction in a run (docs/inside.md).

    Args:
      module, args, seed, draw, backend, accumulate: as for ``run``.
      runs: the number of runs after the first, which is slower. Each time is the mean over these runs.

    Raises:
      Error: as for ``run``.
    """
    if integer_of("runs", runs) < 1:
        raise ValueError(f"runs is {runs}, but must be 1 or more")
    how = plan_options(backend=backend, accumulate=accumulate, profile=True)
    with sink() as told:
        made = read(module, None, told)
        with ran(made, inputs_of(made, args, seed, draw, told), how, told) as (plan, _outputs):
            seconds = ffi.new("double[]", runs)
            told.check(lib.hlo_plan_time(plan, runs, told.pointer, seconds))
            status, text = written(lambda out: lib.hlo_plan_print_profile(plan, out))
            told.check(status)
            _, trace = written(lambda out: lib.hlo_plan_print_trace(plan, out))
    return Profile(text.decode("utf-8", "backslashreplace").rstrip("\n"), json.loads(trace), float(seconds[runs - 1]))


@dataclass(frozen=True)
class OutputChange:
    """The relative change of an output: the norm of the difference divided by the norm of the original output."""

    distance: float
    output: int  #: the index of the most affected output


@dataclass(frozen=True)
class MatmulEffect:
    """The effect of a rewritten matmul on the outputs."""

    matmul: str  #: the name of the matmul in the original module
    op_name: str | None
    alone: OutputChange  #: the change if only this matmul is rewritten
    without: OutputChange | None  #: the change if all other matmuls are rewritten; None with ``max_error``
    chosen: bool  #: with ``max_error``: the matmul is selected
    predicted_saving: float  #: with ``max_error``: the predicted seconds that quantization saves; 0 if unknown
    snr_db: float  #: with ``max_error``: the signal-to-noise ratio of its result; NaN if unknown


@dataclass(frozen=True)
class Budget:
    """The matmuls that ``bisect`` selects for quantization because of ``max_error``."""

    max_error: float
    predicted: float  #: the predicted change of the most affected output
    measured: OutputChange  #: the measured change, which may exceed ``max_error``
    wide: list[str]  #: the matmuls that stay wide, as the option ``wide`` of ``hlofp8.jit`` and ``rewrite``
    predicted_saving: float  #: the predicted seconds that the selected matmuls save; 0 if unknown
    runs: int  #: the number of executions of modules
    verdicts: tuple[Matmul, ...]  #: the verdicts if the selected matmuls are quantized, with the measurements


@dataclass(frozen=True)
class Bisection:
    """The effect of each rewritten matmul on the outputs: a sequence of MatmulEffect, the largest ``alone`` first."""

    matmuls: tuple[MatmulEffect, ...]
    all: OutputChange  #: the change if all matmuls are rewritten
    rounding: OutputChange  #: the change if no matmul is rewritten, but results are changed by their rounding errors
    text: str  #: these changes as a table
    budget: Budget | None  #: with ``max_error``: the selection

    def __len__(self) -> int:
        return len(self.matmuls)

    def __iter__(self) -> Iterator[MatmulEffect]:
        return iter(self.matmuls)

    def __getitem__(self, index: int) -> MatmulEffect:
        return self.matmuls[index]

    def __str__(self) -> str:
        return self.text


def _change(change: Any) -> OutputChange:
    return OutputChange(float(change.distance), int(change.output))


def bisect(
    module: ModuleLike,
    args: Any = None,
    *,
    seed: int = 0,
    draw: str = "realistic",
    backend: str = "cpu",
    accumulate: str = "f32",
    max_error: float | None = None,
    **options: Any,
) -> Bisection:
    """Measures how much each rewritten matmul changes the outputs (docs/inside.md).

    Executes the original module, the module with all matmuls rewritten, and for each matmul the module with only this
    matmul rewritten and with all others rewritten.

    Args:
      module: as for ``run``, but not rewritten yet.
      args, seed, draw, backend, accumulate: as for ``run``. backend and accumulate apply to the rewritten modules.
      max_error: with the option ``quantize``, select the matmuls to quantize that save the most time while no output
        changes by more than this, relative to its norm (docs/quantize.md). Then only the quantized matmuls are
        measured, and only alone, and the modules are not executed without one matmul.
      **options: options of ``rewrite``.

    Raises:
      Error: as for ``rewrite`` and ``run``; or ``max_error`` is negative or NaN, or is given without ``quantize``.
    """
    if max_error is not None and not isinstance(max_error, Real):
        raise TypeError(f"max_error must be a number, not {max_error!r}")
    how = plan_options(backend=backend, accumulate=accumulate)
    made = ffi.new("hlo_bisection **")
    with sink() as told, pass_options(told, **options) as passes:
        before = read(module, None, told)
        inputs = inputs_of(before, args, seed, draw, told)
        if max_error is None:
            told.check(lib.hlo_module_bisect(before, passes, how, inputs, told.pointer, made))
        else:
            sets = ffi.new("hlo_arrays *[]", [inputs])
            told.check(lib.hlo_module_budget(before, passes, how, sets, 1, float(max_error), told.pointer, made))
        found = ffi.gc(made[0], lib.hlo_bisection_free)
        rows = [lib.hlo_bisection_at(found, i) for i in range(lib.hlo_bisection_count(found))]
        _, text = written(lambda out: lib.hlo_bisection_print(found, out))
        return Bisection(
            tuple(
                MatmulEffect(
                    string(r.matmul) or "",
                    string(r.op_name),
                    _change(r.alone),
                    _change(r.without) if max_error is None else None,
                    bool(r.chosen),
                    float(r.predicted_saving),
                    float(r.snr_db),
                )
                for r in rows
            ),
            _change(lib.hlo_bisection_all(found)),
            _change(lib.hlo_bisection_rounding(found)),
            text.decode("utf-8", "backslashreplace").rstrip("\n"),
            _budget(lib.hlo_bisection_budget(found)),
        )


def _budget(found: Any) -> Budget | None:
    if not found:
        return None
    wide = string(found.wide) or ""
    return Budget(
        float(found.max_error),
        float(found.predicted),
        _change(found.measured),
        wide.split(",") if wide else [],
        float(found.predicted_saving),
        int(found.runs),
        model_of([found.report]).matmuls,
    )


def extract(module: ModuleLike, matmul: str, **options: Any) -> str:
    """Returns the text of a module that consists of one matmul, its epilogue, and the quantization of its operands.

    Each parameter has the name of the instruction whose value it replaces, so the result of ``values`` for the original
    module has the arguments: ``[values[name] for name in ...]`` (docs/inside.md).

    Args:
      module: as for ``rewrite``.
      matmul: the name of the matmul in the module, or of the FP8 call by which ``rewrite`` replaces the matmul.
      **options: if ``matmul`` is the name of an FP8 call, the options of ``rewrite`` that produce this call.

    Raises:
      Error: the module has no matmul with this name.
    """
    name = encoded(text_of("matmul", matmul))
    with sink() as told, pass_options(told, **options) as passes:
        made = read(module, None, told)
        told.check(lib.hlo_module_extract(made, name, passes, told.pointer))
        status, text = written(lambda out: lib.hlo_module_print(made, ffi.NULL, out))
        told.check(status)
    return text.decode("utf-8", "surrogateescape")
