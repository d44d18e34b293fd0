# SPDX-License-Identifier: Apache-2.0
"""Runs modules on numpy arrays, and compares their outputs."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from ._library import Error, Sink, enumerator, ffi, integer_of, invalid_value, lib, sink, stop, string, text_of, written
from ._module import Amaxes, ModuleLike, encoded, is_module, read

_CUDA = ffi.new("char[]", b"cuda")
#: Lets Python handle signals during a run. An exception of a handler stops the run, and Sink.check() raises it again.
_GO_ON = ffi.callback("bool(void *, const hlo_progress *)", lambda _user, _progress: True, error=False, onerror=stop)
_CLASSES = {"int": "s", "uint": "u", "float": "f", "complex": "c", "bfloat": "bf"}


def type_name(dtype: np.dtype[Any]) -> str:
    """Returns the HLO element type of a numpy type: "f8e4m3fn" for float8_e4m3fn."""
    if dtype.name == "bool":
        return "pred"
    found = re.fullmatch(r"([a-z]+)(\d+)(?:_(\w+))?", dtype.name)
    if not found or found[1] not in _CLASSES:
        raise TypeError(f"HLO has no element type for dtype {dtype.name}")
    return _CLASSES[found[1]] + found[2] + (found[3] or "")


def dtype_of(name: str) -> np.dtype[Any]:
    """Returns the numpy type of an HLO element type, including the types of ml_dtypes."""
    if name == "pred":
        return np.dtype(bool)
    found = re.fullmatch(r"([a-z]+)(\d+)(\w*)", name)
    assert found, name
    kind = {value: key for key, value in _CLASSES.items()}[found[1]]
    word = f"{kind}{found[2]}" + (f"_{found[3]}" if found[3] else "")
    try:
        return np.dtype(getattr(ml_dtypes, word, word))
    except TypeError:
        raise Error(f"numpy and ml_dtypes have no dtype for {name}") from None


#: The limit on nesting of tuples, lists and dicts of arguments.
_MOST_NESTED = 100


def _leaves(value: Any, depth: int = 0) -> list[np.ndarray[Any, Any]]:
    """Returns the arrays of nested tuples, lists and dicts in jax's order: dicts are sorted, OrderedDicts are not."""
    if value is None:
        return []
    if depth > _MOST_NESTED:
        raise ValueError(f"the arguments are nested more than {_MOST_NESTED} levels deep")
    if isinstance(value, dict):
        keys = value if isinstance(value, OrderedDict) else sorted(value)
        return [leaf for key in keys for leaf in _leaves(value[key], depth + 1)]
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in _leaves(item, depth + 1)]
    return [np.asarray(value)]


def _arrays(values: Any, told: Sink) -> Any:
    made = ffi.new("hlo_arrays **")
    told.check(lib.hlo_arrays_new(made))
    arrays = ffi.gc(made[0], lib.hlo_arrays_free)
    for leaf in _leaves(values):
        name = type_name(leaf.dtype)
        kind = lib.hlo_element_type_parse(name.encode())
        if kind == lib.HLO_TYPE_INVALID:
            raise TypeError(f"HLO has no element type {name}")
        dense = np.require(leaf, leaf.dtype.newbyteorder("="), "C")
        dims = ffi.new("int64_t[]", list(leaf.shape))
        data = ffi.from_buffer(dense.reshape(-1).view(np.uint8)) if dense.size else ffi.NULL
        told.check(lib.hlo_arrays_append(arrays, kind, leaf.ndim, dims, data))
    return arrays


def _numpy(array: Any) -> np.ndarray[Any, Any]:
    dtype = dtype_of(string(lib.hlo_element_type_name(array.type)) or "")
    dims = [array.dims[i] for i in range(array.rank)]
    made: np.ndarray[Any, Any] = np.empty(dims, dtype)
    ffi.memmove(ffi.from_buffer(made.reshape(-1).view(np.uint8)), array.data, array.size)
    return made


