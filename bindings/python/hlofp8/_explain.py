# SPDX-License-Identifier: Apache-2.0
"""Reports the verdicts on the matmuls of a function, each with its source line."""

from __future__ import annotations

import html
import inspect
import linecache
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from ._module import ModuleLike, Rewritten, Verdict, is_module, rewrite


def _code(verdict: Verdict) -> str:
    return linecache.getline(verdict.source_file, verdict.source_line).strip() if verdict.source_file else ""


def place(verdict: Verdict) -> str:
    """Returns the source line of a verdict, or its op_name if the line is unknown."""
    return f"{verdict.source_file}:{verdict.source_line}" if verdict.source_file else verdict.op_name or ""


def _state(verdict: Verdict) -> str:
    at = f"at {verdict.blocker}" if verdict.blocker else None
    return " ".join(filter(None, (verdict.epilogue, verdict.reason, at)))


# Parts of an op_name that JAX adds for its own constructs, not for layers.
_CONTROL = re.compile(
    r"p?jit\(.*|while|body|cond|scan|branch_\d+_fun|closed_call|checkpoint|remat\d*|rematted_computation|shard_map|"
    r"custom_[jv][jv]p_call.*|"
)


def layer_of(op_name: str | None) -> str:
    """Returns the layer in an op_name: "Net/Dense_0" for "jit(step)/transpose(jvp(Net))/Dense_0/dot_general"."""
    layers: list[str] = []
    for part in (op_name or "").split("/")[:-1]:
        name = "" if _CONTROL.fullmatch(part) else re.sub(r"^(?:\w+\()+|\)+$", "", part)
        if name and layers[-1:] != [name]:
            layers.append(name)
    return "/".join(layers)


class Explanation:
    """The verdicts on the matmuls of a module: a sequence of Verdict, which prints as a table."""

    def __init__(
        self, rewritten: Rewritten, module: ModuleLike | None = None, options: dict[str, Any] | None = None
    ):
        self.rewritten = rewritten  #: the module after rewriting
        self.module = module  #: the module before rewriting: the argument of explain(), or the lowered function
        self.options = options or {}  #: the options of rewrite() that were used

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts, one for each matmul, in the order of the module."""
        return self.rewritten.verdicts

    @property
    def lints(self) -> tuple[Verdict, ...]:
        """The lints: likely mistakes with scales. For a module, they require ``lint=True``."""
        return self.rewritten.lints

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
        """A line such as ``2 of 3 matmuls in FP8 (97 % of FLOPs)``."""
        line = f"{self.fp8} of {len(self)} matmuls in FP8"
        total = sum(v.flops for v in self)
        line += f" ({sum(v.flops for v in self if v.is_fp8) / total:.0%} of FLOPs)" if total else ""
        return line + (f"; {len(self.lints)} lints" if self.lints else "")

    def _reasons(self) -> dict[str, Verdict]:
        found = {v.reason: v for v in reversed([*self.verdicts, *self.lints]) if v.reason}
        return dict(sorted(found.items(), key=lambda item: item[0].startswith("lint-")))

    def __str__(self) -> str:
        rows = [
            (v.kind, v.name, v.input_shape or v.shape, layer_of(v.op_name), _state(v), place(v), _code(v))
            for v in (*self, *self.lints)
        ]
        columns = [
            [cell.ljust(max(map(len, column))) for cell in column] for column in zip(*rows, strict=True) if any(column)
        ]
        lines = ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]
        lines += [f"{reason}: {v.message}; {v.hint}" for reason, v in self._reasons().items()]
        return "\n".join([*lines, self.summary])

    def _repr_html_(self) -> str:
        cells = [
            (v.kind, v.name, v.input_shape or v.shape, layer_of(v.op_name), _state(v), place(v), _code(v), v.hint or "")
            for v in (*self, *self.lints)
        ]
        titles = ("verdict", "matmul", "result", "layer", "epilogue, reason", "source", "code", "hint")
        head = "".join(f"<th>{name}</th>" for name in titles)
        rows = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in cells]
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<table><caption>{self.summary}</caption><tr>{head}</tr>{body}</table>"

    def __repr__(self) -> str:
        return f"<hlofp8.Explanation: {self.summary}>"

    def to_pandas(self) -> Any:
        """Returns a pandas.DataFrame with a row per verdict, with the columns ``layer`` and ``code`` (source line)."""
        import pandas as pd

        added = [{"is_fp8": v.is_fp8, "layer": layer_of(v.op_name), "code": _code(v)} for v in self]
        return pd.DataFrame([{**asdict(v), **more} for v, more in zip(self, added, strict=True)])


def options_in(
    function: Callable[..., Any], kwargs: dict[str, Any], names: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Splits keyword arguments into options and arguments of the function. If a name is both, it is an argument."""
    try:
        own = set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        own = set()
    chosen = {key: value for key, value in kwargs.items() if key in names and key not in own}
    return chosen, {key: value for key, value in kwargs.items() if key not in chosen}


