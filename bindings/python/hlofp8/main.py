"""The extension for Google's Model Explorer, which looks for this module: ``model-explorer --extensions=hlofp8``.

It opens files of HLO text and binary modules, and offers the verdicts on matmuls as node data.
"""

from __future__ import annotations

import functools
import os
import pathlib
from typing import Any

from model_explorer import (
    Adapter,
    AdapterMetadata,
    GetConfigEditorsResult,
    ModelExplorerGraphs,
    NodeDataProvider,
    NodeDataProviderFilter,
    NodeDataProviderMetadata,
    NodeDataProviderResult,
)

from . import _explorer

_ID = "hlofp8"


@functools.lru_cache(maxsize=4)
def _read(path: str, _changed: int) -> _explorer.ModelExplorer:
    return _explorer.model_explorer(pathlib.Path(path))


def _open(path: str) -> _explorer.ModelExplorer:
    return _read(path, os.stat(path).st_mtime_ns)


class HloAdapter(Adapter):  # type: ignore[misc]
    """Opens HLO text, ``*.hlo`` and ``*.txt`` of a dump, and binary modules, ``*.pb``."""

    metadata = AdapterMetadata(
        id=_ID,
        name="HLO with FP8 verdicts",
        description="XLA's HLO; matmuls have the color of what hlo-fp8 makes of them",
        fileExts=["hlo", "txt", "pb"],
    )

    def convert(self, model_path: str, settings: dict[str, Any]) -> ModelExplorerGraphs:
        """The graphs of a file."""
        return {"graphs": _open(model_path).graphs}


class Fp8Verdicts(NodeDataProvider):  # type: ignore[misc]
    """The verdicts on the matmuls of a file that HloAdapter has opened."""

    metadata = NodeDataProviderMetadata(
        id=f"{_ID}_verdicts",
        name="FP8 verdicts",
        description="which matmuls run in FP8, why others do not, and the time of each by a roofline",
        icon="bolt",
        filter=NodeDataProviderFilter(adapterIds=[_ID]),
    )

    def get_config_editors(self, provider_id: str) -> GetConfigEditorsResult:
        """No configuration is asked for."""
        return GetConfigEditorsResult(configEditors=[])

    def run(
        self, provider_id: str, model_path: str, graph_id: str, config_values: dict[str, Any], graph: Any
    ) -> NodeDataProviderResult:
        """The node data of one graph."""
        data = (each.graphsData.get(graph_id) for each in _open(model_path).node_data.values())
        return NodeDataProviderResult(result=[each for each in data if each is not None])
