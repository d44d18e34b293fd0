# SPDX-License-Identifier: Apache-2.0
"""Runs the quantized matmuls of JAX functions in FP8, by replacing the module of a lowered function.

The first method replaces the module within ``Lowered``, through private attributes of JAX. If this version of JAX does
not have these attributes, the second method uses ``jax.export``.
"""

from __future__ import annotations

import contextlib
import copy
import ctypes
import dataclasses
import functools
import inspect
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

import jax
import numpy as np

from ._dispatch import InvalidValue as _InvalidValue
from ._dispatch import Unsupported as _Unsupported
from ._dispatch import dispatcher, execute, give_up, mark_results, statics, under_transformation
from ._dispatch import part as _part
from ._dispatch import tracing as _tracing
from ._explain import Explanation, observed, options_in, place
from ._library import HERE, Error, invalid_value, warn
from ._module import (
    JAX_OPTIONS,
    Amaxes,
    HasCompilerIR,
    Rewritten,
    jax_options,
    nearest_target,
    optimized,
    rewrite,
)

P = ParamSpec("P")
R = TypeVar("R")

# Attributes of arguments and results of main that hlo_to_stablehlo() does not restore.
_KEPT_ATTRIBUTES = ("jax.buffer_donor", "mhlo.layout_mode", "mhlo.memory_kind")
_GSPMD = "mhlo.sharding"


@functools.cache
def _register_calls() -> None:
    """Registers the functions that execute the typed calls of emit="ffi" with XLA (include/hlo/ffi.h)."""
    library = ctypes.CDLL(str(HERE / "libhlofp8_ffi.so"))
    register, capsule = _part("jax:ffi.register_ffi_target"), _part("jax:ffi.pycapsule")
    for platform in ("cpu", "CUDA"):
        function = getattr(library, f"hlofp8_ffi_matmul_{platform.lower()}")
        try:
            register("hlofp8.matmul", capsule(function), platform=platform)
        except RuntimeError as error:
            raise Error(f'jaxlib cannot register the functions of emit="ffi": {error}', "invalid usage") from None


def default_emit(platforms: Sequence[str]) -> str:
    """Returns the default output form: "qdq" if a platform is a GPU, for which XLA makes FP8 calls, otherwise "dq"."""
    return "qdq" if {"cuda", "gpu"} & set(platforms) else "dq"


def _main(module: Any) -> Any:
    """Returns the main function of a StableHLO module."""
    ir = _part("jaxlib.mlir:ir")
    for operation in module.body.operations:
        attributes = operation.attributes
        if "sym_name" in attributes and ir.StringAttr(attributes["sym_name"]).value == "main":
            return operation
    raise _Unsupported("the lowered module has no function @main")


def _attributes(function: Any, which: str, count: int) -> list[dict[str, Any]]:
    """Returns, for each argument or result of a function, its attributes by name."""
    ir = _part("jaxlib.mlir:ir")
    if which not in function.attributes:
        return [{} for _ in range(count)]
    return [{item.name: item.attr for item in ir.DictAttr(one)} for one in ir.ArrayAttr(function.attributes[which])]


def _settle_attributes(old: Any, new: Any) -> None:
    """Restores attributes of arguments and results of main that the conversion through HLO lost."""
    ir = _part("jaxlib.mlir:ir")
    for which, count in (("arg_attrs", len(old.type.inputs)), ("res_attrs", len(old.type.results))):
        merged = []
        for before, after in zip(_attributes(old, which, count), _attributes(new, which, count), strict=True):
            kept = {name: before[name] for name in _KEPT_ATTRIBUTES if name in before}
            merged.append(ir.DictAttr.get({**kept, **after}))
        new.attributes[which] = ir.ArrayAttr.get(merged)


