# SPDX-License-Identifier: Apache-2.0
"""Loads the shared library, with declarations read from its headers, and converts its diagnostics."""

from __future__ import annotations

import contextlib
import operator
import os
import pathlib
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from cffi import FFI

HERE = pathlib.Path(__file__).parent
#: The environment variable with the id of the process whose report has the name that the option --report gives.
MAIN_PROCESS = "HLOFP8_MAIN_PROCESS"
# The headers. A header comes after the headers that it includes.
_HEADERS = ("status", "diag", "module", "ir", "text", "proto", "pass", "report", "runtime", "bisect")


def _declarations(name: str) -> str:
    """Returns the declarations of a public header, without comments and preprocessor lines."""
    text = (HERE / "include" / "hlo" / f"{name}.h").read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"^#ifdef __(cplusplus|GNUC__)\n.*?^#endif\n", "", text, flags=re.S | re.M)
    text = re.sub(r"^static inline .*?^}\n", "", text, flags=re.S | re.M)
    return re.sub(r"^#(.*\\\n)*.*\n", "", text, flags=re.M)


ffi: Any = FFI()
ffi.cdef(
    "".join(map(_declarations, _HEADERS))
    + "FILE *open_memstream(char **text, size_t *size); int fclose(FILE *file); void free(void *memory);"
)
lib: Any = ffi.dlopen(str(HERE / "libhlofp8.so"))
_libc: Any = ffi.dlopen(None)


@dataclass(frozen=True)
class Diagnostic:
    """A message of the library about a location in a module."""

    severity: str  #: "error", "warning" or "note"
    message: str
    file: str | None
    line: int  #: the line in the file, from 1; 0 if unknown
    column: int  #: the column in bytes, from 1; 0 if unknown
    text: str  #: ``file:line:col: error: message``, the source line, and a caret below the column

    def __str__(self) -> str:
        return self.text


class Error(Exception):
    """An error reported by the library or this package. ``str()`` shows each location in a module with a caret."""

    def __init__(self, message: str, status: str = "invalid input", diagnostics: tuple[Diagnostic, ...] = ()):
        super().__init__(message)
        self.status = status  #: "invalid input", "invalid usage", "mismatch", "internal error" or "out of memory"
        self.diagnostics = diagnostics


class RewriteWarning(UserWarning):
    """A warning of the library, or a notice that a function runs without being rewritten."""


def string(pointer: Any) -> str | None:
    """Returns the text at a ``const char *``, or None for NULL."""
    return ffi.string(pointer).decode("utf-8", "backslashreplace") if pointer else None


def enumerator(kind: str, word: str) -> int:
    """Returns the enumerator of ``kind`` whose name ends in ``word``: HLO_EMIT_QDQ for "qdq"."""
    text_of(kind.split("_")[1], word)
    names = {name.split("_", 2)[2].lower(): value for value, name in sorted(ffi.typeof(kind).elements.items())}
    if word not in names:
        raise invalid_value(kind.split("_")[1], word, f"one of {', '.join(names)}")
    return int(names[word])


def invalid_value(name: str, value: Any, expected: str) -> Error:
    """Returns the error for an argument ``name`` that has an invalid value."""
    return Error(f"invalid value {value!r} for {name}: expected {expected}", "invalid usage")


def text_of(name: str, value: Any) -> str:
    """Checks that the argument ``name`` is a str, and returns it."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    return value


def integer_of(name: str, value: Any, most: int = 2**31 - 1) -> int:
    """Checks that the argument ``name`` is an integer from 0 to ``most``, and returns it."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    number = operator.index(value)
    if not 0 <= number <= most:
        raise ValueError(f"{name} is {number}, but must be from 0 to {most}")
    return number


def written(write: Callable[[Any], int]) -> tuple[int, bytes]:
    """Calls a function that writes to a ``FILE *``. Returns its status and the bytes written."""
    text, size = ffi.new("char **"), ffi.new("size_t *")
    file = _libc.open_memstream(text, size)
    if not file:
        raise MemoryError
    try:
        status = write(file)
    finally:
        closed = _libc.fclose(file)
        result = bytes(ffi.buffer(text[0], size[0])) if text[0] else b""
        free(text[0])
    if closed:
        raise MemoryError
    return status or 0, result


def free(pointer: Any) -> None:
    """Frees memory that the library allocated for its caller."""
    _libc.free(pointer)


def warn(message: str) -> None:
    """Issues a RewriteWarning for the innermost caller outside this package and outside JAX."""
    frame, level, jax = sys._getframe(1), 2, sys.modules.get("jax")
    inside = (str(HERE), contextlib.__file__, *(getattr(jax, "__path__", None) or ()))
    while frame.f_back and frame.f_code.co_filename.startswith(inside):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, RewriteWarning, stacklevel=level)


_stopped = threading.local()


def stop(_kind: Any, error: BaseException, _traceback: Any) -> None:
    """Stores an exception of a callback, which Sink.check() raises on the same thread."""
    _stopped.error = error


class Sink:
    """Collects the diagnostics of calls into the library, and raises their errors."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._emit = ffi.callback("void(void *, const hlo_diag *)", self._collect)
        self.pointer = ffi.new("hlo_diag_sink *", {"emit": self._emit})

    def _collect(self, _user: Any, diag: Any) -> None:
        _, text = written(lambda file: lib.hlo_diag_print(file, diag, 100))
        severity = ffi.string(ffi.cast("hlo_severity", diag.severity))
        self.diagnostics.append(
            Diagnostic(
                severity.split("_")[1].lower(),
                string(diag.message) or "",
                string(diag.file),
                diag.line,
                diag.column,
                text.decode("utf-8", "backslashreplace").rstrip("\n"),
            )
        )

    def check(self, status: int) -> None:
        """Raises Error unless the status is HLO_OK."""
        if status == lib.HLO_OK:
            return
        if status == lib.HLO_OUT_OF_MEMORY:
            raise MemoryError
        if status == lib.HLO_STOPPED:
            raise _stopped.__dict__.pop("error")
        name = string(lib.hlo_status_name(status)) or ""
        told = [d for d in self.diagnostics if d.severity != "warning"]
        raise Error("\n".join(d.text for d in told) or name, name, tuple(self.diagnostics))


@contextlib.contextmanager
def sink() -> Iterator[Sink]:
    """Yields a sink for calls. If all of these calls succeed, their warnings are issued as RewriteWarnings."""
    made = Sink()
    yield made
    for diagnostic in made.diagnostics:
        if diagnostic.severity == "warning":
            warn(diagnostic.text)


def get_include() -> str:
    """Returns the folder with the library's C headers."""
    return os.fspath(HERE / "include")
