# SPDX-License-Identifier: Apache-2.0
"""Runs a JAX function as two modules: the first one computes what depends only on certain arguments, once.

Both modules are compiled as functions of flat lists of arrays. Each function is lowered from a placeholder with the
same signature, whose module is then replaced.
"""

from __future__ import annotations

import hashlib
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._dispatch import Unsupported, config, mark_results, trace_context, tracing, under_transformation
from ._explain import observed
from ._jax import Jitted, P, R, lowered_leaves, parameter_names, rewrite_lowered, swap
from ._library import Error, ffi, lib, string
from ._module import Rewritten, split
from ._run import dtype_of


def _signature(leaf: Any) -> Any:
    """Returns what a compiled module depends on: the type of a leaf and, if it is fixed, its sharding."""
    if isinstance(leaf, jax.Array):
        sharding = leaf.sharding if getattr(leaf, "committed", True) else None
        return leaf.shape, leaf.dtype, getattr(leaf, "weak_type", False), sharding
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf.shape, leaf.dtype, leaf.weak_type, leaf.sharding
    return np.shape(leaf), jax.dtypes.result_type(leaf), isinstance(leaf, (bool, int, float, complex)), None


def _results_of(module: Rewritten) -> list[Any]:
    """Returns the shapes and dtypes of the arrays in the result of a module."""
    root = lib.hlo_computation_root(lib.hlo_module_entry(module._module))
    shape = lib.hlo_instruction_shape(root)
    elements = [lib.hlo_shape_element(shape, i) for i in range(lib.hlo_shape_element_count(shape))]
    return [
        jax.ShapeDtypeStruct(  # type: ignore[no-untyped-call]
            tuple(ffi.unpack(lib.hlo_shape_dims(one), lib.hlo_shape_rank(one)) if lib.hlo_shape_rank(one) else ()),
            dtype_of(string(lib.hlo_element_type_name(lib.hlo_shape_type(one))) or ""),
        )
        for one in elements
    ]


def _placeholder(results: Sequence[Any], weak: Sequence[bool], leaves: Sequence[Any], donated: Sequence[int]) -> Any:
    """Lowers a function of the leaves whose results have the given shapes, dtypes and weak types."""

    def zero(one: Any, is_weak: bool) -> Any:
        result = jnp.full(one.shape, one.dtype.type(0).item()) if is_weak else jnp.zeros(one.shape, one.dtype)
        if result.dtype != one.dtype:
            raise Unsupported(f"ahead does not support results of the weak type {one.dtype}")
        return result

    def zeros(*_: Any) -> list[Any]:
        return [zero(one, is_weak) for one, is_weak in zip(results, weak, strict=True)]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the placeholder does not use donated arguments
        return jax.jit(zeros, keep_unused=True, donate_argnums=tuple(donated)).lower(*leaves)


def _selection(lowered: Any, flat: Sequence[int]) -> tuple[list[int], set[int], list[bool], list[str]]:
    """Returns the leaves that are parameters of the module, those that are donated, whether each parameter is one of
    the leaves ``flat``, and the names of the latter."""
    arguments, donated = lowered_leaves(lowered)
    inside = set(flat)
    chosen = [i in inside for i in arguments]
    names = parameter_names(lowered)
    selected = [name for name, is_chosen in zip(names, chosen, strict=True) if is_chosen]
    if not selected:
        raise Unsupported("it does not use the arguments of ahead")
    return arguments, donated, chosen, selected


