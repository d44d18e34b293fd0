# SPDX-License-Identifier: Apache-2.0
"""Advises which matmuls of a function to quantize: measures the error that each of them causes, by layer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ._explain import explain
from ._look import Bisection, Budget, bisect
from ._module import ModuleLike, is_module
from ._report import Matmul, html_table


@dataclass(frozen=True)
class LayerAdvice:
    """The matmuls of a layer: what their quantization saves, and the error that it causes."""

    layer: str  #: as in Matmul
    matmuls: tuple[Matmul, ...]  #: the measured matmuls
    saved_seconds: float  #: the predicted time that quantizing all matmuls of the layer saves; 0 if unknown
    snr_db: float  #: the lowest signal-to-noise ratio of their results
    output_distance: float  #: the root of the sum of the squared changes of the most affected output

    @property
    def wide(self) -> tuple[Matmul, ...]:
        """The matmuls that should stay wide."""
        return tuple(matmul for matmul in self.matmuls if not matmul.is_fp8)

    @property
    def advice(self) -> str:
        """``quantize``, ``leave wide``, or which part of the matmuls to quantize."""
        if not self.wide:
            return "quantize"
        count = len(self.matmuls)
        return "leave wide" if len(self.wide) == count else f"quantize {count - len(self.wide)} of {count}"


_TITLES = ("layer", "matmuls", "saved us", "SNR in dB", "output error", "advice")


class Advice:
    """Which matmuls to quantize: a sequence of LayerAdvice, the largest error first, which prints as a table."""

    def __init__(self, measured: Bisection):
        assert measured.budget
        self.measured = measured  #: the measurements, as ``bisect`` returns them
        self.budget: Budget = measured.budget  #: the selection
        layers: dict[str, list[Matmul]] = {}
        for matmul in self.budget.verdicts:
            if matmul.measured:
                layers.setdefault(matmul.layer, []).append(matmul)
        made = [self._layer(name, matmuls) for name, matmuls in layers.items()]
        self.layers = tuple(sorted(made, key=lambda layer: -layer.output_distance))

    @staticmethod
    def _layer(name: str, matmuls: list[Matmul]) -> LayerAdvice:
        ratios = [matmul.snr_db for matmul in matmuls if not math.isnan(matmul.snr_db)]
        return LayerAdvice(
            name,
            tuple(matmuls),
            sum(matmul.predicted_saving for matmul in matmuls),
            min(ratios, default=math.nan),
            math.hypot(*(matmul.output_distance for matmul in matmuls)),
        )

    @property
    def wide(self) -> list[str]:
        """The matmuls to leave wide, as the option ``wide`` of ``hlofp8.jit`` and ``rewrite``."""
        return self.budget.wide

    def __len__(self) -> int:
        return len(self.layers)

    def __iter__(self) -> Iterator[LayerAdvice]:
        return iter(self.layers)

    def __getitem__(self, index: int) -> LayerAdvice:
        return self.layers[index]

    @property
    def summary(self) -> str:
        """A line such as ``quantize 3 of 4 matmuls: an output changes by 0.012 (limit 0.02)``."""
        matmuls = [matmul for layer in self for matmul in layer.matmuls]
        moved, limit = self.budget.measured.distance, self.budget.max_error
        line = f"quantize {sum(m.is_fp8 for m in matmuls)} of {len(matmuls)} matmuls: an output changes by {moved:.3g}"
        line += "" if math.isinf(limit) else f" (limit {limit:g}{', exceeded' if moved > limit else ''})"
        others = [verdict for verdict in self.budget.verdicts if not verdict.measured and not verdict.is_fp8]
        reasons = sorted({verdict.reason or "" for verdict in others})
        return line + (f"; {len(others)} more stay wide: {', '.join(reasons)}" if others else "")

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                layer.layer,
                str(len(layer.matmuls)),
                f"{1e6 * layer.saved_seconds:.3g}",
                "" if math.isnan(layer.snr_db) else f"{layer.snr_db:.1f}",
                f"{layer.output_distance:.2g}",
                layer.advice,
            )
            for layer in self
        ]

    def __str__(self) -> str:
        table = [_TITLES, *self._rows()]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        rows = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in table]
        lines = ["  ".join(row).rstrip() for row in rows]
        return "\n".join([*lines, self.summary])

    def _repr_html_(self) -> str:
        return html_table(self.summary, _TITLES, self._rows())

    def __repr__(self) -> str:
        return f"<hlofp8.Advice: {self.summary}>"


def advise(
    what: Any,
    *args: Any,
    max_error: float = math.inf,
    quantize: str = "current",
    accumulate: str = "f32",
    **kwargs: Any,
) -> Advice:
    """Measures which matmuls of a function to quantize, for these arguments (docs/quantize.md).

    Executes the function on the CPU: without quantization, with all matmuls quantized, with each of them alone, and
    with the selected ones.

    Args:
      what: a function or a module, as for ``explain``.
      *args: the arguments of the function, which must be arrays; or the arguments of ``run`` for the module. For a
        module without arguments, realistic ones are generated.
      max_error: select the matmuls that save the most time while no output changes by more than this, relative to its
        norm. By default, all are selected, and only measured.
      quantize: the recipe, as for ``rewrite``.
      accumulate: as for ``run``.
      **kwargs: as for ``explain``.

    Returns:
      An Advice. Its attribute ``wide`` is the option ``wide`` for ``hlofp8.jit`` with the same ``quantize``.

    Raises:
      TypeError: an argument of the function is not an array.
      Error: as for ``bisect``.
    """
    if hasattr(what, "experimental_get_compiler_ir"):
        raise TypeError("advise accepts no tf.function; pass f.get_concrete_function(...)")
    found = explain(what, *(() if _is_module(what) else args), quantize=quantize, **kwargs)
    module: ModuleLike = what
    inputs: Any = args or None
    if not _is_module(what):
        from ._jax import inputs_of

        assert found.module is not None
        module, inputs = found.module, inputs_of(what, found.module, args, kwargs)
    options = {key: value for key, value in found.options.items() if key not in ("emit", "name")}
    return Advice(bisect(module, inputs, max_error=max_error, accumulate=accumulate, **options))


def _is_module(what: Any) -> bool:
    return not callable(what) or (is_module(what) and not hasattr(what, "jaxpr"))
