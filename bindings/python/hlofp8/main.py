# SPDX-License-Identifier: Apache-2.0
"""An extension of Google's Model Explorer. ``model-explorer --extensions=hlofp8`` imports this module.

The extension opens HLO text files and binary HloModuleProtos, and provides the verdicts on matmuls as node data.
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
    """Opens HLO text (``*.hlo``, ``*.txt`` of a dump) and binary HloModuleProtos (``*.pb``)."""

    metadata = AdapterMetadata(
        id=_ID,
        name="HLO with FP8 verdicts",
        description="XLA HLO; the color of a matmul shows the verdict of hlo-fp8",
        fileExts=["hlo", "txt", "pb"],
    )

    def convert(self, model_path: str, settings: dict[str, Any]) -> ModelExplorerGraphs:
        """Returns the graphs of the module in a file."""
        return {"graphs": _open(model_path).graphs}


class Fp8Verdicts(NodeDataProvider):  # type: ignore[misc]
    """Provides the verdicts on the matmuls of a file that HloAdapter opened."""

    metadata = NodeDataProviderMetadata(
        id=f"{_ID}_verdicts",
        name="FP8 verdicts",
        description="which matmuls run in FP8, why the others do not, and the roofline time of each",
        icon="bolt",
        filter=NodeDataProviderFilter(adapterIds=[_ID]),
    )

    def get_config_editors(self, provider_id: str) -> GetConfigEditorsResult:
        """Returns no editors, because there is nothing to configure."""
        return GetConfigEditorsResult(configEditors=[])

    def run(
        self, provider_id: str, model_path: str, graph_id: str, config_values: dict[str, Any], graph: Any
    ) -> NodeDataProviderResult:
        """Returns the node data of one graph."""
        data = (each.graphsData.get(graph_id) for each in _open(model_path).node_data.values())
        return NodeDataProviderResult(result=[each for each in data if each is not None])
