"""JAX functions whose quantized matmuls run in FP8: the module is taken out of what jax lowered and put back rewritten.

The first way replaces the module within ``Lowered``, whose attributes are private to JAX: where they are not as
expected, the second way does it, by ``jax.export``.
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

from ._dispatch import InvalidValue as _InvalidValue
from ._dispatch import Unsupported as _Unsupported
from ._dispatch import dispatcher, execute, give_up, mark_results, statics, under_transformation
from ._dispatch import part as _part
from ._dispatch import tracing as _tracing
from ._explain import Explanation, observed, options_in, place
from ._library import HERE, Error, sink, warn
from ._module import HasCompilerIR, Rewritten, lowered_proto, nearest_target, pass_options, rewrite

P = ParamSpec("P")
R = TypeVar("R")

# What hlo_to_stablehlo() does not bring back: attributes of main's arguments and results.
_KEPT_ATTRIBUTES = ("jax.buffer_donor", "mhlo.layout_mode", "mhlo.memory_kind")
_GSPMD = "mhlo.sharding"


@functools.cache
def _register_calls() -> None:
    """Hands XLA the functions that execute the typed calls of emit="ffi" (include/hlo/ffi.h)."""
    library = ctypes.CDLL(str(HERE / "libhlofp8_ffi.so"))
    register, capsule = _part("jax:ffi.register_ffi_target"), _part("jax:ffi.pycapsule")
    for platform in ("cpu", "CUDA"):
        function = getattr(library, f"hlofp8_ffi_matmul_{platform.lower()}")
        try:
            register("hlofp8.matmul", capsule(function), platform=platform)
        except RuntimeError as error:
            raise Error(f'jaxlib does not take the functions of emit="ffi": {error}', "invalid usage") from None


def default_emit(platforms: Sequence[str]) -> str:
    """The form for platforms: for XLA's GPU compiler the one that it makes FP8 calls of, else plain HLO."""
    return "qdq" if {"cuda", "gpu"} & set(platforms) else "dq"


def _main(module: Any) -> Any:
    """The function that a StableHLO module begins with."""
    ir = _part("jaxlib.mlir:ir")
    for operation in module.body.operations:
        attributes = operation.attributes
        if "sym_name" in attributes and ir.StringAttr(attributes["sym_name"]).value == "main":
            return operation
    raise _Unsupported("the lowered module has no function @main")


def _attributes(function: Any, which: str, count: int) -> list[dict[str, Any]]:
    """The attributes of a function's arguments or results, by name."""
    ir = _part("jaxlib.mlir:ir")
    if which not in function.attributes:
        return [{} for _ in range(count)]
    return [{item.name: item.attr for item in ir.DictAttr(one)} for one in ir.ArrayAttr(function.attributes[which])]


def _settle_attributes(old: Any, new: Any) -> None:
    """Gives main's arguments and results what the way through HLO has lost."""
    ir = _part("jaxlib.mlir:ir")
    for which, count in (("arg_attrs", len(old.type.inputs)), ("res_attrs", len(old.type.results))):
        merged = []
        for before, after in zip(_attributes(old, which, count), _attributes(new, which, count), strict=True):
            kept = {name: before[name] for name in _KEPT_ATTRIBUTES if name in before}
            merged.append(ir.DictAttr.get({**kept, **after}))
        new.attributes[which] = ir.ArrayAttr.get(merged)


def _leave_to_shardy(module: Any) -> None:
    """Takes GSPMD's shardings from a module that has Shardy's in its frontend attributes: XLA reads one of both."""
    ir = _part("jaxlib.mlir:ir")
    attributes = module.operation.attributes
    if "mhlo.frontend_attributes" not in attributes:
        return
    if "xla.sdy.meshes" not in ir.DictAttr(attributes["mhlo.frontend_attributes"]):
        return

    def take(operation: Any) -> Any:
        if _GSPMD in operation.attributes:
            del operation.attributes[_GSPMD]
        for which in ("arg_attrs", "res_attrs"):  # of a function
            if which in operation.attributes:
                every = _attributes(operation, which, 0)
                kept = [ir.DictAttr.get({k: v for k, v in one.items() if k != _GSPMD}) for one in every]
                operation.attributes[which] = ir.ArrayAttr.get(kept)
        return ir.WalkResult.ADVANCE

    module.operation.walk(take)


def _drop_copies(module: Any) -> None:
    """Takes out copies: they change layouts, which StableHLO does not have, and it cannot export them."""
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
    """The StableHLO module of an HloModuleProto, in the context and with the signature of the old one."""
    ir, convert = _part("jaxlib.mlir:ir"), _part("jaxlib._jax:mlir.hlo_to_stablehlo")
    with old.context:
        new = ir.Module.parse(convert(proto))
        before, after = _main(old), _main(new)
        if before.attributes["function_type"] != after.attributes["function_type"]:
            raise _Unsupported("its arguments and results do not come back from HLO as they were")
        _leave_to_shardy(new)
        _settle_attributes(before, after)
        _drop_copies(new)
    return new


