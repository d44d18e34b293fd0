"""Prints every array of .npz files: its name, its type, its dimensions and its elements, floats with six digits.

usage: print_arrays.py FILE.npz...
"""
import sys

import ml_dtypes  # noqa: F401, for the types that numpy does not have
import numpy

for path in sys.argv[1:]:
    arrays = numpy.load(path)
    for name in arrays.files:
        array = arrays[name]
        kind = f"{array.dtype.name}{list(array.shape)}"
        if numpy.issubdtype(array.dtype, numpy.inexact):
            print(name, kind, *(f"{x:.6g}" for x in numpy.round(array, 9).ravel().tolist()))
        else:
            print(name, kind, *array.ravel().tolist())
# SPDX-License-Identifier: Apache-2.0