def _drawn(module: Any, seed: int, kind: str, told: Sink) -> Any:
    made = ffi.new("hlo_arrays **")
    draw, number = enumerator("hlo_draw", kind), integer_of("seed", seed, 2**64 - 1)
    told.check(lib.hlo_arrays_draw_each(module, draw, number, 1, told.pointer, made))
    return ffi.gc(made[0], lib.hlo_arrays_free)


def recorded(module: Any, role: Any, told: Sink) -> Any:
    """Returns the inputs or outputs in the snapshot from which the module was read, or None."""
    made = ffi.new("hlo_arrays **")
    told.check(lib.hlo_arrays_recorded(module, role, 1, told.pointer, made))
    return ffi.gc(made[0], lib.hlo_arrays_free) if made[0] else None


def inputs_of(module: Any, args: Any, seed: int, kind: str, told: Sink) -> Any:
    """Returns the inputs of a run: ``args`` or, if ``args`` is None, those of a snapshot, or random inputs."""
    if args is not None:
        return _arrays(args, told)
    return recorded(module, lib.HLO_INPUTS, told) or _drawn(module, seed, kind, told)


def plan_options(*, backend: str = "cpu", accumulate: str = "f32", **fields: Any) -> Any:
    """Returns ``hlo_plan_options *``. The caller must keep alive the objects that ``fields`` point to."""
    if text_of("backend", backend) not in ("cpu", "cuda"):
        raise invalid_value("backend", backend, "one of cpu, cuda")
    made = ffi.new("hlo_plan_options *")
    lib.hlo_plan_options_init_sized(made, ffi.sizeof(made[0]))
    if backend != "cpu":
        made.backend = _CUDA
    made.accumulate = enumerator("hlo_accumulate", accumulate)
    made.progress = _GO_ON
    for key, value in fields.items():
        setattr(made, key, value)
    return made


@contextmanager
def ran(module: Any, inputs: Any, how: Any, told: Sink) -> Iterator[tuple[Any, Any]]:
    """Yields a plan and the outputs of its first run."""
    plan, outputs = ffi.new("hlo_plan **"), ffi.new("hlo_arrays **")
    told.check(lib.hlo_plan_new(module, how, told.pointer, plan))
    try:
        told.check(lib.hlo_plan_run(plan[0], inputs, told.pointer, outputs))
        yield plan[0], ffi.gc(outputs[0], lib.hlo_arrays_free)
    finally:
        lib.hlo_plan_free(plan[0])


def _execute(module: Any, inputs: Any, how: Any, told: Sink) -> Any:
    with ran(module, inputs, how, told) as (_plan, outputs):
        return outputs


def _all(arrays: Any) -> list[Any]:
    return [lib.hlo_arrays_at(arrays, i) for i in range(lib.hlo_arrays_count(arrays))]


def draw(module: ModuleLike, seed: int = 0, kind: str = "normal") -> list[np.ndarray[Any, Any]]:
    """Returns random inputs for a module. The same seed gives the same inputs.

    Args:
      module: as for ``rewrite``.
      seed: as for ``numpy.random.default_rng``.
      kind: "normal" for standard normal values and positive scales, or "realistic" for values as in a trained model
        (docs/inside.md).
    """
    with sink() as told:
        arrays = _drawn(read(module, None, told), seed, kind, told)
    return [_numpy(array) for array in _all(arrays)]


