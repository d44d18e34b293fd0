# SPDX-License-Identifier: Apache-2.0
"""Rewrites HLO modules and JAX functions so that their quantized matmuls run in FP8.

    >>> import hlofp8
    >>> step = hlofp8.jit(step)        # like jax.jit, with FP8 matmuls
    >>> print(hlofp8.explain(step, params, batch))

``rewrite``, ``run`` and ``compare`` do not need JAX: they accept HLO text and serialized HloModuleProtos.
"""

import importlib
from typing import TYPE_CHECKING, Any

from ._advise import Advice, LayerAdvice, advise
from ._explain import Explanation, assert_fp8, explain
from ._explorer import ModelExplorer, model_explorer
from ._library import Diagnostic, Error, RewriteWarning, get_include
from ._look import Bisection, Budget, MatmulEffect, OutputChange, Profile, bisect, extract, profile
from ._module import ModuleLike, Rewritten, Verdict, rewrite, split
from ._report import Difference, Group, Matmul, Totals
from ._run import Comparison, compare, draw, record_amaxes, run, values

if TYPE_CHECKING:
    from ._enable import disable, enable, enabled, summary
    from ._jax import Jitted, export, jit

__all__ = [
    "Advice",
    "Bisection",
    "Budget",
    "Comparison",
    "Diagnostic",
    "Difference",
    "Error",
    "Explanation",
    "Group",
    "Jitted",
    "LayerAdvice",
    "Matmul",
    "MatmulEffect",
    "ModelExplorer",
    "ModuleLike",
    "OutputChange",
    "Profile",
    "RewriteWarning",
    "Rewritten",
    "Totals",
    "Verdict",
    "advise",
    "assert_fp8",
    "bisect",
    "compare",
    "disable",
    "draw",
    "enable",
    "enabled",
    "explain",
    "export",
    "extract",
    "get_include",
    "jit",
    "model_explorer",
    "profile",
    "record_amaxes",
    "rewrite",
    "run",
    "split",
    "summary",
    "values",
]


# Names that require JAX, which is imported on first access to one of them.
_MODULES = {name: "_jax" for name in ("Jitted", "export", "jit")} | {
    name: "_enable" for name in ("disable", "enable", "enabled", "summary")
}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'hlofp8' has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f".{module}", __name__), name)
    except ModuleNotFoundError as error:
        raise ImportError(f"hlofp8.{name} requires jax: {error}") from error
