"""Looking inside a run: where its time goes, which matmul moves its outputs, one matmul by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ._library import ffi, integer_of, lib, sink, string, text_of, written
from ._module import ModuleLike, encoded, pass_options, read
from ._run import inputs_of, plan_options, ran


@dataclass(frozen=True)
class Profile:
    """The time of a module's instructions."""

    text: str  #: two tables: by instruction and by op_name, in descending order of time
    trace: dict[str, Any]  #: every step, in the Trace Event Format: ``json.dump`` it for ui.perfetto.dev
    seconds: float  #: of the last run, without copies of inputs and outputs

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
    """Where the time of a run goes (docs/inside.md).

    Args:
      module, args, seed, draw, backend, accumulate: as for ``run``.
      runs: the times are the mean of so many runs.

    Raises:
      Error: as for ``run``.
    """
    if integer_of("runs", runs) < 1:
        raise ValueError(f"runs is {runs}, and has to be 1 or more")
    how = plan_options(backend=backend, accumulate=accumulate, profile=True)
    with sink() as told:
        made = read(module, None, told)
        with ran(made, inputs_of(made, args, seed, draw, told), how, told) as (plan, _outputs):
            seconds = ffi.new("double[]", runs)
            if runs > 1:
                told.check(lib.hlo_plan_time(plan, runs - 1, told.pointer, seconds))
            status, text = written(lambda file: lib.hlo_plan_print_profile(plan, file))
            told.check(status)
            _, trace = written(lambda file: lib.hlo_plan_print_trace(plan, file))
            last = seconds[runs - 2] if runs > 1 else lib.hlo_plan_seconds(plan)
    return Profile(text.decode("utf-8", "backslashreplace").rstrip("\n"), json.loads(trace), float(last))


@dataclass(frozen=True)
class Moved:
    """How far an execution is from the original: the norm of the difference over the original's."""

    distance: float
    output: int  #: the one that is furthest


@dataclass(frozen=True)
class Bisected:
    """A rewritten matmul."""

    matmul: str  #: its name in the module before
    op_name: str | None
    alone: Moved  #: with it alone rewritten
    without: Moved  #: with all but it rewritten


@dataclass(frozen=True)
class Bisection:
    """How far each rewritten matmul moves the outputs; a sequence of them, the largest alone first."""

    matmuls: tuple[Bisected, ...]
    all: Moved  #: with all of them rewritten
    rounding: Moved  #: of the module as it is, with its results moved by their rounding errors
    text: str  #: a table of these

    def __len__(self) -> int:
        return len(self.matmuls)

    def __iter__(self) -> Iterator[Bisected]:
        return iter(self.matmuls)

    def __getitem__(self, index: int) -> Bisected:
        return self.matmuls[index]

    def __str__(self) -> str:
        return self.text


def _moved(moved: Any) -> Moved:
    return Moved(float(moved.distance), int(moved.output))


def bisect(
    module: ModuleLike,
    args: Any = None,
    *,
    seed: int = 0,
    draw: str = "realistic",
    backend: str = "cpu",
    accumulate: str = "f32",
    **options: Any,
) -> Bisection:
    """Which rewritten matmul moves the outputs farthest (docs/inside.md).

    Executes the module as it is, with all matmuls rewritten, with each of them alone, and with all but it.

    Args:
      module: not rewritten yet; otherwise as for ``run``.
      args, seed, draw, backend, accumulate: as for ``run``; backend and accumulate are those of rewritten modules.
      options: those of ``rewrite``.

    Raises:
      Error: as for ``rewrite`` and ``run``.
    """
    how = plan_options(backend=backend, accumulate=accumulate)
    made = ffi.new("hlo_bisection **")
    with sink() as told, pass_options(told, **options) as passes:
        before = read(module, None, told)
        inputs = inputs_of(before, args, seed, draw, told)
        told.check(lib.hlo_module_bisect(before, passes, how, inputs, told.pointer, made))
        found = ffi.gc(made[0], lib.hlo_bisection_free)
        rows = [lib.hlo_bisection_at(found, i) for i in range(lib.hlo_bisection_count(found))]
        _, text = written(lambda file: lib.hlo_bisection_print(found, file))
        return Bisection(
            tuple(
                Bisected(string(r.matmul) or "", string(r.op_name), _moved(r.alone), _moved(r.without)) for r in rows
            ),
            _moved(lib.hlo_bisection_all(found)),
            _moved(lib.hlo_bisection_rounding(found)),
            text.decode("utf-8", "backslashreplace").rstrip("\n"),
        )


def extract(module: ModuleLike, matmul: str, **options: Any) -> str:
    """One matmul with what quantizes its operands and its epilogue, as the text of a module that runs by itself.

    Its parameters have the names of the instructions whose values they take, so that ``values`` makes its arguments:
    ``[values[name] for name in ...]`` (docs/inside.md).

    Args:
      module: as for ``rewrite``.
      matmul: the name of the matmul in the module, or of the FP8 call that ``rewrite`` makes of it.
      **options: of ``rewrite``, if ``matmul`` is the name of a call that it makes with them.

    Raises:
      Error: there is no such matmul.
    """
    name = encoded(text_of("matmul", matmul))
    with sink() as told, pass_options(told, **options) as passes:
        made = read(module, None, told)
        told.check(lib.hlo_module_extract(made, name, passes, told.pointer))
        status, text = written(lambda file: lib.hlo_module_print(made, ffi.NULL, file))
        told.check(status)
    return text.decode("utf-8", "surrogateescape")
