# SPDX-License-Identifier: Apache-2.0
"""Registers the programs of a framework, and writes the arrays of a run. Runs with Python 3.9 and NumPy 1.22."""
import sys

import numpy as np

PROGRAMS = {}  # functions by name: each returns the inputs and outputs of its run


def program(function):
    """Registers a program."""
    PROGRAMS[function.__name__] = function
    return function


class Draw:
    """Random arrays, which are the same with every version of NumPy."""

    def __init__(self, seed):
        self.bits = np.random.PCG64(seed)

    def uniform(self, *shape):
        count = int(np.prod(shape, dtype=np.int64))
        return ((self.bits.random_raw(count) >> np.uint64(40)).astype(np.float64) / 2**24).reshape(shape).astype(np.float32)

    def normal(self, *shape):
        """Returns an approximation: a sum of uniform numbers."""
        return np.asarray((sum(self.uniform(*shape) for _ in range(6)) - 3) * 2**0.5, np.float32)

    def below(self, limit, *shape):
        return (self.uniform(*shape) * limit).astype(np.int32)


def stored(value):
    """Returns the array as an .npz file for hlo-fp8-run stores it: raw bytes for types that NumPy lacks."""
    value = np.asarray(value)
    if value.dtype.kind == "V" or value.dtype.str in ("<f1", "|f1") or value.dtype.name.startswith(("bfloat", "float8", "float4")):
        return value.view("V" + str(value.dtype.itemsize))
    return value


def save(path, values):
    """Writes arrays to the .npz file `path`, named 0, 1, 2, ..."""
    np.savez(path, **{str(i): stored(v) for i, v in enumerate(values)})


def named(function, name):
    """Gives a function the name that its module then has."""
    function.__name__ = function.__qualname__ = name
    return function


def main(run):
    """Without arguments, prints the names of the programs. With a name and a folder, calls run(function), and writes
    the inputs and outputs that it returns to files of the folder."""
    if len(sys.argv) == 1:
        print("\n".join(PROGRAMS))
        return
    for name, arrays in zip(("inputs", "outputs", "inputs8", "outputs8"), run(PROGRAMS[sys.argv[1]])):
        save(sys.argv[2] + "/" + name + ".npz", arrays)