def _swap(lowered: Any, proto: bytes) -> Any:
    """A copy of ``Lowered`` with another module."""
    computation: Any = getattr(lowered, "_lowering", None)
    old = getattr(computation, "_hlo", None)
    if not isinstance(old, _part("jaxlib.mlir:ir.Module")) or not hasattr(computation, "_executable"):
        raise _Unsupported(f"jax {jax.__version__} keeps its modules elsewhere")
    swapped = copy.copy(computation)
    swapped._hlo, swapped._executable = _replaced(old, proto), None
    result = copy.copy(lowered)
    result._lowering = swapped
    return result


def _platforms(lowered: Any) -> Sequence[str]:
    return getattr(getattr(lowered, "_lowering", None), "_platforms", None) or (jax.default_backend(),)


def _capability(lowered: Any) -> str | None:
    """The compute capability of the first device that it was lowered for; None where it has none."""
    devices = getattr(getattr(lowered, "_lowering", None), "_device_list", None) or jax.devices()
    found = getattr(devices[0], "compute_capability", None)
    return found if isinstance(found, str) else None


def _key(lowered: Any, traced: Any) -> Any:
    """What JAX keeps of a function that it has lowered for some types: the same for lower() and for a call."""
    return getattr(lowered, "_lowering", traced.jaxpr)


def _rewrite(lowered: HasCompilerIR, name: str, options: dict[str, Any], platforms: Sequence[str]) -> Rewritten:
    options = {"emit": default_emit(platforms), "lint": True, **options}
    capability = _capability(lowered)
    if capability:
        options = {"target": nearest_target(capability), **options}
    elif options["emit"] == "ffi" and tuple(platforms) == ("cpu",):
        # The function for CPUs reads operands in any layout, as sm_100 does: sm_90 would have one transposed first.
        options = {"target": "sm_100", **options}
    return rewrite(lowered_proto(lowered), name=f"<{name}>", **options)


