"""Dispatching calls as ``jax.jit`` does, and the parts of JAX that this needs and that are not public."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.extend.core
import jax.interpreters.ad
import jax.interpreters.batching
import jax.interpreters.mlir

from ._library import Error, warn

_config: Any = jax.config
_rules: Any = jax.interpreters


class Unsupported(Exception):
    """This version of JAX lacks a private part that a way of rewriting needs; the text names it."""


def part(path: str) -> Any:
    """A part of jax or jaxlib that is not public."""
    module, name = path.split(":")
    try:
        return functools.reduce(getattr, name.split("."), importlib.import_module(module))
    except (ImportError, AttributeError):
        raise Unsupported(f"jax {jax.__version__} has no {path.replace(':', '.')}") from None


try:
    _trace_state_clean = part("jax._src.core:trace_state_clean")
except Unsupported:

    def _trace_state_clean() -> bool:
        """False within a transformation; here it is not known, and arguments tell."""
        return True


try:
    InvalidValue: Any = part("jax._src.api_util:InternalFloatingPointError")
except Unsupported:
    InvalidValue = ()  # under jax_debug_nans it raises what it likes


def under_transformation(leaves: list[Any]) -> bool:
    """True if a call with these arguments is traced instead of executed."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in leaves) or not _trace_state_clean()


class _Inside(threading.local):
    """True while a thread traces or lowers a function that will be rewritten as a whole."""

    depth = 0


_inside = _Inside()


@contextlib.contextmanager
def tracing() -> Iterator[None]:
    """Traces and lowers a function that will be rewritten as a whole."""
    _inside.depth += 1
    try:
        yield
    finally:
        _inside.depth -= 1


def give_up(name: str, fallback: str, reason: str) -> None:
    """Raises Error about a function that cannot be rewritten, or warns and lets it run as with ``jax.jit``."""
    if fallback == "error":
        raise Error(f"{name} cannot be rewritten: {reason}", "invalid usage")
    warn(f"{name} runs as jax.jit would run it: {reason}")


# An identity on each result of a function that is traced within another. What only traces it (jax.eval_shape,
# jax.make_jaxpr) and what is rewritten as a whole ignores it; whatever else lowers or evaluates it executes the
# function without the rewrite, and reports that.
_result: Any = jax.extend.core.Primitive("hlofp8_result")


def _reached(name: str, fallback: str) -> None:
    if not _inside.depth:
        around = "a transformation such as jax.grad, jax.vmap or jax.jit is around it"
        give_up(name, fallback, f"{around}; make hlofp8.jit the outermost")


def _evaluate(value: Any, **names: str) -> Any:
    _reached(**names)
    return value


def _lower(_context: Any, value: Any, **names: str) -> list[Any]:
    _reached(**names)
    return [value]


_result.def_impl(_evaluate)
_result.def_abstract_eval(lambda value, **_: value)
_rules.ad.deflinear2(_result, lambda cotangent, _value, **names: [_result.bind(cotangent, **names)])
_rules.batching.defvectorized(_result)
_rules.mlir.register_lowering(_result, _lower)


def mark_results(results: Any, name: str, fallback: str) -> Any:
    """The results of a function that is traced within another, marked so that executing them wide is reported."""
    return jax.tree.map(lambda leaf: _result.bind(leaf, name=name, fallback=fallback), results)


def _tuple(value: Any) -> tuple[Any, ...]:
    return (value,) if isinstance(value, (int, str)) else tuple(value)


def statics(function: Callable[..., Any], nums: Any, names: Any) -> tuple[frozenset[int], frozenset[str]]:
    """Positions and names of static arguments: as jax.jit does, one is inferred from the other by the signature."""
    if nums is None and names is None:
        return frozenset(), frozenset()
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    plain = {i: p.name for i, p in enumerate(parameters) if p.kind is p.POSITIONAL_OR_KEYWORD}
    if nums is None:
        nums = [i for i, name in plain.items() if name in _tuple(names)]
    elif names is None:
        names = [plain[i] for i in (n % len(parameters) if parameters else n for n in _tuple(nums)) if i in plain]
    return frozenset(_tuple(nums)), frozenset(_tuple(names))


@functools.cache
def _parts() -> tuple[Any, Any, Any]:
    """JAX's dispatcher, written in C++; what makes a cache for it; what describes an executable to it."""
    make, describe = part("jax._src.lib:_jax.pjit"), part("jax._src.pjit:_get_fastpath_data")
    names = ("executable", "out_tree", "args_flat", "out_flat", "effects", "consts_for_constvars", "pgle_profiler")
    if tuple(inspect.signature(describe).parameters) != (*names, "const_args"):
        raise Unsupported(f"jax {jax.__version__} describes executables differently")
    keys = part("jax._src.interpreters.pxla:JitGlobalCppCacheKeys")
    registry = part("jax._src.tree_util:dispatch_registry")
    shard, cache = part("jax._src.interpreters.pxla:cc_shard_arg"), part("jax._src.lib:_jax.PjitFunctionCache")

    def dispatcher(name: str, function: Any, miss: Any, nums: tuple[int, ...], names: tuple[str, ...]) -> Any:
        return make(name, function, miss, nums, names, keys(), registry, shard, cache(capacity=4096))

    return dispatcher, describe, part("jax.stages:Compiled.call")


def dispatcher(
    name: str,
    function: Callable[..., Any],
    miss: Callable[..., tuple[Any, Any, bool]],
    nums: tuple[int, ...],
    names: tuple[str, ...],
) -> Callable[..., Any]:
    """A function that calls ``miss`` for new arguments, and repeats what ``execute`` described for others.

    It is that of ``jax.jit``: it finds executables by the tree, types, weak types, shardings, layouts and devices of
    the arguments, by static arguments and by JAX's configuration, and falls back to ``miss`` for tracers.
    ``nums`` and ``names`` are the static arguments.
    """
    try:
        return _parts()[0](name, function, miss, nums, names)  # type: ignore[no-any-return]
    except (Unsupported, TypeError):

        def slow(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs) if _config.jax_disable_jit else miss(*args, **kwargs)[0]

        return slow


def execute(compiled: Any, jaxpr: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The result of a call, and what the dispatcher needs to repeat it; None if it cannot."""
    try:
        _, describe, call = _parts()
        params, executable = compiled._params, compiled._executable
    except (Unsupported, AttributeError):
        return compiled(*args, **kwargs), None
    result, results, leaves = call(params, *args, **kwargs)
    if params.is_high:
        return result, None
    constants = executable.shard_const_args(params.const_args)
    return result, describe(executable, params.out_tree, leaves, results, jaxpr.effects, jaxpr.consts, None, constants)