class _Pair:
    """The two modules of a function for arguments of certain types."""

    def __init__(self, owner: AheadJitted[Any, Any], traced: Any, flat: Sequence[int]):
        lowered = traced.lower()
        arguments, donated, chosen, selected = _selection(lowered, flat)
        self.rewritten: Rewritten = rewrite_lowered(lowered, owner._name, {**owner._options, "ahead": selected})
        self.modules = split(self.rewritten, selected)
        self.first_results = _results_of(self.modules[0])
        self.first_leaves = [i for i, is_chosen in zip(arguments, chosen, strict=True) if is_chosen]
        self.other_leaves = [i for i, is_chosen in zip(arguments, chosen, strict=True) if not is_chosen]
        self.donated = [k for k, i in enumerate(self.other_leaves) if i in donated]
        positions = hashlib.sha256(repr([flat.index(i) for i in self.first_leaves]).encode()).hexdigest()[:16]
        self.fingerprint = f"{self.modules[0].fingerprint}-{positions}"
        self.outputs, self.tree = jax.tree.flatten(lowered.out_info)
        self.weak = [getattr(aval, "weak_type", False) for aval in traced.jaxpr.out_avals]
        if any(jnp.issubdtype(one.dtype, jax.dtypes.extended) for one in self.outputs):
            raise Unsupported("ahead does not support functions that return random keys")
        self.compiled: list[Any] = [None, None]

    def run_first(self, leaves: Sequence[Any]) -> list[Any]:
        given = [leaves[i] for i in self.first_leaves]
        if not all(isinstance(leaf, jax.Array) for leaf in given):
            raise TypeError("results for this ShapeDtypeStruct must be loaded with load_ahead()")
        if self.compiled[0] is None:
            lowered = _placeholder(self.first_results, [False] * len(self.first_results), given, ())
            self.compiled[0] = swap(lowered, self.modules[0]).compile()
        return list(self.compiled[0](*given))

    def run_second(self, leaves: Sequence[Any], results: list[Any]) -> Any:
        given = [*(leaves[i] for i in self.other_leaves), *results]
        if self.compiled[1] is None:
            lowered = _placeholder(self.outputs, self.weak, given, self.donated)
            self.compiled[1] = swap(lowered, self.modules[1], self.rewritten).compile()
        return jax.tree.unflatten(self.tree, self.compiled[1](*given))