def _leave_to_shardy(module: Any) -> None:
    """Removes GSPMD shardings if the frontend attributes have Shardy shardings: XLA reads only one of the two."""
    ir = _part("jaxlib.mlir:ir")
    attributes = module.operation.attributes
    if "mhlo.frontend_attributes" not in attributes:
        return
    if "xla.sdy.meshes" not in ir.DictAttr(attributes["mhlo.frontend_attributes"]):
        return

    def take(operation: Any) -> Any:
        if _GSPMD in operation.attributes:
            del operation.attributes[_GSPMD]
        for which in ("arg_attrs", "res_attrs"):  # attributes of a function
            if which in operation.attributes:
                every = _attributes(operation, which, 0)
                kept = [ir.DictAttr.get({k: v for k, v in one.items() if k != _GSPMD}) for one in every]
                operation.attributes[which] = ir.ArrayAttr.get(kept)
        return ir.WalkResult.ADVANCE

    module.operation.walk(take)


def _drop_copies(module: Any) -> None:
    """Removes copies: they only change layouts, which StableHLO does not have, and they cannot be exported."""
    ir = _part("jaxlib.mlir:ir")
    copies: list[Any] = []

    def find(operation: Any) -> Any:
        if operation.name == "mhlo.copy":
            copies.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(find)
    for copied in copies:
        copied.results[0].replace_all_uses_with(copied.operands[0])
        copied.erase()


def _replaced(old: Any, proto: bytes) -> Any:
    """Converts an HloModuleProto to a StableHLO module with the context and the signature of the old module."""
    ir, convert = _part("jaxlib.mlir:ir"), _part("jaxlib._jax:mlir.hlo_to_stablehlo")
    with old.context:
        new = ir.Module.parse(convert(proto))
        before, after = _main(old), _main(new)
        if before.attributes["function_type"] != after.attributes["function_type"]:
            raise _Unsupported("the conversion through HLO changes its arguments or results")
        _leave_to_shardy(new)
        _settle_attributes(before, after)
        _drop_copies(new)
    return new


def _settle(lowered: Any, rewritten: Rewritten) -> Any:
    """Returns a ``Lowered`` whose module hlofp8.enable() does not rewrite."""
    module = getattr(getattr(lowered, "_lowering", None), "_hlo", None)
    if module is not None:
        modules[module] = rewritten
    return lowered


def swap(lowered: Any, rewritten: Rewritten, reported: Rewritten | None = None) -> Any:
    """Returns a copy of a ``Lowered`` with a rewritten module, which hlofp8.enable() does not rewrite.

    ``reported`` has the verdicts for the summary of hlofp8.enable(), if they are not those of ``rewritten``.
    """
    computation: Any = getattr(lowered, "_lowering", None)
    old = getattr(computation, "_hlo", None)
    if not isinstance(old, _part("jaxlib.mlir:ir.Module")) or not hasattr(computation, "_executable"):
        raise _Unsupported(f"jax {jax.__version__} does not store the module where it is expected")
    swapped = copy.copy(computation)
    swapped._hlo, swapped._executable = _replaced(old, rewritten.proto), None
    result = copy.copy(lowered)
    result._lowering = swapped
    return _settle(result, reported or rewritten)


def _platforms(lowered: Any) -> Sequence[str]:
    return getattr(getattr(lowered, "_lowering", None), "_platforms", None) or (jax.default_backend(),)


def _device(lowered: Any) -> Any:
    """Returns the first device of a lowered function."""
    return (getattr(getattr(lowered, "_lowering", None), "_device_list", None) or jax.devices())[0]


def _key(lowered: Any, traced: Any) -> Any:
    """Returns an object that identifies a lowered function. lower() and a call have the same object."""
    return getattr(lowered, "_lowering", traced.jaxpr)


def parameter_names(lowered: HasCompilerIR) -> tuple[str, ...]:
    """Returns the names of the parameters of the module of a lowered function."""
    return rewrite(lowered, passes="").parameters


