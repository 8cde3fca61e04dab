"""Serve SciPy's connected components."""

from __future__ import annotations

from typing import Any

import numpy as np

from mgraph.api.components import connected_components as weakly_connected_components
from mgraph.api.strong_components import strongly_connected_components
from mgraph.csgraph.matrices import as_csr, build_graph
from mgraph.errors import UsageError


def connected_components(
    csgraph: Any, directed: bool = True, connection: str = "weak", return_labels: bool = True, *, cluster: Any = None
) -> Any:
    """Return the number of components, and the number of each vertex's component.

    Components are numbered by their smallest vertices, as SciPy numbers weak ones.

    Parameters
    ----------
    csgraph, directed, connection, return_labels
        As of `scipy.sparse.csgraph.connected_components`.
    cluster
        As of `breadth_first_order`.
    """
    if connection.lower() not in ("weak", "strong"):
        raise UsageError(f"connection {connection!r} is not one of weak, strong")
    strong = directed and connection.lower() == "strong"
    label = strongly_connected_components if strong else weakly_connected_components
    matrix = as_csr(csgraph, directed=strong)
    with build_graph(matrix, directed=strong, cluster=cluster) as graph, label(graph) as found:
        smallest, labels = np.unique(found.labels.to_numpy(), return_inverse=True)
    return (len(smallest), labels.astype(np.int32)) if return_labels else len(smallest)
