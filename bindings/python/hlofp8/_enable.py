# SPDX-License-Identifier: Apache-2.0
"""Rewrites every module that JAX compiles, whoever called ``jax.jit``.

``enable`` replaces the function through which JAX compiles a module, and the function that extends the keys of its
persistent compilation cache.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import fnmatch
import functools
import hashlib
import inspect
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jaxlib

from . import _dispatch
from ._dispatch import Unsupported, part
from ._explain import observed
from ._jax import modules, rewrite_module
from ._library import HERE, Error, text_of, warn
from ._module import Rewritten, Verdict, jax_options, joined, option_text, page, unmatched_wide

# The versions of jax and jaxlib whose private parts this file uses.
_VERSIONS = ("0.10",)


@dataclass(frozen=True)
class _Settings:
    """The arguments of enable(). ``text`` identifies them."""

    text: str
    module: str = field(compare=False)
    report: str | None = field(compare=False)
    options: dict[str, Any] = field(compare=False)


class _Compiled(NamedTuple):
    """A module that was compiled. A module without matmuls has neither a line nor ``why``."""

    name: str
    settings: _Settings
    line: str | None  # the summary of the verdicts
    report: Any  # the hlo_report, or None
    verdicts: tuple[Verdict, ...]
    why: str | None  # the reason why it was not rewritten


_compiled: list[_Compiled] = []
_lock = threading.Lock()
_process = 0
chosen = False  # True after enable() or disable(), which take precedence over the environment variable


def settings_of(module: str | None = None, report: str | None = None, **options: Any) -> _Settings:
    """Checks the arguments of enable()."""
    for name, value in (("module", module), ("report", report)):
        if value is not None:
            text_of(name, value)
    options = jax_options(options)
    if "wide" in options:
        options["wide"] = joined(options["wide"])
    if "rules" in options:
        options["rules"] = os.path.abspath(options["rules"])
    words = {**options, **({"module": module} if module is not None else {})}
    return _Settings(option_text(words), module or "*", report and os.path.abspath(report), options)


@functools.cache
def _version() -> str:
    """Identifies the library, which has no version that changes with each build."""
    return "hlofp8 " + hashlib.sha256((HERE / "libhlofp8.so").read_bytes()).hexdigest()[:16]


def _wrapped(path: str, wrapper: Callable[..., Any], parameters: tuple[str, ...]) -> Callable[[], None]:
    """Checks a function of JAX, and returns a function that replaces it by ``wrapper(function, *args)``."""
    module, name = path.split(":")
    function = part(path)
    if tuple(inspect.signature(function).parameters)[: len(parameters)] != parameters:
        raise Unsupported(f"jax {jax.__version__} has an unsupported signature of {name}")
    wrapping = functools.wraps(function)(functools.partial(wrapper, function))
    return lambda: setattr(sys.modules[module], name, wrapping)


@functools.cache
def _install() -> None:
    """Makes JAX call the functions of this file. Raises Error, and changes nothing, for an unknown version of JAX."""
    for name, version in (("jax", jax.__version__), ("jaxlib", jaxlib.__version__)):
        if ".".join(version.split(".")[:2]) not in _VERSIONS:
            known = ", ".join(_VERSIONS)
            raise Error(f"hlofp8.enable() requires {name} {known}, not {version}; hlofp8.jit works", "invalid usage")
    try:
        replace = [
            _wrapped("jax._src.compiler:compile_or_get_cached", _compile, ("backend", "computation", "devices")),
            _wrapped("jax._src.cache_key:custom_hook", _cache_key, ()),
        ]
        _dispatch.enabled_options = jax.make_user_context(None)
    except (Unsupported, AttributeError) as error:
        raise Error(f"hlofp8.enable() does not support this version of JAX: {error}", "invalid usage") from None
    for each in replace:
        each()
    atexit.register(_finish)


def _cache_key(inner: Callable[[], str]) -> str:
    settings = _dispatch.enabled_options.value
    return inner() + (f" {_version()} {settings.text}" if settings else "")


def _has_matmul(module: Any) -> bool:
    """Returns True if a StableHLO module has an operation that a matmul of HLO could come from."""
    ir, found = part("jaxlib.mlir:ir"), []

    def look(operation: Any) -> Any:
        name = operation.name
        if name == "stablehlo.custom_call":
            name = ir.StringAttr(operation.attributes["call_target_name"]).value
        if re.search("dot|convolution|conv[FB]|fmha|matmul", name):
            found.append(name)
            return ir.WalkResult.INTERRUPT
        return ir.WalkResult.ADVANCE

    module.operation.walk(look)
    return bool(found)


def _compile(
    inner: Callable[..., Any], backend: Any, computation: Any, devices: Any, *args: Any, **kwargs: Any
) -> Any:
    """Replaces JAX's function that compiles a module or loads it from the persistent cache."""
    global _process
    settings = _dispatch.enabled_options.value
    if settings is None:
        return inner(backend, computation, devices, *args, **kwargs)
    _process = backend.process_index()
    name = part("jaxlib.mlir:ir").StringAttr(computation.operation.attributes["sym_name"]).value
    new, rewritten, why = computation, modules.get(computation), None
    several = len({device.process_index for device in devices.flat}) > 1
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
            _agree(name, computation, new, settings)
    try:
        executable = inner(backend, new, devices, *args, **kwargs)
    except RuntimeError as error:
        # With several processes, the others may have compiled the rewritten module.
        if new is computation or several:
            raise
        why = _give_up(name, f"XLA cannot compile the rewritten module: {error}")
        rewritten = None
        executable = inner(backend, computation, devices, *args, **kwargs)
    if rewritten:
        line, report = rewritten.remarks().splitlines()[-1], rewritten._report
        _compiled.append(_Compiled(name, settings, line, report, rewritten.verdicts, None))
    else:
        _compiled.append(_Compiled(name, settings, None, None, (), why))
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
    return reason