def lowered_leaves(lowered: Any) -> tuple[list[int], set[int]]:
    """Returns the indices of the leaves that are parameters of the module, in order, and those of donated leaves."""
    computation: Any = getattr(lowered, "_lowering", None)
    kept = getattr(computation, "compile_args", {}).get("kept_var_idx")
    if kept is None or getattr(computation, "const_args", None):
        raise _Unsupported(f"jax {jax.__version__} does not store the kept arguments where they are expected")
    if computation.compile_args.get("num_devices", 1) > 1:
        raise _Unsupported("ahead and record_amaxes work on one device only")
    for name in ("keepalive", "host_callbacks", "ordered_effects", "unordered_effects"):
        if computation.compile_args.get(name):
            raise _Unsupported("ahead and record_amaxes do not support callbacks and other effects")
    infos = jax.tree.leaves(lowered.args_info)
    return sorted(kept), {i for i, info in enumerate(infos) if info.donated}


def lowered_inputs(function: Any, args: Any, kwargs: Any) -> tuple[Any, list[Any]]:
    """Returns a lowered function, and the inputs of its module."""
    jitted = function._jit if isinstance(function, Jitted) else function
    with _tracing():
        lowered = (jitted if hasattr(jitted, "trace") else jax.jit(jitted)).trace(*args, **kwargs).lower()
    try:
        kept, _ = lowered_leaves(lowered)
    except _Unsupported as error:
        raise Error(f"amaxes cannot be recorded: {error}", "invalid usage") from None
    leaves = jax.tree.leaves(function._dynamic(args, kwargs) if isinstance(function, Jitted) else (args, kwargs))
    if len(leaves) != len(jax.tree.leaves(lowered.args_info)):
        raise TypeError("for a function with static arguments, pass the result of hlofp8.jit to record_amaxes")
    infos = jax.tree.leaves(lowered.args_info)
    return lowered, [_array(leaves[i], infos[i]) for i in kept]


def _settled(options: dict[str, Any], platforms: Sequence[str], device: Any) -> dict[str, Any]:
    """Returns the options of rewrite() for a platform and a device: the given ones, and defaults."""
    options = {"emit": default_emit(platforms), "lint": True, **options}
    capability = getattr(device, "compute_capability", None)
    if isinstance(capability, str):
        options = {"target": nearest_target(capability), **options}
    elif options["emit"] == "ffi" and tuple(platforms) == ("cpu",):
        # The handler for CPUs reads operands in any layout, as sm_100 does. sm_90 would require a transpose.
        options = {"target": "sm_100", **options}
    return options


def _rewrite(lowered: HasCompilerIR, name: str, options: dict[str, Any]) -> Rewritten:
    return optimized(lowered, f"<{name}>", **options)


def _rewrite_to_run(lowered: HasCompilerIR, name: str, options: dict[str, Any]) -> Rewritten:
    """Rewrites a module that will be compiled in this process. Warns if a scale makes results wrong."""
    rewritten = _rewrite(lowered, name, options)
    for lint in rewritten.wrong_scales:
        warn(f"{name}: {place(lint) or lint.name}: {lint.reason}: {lint.message}; {lint.hint}")
    if rewritten.fp8 and options["emit"] == "ffi":
        _register_calls()
    return rewritten


def rewrite_lowered(lowered: Any, name: str, options: dict[str, Any]) -> Rewritten:
    """Rewrites the module of a lowered function that will be compiled in this process."""
    return _rewrite_to_run(lowered, name, _settled(options, _platforms(lowered), _device(lowered)))


def rewrite_module(
    module: Any, name: str, options: dict[str, Any], platforms: Sequence[str], device: Any
) -> tuple[Any, Rewritten]:
    """Rewrites a StableHLO module. Returns the new module, or the same if nothing is FP8, and the rewritten HLO."""
    rewritten = _rewrite_to_run(module, name, _settled(options, platforms, device))
    return _replaced(module, rewritten.proto) if rewritten.fp8 else module, rewritten


# The modules of functions of hlofp8.jit, which hlofp8.enable() does not rewrite.
modules: weakref.WeakKeyDictionary[Any, Rewritten] = weakref.WeakKeyDictionary()


