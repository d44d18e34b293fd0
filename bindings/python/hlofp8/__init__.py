"""FP8 matmuls for XLA: rewrites HLO modules, and JAX functions, so that their quantised matmuls run in FP8.

    >>> import hlofp8
    >>> step = hlofp8.jit(step)        # as jax.jit, with FP8 matmuls
    >>> print(hlofp8.explain(step, params, batch))

Without JAX: ``rewrite``, ``run`` and ``compare`` take HLO text and HloModuleProto bytes.
"""

from ._library import Diagnostic, Error, RewriteWarning, get_include
from ._module import ModuleLike, Rewritten, Verdict, rewrite
from ._run import Comparison, compare, draw, run

__all__ = [
    "Comparison",
    "Diagnostic",
    "Error",
    "ModuleLike",
    "RewriteWarning",
    "Rewritten",
    "Verdict",
    "compare",
    "draw",
    "get_include",
    "rewrite",
    "run",
]
