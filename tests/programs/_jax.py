# SPDX-License-Identifier: Apache-2.0
"""Defines programs as JAX functions, which are lowered for a GPU on a machine without one."""
import jax
import jax.numpy as jnp

from _program import collect


def array(shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


@collect
def program(make):
    """Registers a program; `make` returns a function and the shapes for which it is lowered."""
    function, *shapes = make()
    return jax.jit(function).trace(*shapes).lower(lowering_platforms=("cuda",)).compiler_ir("hlo").as_hlo_text()