def run(
    module: ModuleLike,
    args: Any = None,
    *,
    seed: int = 0,
    draw: str = "normal",
    backend: str = "cpu",
    accumulate: str = "f32",
    check_nan: bool = False,
) -> list[np.ndarray[Any, Any]]:
    """Executes the entry computation of a module, including FP8 calls.

    Args:
      module: as for ``rewrite``, or the result of ``rewrite``.
      args: the leaves of the parameters of the entry computation, in order, nested in any way; None: the inputs in the
        snapshot from which the module was read, or random inputs.
      seed, draw: for random inputs, as in ``draw(module, seed, draw)``.
      backend: "cpu", or "cuda" for the first GPU of this machine.
      accumulate: the accumulation of FP8 calls on the CPU: "f32", or "hopper" to accumulate like Hopper's tensor cores
        (docs/numerics.md).
      check_nan: raise Error for the first instruction that produces a NaN or, from finite operands, an infinity.

    Returns:
      The leaves of the result as numpy arrays, followed by the arrays that the module sends to the host (docs/cpu.md).
      Element types that numpy lacks are types of ml_dtypes.

    Raises:
      Error: the arguments do not match the parameters, or an instruction is not supported. With ``check_nan``, also if
        an instruction produces a NaN or an infinity: the message names the instruction, the element and its operands.
    """
    if not isinstance(check_nan, bool):
        raise TypeError(f"check_nan must be a bool, not {type(check_nan).__name__}")
    how = plan_options(backend=backend, accumulate=accumulate, check_finite=check_nan)
    with sink() as told:
        made = read(module, None, told)
        with ran(made, inputs_of(made, args, seed, draw, told), how, told) as (plan, outputs):
            if lib.hlo_plan_nonfinite(plan):
                text = "\n".join(d.text for d in told.diagnostics if d.severity == "warning")
                raise Error(text, "mismatch", tuple(told.diagnostics))
            return [_numpy(array) for array in _all(outputs)]


def values(
    module: ModuleLike,
    names: str | Sequence[str],
    args: Any = None,
    *,
    seed: int = 0,
    draw: str = "normal",
    backend: str = "cpu",
    accumulate: str = "f32",
) -> dict[str, np.ndarray[Any, Any]]:
    """Returns the values of instructions in a run of the module. Instructions in a loop have their last value.

    Args:
      module, args, seed, draw, backend, accumulate: as for ``run``.
      names: names of instructions, or globs such as ``"dot*"``.

    Returns:
      The arrays by instruction name, in the order of computation. ``NAME{0}`` is an element of a tuple.
      If a branch does not run, its instructions are missing, and a RewriteWarning says so.

    Raises:
      Error: a name matches no instruction that can run.
    """
    if not isinstance(names, (str, list, tuple)):
        raise TypeError(f"names must be a str or a sequence of str, not {type(names).__name__}")
    several = [names] if isinstance(names, str) else [text_of("a name", name) for name in names]
    words = encoded(",".join(several))
    how = plan_options(backend=backend, accumulate=accumulate, values=words)
    with sink() as told:
        made = read(module, None, told)
        with ran(made, inputs_of(made, args, seed, draw, told), how, told) as (plan, _outputs):
            return {string(array.name) or "": _numpy(array) for array in _all(lib.hlo_plan_values(plan))}


def record_amaxes(what: Any, *args: Any, previous: Amaxes | None = None, **kwargs: Any) -> dict[str, Any]:
    """Executes a module or a JAX function on the CPU, and returns the largest values of the operands of its matmuls.

    Args:
      what: a module, as for ``rewrite``, or a function, as for ``jit``.
      *args, **kwargs: the arguments of the function, or of the module, as for ``run``.
      previous: an earlier result for the same module: the larger values are returned.

    Returns:
      The amaxes for ``rewrite(..., quantize="static", amaxes=...)`` and ``jit``. ``json.dump`` writes them to a file.

    Raises:
      Error: an operand has a NaN or an infinity, or ``previous`` was recorded for another module.
    """
    if is_module(what):
        module, inputs = what, list(args)
    else:
        from ._jax import lowered_inputs

        module, inputs = lowered_inputs(what, args, kwargs)
    with sink() as told:
        made = read(module, None, told)
        pointers = ffi.new("hlo_arrays *[]", [arrays := _arrays(inputs, told)])
        status, text = written(lambda out: lib.hlo_module_record_amaxes(made, pointers, 1, told.pointer, out))
        told.check(status)
        del arrays
    found: dict[str, Any] = json.loads(text)
    if previous is None:
        return found
    old = previous if isinstance(previous, Mapping) else json.loads(Path(previous).read_text(encoding="utf-8"))
    if old.get("fingerprint") != found["fingerprint"]:
        raise Error(
            f"previous has the fingerprint {old.get('fingerprint')}, but the module has {found['fingerprint']}: they "
            "must be recorded for the same module"
        )
    for name, amax in old["amaxes"].items():
        found["amaxes"][name] = np.maximum(amax, found["amaxes"].get(name, 0)).tolist()
    return found


