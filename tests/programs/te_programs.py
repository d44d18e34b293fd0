# SPDX-License-Identifier: Apache-2.0
"""Defines programs of Transformer Engine's layers for JAX, in the form without its CUDA kernels."""
import importlib.util
import os
import sys
import types
import unittest.mock

os.environ["NVTE_JAX_CUSTOM_CALLS"] = "false"
ROOT = importlib.util.find_spec("transformer_engine").submodule_search_locations[0]


class Extension(types.ModuleType):
    """Replaces the C++ extension, which needs CUDA, by one with the same enumerations, a version of each library and
    no kernels."""

    registrations = staticmethod(dict)
    get_cudnn_version = staticmethod(lambda: 91000)
    get_cublasLt_version = staticmethod(lambda: 130000)
    get_cuda_version = staticmethod(lambda: 13000)
    get_device_compute_capability = staticmethod(lambda _: 100)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return unittest.mock.MagicMock(name=name)


def package(name, path, **members):
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = [path]
    module.__dict__.update(members)
    return module


sys.modules["transformer_engine_jax"] = Extension("transformer_engine_jax")
package("transformer_engine", ROOT)
package("transformer_engine.common", f"{ROOT}/common", load_framework_extension=lambda _: None, decode_cudnn_version=lambda v: (9, 10, 0))
import jax
import jax.numpy as jnp
from transformer_engine.common import recipe
import transformer_engine.jax as te
import transformer_engine.jax.flax as te_flax

from _jax import array, program

BF16 = jnp.bfloat16


def applied(make, scaling, x):
    """Returns the layer with a quantization recipe, and the shapes of its variables."""

    def call(v, x):
        with te.autocast(enabled=True, recipe=scaling()):
            return make().apply(v, x)

    with te.autocast(enabled=True, recipe=scaling()):
        return call, jax.eval_shape(make().init, jax.random.key(0), x)


def gradient(call):
    return jax.grad(lambda v, x: jnp.sum(call(v, x).astype(jnp.float32) ** 2), allow_int=True)


@program
def te_dense_delayed():
    x = array((32, 64), BF16)
    call, v = applied(lambda: te_flax.DenseGeneral(96, dtype=BF16, use_bias=True), recipe.DelayedScaling, x)
    return gradient(call), v, x


@program
def te_dense_current():
    x = array((32, 64), BF16)
    call, v = applied(lambda: te_flax.DenseGeneral(96, dtype=BF16), recipe.Float8CurrentScaling, x)
    return gradient(call), v, x


@program
def te_layernorm_mlp():
    x = array((32, 64), BF16)
    make = lambda: te_flax.LayerNormMLP(intermediate_dim=128, activations=("gelu",), dtype=BF16)
    call, v = applied(make, recipe.Float8CurrentScaling, x)
    return lambda v, x: call(v, x)[0], v, x


@program
def te_dense_mxfp8():
    x = array((128, 128), BF16)
    call, v = applied(lambda: te_flax.DenseGeneral(128, dtype=BF16), recipe.MXFP8BlockScaling, x)
    return call, v, x
