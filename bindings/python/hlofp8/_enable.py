# SPDX-License-Identifier: Apache-2.0
"""Rewrites every module that JAX compiles, also those of libraries.

``enable`` replaces the function through which JAX lowers a module, the function through which it compiles one, and the
function that extends the keys of its persistent compilation cache.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import fnmatch
import functools
import hashlib
import inspect
import multiprocessing
import os
import re
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from . import _dispatch
from ._dispatch import Unsupported, part
from ._explain import observed
from ._jax import modules, rewrite_module
from ._library import HERE, MAIN_PROCESS, Error, text_of, warn
from ._module import Rewritten, Verdict, enable_options, joined, option_text, page, remarks, unmatched_wide
from ._report import microseconds, model_of

# The versions of jax and jaxlib whose private parts this file uses.
_VERSIONS = ("0.8", "0.9", "0.10", "0.11", "0.12")


@dataclass(frozen=True)
class _Settings:
    """The arguments of enable(). ``text`` identifies them."""

    text: str
    module: str = field(compare=False)
    report: str | None = field(compare=False)
    options: dict[str, Any] = field(compare=False)


class _Compiled(NamedTuple):
    """A module that was compiled. A module without matmuls has neither a report nor ``why``."""

    name: str
    settings: _Settings
    report: Any  # the hlo_report, or None
    verdicts: tuple[Verdict, ...]
    why: str | None  # the reason why it was not rewritten


class _Compiling(threading.local):
    """The options for the module that a thread compiles, or None."""

    settings: _Settings | None = None


_compiling = _Compiling()
# The options for modules that will be compiled. They are those of the call of lower(), because JAX may use the compiled
# module for all later calls with these options.
_lowered: weakref.WeakKeyDictionary[Any, _Settings] = weakref.WeakKeyDictionary()
_compiled: list[_Compiled] = []
_LISTED = 12  # maximum number of modules in the summary
_lock = threading.Lock()
_process = 0
_installed = False
_chosen = False  # True after enable() or disable(), which take precedence over the environment variable


def _settings_of(module: str | None = None, report: str | None = None, **options: Any) -> _Settings:
    """Checks the arguments of enable()."""
    for name, value in (("module", module), ("report", report)):
        if value is not None:
            text_of(name, value)
    options = enable_options(options)
    if "wide" in options:
        options["wide"] = joined(options["wide"], "wide")
    if "rules" in options:
        options["rules"] = os.path.abspath(options["rules"])
    words = {**options, **({"module": module} if module is not None else {})}
    return _Settings(option_text(words), module or "*", report and os.path.abspath(report), options)


@functools.cache
def _version() -> str:
    """Identifies the library, which has no version that changes with each build."""
    return "hlofp8 " + hashlib.sha256((HERE / "libhlofp8.so").read_bytes()).hexdigest()[:16]


def _install() -> None:
    """Makes JAX call the functions of this file. Raises Error, and changes nothing, for an unknown version of JAX."""
    global _installed
    with _lock:
        if _installed:
            return
        for name in ("jax", "jaxlib"):
            version = part(f"{name}:__version__")
            if ".".join(version.split(".")[:2]) not in _VERSIONS:
                raise Error(f"hlofp8.enable() supports {name} {', '.join(_VERSIONS)}, not {version}", "invalid usage")
        try:
            for used in ("jax:make_user_context", "jax._src.distributed:global_state", "jaxlib.mlir:ir"):
                part(used)
            lower = part("jax._src.interpreters.mlir:lower_jaxpr_to_module")
            compile_module = part("jax._src.compiler:compile_or_get_cached")
            cache_key = part("jax._src.cache_key:custom_hook")
        except Unsupported as error:
            raise Error(f"hlofp8.enable() cannot be used: {error}", "invalid usage") from None
        if tuple(inspect.signature(compile_module).parameters)[:3] != ("backend", "computation", "devices"):
            raise Error(f"hlofp8.enable() does not support compile_or_get_cached of jax {version}", "invalid usage")
        for name, function, wrapper in (
            ("interpreters.mlir", lower, _lower),
            ("compiler", compile_module, _compile),
            ("cache_key", cache_key, _cache_key),
        ):
            wrapped = functools.wraps(function)(functools.partial(wrapper, function))
            setattr(sys.modules[f"jax._src.{name}"], function.__name__, wrapped)
        atexit.register(_finish)
        _installed = True


def _context() -> Any:
    with _lock:
        if _dispatch.context is None:
            _dispatch.context = part("jax:make_user_context")(None)
    return _dispatch.context


def _value(settings: _Settings) -> _Settings | None:
    """Returns the value of the context: None if HLOFP8 has the same options, so that no function is compiled again."""
    own = _dispatch.environment_options
    return None if own == settings and own.report == settings.report else settings


def _cache_key(inner: Callable[[], str]) -> str:
    settings = _compiling.settings
    return inner() + (f" {_version()} {settings.text}" if settings else "")


def _has_matmul(module: Any) -> bool:
    """Returns True if a StableHLO module has an operation that a matmul of HLO could come from."""
    ir, found = part("jaxlib.mlir:ir"), []

    def look(operation: Any) -> Any:
        name = operation.name
        if name == "stablehlo.custom_call":
            name = ir.StringAttr(operation.attributes["call_target_name"]).value
        if re.search("dot|convolution|fmha|matmul", name):
            found.append(name)
            return ir.WalkResult.INTERRUPT
        return ir.WalkResult.ADVANCE

    module.operation.walk(look)
    return bool(found)


def _lower(inner: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Replaces JAX's function that makes a module."""
    result, settings = inner(*args, **kwargs), _dispatch.options()
    if settings:
        _lowered[result.module] = settings
    return result