def explain(what: Any, *args: Any, **kwargs: Any) -> Explanation:
    """Reports the verdict on each matmul of a function for these arguments, or of a module, without running anything.

    Args:
      what: a function, possibly wrapped by ``jax.jit`` or ``hlofp8.jit``; a ``tf.function`` of TensorFlow; or a module
        as for ``rewrite``.
      *args: arguments of the function: arrays or ShapeDtypeStructs.
      **kwargs: for a module, options of ``rewrite``. For a function: its keyword arguments; options of ``hlofp8.jit``
        and ``jax.jit``; and ``platform``, the platform to lower for, "cpu" or "cuda". If a parameter of the function
        has the same name as an option, the value is passed to the function.

    Raises:
      TypeError: ``what`` is neither a function nor a module.
    """
    if callable(getattr(what, "explain", None)):
        made = what.explain(*args, **kwargs)
        assert isinstance(made, Explanation)
        return made
    if hasattr(what, "experimental_get_compiler_ir"):
        what = what.experimental_get_compiler_ir(*args)(stage="hlo_serialized")
        args = ()
    traced = hasattr(what, "jaxpr")
    if not callable(what) or (is_module(what) and not traced):
        if args:
            raise TypeError(f"arguments require a function, not {type(what).__name__}")
        return Explanation(rewrite(what, **kwargs), what, kwargs)
    from ._jax import explain_function

    return explain_function(what, args, kwargs)


def assert_fp8(
    what: Any, *args: Any, at_least: int | str = "all", allow_empty: bool = False, **kwargs: Any
) -> Explanation:
    """Raises AssertionError, with the table of verdicts, if too few matmuls are FP8 or a scale is wrong.

    Args:
      what, *args, **kwargs: as for ``explain``.
      at_least: the required number of FP8 matmuls: a number, a percentage such as "90%", or "all".
      allow_empty: accept a function without matmuls. By default such a function fails for every ``at_least``.

    Returns:
      The Explanation.

    Raises:
      AssertionError: fewer matmuls are FP8 than ``at_least`` requires, or there is a lint-other-amax, lint-other-scale
        or lint-unused-scale verdict. Modules are checked for these lints only with ``lint=True``.
    """
    __tracebackhide__ = True
    if at_least is None:
        raise TypeError('at_least must be a number, a percentage such as "90%", or "all", not None')
    found = explain(what, *args, **kwargs)
    wrong = found.rewritten.wrong_scales
    why = found.rewritten.gate(at_least, allow_empty=allow_empty)
    if wrong and not why:
        why = f"{place(wrong[0]) or wrong[0].name}: {wrong[0].message}"
    if why:
        raise AssertionError(f"{why}\n{found}")
    return found


_observers: list[Callable[[Rewritten, Any], None]] = []


def observed(rewritten: Rewritten, key: Any) -> None:
    """Notifies observers that a function was lowered or compiled with this module. The key identifies the function."""
    for observer in _observers:
        observer(rewritten, key)


@contextmanager
def watching() -> Iterator[list[Rewritten]]:
    """Yields a list, to which each module that is rewritten for lowering or compiling is appended once."""
    seen: list[Rewritten] = []
    keys: list[Any] = []

    def add(rewritten: Rewritten, key: Any) -> None:
        if not any(key is known for known in keys):
            keys.append(key)
            seen.append(rewritten)

    _observers.append(add)
    try:
        yield seen
    finally:
        _observers.remove(add)
