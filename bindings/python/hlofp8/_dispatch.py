# SPDX-License-Identifier: Apache-2.0
"""Dispatches calls in the same way as ``jax.jit``, and looks up the private parts of JAX that dispatching requires."""

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

config: Any = jax.config
_rules: Any = jax.interpreters


class Unsupported(Exception):
    """Raised if this version of JAX lacks a private part that rewriting requires. The message names the part."""


def part(path: str) -> Any:
    """Returns the private part of jax or jaxlib with the name ``path``, in the form ``module:name``."""
    module, name = path.split(":")
    try:
        return functools.reduce(getattr, name.split("."), importlib.import_module(module))
    except (ImportError, AttributeError):
        raise Unsupported(f"jax {jax.__version__} has no {path.replace(':', '.')}") from None


try:
    _trace_state_clean = part("jax._src.core:trace_state_clean")
except Unsupported:

    def _trace_state_clean() -> bool:
        """Replaces a function of JAX that this version lacks. Always returns True: callers also check the arguments."""
        return True


try:
    trace_context: Callable[[], Any] = part("jax._src.config:trace_context")
except Unsupported:
    trace_context = tuple

try:
    InvalidValue: Any = part("jax._src.api_util:InternalFloatingPointError")
except Unsupported:
    InvalidValue = ()  # the exception type under jax_debug_nans is unknown


def under_transformation(leaves: list[Any]) -> bool:
    """Returns True if a call with these arguments is traced instead of executed."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in leaves) or not _trace_state_clean()


class _Inside(threading.local):
    """The nesting depth, per thread, of functions that are being traced or lowered to be rewritten as a whole."""

    depth = 0


_inside = _Inside()

# The options of HLOFP8, and those of hlofp8.enable() and hlofp8.enabled(). The latter are a user context of JAX, so
# that each set of options has its own entries in JAX's caches. The value of the context is None if HLOFP8 applies, and
# False if nothing is rewritten. The context is created on first use, because creating it invalidates JAX's caches.
environment_options: Any = None
context: Any = None


def options() -> Any:
    """Returns the options with which modules of this thread are rewritten, or None."""
    value = context.value if context else None
    return environment_options if value is None else value or None


@contextlib.contextmanager
def tracing() -> Iterator[None]:
    """A context manager: the function that is traced and lowered in its body will be rewritten as a whole."""
    _inside.depth += 1
    try:
        # Without the context, the module could be the same object as that of a function that hlofp8.enable() rewrites.
        with context(False) if context else contextlib.nullcontext():
            yield
    finally:
        _inside.depth -= 1


def give_up(name: str, fallback: str, reason: str) -> None:
    """Raises Error for a function that cannot be rewritten or, with fallback "warn", warns that jax.jit runs it."""
    if fallback == "error":
        raise Error(f"{name} cannot be rewritten: {reason}", "invalid usage")
    warn(f"{name} is not rewritten and runs as with jax.jit: {reason}")


# An identity operation on each result of an hlofp8.jit function that is traced within another function. Tracing alone
# (jax.eval_shape, jax.make_jaxpr) and rewriting as a whole ignore the operation. Any other lowering or evaluation
# executes the function without the rewrite, and reports that.
_result: Any = jax.extend.core.Primitive("hlofp8_result")


def _reached(name: str, fallback: str) -> None:
    if not _inside.depth and not options():
        around = "it is called inside a transformation such as jax.grad, jax.vmap or jax.jit"
        give_up(name, fallback, f"{around}; apply hlofp8.jit outermost")


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
    """Marks the results of a function that is traced within another one, so that a run without rewrite is reported."""
    return jax.tree.map(lambda leaf: _result.bind(leaf, name=name, fallback=fallback), results)


def _tuple(value: Any) -> tuple[Any, ...]:
    return (value,) if isinstance(value, (int, str)) else tuple(value)


def statics(function: Callable[..., Any], nums: Any, names: Any) -> tuple[frozenset[int], frozenset[str]]:
    """Returns positions and names of static arguments. Infers positions from names and the reverse, like jax.jit."""
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
    """Returns three private functions: one creates C++ dispatchers, one describes executables to them, one executes."""
    make, describe = part("jax._src.lib:_jax.pjit"), part("jax._src.pjit:_get_fastpath_data")
    names = ("executable", "out_tree", "args_flat", "out_flat", "effects", "consts_for_constvars", "pgle_profiler")
    if tuple(inspect.signature(describe).parameters) != (*names, "const_args"):
        raise Unsupported(f"jax {jax.__version__} has an unsupported signature of _get_fastpath_data")
    part("jax._src.interpreters.pxla:MeshExecutable.shard_const_args")
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
    """Returns a function that calls ``miss`` for new arguments, and otherwise repeats a call described by ``execute``.

    The function is the dispatcher of ``jax.jit``. It selects executables by the tree, types, weak types, shardings,
    layouts and devices of the arguments, by static arguments and by JAX's configuration. It calls ``miss`` for tracers.
    ``nums`` and ``names`` are the positions and names of the static arguments.
    """
    try:
        return _parts()[0](name, function, miss, nums, names)  # type: ignore[no-any-return]
    except (Unsupported, TypeError):

        def slow(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs) if config.jax_disable_jit else miss(*args, **kwargs)[0]

        return slow


def execute(compiled: Any, jaxpr: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Returns the result of a call, and the data with which the dispatcher can repeat the call, or None."""
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