class Jitted(Generic[P, R]):
    """What ``hlofp8.jit`` returns: a function as of ``jax.jit``, compiled with FP8 matmuls."""

    def __init__(self, function: Callable[P, R], fallback: str, options: dict[str, Any], jit_options: dict[str, Any]):
        self._function, self._fallback, self._options = function, fallback, options
        self._jit: Any = jax.jit(function, **jit_options)
        self._nums, self._names = statics(
            function, jit_options.get("static_argnums"), jit_options.get("static_argnames")
        )
        # By what JAX lowered, as long as JAX keeps that: what lives on is dropped with jax.clear_caches().
        self._compiled: weakref.WeakKeyDictionary[Any, Callable[..., Any]] = weakref.WeakKeyDictionary()
        self._dispatch = dispatcher(
            self._name, function, self._miss, tuple(sorted(self._nums)), tuple(sorted(self._names))
        )
        functools.update_wrapper(self, function, updated=())

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __deepcopy__(self, _memo: Any) -> Jitted[P, R]:
        return self  # as a function, and as what jax.jit returns

    def __repr__(self) -> str:
        return f"<hlofp8.jit of {self._name}>"

    @property
    def _name(self) -> str:
        return getattr(self._function, "__name__", repr(self._function))

    def _dynamic(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments that are not static."""
        static = {n % len(args) if n < 0 and args else n for n in self._nums}
        return (
            [arg for i, arg in enumerate(args) if i not in static],
            {name: arg for name, arg in kwargs.items() if name not in self._names},
        )

    def _give_up(self, reason: str) -> None:
        give_up(self._name, self._fallback, reason)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return cast(R, self._dispatch(*args, **kwargs))
        except _InvalidValue as error:  # jax_debug_nans or jax_debug_infs is set
            what = f"invalid value ({error.ty}) in the result of {self._name}"
        with contextlib.suppress(RuntimeError):  # an argument was donated
            self._jit(*args, **kwargs)  # raises FloatingPointError, where it can tell which operation it was
        raise FloatingPointError(f"{what}, rewritten")

    def _miss(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
        """The result for arguments that the dispatcher has not seen, what it needs to see to them, and False."""
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
        """The compiled function of the arguments that are not static."""
        try:
            swapped, rewritten = self._swapped(lowered)
            try:
                compiled = swapped.compile()
            except RuntimeError as error:
                if self._fallback == "error" or swapped is lowered:
                    raise
                self._give_up(f"XLA does not compile it rewritten: {error}")
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
            self._give_up(f"{reason}, and jax.export says: {error}")
        return cast(Callable[..., Any], lowered.compile())

    def _swapped(self, lowered: Any) -> tuple[Any, Rewritten]:
        """What was lowered, with the rewritten module if that has FP8 matmuls, and the verdicts."""
        rewritten = _rewrite(lowered, self._name, self._options, _platforms(lowered))
        for lint in rewritten.wrong_scales:
            warn(f"{self._name}: {place(lint) or lint.name}: {lint.reason}: {lint.message}; {lint.hint}")
        if rewritten.fp8 and self._options.get("emit") == "ffi":
            _register_calls()
        return _swap(lowered, rewritten.proto) if rewritten.fp8 else lowered, rewritten

    def trace(self, *args: P.args, **kwargs: P.kwargs) -> jax.stages.Traced:
        """What ``jax.jit(f).trace(...)`` returns; its ``lower()`` rewrites the module."""
        with _tracing():
            return _Traced(self, self._jit.trace(*args, **kwargs))

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> jax.stages.Lowered:
        """What ``jax.jit(f).lower(...)`` returns, with the rewritten module; arguments may be ShapeDtypeStructs."""
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
        """The verdict on each matmul of the function for these arguments; nothing is compiled or run.

        Keyword arguments may also be options of ``rewrite`` that ``hlofp8.jit`` has, in place of those that it was
        given, and ``platform``, as for ``hlofp8.explain``.
        """
        chosen, kwargs = options_in(self._function, kwargs, ("platform", *_OPTIONS, *_JIT_OPTIONS))
        for name in set(chosen) & set(_JIT_OPTIONS):
            raise TypeError(f"{self._name} is jitted already; pass {name} where it is jitted")
        platform = chosen.pop("platform", None)
        with _tracing():
            traced = self._jit.trace(*args, **kwargs)
        return _explain_traced(traced, platform, self._name, {**self._options, **_checked(chosen)})

    def eval_shape(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """As ``jax.jit(f).eval_shape``."""
        with _tracing():
            return self._jit.eval_shape(*args, **kwargs)

    def clear_cache(self) -> None:
        """Forgets what was compiled."""
        self._compiled.clear()
        getattr(self._dispatch, "_clear_cache", bool)()
        self._jit.clear_cache()


class _Traced(jax.stages.Traced):
    """What ``jax.jit(f).trace(...)`` returns, but for ``lower``."""

    def __init__(self, owner: Jitted[Any, Any], traced: Any):
        self._owner, self._traced = owner, traced

    def __getattr__(self, name: str) -> Any:
        if name in ("_owner", "_traced"):
            raise AttributeError(name)
        return getattr(self._traced, name)

    def lower(self, **options: Any) -> Any:
        """Lowers to a rewritten module."""
        return self._owner._lower(self._traced, **options)


def _explain_traced(traced: Any, platform: Any, name: str, options: dict[str, Any]) -> Explanation:
    if platform is not None and not isinstance(platform, str):
        raise TypeError(f"platform is {platform!r}, and has to be text")
    if platform not in (None, "cpu", "cuda"):
        raise Error(f"no such platform: {platform!r}; there are cpu, cuda", "invalid usage")
    with _tracing():
        lowered = traced.lower(lowering_platforms=(platform,)) if platform else traced.lower()
    return Explanation(_rewrite(lowered, name, options, _platforms(lowered)), lowered)


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
    wide: str | Sequence[str] | None = None,
    rules: str | None = None,
    allow_bias_rounding: bool | None = None,
    merge_dots: bool | None = None,
    ragged: str | None = None,
    framework_files: str | None = None,
    fallback: str = "error",
    **jit_options: Any,
) -> Any:
    """As ``jax.jit``, with the quantized matmuls of the function in FP8.

    Put it outermost, around ``jax.grad``, ``jax.vmap``, ``jax.shard_map`` and the like: what is traced inside it is
    rewritten as one module. The result of a call is that of ``jax.jit`` up to the roundings that FP8 matmuls leave out
    (docs/numerics.md). Compiled functions are kept by types, shardings and static arguments, as by ``jax.jit``.

    Args:
      function: the function; without one, a decorator is returned.
      emit: "qdq", which XLA's GPU compiler makes FP8 calls of, the default there; "dq", for any platform, the default
        elsewhere; "ffi", calls of this package's own handlers.
      target, cuda, min_gain, wide, rules, allow_bias_rounding, merge_dots, ragged, framework_files: as for
        ``rewrite``.
      fallback: "error" raises Error where the function cannot be rewritten, "warn" runs it as jax.jit would and says
        why in a RewriteWarning.
      **jit_options: of ``jax.jit``: static_argnums, donate_argnums, in_shardings, ...
    """
    if fallback not in ("error", "warn"):
        raise Error(f"no such fallback: {fallback!r}; there are error, warn", "invalid usage")
    options: dict[str, Any] = {
        "emit": emit,
        "target": target,
        "cuda": cuda,
        "min_gain": min_gain,
        "wide": wide,
        "rules": rules,
        "allow_bias_rounding": allow_bias_rounding,
        "merge_dots": merge_dots,
        "ragged": ragged,
        "framework_files": framework_files,
    }
    options = _checked(options)
    if function is None:
        return lambda f: jit(f, fallback=fallback, **options, **jit_options)
    if not callable(function):
        raise TypeError(f"hlofp8.jit takes a function, not {type(function).__name__}")
    return Jitted(function, fallback, options, jit_options)


# The options of a rewrite that jit() has, and those of jax.jit.
_OPTIONS = tuple(
    name for name, p in inspect.signature(jit).parameters.items() if p.kind is p.KEYWORD_ONLY and name != "fallback"
)
_JIT_OPTIONS = tuple(name for name, p in inspect.signature(jax.jit).parameters.items() if p.kind is p.KEYWORD_ONLY)


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a rewrite that were given; Error, or TypeError, if one is invalid."""
    options = {key: value for key, value in options.items() if value is not None}
    if options.get("emit", "dq") not in ("qdq", "dq", "ffi"):
        raise Error(f"jax cannot run emit={options['emit']!r}; there are qdq, dq, ffi", "invalid usage")
    with sink() as told, pass_options(told, **options):
        pass
    return options


def explain_function(what: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Explanation:
    """As ``hlofp8.explain``, of a function or of what ``jax.jit(f).trace(...)`` returned."""
    if isinstance(what, jax.stages.Traced):
        own, traced = ({}, what) if not isinstance(what, _Traced) else (what._owner._options, what._traced)
        platform, name = kwargs.pop("platform", None), getattr(what, "fun_name", "traced")
        return _explain_traced(traced, platform, name, {**own, **_checked(kwargs)})
    if isinstance(what, jax.stages.Compiled):
        raise TypeError("a compiled function has XLA's own matmuls; pass what jax.jit(f).lower(...) returned")
    options, kwargs = options_in(what, kwargs, (*_OPTIONS, *_JIT_OPTIONS, "platform"))
    jitted = callable(getattr(what, "lower", None))
    if jitted and not callable(getattr(what, "trace", None)):
        raise TypeError("a function of jax.pmap cannot be traced; pass what its lower(...) returned, or use jax.jit and jax.shard_map")
    own = {} if jitted else {name: options.pop(name) for name in _JIT_OPTIONS if name in options}
    made = jit(what, **own)
    if jitted:
        made._jit = what
    return made.explain(*args, **kwargs, **options)


class _Exportable:
    """The module of ``jax.export.Exported``, as rewrite() reads it."""

    def __init__(self, exported: Any):
        make_context, ir = _part("jax._src.interpreters.mlir:make_ir_context"), _part("jaxlib.mlir:ir")
        self.bytecode = _part("jax._src.interpreters.mlir:module_to_bytecode")
        with make_context():
            self.module = ir.Module.parse(exported.mlir_module())

    def compiler_ir(self, dialect: str | None = None) -> Any:
        convert = _part("jaxlib._jax:mlir.mlir_module_to_xla_computation")
        return convert(self.bytecode(self.module), use_tuple_args=False)


def _export(
    function: Any,
    name: str,
    options: dict[str, Any],
    platforms: Sequence[str] | None,
    checks: Sequence[Any],
    seen: list[Rewritten],
) -> Callable[..., Any]:
    """A function that exports with the rewritten module, whose verdicts it appends to ``seen``."""
    import jax.export

    def exporting(*args: Any, **kwargs: Any) -> Any:
        serialize = _part("jax._src.export._export:_module_to_bytecode")
        with _tracing():
            exported = jax.export.export(function, platforms=platforms, disabled_checks=checks)(*args, **kwargs)
        if not all(isinstance(size, int) for aval in exported.in_avals for size in aval.shape):
            raise _Unsupported("it has symbolic shapes, and HLO has none")
        module = _Exportable(exported)
        rewritten = _rewrite(module, name, options, exported.platforms)
        seen.append(rewritten)
        if not rewritten.fp8:
            return exported
        if options.get("emit") == "ffi":
            _register_calls()
        try:
            with module.module.context:
                new = serialize(_replaced(module.module, rewritten.proto))
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
    """As ``jax.export.export``: a function of arguments or ShapeDtypeStructs, which returns ``jax.export.Exported``.

    Args:
      function: as for ``jit``; also what ``jit`` or ``jax.jit`` returned.
      platforms, disabled_checks: as for ``jax.export.export``.
      **options: emit, target, ... of ``jit``, and those of ``jax.jit``.
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
            raise Error(f"{made._name} cannot be exported rewritten: {error}", "invalid usage") from None

    return call