_compilations: collections.Counter[str] = collections.Counter()


def _agree(name: str, before: Any, after: Any, settings: _Settings) -> None:
    """Raises Error if another process has rewritten the same module in a different way."""
    client = part("jax._src.distributed:global_state").client
    if client is None:
        return
    canonical, ignore = part("jax._src.cache_key:_canonicalize_ir"), part("jax._src.cache_key:IgnoreCallbacks").ALL
    was, now = (hashlib.sha256(canonical(module, ignore)).hexdigest() for module in (before, after))
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
                f"processes rewrite {name} in different ways: the options of hlofp8.enable() are {settings.text!r} here "
                f"and {theirs!r} in another process",
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
    """Rewrites all modules that JAX compiles from now on, whoever called ``jax.jit``, to FP8 matmuls.

    Functions that JAX has already compiled are compiled again at their next call. A module that cannot be rewritten is
    compiled without being rewritten, with a RewriteWarning. Modules of ``hlofp8.jit`` keep their own options. At exit,
    the summary is printed to stderr.

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
    global chosen
    settings = settings_of(**locals())
    _install()
    chosen = True
    _dispatch.enabled_options.set_global(settings)


def disable() -> None:
    """Ends the effect of ``enable``: JAX compiles modules as they are. Functions are compiled again if necessary."""
    global chosen
    chosen = True
    if _dispatch.enabled_options:
        _dispatch.enabled_options.set_global(None)


@contextlib.contextmanager
def enabled(**options: Any) -> Iterator[None]:
    """A context manager: ``enable(**options)`` for the calls of this thread in its body.

    Contexts may be nested. The options of the innermost context apply alone.
    """
    settings = settings_of(**options)
    _install()
    with _dispatch.enabled_options(settings):
        yield


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"


def _gain(verdicts: Sequence[Verdict]) -> str:
    before, after = sum(v.input_seconds for v in verdicts), sum(v.seconds for v in verdicts)
    if not before or not after:
        return ""
    return f"; {_milliseconds(before)} -> {_milliseconds(after)} predicted ({before / after:.2f}x)"


def _next(settings: Sequence[_Settings]) -> Iterator[str]:
    """Yields what the user could do, as lines."""
    verdicts = [verdict for each in _compiled for verdict in each.verdicts]
    reasons: collections.defaultdict[str, list[Verdict]] = collections.defaultdict(list)
    for verdict in verdicts:
        if verdict.reason:
            reasons[verdict.reason].append(verdict)
    if "not-quantized" in reasons and not any("quantize" in each.options for each in settings):
        yield "--quantize=current quantizes matmuls of bf16, f16 and f32 values, which changes the results"
    elif reasons:
        reason, most = max(reasons.items(), key=lambda item: sum(verdict.flops for verdict in item[1]))
        yield f"{len(most)} matmuls are {reason}: {most[0].message}; {most[0].hint}"
    if any(verdict.quantized for verdict in verdicts):
        yield "compare the losses with those of a run without hlofp8: quantized matmuls compute other results"
    if verdicts and not any(each.report for each in settings):
        yield "--report=FILE.html writes a page about all matmuls"


def summary() -> str:
    """Returns the summary of the modules that JAX compiled while ``enable`` or ``enabled`` was in effect."""
    settings = list(dict.fromkeys(each.settings for each in _compiled))
    matmuls = [each for each in _compiled if each.line or each.why]
    used = " and with ".join(each.text or "no options" for each in settings) or "no options"
    lines = [f"{len(_compiled)} modules compiled with {used}; {len(matmuls)} have matmuls"]
    for each in matmuls:
        lines.append(f"  {each.name}: {each.line or f'not rewritten: {each.why}'}{_gain(each.verdicts)}")
    for one in settings:
        reports = [each.report for each in _compiled if each.report and each.settings == one]
        lines += unmatched_wide(reports, one.options.get("wide", ""))
    return "\n".join(lines + [f"next: {line}" for line in _next(settings)])


def _finish() -> None:
    """Prints the summary and writes the reports, in the first process."""
    if _process or not _compiled:
        return
    print("hlofp8: " + summary().replace("\n", "\nhlofp8: "), file=sys.stderr)
    for path in dict.fromkeys(each.settings.report for each in _compiled):
        if path:
            found = [each for each in _compiled if each.report and each.settings.report == path]
            with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(page([each.report for each in found], found[0].settings.text if found else ""))