@dataclass(frozen=True)
class Comparison:
    """The result of comparing two executions. It is true if they agree within a bound that is derived from the data."""

    equal: bool
    text: str  #: the differences, and a line that begins with ``compare:``

    def __bool__(self) -> bool:
        return self.equal

    def __str__(self) -> str:
        return self.text


class _Comparison:
    """A comparison in progress: the modules, their inputs, and the reference executions, whose bounds are used."""

    def __init__(self, inputs: Any, told: Sink):
        self.told, self.judges = told, []  # type: ignore[var-annotated]
        self.data = ffi.new("hlo_comparison *", {"struct_size": ffi.sizeof("hlo_comparison"), "inputs": inputs})
        self.table = ffi.new("hlo_arrays *[2]")
        self.data.judges = self.table

    def judge(self, module: Any, dropped: bool = True) -> None:
        """Executes a module with bounds, and samples its rounding noise in additional runs."""
        how = plan_options(bounds=True, roundings_may_be_dropped=dropped)
        arrays = _execute(module, self.data.inputs, how, self.told)
        self.judges.append(arrays)
        self.table[self.data.judge_count] = arrays
        self.data.judge_count += 1
        if not self.data.expected:
            self.data.expected = arrays
        self.told.check(lib.hlo_arrays_sample(arrays, self.data, module, how, self.data.inputs, self.told.pointer))

    def differs(self) -> bool:
        status = lib.hlo_arrays_compare_by(self.data, ffi.new("hlo_writer *")[0])
        if status != lib.HLO_MISMATCH:
            self.told.check(status)
        return bool(status == lib.HLO_MISMATCH)

    def text(self) -> str:
        _, text = written(lambda out: lib.hlo_arrays_compare_by(self.data, out))
        return text.decode("utf-8", "backslashreplace").rstrip("\n")


def compare(
    before: ModuleLike, after: Any = None, args: Any = None, *, seed: int = 0, draw: str = "normal"
) -> Comparison:
    """Compares the outputs of two modules, or of a module and given arrays.

    The bound on the difference of each element is the largest possible rounding error, derived from the data
    (docs/numerics.md).

    Args:
      before: the original module.
      after: a module with the same inputs, such as the result of ``rewrite``; arrays: outputs of another program; or
        None: the result in the snapshot from which ``before`` was read.
      args: as for ``run``.
      seed, draw: as for ``run``.

    Returns:
      A Comparison, which is true if all outputs agree.
    """
    with sink() as told:
        first = read(before, None, told)
        second = read(after, None, told) if is_module(after) else None
        inputs = inputs_of(first, args, seed, draw, told)
        if second is not None:
            found = _execute(second, inputs, plan_options(), told)
        else:
            found = recorded(first, lib.HLO_OUTPUTS, told) if after is None else _arrays(after, told)
        if found is None:
            raise Error("the module has no recorded result; pass a second module, or arrays", "invalid usage")
        comparison = _Comparison(inputs, told)
        names = ffi.new("char[]", b"after"), ffi.new("char[]", b"before")
        comparison.data.found, (comparison.data.found_name, comparison.data.expected_name) = found, names
        comparison.data.expected_module = first
        if second is not None:
            comparison.data.found_module = second
        comparison.judge(first, dropped=second is not None)
        if comparison.differs():
            comparison.data.last_drops = second is None
            comparison.judge(first if second is None else second)
        return Comparison(not comparison.differs(), comparison.text())