def _compile(inner: Callable[..., Any], backend: Any, computation: Any, devices: Any, *args: Any, **kwargs: Any) -> Any:
    """Replaces JAX's function that compiles a module or loads it from the persistent cache."""
    settings = _dispatch.options() if computation in modules else _lowered.get(computation)
    around, _compiling.settings = _compiling.settings, settings
    try:
        if settings is None:
            return inner(backend, computation, devices, *args, **kwargs)
        return _compile_rewritten(inner, settings, backend, computation, devices, *args, **kwargs)
    finally:
        _compiling.settings = around


def _compile_rewritten(
    inner: Callable[..., Any],
    settings: _Settings,
    backend: Any,
    computation: Any,
    devices: Any,
    *args: Any,
    **kwargs: Any,
) -> Any:
    global _process
    _process = backend.process_index()
    name = part("jaxlib.mlir:ir").StringAttr(computation.operation.attributes["sym_name"]).value
    new, rewritten, why = computation, modules.get(computation), None
    processes = {device.process_index for device in devices.flat}
    several = len(processes) > 1
    if rewritten is None and _has_matmul(computation):
        if fnmatch.fnmatchcase(name, settings.module):
            try:
                new, rewritten = _rewritten(name, computation, settings, backend, devices.flat[0])
            except MemoryError:
                raise
            except Exception as error:
                why = _give_up(name, str(error) or repr(error))
        else:
            why = f"its name does not match {settings.module}"
        if several:
            _agree(name, processes, computation, new, settings)
    try:
        executable = inner(backend, new, devices, *args, **kwargs)
    except RuntimeError as error:
        # With several processes, the others may have compiled the rewritten module.
        if new is computation or several:
            raise
        why = _give_up(name, f"XLA cannot compile the rewritten module: {error}")
        rewritten = None
        executable = inner(backend, computation, devices, *args, **kwargs)
    report, verdicts = (rewritten._report, rewritten.verdicts) if rewritten else (None, ())
    _compiled.append(_Compiled(name, settings, report, verdicts, why))
    return executable


def _rewritten(name: str, module: Any, settings: _Settings, backend: Any, device: Any) -> tuple[Any, Rewritten]:
    platform = getattr(backend, "_raw_platform", backend.platform)
    if platform not in ("cpu", "cuda"):
        raise Unsupported(f"it is for {platform}, not for cpu or cuda")
    options = {"wide_unmatched": True, "surroundings": settings.report is not None, **settings.options}
    new, rewritten = rewrite_module(module, name, options, (platform,), device)
    observed(rewritten, module)
    return new, rewritten


