# SPDX-License-Identifier: Apache-2.0
"""The model of reports, which the library computes: totals, matmuls by layer, and their figures."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from ._library import ffi, lib
from ._module import Verdict, remarks, verdicts_of


@dataclass(frozen=True)
class Matmul(Verdict):
    """The verdict on a matmul, its layer, and figures that include all executions in one execution of the module."""

    layer: str  #: for example "layers_12/mlp/up (backward)"; without an op_name, a source line or a shape
    group: int  #: the index of its group in ``Explanation.groups``
    share: float | None  #: its fraction of the time of all matmuls; None if unknown
    bound: str | None  #: what limits the time: "compute", "memory" or "launch"; None if unknown
    flops_per_second: float | None  #: the predicted speed; None if unknown
    peak_fraction: float | None  #: the fraction of the peak of the target that this speed is; None if unknown
    saving_seconds: float | None  #: the time that the edit of the hint saves; None if unknown


@dataclass(frozen=True)
class Group:
    """The matmuls of one layer with the same result shape, contracting dimension, verdict and reason.

    The figures are sums over one execution of the module (docs/cost.md).
    """

    layer: str  #: the layer of its matmuls; indices in which they differ are ``*``
    kind: str  #: "fp8", "missed" or "wide"
    reason: str | None  #: as in Verdict, or "slower" if the FP8 matmul is slower than the original in stock XLA
    hint: str | None  #: the smallest fix; None without a reason
    shape: str  #: the shape of the result and the length of the contracting dimension: "bf16[32,64] k=128"
    count: int  #: the number of matmuls
    source_file: str | None  #: the source file of its longest matmul
    source_line: int  #: 0 if unknown
    flops: float
    input_bytes: float  #: bytes read and written before rewriting
    bytes: float  #: the same after rewriting
    wide_seconds: float | None  #: roofline time on wide types; None if unknown
    input_seconds: float | None  #: roofline time before rewriting; None if unknown
    seconds: float | None  #: the same after rewriting
    compute_seconds: float | None  #: the time of the floating-point operations alone, at the peak of the target
    share: float | None  #: as in Matmul, also for the following fields
    bound: str | None
    flops_per_second: float | None
    peak_fraction: float | None
    saving_seconds: float | None


@dataclass(frozen=True)
class Totals:
    """Sums over all matmuls in one execution of the module (docs/cost.md)."""

    target: int | None  #: the target: 90 for sm_90
    matmuls: int  #: the number of matmuls
    fp8: int  #: the number of FP8 matmuls
    quantized: int  #: the number of FP8 matmuls that the option ``quantize`` quantized
    missed: int  #: the number of FP8 matmuls of the kind "missed"
    flops: float
    fp8_flops: float  #: the floating-point operations of the FP8 matmuls
    input_bytes: float  #: bytes read and written before rewriting
    bytes: float  #: the same after rewriting
    wide_seconds: float  #: roofline time on wide types, of the matmuls whose time is known
    input_seconds: float  #: roofline time before rewriting, of the matmuls whose time is known
    seconds: float  #: the same after rewriting
    compute_seconds: float  #: the time of the floating-point operations alone, at the peak of the target
    saving_seconds: float  #: the time that all edits save
    launch_bound: int  #: the number of matmuls that take less time than a kernel launch
    launch_bound_seconds: float  #: the time of these matmuls
    runs_assumed: int  #: the number of matmuls whose ``runs`` are assumed
    reasons: dict[str, int]  #: the number of verdicts and lints for each reason


@dataclass(frozen=True)
class Model:
    """The model of reports, each of which is an ``hlo_report *``."""

    reports: tuple[Any, ...]
    totals: Totals
    groups: tuple[Group, ...]
    matmuls: tuple[Matmul, ...]


_T = TypeVar("_T")


def _made(kind: type[_T], values: dict[str, Any]) -> _T:
    return kind(**{field.name: values[field.name] for field in fields(kind)})  # type: ignore[arg-type]


def model_of(reports: Sequence[Any]) -> Model:
    document = json.loads(remarks(reports, "json"))
    summary = document["summary"]
    verdicts = (verdict for report in reports for verdict in verdicts_of(report))
    return Model(
        tuple(reports),
        _made(Totals, {**summary, "fp8": summary["fp8"] + summary["quantized"]}),
        tuple(
            _made(
                Group,
                {**g, "kind": g["verdict"], "count": g["matmuls"], "source_line": g["source_line"] or 0},
            )
            for g in document["groups"]
        ),
        tuple(_made(Matmul, {**dot, **vars(verdict)}) for dot, verdict in zip(document["dots"], verdicts, strict=True)),
    )


@dataclass(frozen=True)
class Difference:
    """The differences between two Explanations. Matmuls are identified by op_name and ``input_shape``."""

    newly_fp8: tuple[Matmul, ...]  #: FP8 in the later one, wide in the earlier one
    lost_fp8: tuple[Matmul, ...]  #: FP8 in the earlier one; here as in the later one: wide, or FP8 only by ``quantize``
    new: tuple[Matmul, ...]  #: only in the later one
    gone: tuple[Matmul, ...]  #: only in the earlier one
    before: Totals  #: the totals of the earlier one
    after: Totals  #: the totals of the later one
    text: str  #: the totals, and the matmuls by layer

    def __str__(self) -> str:
        return self.text


def difference(old: Model, new: Model) -> Difference:
    """Implements Explanation.diff() for models."""
    lists = [ffi.new("hlo_report *[]", model.reports) for model in (old, new)]
    changes = [ffi.new("hlo_change[]", len(model.matmuls) + 1) for model in (old, new)]
    if lib.hlo_reports_compare(lists[0], len(old.reports), lists[1], len(new.reports), *changes) != lib.HLO_OK:
        raise MemoryError
    both = (old.totals, new.totals)
    lines = [
        " -> ".join(f"{each.fp8} of {each.matmuls}" for each in both) + " matmuls in FP8",
        " -> ".join(f"{each.fp8_flops / (each.flops or 1):.0%}" for each in both) + " of FLOPs in FP8",
        " -> ".join(f"{microseconds(each.seconds)} us" for each in both) + " by roofline",
    ]

    def those(title: str, change: int, model: Model, changes: Any) -> tuple[Matmul, ...]:
        found = tuple(matmul for matmul, each in zip(model.matmuls, changes, strict=False) if each == change)
        groups: dict[int, list[Matmul]] = {}
        for matmul in found:
            groups.setdefault(matmul.group, []).append(matmul)
        for index, matmuls in groups.items():
            group = model.groups[index]
            layer = group.layer if len(matmuls) > 1 else matmuls[0].layer
            reason = f", {group.reason}" if group.reason else ""
            lines.append(f"{title}: {len(matmuls)} x {layer}, {group.shape}{reason}")
        return found

    return Difference(
        those("newly FP8", lib.HLO_CHANGE_NEWLY_FP8, new, changes[1]),
        those("lost FP8", lib.HLO_CHANGE_LOST_FP8, new, changes[1]),
        those("new", lib.HLO_CHANGE_NEW, new, changes[1]),
        those("gone", lib.HLO_CHANGE_GONE, old, changes[0]),
        *both,
        text="\n".join(lines),
    )


def microseconds(seconds: float) -> str:
    """Formats a time with three digits or more."""
    return f"{1e6 * seconds:,.0f}" if seconds >= 1e-4 else f"{1e6 * seconds:.3g}"


def html_table(caption: str, titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns an HTML table of texts, which are escaped."""

    def cells(tag: str, texts: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(text)}</{tag}>" for text in texts) + "</tr>"

    head = html.escape(caption).replace("\n", "<br>")
    return f"<table><caption>{head}</caption>{cells('th', titles)}{''.join(cells('td', row) for row in rows)}</table>"