class AheadJitted(Jitted[P, R]):
    """The result of ``hlofp8.jit(..., ahead=...)``: what depends only on certain arguments is computed once."""

    def __init__(
        self,
        function: Callable[P, R],
        fallback: str,
        options: dict[str, Any],
        jit_options: dict[str, Any],
        ahead: int | Sequence[int],
    ):
        for name in ("in_shardings", "out_shardings", "device", "backend", "compiler_options"):
            if jit_options.get(name) is not None:
                raise ValueError(f"ahead does not support the option {name} of jax.jit")
        super().__init__(function, fallback, options, jit_options)
        self._ahead = tuple(sorted(set(ahead) if isinstance(ahead, (list, tuple)) else {ahead}))
        if not self._ahead or not all(type(i) is int and i >= 0 for i in self._ahead):
            raise ValueError(f"ahead must be positions of arguments, not {ahead!r}")
        self._pairs: dict[Any, _Pair | None] = {}
        #: By the fingerprint of a first module and the ids of leaves: its results, and references to the leaves.
        self._computed: dict[Any, tuple[list[Any], list[Any]]] = {}
        #: The pair and the results of earlier calls, by the ids of the leaves of ahead and the types of the others.
        self._calls: dict[Any, tuple[_Pair, list[Any]]] = {}
        self._lock = threading.RLock()

    def _flat(self, args: Any, kwargs: Any) -> tuple[list[Any], Any, list[int]]:
        """Returns the leaves of all arguments that are not static, their tree, and the positions of those of ahead."""
        if self._ahead[-1] >= len(args):
            raise TypeError(f"{self._name} must be called with the arguments {self._ahead} of ahead by position")
        if self._static(args) & set(self._ahead):
            raise ValueError("an argument of ahead must not be static")
        tree: Any
        leaves, tree = jax.tree.flatten(self._dynamic(args, kwargs) if self._nums or self._names else (args, kwargs))
        kept = [i for i in range(len(args)) if i not in self._static(args)]
        flat: list[int] = []
        at = 0
        for i, child in zip(kept, tree.children()[0].children(), strict=True):
            flat += range(at, at + child.num_leaves) if i in self._ahead else ()
            at += child.num_leaves
        return leaves, tree, flat

    def _pair(self, args: Any, kwargs: Any) -> tuple[_Pair | None, list[Any], list[Any], Any]:
        """Returns the modules for these arguments (None: the function runs as with jax.jit), the leaves of all
        arguments and of those of ahead, and a key of the call."""
        leaves, tree, flat = self._flat(args, kwargs)
        inside = set(flat)
        chosen = [leaves[i] for i in flat]
        others = [leaf for i, leaf in enumerate(leaves) if i not in inside]
        static = tuple((i, type(args[i]), args[i]) for i in sorted(self._static(args)) if i < len(args))
        named = tuple((name, type(kwargs[name]), kwargs[name]) for name in sorted(self._names) if name in kwargs)
        rest = tree, tuple(map(_signature, others)), static, named, trace_context()
        call = tuple(map(id, chosen)), rest
        found = self._calls.get(call)
        if found:
            return found[0], leaves, chosen, call
        for leaf in chosen:
            if not isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct)):
                raise TypeError(f"the arguments of ahead must have leaves of type jax.Array, not {type(leaf).__name__}")
        key = tuple(map(_signature, chosen)), rest
        if key not in self._pairs:
            with tracing():
                traced = self._jit.trace(*args, **kwargs)
            try:
                with tracing():
                    self._pairs[key] = pair = _Pair(self, traced, flat)
                observed(pair.rewritten, pair)
            except (Unsupported, Error) as error:
                self._give_up(str(error))
                self._pairs[key] = None
        return self._pairs[key], leaves, chosen, call

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        if config.jax_disable_jit:
            return self._function(*args, **kwargs)
        if under_transformation(jax.tree.leaves((args, kwargs))):
            return mark_results(self._jit(*args, **kwargs), self._name, self._fallback)
        with self._lock:
            pair, leaves, chosen, call = self._pair(args, kwargs)
            if pair is None:
                return self._jit(*args, **kwargs)
            if call not in self._calls:
                self._calls[call] = pair, self._results(pair, leaves, chosen)
            results = self._calls[call][1]
        return pair.run_second(leaves, results)

    def _keep(self, pair: _Pair, chosen: list[Any], results: list[Any]) -> None:
        """Keeps results until one of the leaves is freed."""
        computed, calls, key = self._computed, self._calls, (pair.fingerprint, *map(id, chosen))

        def forget(_: Any) -> None:
            computed.pop(key, None)
            calls.clear()

        calls.clear()
        computed[key] = results, [weakref.ref(leaf, forget) if isinstance(leaf, jax.Array) else leaf for leaf in chosen]

    def _results(self, pair: _Pair, leaves: list[Any], chosen: list[Any]) -> list[Any]:
        found = self._computed.get((pair.fingerprint, *map(id, chosen)))
        if found:
            return found[0]
        results = pair.run_first(leaves)
        self._keep(pair, chosen, results)
        return results

    def _required(self, args: Any, kwargs: Any) -> tuple[_Pair, list[Any], list[Any]]:
        pair, leaves, chosen, _ = self._pair(args, kwargs)
        if pair is None:
            raise Error(f"{self._name} is not rewritten, so nothing is computed ahead", "invalid usage")
        return pair, leaves, chosen

    def save_ahead(self, path: str | os.PathLike[str], /, *args: P.args, **kwargs: P.kwargs) -> None:
        """Writes what calls with these arguments compute ahead to an .npz file. Other arguments may be abstract."""
        with self._lock:
            pair, leaves, chosen = self._required(args, kwargs)
            results = [np.asarray(result) for result in self._results(pair, leaves, chosen)]
        arrays = {str(i): one.reshape(-1).view(np.uint8) for i, one in enumerate(results)}
        with open(path, "wb") as file:
            np.savez(file, fingerprint=np.array(pair.fingerprint), **arrays)  # type: ignore[arg-type]

    def load_ahead(self, path: str | os.PathLike[str], /, *args: P.args, **kwargs: P.kwargs) -> None:
        """Reads a file of ``save_ahead``: calls with the same objects as arguments of ahead use its contents.

        The arguments may be ShapeDtypeStructs, so that the original arrays are not needed.

        Raises:
          Error: the file was written for another function, or for arguments of other types.
        """
        with self._lock, np.load(path) as file:
            pair, _, chosen = self._required(args, kwargs)
            saved = str(file["fingerprint"]) if "fingerprint" in file.files else "none"
            if saved != pair.fingerprint:
                raise Error(
                    f"{os.fspath(path)} has the fingerprint {saved}, but {self._name} has {pair.fingerprint} for these "
                    "arguments; write the file again with save_ahead()"
                )
            arrays = [file[str(i)].view(one.dtype).reshape(one.shape) for i, one in enumerate(pair.first_results)]
            self._keep(pair, chosen, [jnp.asarray(one) for one in arrays])

    def _selected(self, traced: Any, args: Any, kwargs: Any) -> dict[str, Any]:
        try:
            with tracing():
                return {"ahead": _selection(traced.lower(), self._flat(args, kwargs)[2])[3]}
        except Unsupported as error:
            raise Error(str(error), "invalid usage") from None

    def clear_cache(self) -> None:
        """Discards all compiled functions and everything that was computed ahead."""
        self._pairs.clear()
        self._computed.clear()
        self._calls.clear()
        super().clear_cache()