def _give_up(name: str, reason: str) -> str:
    warn(f"{name} is compiled without being rewritten: {reason}")
    return reason.split("\n")[0]


_compilations: collections.Counter[str] = collections.Counter()
_WAIT_S = 300  # the default timeout of jax.distributed.initialize()


def _agree(name: str, processes: set[int], before: Any, after: Any, settings: _Settings) -> None:
    """Raises Error if another process does not rewrite modules, or has rewritten this one in a different way."""
    state = part("jax._src.distributed:global_state")
    client = state.client
    if client is None:
        return
    if not _compilations and len(processes) == state.num_processes:  # all processes compile the same first module
        try:
            client.wait_at_barrier("hlofp8", 1000 * _WAIT_S)
        except RuntimeError as error:
            raise Error(
                f"hlofp8 is not enabled in all processes, or some of them do not compile {name}: {error}", "mismatch"
            ) from None
    texts = (module.operation.get_asm(enable_debug_info=False) for module in (before, after))
    was, now = (hashlib.sha256(text.encode()).hexdigest() for text in texts)
    with _lock:
        _compilations[was] += 1
        key = f"hlofp8/{was}/{_compilations[was]}"
    own = f"{now} {settings.text}"
    try:
        client.key_value_set(key, own)
    except RuntimeError:  # another process was first
        others = client.blocking_key_value_get(key, 60_000)
        if others.split(" ")[0] != now:
            theirs = others.partition(" ")[2]
            raise Error(
                f"processes rewrite {name} in different ways: the options are {settings.text!r} here and {theirs!r} in "
                "another process",
                "mismatch",
            ) from None


def enable(
    *,
    quantize: str | None = None,
    wide: str | Sequence[str] | None = None,
    min_gain: float | None = None,
    module: str | None = None,
    report: str | None = None,
    emit: str | None = None,
    target: str | int | None = None,
    cuda: str | None = None,
    rules: str | None = None,
    allow_bias_rounding: bool | None = None,
    merge_dots: bool | None = None,
    ragged: str | None = None,
    framework_files: str | None = None,
) -> None:
    """Rewrites all modules that JAX compiles from now on to FP8 matmuls, also those of libraries.

    Functions that JAX has already compiled are compiled again at their next call. A module that cannot be rewritten is
    compiled without being rewritten, with a RewriteWarning. Modules of ``hlofp8.jit`` keep their own options. At exit,
    the summary is printed to stderr. Before the first call of ``enable`` or ``enabled``, no other thread may use JAX.

    Args:
      quantize: "current" or "current,attention" quantizes the operands of wide matmuls, which changes the results
        (docs/quantize.md).
      wide: matmuls that are not converted, as for ``rewrite``.
      min_gain: convert a matmul only if the roofline model predicts at least this speedup.
      module: rewrite only modules whose name, such as "jit_train_step", matches this glob.
      report: at exit, write an HTML page about all matmuls to this file.
      emit, target, cuda, rules, allow_bias_rounding, merge_dots, ragged, framework_files: as for ``hlofp8.jit``.

    Raises:
      Error: the value of an option is invalid, or this version of JAX is not supported. Then, nothing changes.
    """
    global _chosen
    settings = _settings_of(**locals())
    _install()
    _chosen = True
    _context()._obj.set_global(_value(settings))


def disable() -> None:
    """Ends the effect of ``enable``: JAX compiles modules as they are. Functions are compiled again if necessary."""
    global _chosen
    _chosen = True
    if _dispatch.context or _dispatch.environment_options:
        _context()._obj.set_global(False)


@contextlib.contextmanager
def enabled(**options: Any) -> Iterator[None]:
    """A context manager: ``enable(**options)`` for the calls of this thread in its body.

    Contexts may be nested. The options of the innermost context apply alone.
    """
    settings = _settings_of(**options)
    _install()
    with _context()(_value(settings)):
        yield


def enable_from_environment(**options: Any) -> None:
    """Implements HLOFP8, unless the program has called enable() or disable(). No function is compiled again."""
    settings = _settings_of(**options)
    if not _chosen:
        _install()
        _dispatch.environment_options = settings


