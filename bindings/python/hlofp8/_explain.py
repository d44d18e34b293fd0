"""The verdicts on the matmuls of a function, each with its line of the source."""

from __future__ import annotations

import html
import linecache
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from ._module import HasCompilerIR, ModuleLike, Rewritten, Verdict, rewrite


def _code(verdict: Verdict) -> str:
    return linecache.getline(verdict.source_file, verdict.source_line).strip() if verdict.source_file else ""


def _place(verdict: Verdict) -> str:
    return f"{verdict.source_file}:{verdict.source_line}" if verdict.source_file else verdict.op_name or verdict.instr


def _state(verdict: Verdict) -> str:
    return " ".join(filter(None, (verdict.epilogue, verdict.reason)))


class Explanation:
    """The verdicts on the matmuls of a module: a sequence of Verdict, and a table for people."""

    def __init__(self, rewritten: Rewritten, module: ModuleLike | None = None):
        self.rewritten = rewritten  #: the module after the passes
        self.module = module  #: the module before them, as it was given or lowered

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """One for each instruction that multiplies matrices, in the order of the module."""
        return self.rewritten.verdicts

    @property
    def fp8(self) -> int:
        """The number of matmuls that are FP8."""
        return self.rewritten.fp8

    def __len__(self) -> int:
        return len(self.verdicts)

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self.verdicts)

    def __getitem__(self, index: int) -> Verdict:
        return self.verdicts[index]

    @property
    def summary(self) -> str:
        """``2 of 3 matmuls in FP8 (97 % of FLOPs)``."""
        line = f"{self.fp8} of {len(self)} matmuls in FP8"
        total = sum(v.flops for v in self)
        return line + (f" ({sum(v.flops for v in self if v.is_fp8) / total:.0%} of FLOPs)" if total else "")

    def _reasons(self) -> dict[str, Verdict]:
        return {v.reason: v for v in reversed(self.verdicts) if v.reason}

    def __str__(self) -> str:
        rows = [(v.kind, v.input_shape or v.shape, _state(v), _place(v), _code(v)) for v in self]
        widths = [max((len(row[i]) for row in rows), default=0) for i in range(4)]
        lines = [
            "  ".join([*(c.ljust(w) for c, w in zip(row[:4], widths, strict=True)), row[4]]).rstrip() for row in rows
        ]
        lines += [f"{reason}: {v.message}; {v.hint}" for reason, v in self._reasons().items()]
        return "\n".join([*lines, self.summary])

    def _repr_html_(self) -> str:
        cells = [(v.kind, v.input_shape or v.shape, _state(v), _place(v), _code(v), v.hint or "") for v in self]
        head = "".join(
            f"<th>{name}</th>" for name in ("verdict", "result", "epilogue, reason", "source", "code", "hint")
        )
        rows = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in cells]
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<table><caption>{self.summary}</caption><tr>{head}</tr>{body}</table>"

    def __repr__(self) -> str:
        return f"<hlofp8.Explanation: {self.summary}>"

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with a row for each verdict, and its line of the source as ``code``."""
        import pandas as pd

        return pd.DataFrame([{**asdict(v), "is_fp8": v.is_fp8, "code": _code(v)} for v in self])


def explain(what: Any, *args: Any, **kwargs: Any) -> Explanation:
    """What becomes of each matmul of a function for these arguments, or of a module; nothing is compiled or run.

    Args:
      what: a function, also of ``jax.jit`` or ``hlofp8.jit``; what ``jax.jit(f).lower(...)`` returned; or a module as
        for ``rewrite``.
      *args, **kwargs: of the function, arrays or ShapeDtypeStructs; without a function, options of ``rewrite``.
    """
    if callable(getattr(what, "explain", None)):
        made = what.explain(*args, **kwargs)
        assert isinstance(made, Explanation)
        return made
    if isinstance(what, HasCompilerIR) or not callable(what):
        return Explanation(rewrite(what, *args, **kwargs), what)
    from ._jax import jit

    made = jit(what)
    if callable(getattr(what, "lower", None)):
        made._jit = what
    return made.explain(*args, **kwargs)


def assert_fp8(what: Any, *args: Any, at_least: int | str = "all", allow_empty: bool = False, **kwargs: Any) -> Explanation:
    """Raises AssertionError, with the table of verdicts, unless so many matmuls are FP8.

    Args:
      what, *args, **kwargs: as for ``explain``.
      at_least: a number, a percentage such as "90%", or "all".
      allow_empty: accept a function without matmuls, which fails otherwise, whatever ``at_least`` is.

    Returns:
      The Explanation.
    """
    __tracebackhide__ = True
    found = explain(what, *args, **kwargs)
    why = found.rewritten.gate(at_least, allow_empty=allow_empty)
    if why:
        raise AssertionError(f"{why}\n{found}")
    return found


_observers: list[Callable[[Rewritten], None]] = []


def observed(rewritten: Rewritten) -> None:
    """Tells those who watch that a function was rewritten."""
    for observer in _observers:
        observer(rewritten)


@contextmanager
def watching() -> Iterator[list[Rewritten]]:
    """A list to which each function is added that is rewritten meanwhile."""
    seen: list[Rewritten] = []
    _observers.append(seen.append)
    try:
        yield seen
    finally:
        _observers.remove(seen.append)
