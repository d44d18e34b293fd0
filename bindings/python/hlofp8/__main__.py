# SPDX-License-Identifier: Apache-2.0
"""``python -m hlofp8``: runs a Python program with ``hlofp8.enable``, without changing the program; converts to HLO."""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from ._library import MAIN_PROCESS, Error, warn
from ._module import enable_options, option_text, rewrite

_TEXT = {
    "quantize": (
        "RECIPE",
        "quantize wide matmuls, which changes the results: current, rows or mx; ,attention adds those of attention",
    ),
    "wide": ("NAME,...", "do not convert these matmuls: op_names, source lines such as model.py:12, shapes, or globs"),
    "min_gain": ("R", "convert a matmul only if the roofline model predicts a speedup of at least R"),
    "module": ("GLOB", "rewrite only modules whose name, such as jit_train_step, matches GLOB"),
    "report": ("FILE.html", "at exit, write an HTML page about all matmuls"),
    "emit": ("FORM", "output form of FP8 matmuls: qdq (default on GPUs), dq (default elsewhere) or ffi"),
    "target": ("sm_N", "target GPU architecture (default: that of the device)"),
    "cuda": ("MAJOR.MINOR", "target CUDA toolkit"),
    "rules": ("FILE", "apply the rewrite rules in FILE after the built-in rules"),
    "ragged": ("FORM", "lowering of ragged-dots on FP8 operands: auto, dense or keep"),
    "framework_files": ("GLOB,...", "framework source files to skip when attributing a matmul to a source line"),
}
_FLAGS = {
    "allow_bias_rounding": "allow rounding an f32 bias to bf16, so that the FP8 call can add it",
    "merge_dots": "merge matmuls that share an operand, and whose other operands have the same scale",
}


def _parser(prog: str, usage: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=prog,
        usage=usage,
        description="Runs a Python program in which every module that JAX compiles is rewritten to FP8 matmuls.",
        epilog="The options are also read from the environment variable HLOFP8, which applies to child "
        "processes, and to programs that are started without -m hlofp8. `python -m hlofp8 to-hlo FILE -o out.hlo` converts "
        "StableHLO to HLO.",
        allow_abbrev=False,
    )
    for name, (form, text) in _TEXT.items():
        kind = float if name == "min_gain" else str
        parser.add_argument("--" + name.replace("_", "-"), metavar=form, type=kind, help=text)
    for name, text in _FLAGS.items():
        parser.add_argument("--" + name.replace("_", "-"), action="store_true", default=None, help=text)
    return parser


def _from_environment() -> dict[str, Any]:
    """Returns the options in HLOFP8. Exits if it has anything else."""
    parser = _parser("HLOFP8", "HLOFP8='[OPTION]...'")
    try:
        words = shlex.split(os.environ.get("HLOFP8", ""))
    except ValueError as error:
        parser.error(str(error))
    return _options(parser, parser.parse_args(words), {})


def _options(parser: argparse.ArgumentParser, found: argparse.Namespace, inherited: dict[str, Any]) -> dict[str, Any]:
    """Returns the options that were found, and the others of ``inherited``. Exits if one is invalid."""
    given = {name: value for name, value in vars(found).items() if name in (*_TEXT, *_FLAGS) and value is not None}
    options = {**inherited, **given}
    try:
        enable_options({name: value for name, value in options.items() if name not in ("module", "report")})
    except (Error, TypeError) as error:
        parser.error(str(error).removeprefix("error: "))
    return options


def enable_from_environment() -> None:
    """Rewrites all modules with the options in HLOFP8. Exits if they are invalid."""
    from . import _enable

    options = _from_environment()
    os.environ.setdefault(MAIN_PROCESS, str(os.getpid()))
    try:
        _enable.enable_from_environment(**options)
    except Error as error:
        warn(str(error))


def _interpreter(arguments: Sequence[str]) -> list[str]:
    """Returns the command of this Python with its own options, without ``-m hlofp8``."""
    command = sys.orig_argv[: len(sys.orig_argv) - len(arguments)]
    if command[-1] in ("hlofp8", "hlofp8.__main__"):
        command.pop()
    command[-1] = re.sub(r"m(hlofp8(\.__main__)?)?$", "", command[-1])
    return [sys.executable, *command[1 : None if command[-1] != "-" else -1]]


def _to_hlo(arguments: Sequence[str]) -> NoReturn:
    """Converts a module to HLO text, or to a binary module if the name of the output ends with ``.pb``."""
    parser = argparse.ArgumentParser(
        prog="python -m hlofp8 to-hlo",
        description="Converts StableHLO text or bytecode, or a serialized jax.export.Exported, to HLO.",
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", help="the module, or a folder of JAX_DUMP_IR_TO with one module")
    parser.add_argument("-o", dest="output", metavar="FILE", help="write to FILE instead of standard output; to FILE.pb: a binary module")
    found = parser.parse_args(arguments)
    try:
        module = rewrite(Path(found.file), passes="")
        data = module.proto if (found.output or "").endswith(".pb") else module.text.encode("utf-8", "surrogateescape")
        if found.output:
            Path(found.output).write_bytes(data)
        else:
            sys.stdout.buffer.write(data)
            sys.stdout.flush()
    except (Error, OSError) as error:
        sys.exit(f"{parser.prog}: {error}")
    sys.exit(0)


def main() -> NoReturn:
    """Replaces this process by the program, with the options in HLOFP8, so that the program runs as without hlofp8."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["to-hlo"]:
        _to_hlo(arguments[1:])
    parser = _parser("python -m hlofp8", "python -m hlofp8 [OPTION]... (FILE.py | -m MODULE) [ARGUMENT]...")
    parser.add_argument("-m", dest="run_module", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    inherited = _from_environment()
    found = parser.parse_args(arguments)
    program = found.program if found.run_module is None else ["-m", *found.run_module, *found.program]
    if program in ([], ["-m"]):
        parser.error("expected a program: FILE.py or -m MODULE")
    options = _options(parser, found, inherited)
    if importlib.util.find_spec("jax") is None:
        parser.error("JAX is not installed, and only modules that JAX compiles are rewritten")
    if found.report or MAIN_PROCESS not in os.environ:
        os.environ[MAIN_PROCESS] = str(os.getpid())
    for name in {"report", "rules"} & set(options):
        options[name] = os.path.abspath(options[name])  # the program may change the folder
    os.environ["HLOFP8"] = option_text(options)
    os.execv(sys.executable, [*_interpreter(arguments), *program])


if __name__ == "__main__":
    main()
