# SPDX-License-Identifier: Apache-2.0
"""Reports the verdicts on the matmuls of a function, each with its source line."""

from __future__ import annotations

import inspect
import linecache
import os
import reprlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import cached_property
from typing import Any

from ._module import ModuleLike, Rewritten, Verdict, is_module, optimized, page, rewrite
from ._report import Difference, Group, Matmul, Model, Totals, difference, html_table, microseconds, model_of


def _source(where: Verdict | Group) -> str:
    return f"{where.source_file}:{where.source_line}" if where.source_file else ""


def place(verdict: Verdict) -> str:
    """Returns the source line of a verdict, or its op_name if the line is unknown."""
    return _source(verdict) or verdict.op_name or ""


def _code(where: Verdict | Group) -> str:
    return linecache.getline(where.source_file, where.source_line).strip() if where.source_file else ""


_TITLES = ("saves µs", "share", "time µs", "matmuls", "bound by", "reason", "hint", "source", "code", "result", "layer")
_SHOWN = 20  # groups and lints, as in the text
# Figures of a Matmul that are 0 if they are unknown.
_UNKNOWN = ("flops", "input_bytes", "bytes", "input_seconds", "seconds", "compute_seconds", "fp8_seconds")


class Explanation:
    """The verdicts on the matmuls of a module: a sequence of Matmul, which prints as a summary by layer."""

    def __init__(self, rewritten: Rewritten, module: ModuleLike | None = None, options: dict[str, Any] | None = None):
        self.rewritten = rewritten  #: the module after rewriting
        self.module = module  #: the module before rewriting: the argument of explain(), or the lowered function
        self.options = options or {}  #: the options of rewrite() that were used

    @cached_property
    def _model(self) -> Model:
        return model_of([self.rewritten._report])

    @property
    def matmuls(self) -> tuple[Matmul, ...]:
        """The verdicts with their figures, one for each matmul, in the order of the module."""
        return self._model.matmuls

    @property
    def groups(self) -> tuple[Group, ...]:
        """The matmuls by layer, in the order of the time that an edit saves, then of their time, largest first."""
        return self._model.groups

    @property
    def totals(self) -> Totals:
        """The sums over all matmuls."""
        return self._model.totals

    @property
    def lints(self) -> tuple[Verdict, ...]:
        """The lints: likely mistakes with scales. For a module, they require ``lint=True``."""
        return self.rewritten.lints

    @property
    def fp8(self) -> int:
        """The number of matmuls that are FP8."""
        return self.rewritten.fp8

    def __len__(self) -> int:
        return len(self.rewritten.verdicts)

    def __iter__(self) -> Iterator[Matmul]:
        return iter(self.matmuls)

    def __getitem__(self, index: int) -> Matmul:
        return self.matmuls[index]

    @property
    def summary(self) -> str:
        """A line such as ``2 of 3 matmuls in FP8 (97 % of FLOPs); 1 wide: 1 not-quantized``."""
        return self._text.partition("\n")[0]

    @cached_property
    def _text(self) -> str:
        return self.rewritten.remarks(which="summary").rstrip("\n")

    @property
    def _shown(self) -> list[Group | Verdict]:
        return [*self.groups[:_SHOWN], *self.lints[:_SHOWN]]

    def __str__(self) -> str:
        lines = {_source(each): _code(each) for each in self._shown if each.reason}
        return "\n".join([self._text, *(f"{at}: {code}" for at, code in lines.items() if code)])

    def _repr_html_(self) -> str:
        return html_table(self._text.partition("\n\n")[0], _TITLES, map(_cells, self._shown))

    def __repr__(self) -> str:
        return f"<hlofp8.Explanation: {self.summary}>"

    def to_pandas(self) -> Any:
        """Returns a pandas.DataFrame with a row per matmul, whose columns are the fields of Matmul.

        The column ``predicted_saving_seconds`` is ``Matmul.predicted_saving``, and ``code`` is the source line. Unknown
        figures are NaN.
        """
        try:
            import pandas as pd
        except ModuleNotFoundError as error:
            raise ImportError(f"hlofp8.Explanation.to_pandas requires the package pandas: {error}") from error
        rows = [{**asdict(matmul), "is_fp8": matmul.is_fp8, "code": _code(matmul)} for matmul in self]
        for row in rows:
            row["predicted_saving_seconds"] = row.pop("predicted_saving")
            row.update({name: None for name in _UNKNOWN if row[name] == 0})
        return pd.DataFrame(rows)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes an HTML page about the matmuls, like ``hlo-fp8-opt --report``. Surroundings are lists, not graphs."""
        options = ", ".join(f"{name}={reprlib.repr(value)}" for name, value in self.options.items())
        text = page([self.rewritten._report], f"hlofp8.explain({self.rewritten.name}{options and ', '}{options})")
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)

    def diff(self, other: Explanation) -> Difference:
        """Compares the matmuls with those of another Explanation, which is the later one."""
        return difference(self._model, other._model)


def _cells(each: Group | Verdict) -> tuple[str, ...]:
    """Returns the cells of a group or of a lint."""
    if isinstance(each, Verdict):
        return ("", "", "", "lint", "", each.reason or "", each.hint or "", place(each), _code(each), each.shape, "")
    return (
        microseconds(each.saving_seconds) if each.saving_seconds else "",
        f"{each.share:.1%}" if each.share is not None else "",
        microseconds(each.seconds) if each.seconds else "",
        f"{each.count} {each.kind}",
        each.bound or "",
        each.reason or "",
        each.hint or "",
        _source(each),
        _code(each),
        each.shape,
        each.layer,
    )


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


def _instead(what: Any, args: Sequence[Any]) -> str:
    """Returns what to pass instead of an object or a function of TensorFlow or PyTorch; an empty string for others."""
    values = what, *(value for value in args if hasattr(value, "shape"))
    packages = {base.__module__.partition(".")[0] for value in values for base in type(value).__mro__}
    if hasattr(what, "signatures") and "tensorflow" in packages:
        return '; pass tf.function(model.signatures["serving_default"]), and its arguments'
    if packages & {"keras", "tensorflow"}:
        return "; pass tf.function(f), and its arguments"
    if "torch" in packages and not is_module(what):
        return "; pass the tensors that it returns on torch_xla.device(), or torch.export.export(model, args)"
    return ""


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
        options, own = options_in(what, kwargs, tuple(inspect.signature(rewrite).parameters)[1:])
        what = what.get_concrete_function(*args, **own)
        args, kwargs = (), options
    is_function = callable(what) and (hasattr(what, "jaxpr") or not is_module(what))
    instead = _instead(what, args)
    if instead and not is_module(what):
        raise TypeError(f"{type(what).__name__} is neither a function of JAX nor a module{instead}")
    if not is_function:
        if args:
            raise TypeError(f"arguments require a function, not {type(what).__name__}{instead}")
        return Explanation(optimized(what, surroundings=True, **kwargs), what, kwargs)
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
