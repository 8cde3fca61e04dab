"""Serve SciPy's connected components."""

from __future__ import annotations

from typing import Any

import numpy as np

from mgraph.api.components import connected_components as label_components
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
    if directed and connection.lower() == "strong":
        raise UsageError("connection 'strong' is not served here: scipy.sparse.csgraph.connected_components finds them")
    matrix = as_csr(csgraph, directed=False)
    with build_graph(matrix, directed=False, cluster=cluster) as graph, label_components(graph) as found:
        smallest, labels = np.unique(found.labels.to_numpy(), return_inverse=True)
    return (len(smallest), labels.astype(np.int32)) if return_labels else len(smallest)
