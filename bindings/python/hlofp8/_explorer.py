# SPDX-License-Identifier: Apache-2.0
"""Converts verdicts to data for Google's Model Explorer: a graph per computation, with colored matmuls."""

from __future__ import annotations

from typing import Any

from ._explain import Explanation, explain
from ._graph import Computation, Instruction, computations, module_name
from ._library import Sink
from ._module import ModuleLike, Verdict, read

#: The color of a node by the kind of its verdict.
COLORS = {"fp8": "#a5d6a7", "missed": "#ffe082", "wide": "#ef9a9a"}
_FIELDS = ("kind", "reason", "message", "hint", "blocker", "epilogue", "operands", "runs", "flops")
_TIMES = ("input_seconds", "seconds", "fp8_seconds")


def _packages() -> tuple[Any, Any]:
    try:
        from model_explorer import graph_builder, node_data_builder
    except ModuleNotFoundError as error:
        raise ImportError(f"hlofp8.model_explorer requires the package ai-edge-model-explorer: {error}") from error
    return graph_builder, node_data_builder


def _label(verdict: Verdict) -> str:
    return f"{verdict.kind}: {verdict.reason}" if verdict.reason else verdict.kind


def _worst(verdicts: tuple[Verdict, ...]) -> dict[str, Verdict]:
    """Returns a verdict for each matmul of the input: the worst one, if the matmul was inlined several times."""
    order = list(COLORS)
    ordered = sorted(verdicts, key=lambda verdict: order.index(verdict.kind))
    return {verdict.input_instruction or verdict.instruction: verdict for verdict in ordered}


def _facts(instruction: Instruction, verdict: Verdict | None) -> dict[str, str]:
    """Returns the names and values that Model Explorer's side panel shows for a node."""
    source = f"{instruction.source_file}:{instruction.source_line}" if instruction.source_file else ""
    facts = {"name": instruction.name, "shape": instruction.shape, "attributes": instruction.attributes}
    facts |= {"op_name": instruction.op_name, "source": source, "root": "yes" if instruction.is_root else ""}
    if verdict:
        if verdict.source_file:
            facts["source"] = f"{verdict.source_file}:{verdict.source_line}"
        facts |= {f"fp8: {name}": str(getattr(verdict, name) or "") for name in _FIELDS}
        facts |= {f"fp8: {name}": f"{getattr(verdict, name):.3g}" for name in _TIMES if getattr(verdict, name)}
    return {key: value for key, value in facts.items() if value}


def _node(instruction: Instruction, verdict: Verdict | None) -> Any:
    build, _ = _packages()
    return build.GraphNode(
        id=instruction.name,
        label=instruction.target or instruction.opcode,
        namespace=instruction.op_name.rpartition("/")[0],
        subgraphIds=list(instruction.called),
        attrs=[build.KeyValue(key, value) for key, value in _facts(instruction, verdict).items()],
        incomingEdges=[
            build.IncomingEdge(sourceNodeId=operand, targetNodeInputId=str(index))
            for index, operand in enumerate(instruction.operands)
        ],
        outputsMetadata=[build.MetadataItem("0", [build.KeyValue("tensor_shape", instruction.shape)])],
        style=build.GraphNodeStyle(backgroundColor=COLORS[verdict.kind]) if verdict else None,
    )


class ModelExplorer:
    """A module for Google's Model Explorer: its graphs, and the verdicts on its matmuls as node data."""

    def __init__(self, explanation: Explanation, name: str, computations: list[Computation]):
        build, _ = _packages()
        self.explanation = explanation  #: the verdicts
        self.name = name  #: the name of the module
        self._verdicts = _worst(explanation.matmuls)
        self._computations = computations
        #: A ``graph_builder.Graph`` for each computation, the entry first. Its id is the name of the computation.
        self.graphs = [
            build.Graph(id=each.name, nodes=[_node(i, self._verdicts.get(i.name)) for i in each.instructions])
            for each in computations
        ]

    def _overlay(self, name: str, values: dict[str, Any], **options: Any) -> Any:
        """Returns the values of one node data set, by instruction name, as a ``ModelNodeData``."""
        _, build = _packages()
        data = {}
        for each in self._computations:
            names = [instruction.name for instruction in each.instructions if instruction.name in values]
            if names:
                results = {n: build.NodeDataResult(*values[n]) for n in names}
                data[each.name] = build.GraphNodeData(results=results, name=name, **options)
        return build.ModelNodeData(graphsData=data)

    @property
    def node_data(self) -> dict[str, Any]:
        """Two ``node_data_builder.ModelNodeData`` by name: the verdict on each matmul, and its roofline time in µs."""
        _, build = _packages()
        verdicts = {name: (_label(verdict), COLORS[verdict.kind]) for name, verdict in self._verdicts.items()}
        times = {name: (verdict.seconds * 1e6,) for name, verdict in self._verdicts.items() if verdict.seconds}
        gradient = [build.GradientItem(0, bgColor="#ffffff"), build.GradientItem(1, bgColor="#ef6c00")]
        return {
            "FP8": self._overlay("FP8", verdicts, showExpandedSummaryOnGroupNode=True),
            "µs by a roofline": self._overlay("µs by a roofline", times, gradient=gradient),
        }

    def config(self) -> Any:
        """Returns the argument of ``model_explorer.visualize_from_config``."""
        import model_explorer

        made = model_explorer.config()
        made.graphs_list.append({"graphs": self.graphs})
        made.model_sources.append({"url": f"graphs://{self.name}/0"})
        for name, data in self.node_data.items():
            made.add_node_data(name, data)
        return made

    def show(self, **options: Any) -> None:
        """Starts the server of Model Explorer with options of ``model_explorer.visualize_from_config``."""
        import model_explorer

        model_explorer.visualize_from_config(self.config(), **options)

    def __repr__(self) -> str:
        return f"<hlofp8.ModelExplorer of {self.name}: {self.explanation.summary}>"


def model_explorer(what: Any, *args: Any, **kwargs: Any) -> ModelExplorer:
    """Prepares a module or a function for Google's Model Explorer, with the verdict on each of its matmuls.

    Args:
      what, *args, **kwargs: as for ``explain``.

    Returns:
      A ModelExplorer with ``graphs`` and ``node_data``. Call ``show()`` to display them.
    """
    _packages()
    found = explain(what, *args, **kwargs)
    module: ModuleLike = found.rewritten if found.module is None else found.module
    before = read(module, None, Sink())
    return ModelExplorer(found, module_name(before), computations(before))
