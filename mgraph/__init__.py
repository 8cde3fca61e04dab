"""Graph algorithms on a Dask cluster of GPUs, or on a laptop with none.

The public names are loaded at first use, so that `import mgraph` is light: no CuPy, Dask, Numba or SciPy.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Public name -> the module it comes from.
_HOMES = {
    "connect": "mgraph.cluster.connect",
    "Graph": "mgraph.graph",
    "rmat": "mgraph.construct",
    "uniform": "mgraph.construct",
    "fixed_out_degree": "mgraph.construct",
    "grid": "mgraph.construct",
    "ssca2": "mgraph.construct",
    "read": "mgraph.construct",
    "from_edges": "mgraph.construct",
    "from_csr": "mgraph.construct",
    "from_scipy": "mgraph.construct",
    "bfs": "mgraph.traversals",
    "bfs_many": "mgraph.traversals",
    "bfs_together": "mgraph.together",
    "sssp": "mgraph.traversals",
    "sssp_many": "mgraph.traversals",
    "connected_components": "mgraph.components",
    "minimum_spanning_forest": "mgraph.forests",
    "minimum_spanning_tree": "mgraph.forests",
    "validate": "mgraph.answers",
    "MgraphError": "mgraph.errors",
    "UsageError": "mgraph.errors",
    "InputError": "mgraph.errors",
    "UnknownFormat": "mgraph.errors",
    "ClusterError": "mgraph.errors",
    "RendezvousTimeout": "mgraph.errors",
    "CommTimeout": "mgraph.errors",
    "CommAborted": "mgraph.errors",
    "GangLost": "mgraph.errors",
    "GraphClosed": "mgraph.errors",
    "WouldNotFit": "mgraph.errors",
    "ValidationFailed": "mgraph.errors",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mgraph' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_HOMES, *(name for name in globals() if name.startswith("__"))})