class Jitted(Generic[P, R]):
    """The result of ``hlofp8.jit``: a function like those of ``jax.jit``, compiled with FP8 matmuls."""

    def __init__(self, function: Callable[P, R], fallback: str, options: dict[str, Any], jit_options: dict[str, Any]):
        self._function, self._fallback, self._options = function, fallback, options
        self._jit: Any = jax.jit(function, **jit_options)
        self._nums, self._names = statics(
            function, jit_options.get("static_argnums"), jit_options.get("static_argnames")
        )
        # The keys are lowered functions, which JAX keeps alive until jax.clear_caches().
        self._compiled: weakref.WeakKeyDictionary[Any, Callable[..., Any]] = weakref.WeakKeyDictionary()
        self._dispatch = dispatcher(
            self._name, function, self._miss, tuple(sorted(self._nums)), tuple(sorted(self._names))
        )
        functools.update_wrapper(self, function, updated=())

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __deepcopy__(self, _memo: Any) -> Jitted[P, R]:
        return self  # like functions, and like results of jax.jit

    def __repr__(self) -> str:
        return f"<hlofp8.jit of {self._name}>"

    @property
    def _name(self) -> str:
        return getattr(self._function, "__name__", repr(self._function))

    def _static(self, args: tuple[Any, ...]) -> set[int]:
        """Returns the positions of the static arguments."""
        return {n % len(args) if n < 0 and args else n for n in self._nums}

    def _dynamic(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Returns the arguments that are not static."""
        static = self._static(args)
        return (
            [arg for i, arg in enumerate(args) if i not in static],
            {name: arg for name, arg in kwargs.items() if name not in self._names},
        )

    def _give_up(self, reason: str) -> None:
        give_up(self._name, self._fallback, reason)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return cast(R, self._call(*args, **kwargs))
        except _InvalidValue as error:  # jax_debug_nans or jax_debug_infs is set
            what = f"invalid value ({error.ty}) in the result of {self._name}"
        with contextlib.suppress(RuntimeError):  # an argument was donated
            self._jit(*args, **kwargs)  # raises FloatingPointError that names the operation, if possible
        raise FloatingPointError(f"{what}, which was rewritten")

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        return self._dispatch(*args, **kwargs)

    def _miss(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
        """Executes a call with new arguments. Returns the result, the data to repeat the call, and False."""
        positional, named = self._dynamic(args, kwargs)
        if under_transformation(jax.tree.leaves((positional, named))):
            return mark_results(self._jit(*args, **kwargs), self._name, self._fallback), None, False
        with _tracing():
            traced = self._jit.trace(*args, **kwargs)
            lowered = traced.lower()
        key = _key(lowered, traced)
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = self._compiled[key] = self._compile(lowered, key, args, kwargs)
        return *execute(compiled, traced.jaxpr, positional, named), False

    def _compile(self, lowered: Any, key: Any, args: Any, kwargs: Any) -> Callable[..., Any]:
        """Compiles a lowered function. The result accepts the arguments that are not static."""
        try:
            swapped, rewritten = self._swapped(lowered)
            try:
                compiled = swapped.compile()
            except RuntimeError as error:
                if self._fallback == "error" or swapped is lowered:
                    raise
                self._give_up(f"XLA cannot compile the rewritten module: {error}")
                return cast(Callable[..., Any], lowered.compile())
            observed(rewritten, key)
            return cast(Callable[..., Any], compiled)
        except _Unsupported as error:
            reason = str(error)
        except Error as error:
            self._give_up(str(error))
            return cast(Callable[..., Any], lowered.compile())
        seen: list[Rewritten] = []
        try:
            exported = _export(self._jit, self._name, self._options, None, (), seen)(*args, **kwargs)
            for rewritten in seen:
                observed(rewritten, key)
            return jax.jit(exported.call)
        except (_Unsupported, Error, NotImplementedError, ValueError) as error:
            self._give_up(f"{reason}, and jax.export fails: {error}")
        return cast(Callable[..., Any], lowered.compile())

    def _swapped(self, lowered: Any) -> tuple[Any, Rewritten]:
        """Returns the lowered function, with the rewritten module if that has FP8 matmuls, and the rewritten module."""
        rewritten = rewrite_lowered(lowered, self._name, self._options)
        return (swap(lowered, rewritten) if rewritten.fp8 else _settle(lowered, rewritten)), rewritten

    def trace(self, *args: P.args, **kwargs: P.kwargs) -> jax.stages.Traced:
        """Like ``jax.jit(f).trace(...)``, but the method ``lower()`` of the result rewrites the module."""
        with _tracing():
            return _Traced(self, self._jit.trace(*args, **kwargs))

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> jax.stages.Lowered:
        """Like ``jax.jit(f).lower(...)``, but returns the rewritten module. Arguments may be ShapeDtypeStructs."""
        return cast(jax.stages.Lowered, self.trace(*args, **kwargs).lower())

    def _lower(self, traced: Any, **options: Any) -> jax.stages.Lowered:
        with _tracing():
            lowered = traced.lower(**options)
        try:
            swapped, rewritten = self._swapped(lowered)
            observed(rewritten, _key(lowered, traced))
            return cast(jax.stages.Lowered, swapped)
        except (_Unsupported, Error) as error:
            self._give_up(str(error))
        return cast(jax.stages.Lowered, lowered)

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """Returns the verdict on each matmul of the function for these arguments, without compiling or running it.

        Keyword arguments may also be ``platform``, as for ``hlofp8.explain``, and options of ``rewrite`` that
        ``hlofp8.jit`` also accepts. These options replace the options that were passed to ``hlofp8.jit``.
        """
        chosen, kwargs = options_in(self._function, kwargs, ("platform", *JAX_OPTIONS, *_JIT_OPTIONS))
        for name in set(chosen) & set(_JIT_OPTIONS):
            raise TypeError(f"{self._name} is already jitted; pass {name} to hlofp8.jit instead")
        platform = chosen.pop("platform", None)
        with _tracing():
            traced = self._jit.trace(*args, **kwargs)
        options = {**self._options, **jax_options(chosen), **self._selected(traced, args, kwargs)}
        return _explain_traced(traced, platform, self._name, options)

    def _selected(self, traced: Any, args: Any, kwargs: Any) -> dict[str, Any]:
        """Returns the option ``ahead`` of rewrite() for these arguments, if ``hlofp8.jit`` has one."""
        return {}

    def eval_shape(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Like ``jax.jit(f).eval_shape``."""
        with _tracing():
            return self._jit.eval_shape(*args, **kwargs)

    def clear_cache(self) -> None:
        """Discards all compiled functions."""
        self._compiled.clear()
        getattr(self._dispatch, "_clear_cache", bool)()
        self._jit.clear_cache()


class _Traced(jax.stages.Traced):
    """Like the result of ``jax.jit(f).trace(...)``, except for ``lower``."""

    def __init__(self, owner: Jitted[Any, Any], traced: Any):
        self._owner, self._traced = owner, traced

    def __getattr__(self, name: str) -> Any:
        if name in ("_owner", "_traced"):
            raise AttributeError(name)
        return getattr(self._traced, name)

    def lower(self, **options: Any) -> Any:
        """Lowers the function, and rewrites its module."""
        return self._owner._lower(self._traced, **options)


def _explain_traced(traced: Any, platform: Any, name: str, options: dict[str, Any]) -> Explanation:
    if platform is not None and not isinstance(platform, str):
        raise TypeError(f"platform must be a str, not {platform!r}")
    if platform not in (None, "cpu", "cuda"):
        raise invalid_value("platform", platform, "one of cpu, cuda")
    with _tracing():
        lowered = traced.lower(lowering_platforms=(platform,)) if platform else traced.lower()
    return _explain_lowered(lowered, name, options)


def _explain_lowered(lowered: Any, name: str, options: dict[str, Any]) -> Explanation:
    settled = _settled(options, _platforms(lowered), _device(lowered))
    return Explanation(_rewrite(lowered, name, {**settled, "surroundings": True}), lowered, settled)


@overload
def jit(function: Callable[P, R], /, **options: Any) -> Jitted[P, R]: ...


@overload
def jit(**options: Any) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...


def jit(
    function: Callable[..., Any] | None = None,
    /,
    *,
    emit: str | None = None,
    target: str | int | None = None,
    cuda: str | None = None,
    min_gain: float | None = None,
    quantize: str | None = None,
    amaxes: Amaxes | None = None,
    wide: str | Sequence[str] | None = None,
    rules: str | None = None,
    allow_bias_rounding: bool | None = None,
    merge_dots: bool | None = None,
    ragged: str | None = None,
    framework_files: str | None = None,
    fallback: str = "error",
    ahead: int | Sequence[int] | None = None,
    **jit_options: Any,
) -> Any:
    """Like ``jax.jit``, but the quantized matmuls of the function run in FP8.

    Apply it outermost, around ``jax.grad``, ``jax.vmap``, ``jax.shard_map`` and other transformations: everything
    traced inside it is rewritten as one module. Results equal those of ``jax.jit`` except for roundings that FP8
    matmuls omit (docs/numerics.md) and, with ``quantize``, for the quantization of matmuls. Compiled functions are
    cached by types, shardings and static arguments, as in ``jax.jit``.

    Args:
      function: the function to compile. If this argument is omitted, a decorator is returned.
      emit: the output form of FP8 matmuls: "qdq", which XLA's GPU compiler turns into FP8 calls (the default on
        GPUs); "dq", plain HLO for any platform (the default elsewhere); or "ffi", calls of this package's handlers.
      target, cuda, min_gain, quantize, amaxes, wide, rules, allow_bias_rounding, merge_dots, ragged, framework_files:
        as for ``rewrite``.
      fallback: "error" raises Error if the function cannot be rewritten; "warn" issues a RewriteWarning with the
        reason and runs the function as with jax.jit.
      ahead: positions of arguments, such as weights. What depends only on them, such as their quantization, is
        computed once for each set of arrays, as long as these arrays exist.
      **jit_options: options of ``jax.jit``, such as static_argnums, donate_argnums or in_shardings.
    """
    given = locals()
    if fallback not in ("error", "warn"):
        raise invalid_value("fallback", fallback, "one of error, warn")
    options = jax_options({name: given[name] for name in JAX_OPTIONS})
    if function is None:
        return lambda f: jit(f, fallback=fallback, ahead=ahead, **options, **jit_options)
    if not callable(function):
        raise TypeError(f"function must be callable, not {type(function).__name__}")
    if ahead is not None:
        from ._ahead import AheadJitted

        return AheadJitted(function, fallback, options, jit_options, ahead)
    return Jitted(function, fallback, options, jit_options)


_JIT_OPTIONS = tuple(name for name, p in inspect.signature(jax.jit).parameters.items() if p.kind is p.KEYWORD_ONLY)


def explain_function(what: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Explanation:
    """Implements ``hlofp8.explain`` for a function or a result of ``jax.jit(f).trace(...)``."""
    if isinstance(what, jax.stages.Traced):
        own, traced = ({}, what) if not isinstance(what, _Traced) else (what._owner._options, what._traced)
        platform, name = kwargs.pop("platform", None), getattr(what, "fun_name", "traced")
        return _explain_traced(traced, platform, name, {**own, **jax_options(kwargs)})
    options, kwargs = options_in(what, kwargs, (*JAX_OPTIONS, *_JIT_OPTIONS, "platform"))
    jitted = callable(getattr(what, "lower", None))
    if jitted and not callable(getattr(what, "trace", None)):  # a function of jax.pmap or eqx.filter_jit
        if unknown := set(options) - set(JAX_OPTIONS):
            raise TypeError(f"{', '.join(sorted(unknown))}: not supported for {what!r}, which can only be lowered")
        with _tracing():
            lowered = what.lower(*args, **kwargs)
        name = getattr(what, "__name__", "f")
        return _explain_lowered(getattr(lowered, "lowered", lowered), name, jax_options(options))
    own = {} if jitted else {name: options.pop(name) for name in _JIT_OPTIONS if name in options}
    made = jit(what, **own)
    if jitted:
        made._jit = what
    return made.explain(*args, **kwargs, **options)


def inputs_of(what: Any, lowered: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Returns the values of the parameters of a lowered function: the leaves of those arguments that it uses."""
    options, kwargs = options_in(getattr(what, "_function", what), kwargs, (*JAX_OPTIONS, *_JIT_OPTIONS, "platform"))
    own = {name: options[name] for name in _JIT_OPTIONS if name in options}
    made = what if isinstance(what, Jitted) else Jitted(what, "error", {}, own)
    positional, named = made._dynamic(args, kwargs)
    leaves, tree = jax.tree.flatten((tuple(positional), named))
    if tree != lowered.in_tree:
        raise TypeError(
            "the arguments are not those of the lowered function; pass a function with static arguments to hlofp8.jit "
            "instead of jax.jit, and a function of arrays instead of a function of nnx.jit or eqx.filter_jit"
        )
    try:
        kept = lowered._lowering.compile_args["kept_var_idx"]
        constants = list(getattr(lowered._lowering, "const_args", ()))
    except (AttributeError, KeyError, TypeError):
        raise Error(f"jax {jax.__version__} does not store which arguments a function uses", "invalid usage") from None
    infos = enumerate(jax.tree.leaves(lowered.args_info))
    return constants + [_array(leaves[i], info) for i, info in infos if i in kept]


def _array(leaf: Any, info: Any) -> Any:
    """Returns an argument as a numpy array of the type that the lowered function has for it."""
    if isinstance(leaf, jax.ShapeDtypeStruct):
        raise TypeError("the arguments must be arrays, because the function is executed")
    if jax.numpy.issubdtype(info.dtype, jax.dtypes.prng_key):
        return np.asarray(jax.random.key_data(leaf))
    return np.asarray(leaf, info.dtype)


def _exported_module(exported: Any) -> Any:
    """Returns the StableHLO module of a ``jax.export.Exported``."""
    make_context, ir = _part("jax._src.interpreters.mlir:make_ir_context"), _part("jaxlib.mlir:ir")
    with make_context():
        return ir.Module.parse(exported.mlir_module())


def _export(
    function: Any,
    name: str,
    options: dict[str, Any],
    platforms: Sequence[str] | None,
    checks: Sequence[Any],
    seen: list[Rewritten],
) -> Callable[..., Any]:
    """Returns a function that rewrites and exports the module, and appends the rewritten module to ``seen``."""
    import jax.export

    def exporting(*args: Any, **kwargs: Any) -> Any:
        serialize = _part("jax._src.export._export:_module_to_bytecode")
        with _tracing():
            exported = jax.export.export(function, platforms=platforms, disabled_checks=checks)(*args, **kwargs)
        if not all(isinstance(size, int) for aval in exported.in_avals for size in aval.shape):
            raise _Unsupported("it has symbolic shapes, which HLO does not support")
        module = _exported_module(exported)
        rewritten = _rewrite(module, name, _settled(options, exported.platforms, jax.devices()[0]))
        seen.append(rewritten)
        if not rewritten.fp8:
            return exported
        if options.get("emit") == "ffi":
            _register_calls()
        try:
            with module.context:
                new = serialize(_replaced(module, rewritten.proto))
        except RuntimeError as error:
            raise _Unsupported(str(error)) from None
        return dataclasses.replace(exported, mlir_module_serialized=new)

    return exporting


def export(
    function: Callable[..., Any],
    /,
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[Any] = (),
    **options: Any,
) -> Callable[..., Any]:
    """Like ``jax.export.export``, but with the rewritten module.

    Returns a function whose arguments are arrays or ShapeDtypeStructs and whose result is an ``Exported``.

    Args:
      function: as for ``jit``, or a result of ``jit`` or ``jax.jit``.
      platforms, disabled_checks: as for ``jax.export.export``.
      **options: options of ``jit`` and of ``jax.jit``.
    """
    if isinstance(function, Jitted):
        made = function
    else:
        made = jit(function, **options)
        if hasattr(function, "lower"):
            made._jit = function
    exporting = _export(made._jit, made._name, made._options, platforms, disabled_checks, [])

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return exporting(*args, **kwargs)
        except _Unsupported as error:
            raise Error(f"{made._name} cannot be rewritten for export: {error}", "invalid usage") from None

    return call