def _distinct() -> list[_Compiled]:
    """Returns the compiled modules. A function that JAX compiled again with the same options is listed once."""
    found = {(each.name, each.settings, each.why, repr(each.verdicts)): each for each in _compiled}
    return list(found.values())


def _line(modules: Sequence[_Compiled]) -> str:
    """Returns the number of FP8 matmuls and the predicted times of modules."""
    line = remarks([each.report for each in modules]).splitlines()[-1]
    line = line.replace(", so the module computes other results than before", "")  # the summary says this once
    totals = model_of([each.report for each in modules]).totals
    before, after = totals.input_seconds, totals.seconds
    if not after:
        return line
    return f"{line}; {microseconds(before)} -> {microseconds(after)} us by roofline ({before / after:.2f}x)"


def _next(settings: Sequence[_Settings]) -> Iterator[str]:
    """Yields what the user could do, as lines."""
    model = model_of([each.report for each in _distinct() if each.report])
    wide = [group for group in model.groups if group.kind == "wide" and group.reason != "wide-by-option"]
    if "not-quantized" in model.totals.reasons and not any("quantize" in each.options for each in settings):
        yield "--quantize=current quantizes matmuls of bf16, f16 and f32 values, which changes the results"
    elif wide:
        most = [matmul for matmul in model.matmuls if (matmul.kind, matmul.reason) == ("wide", wide[0].reason)]
        yield f"{len(most)} wide matmuls: {most[0].reason}: {most[0].message}; {most[0].hint}"
    if model.totals.quantized:
        yield "compare the losses with those of a run without hlofp8: quantized matmuls compute other results"
    if model.matmuls and not any(each.report for each in settings):
        yield "--report=FILE.html writes a page about all matmuls"


def summary() -> str:
    """Returns the summary of the modules that JAX compiled while ``enable`` or ``enabled`` was in effect."""
    settings = list(dict.fromkeys(each.settings for each in _compiled))
    matmuls = [each for each in _distinct() if each.report or each.why]
    matmuls.sort(key=lambda each: model_of([each.report] if each.report else []).totals.input_seconds, reverse=True)
    lines = [f"compiled modules: {len(_compiled)}, with matmuls: {len(matmuls)}"]
    lines += [f"options: {each.text or 'none'}" for each in settings]
    for each in matmuls[:_LISTED]:
        lines.append(f"  {each.name}: {_line([each]) if each.report else f'not rewritten: {each.why}'}")
    if len(matmuls) > _LISTED:
        lines.append(f"  and {len(matmuls) - _LISTED} modules whose matmuls take less time")
    if len(reported := [each for each in matmuls if each.report]) > 1:
        lines.append(f"  in total: {_line(reported)}")
    for one in settings:
        reports = [each.report for each in matmuls if each.report and each.settings == one]
        lines += unmatched_wide(reports, one.options.get("wide", "")) if reports else []
    return "\n".join(lines + [f"next: {line}" for line in _next(settings)])


def _report_file(path: str) -> str:
    """Returns the file of a report. Child processes that inherit --report insert their process id before the suffix."""
    own, inherited = str(os.getpid()), _dispatch.environment_options
    if not inherited or path != inherited.report or os.environ.get(MAIN_PROCESS, own) == own:
        return path
    root, suffix = os.path.splitext(path)
    return f"{root}-{own}{suffix}"


def _finish() -> None:
    """Prints the summary and writes the reports, in the first process, and not in its workers."""
    if _process or not _compiled or multiprocessing.parent_process():
        return
    print("hlofp8: " + summary().replace("\n", "\nhlofp8: "), file=sys.stderr)
    for path, settings in {each.settings.report: each.settings for each in _compiled}.items():
        if path:
            found = [each for each in _distinct() if each.report and each.settings.report == path]
            path = _report_file(path)
            try:
                with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
                    file.write(page([each.report for each in found], f"python -m hlofp8 {settings.text}"))
                print(f"hlofp8: report: {path}", file=sys.stderr)
            except OSError as error:
                print(f"hlofp8: cannot write the report: {error}", file=sys.stderr)
