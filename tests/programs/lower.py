#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lowers the programs of some libraries, and writes each as testdata/programs/NAME.hlo.

  lower.py [--out DIR] [--only NAME] LIBRARY...    LIBRARY is jax, flax, keras, qwix, aqt, haliax, te, moe, unquantized or torch
  lower.py [--out DIR] convert                     converts the StableHLO files that torch wrote to DIR to HLO, with JAX

The Python that runs it must have the packages of requirements-jax.txt and requirements-alone.txt, or for `torch` those of
requirements-torch.txt: README.md has the commands.
"""
import argparse
import importlib
import pathlib

from _program import PROGRAMS

HERE = pathlib.Path(__file__).resolve().parent


def convert(folder):
    from jax._src.interpreters import mlir
    from jax._src.lib import _jax

    for path in sorted(folder.glob("*.mlir")):
        with mlir.make_ir_context():
            computation = _jax.mlir.mlir_module_to_xla_computation(path.read_text(), use_tuple_args=False, return_tuple=False)
        path.with_suffix(".hlo").write_text(computation.as_hlo_text())
        path.unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=HERE.parents[1] / "testdata" / "programs")
    parser.add_argument("--only", help="this program alone")
    parser.add_argument("library", nargs="+")
    args = parser.parse_args()
    if args.library == ["convert"]:
        return convert(args.out)
    for library in args.library:
        importlib.import_module(library + "_programs")
    for name, lower in PROGRAMS.items():
        if args.only in (None, name):
            text = lower()
            (args.out / name).with_suffix(".hlo" if text.startswith("HloModule") else ".mlir").write_text(text)
            print(f"{name}: {len(text)} characters")


if __name__ == "__main__":
    main()
