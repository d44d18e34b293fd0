# SPDX-License-Identifier: Apache-2.0
"""Programs of JAX: functions, lowered for a GPU without one."""
import jax
import jax.numpy as jnp

from _program import collect


def array(shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


@collect
def program(make):
    """`make` returns a function and the shapes that it is lowered for."""
    function, *shapes = make()
    return jax.jit(function).trace(*shapes).lower(lowering_platforms=("cuda",)).compiler_ir("hlo").as_hlo_text()
