"""Graph algorithms on a Dask cluster of GPUs, or on CPUs.

Public names are imported at first use, so that `import mgraph` loads no CuPy, Dask, Numba or SciPy.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Public name -> the module that defines it.
_MODULE_OF = {
    "connect": "mgraph.cluster.connect",
    "Graph": "mgraph.api.graph",
    "rmat": "mgraph.api.create",
    "uniform": "mgraph.api.create",
    "fixed_out_degree": "mgraph.api.create",
    "grid": "mgraph.api.create",
    "ssca2": "mgraph.api.create",
    "read": "mgraph.api.create",
    "load": "mgraph.api.create",
    "from_edges": "mgraph.api.from_memory",
    "from_csr": "mgraph.api.from_memory",
    "from_scipy": "mgraph.api.from_memory",
    "from_table": "mgraph.api.from_memory",
    "from_pandas": "mgraph.api.from_memory",
    "from_networkx": "mgraph.api.from_memory",
    "from_dask": "mgraph.api.from_memory",
    "bfs": "mgraph.api.traversal",
    "bfs_many": "mgraph.api.traversal",
    "bfs_together": "mgraph.api.multi_source",
    "sssp": "mgraph.api.traversal",
    "sssp_many": "mgraph.api.traversal",
    "connected_components": "mgraph.api.components",
    "minimum_spanning_forest": "mgraph.api.spanning_forest",
    "minimum_spanning_tree": "mgraph.api.spanning_forest",
    "validate": "mgraph.api.results",
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
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'mgraph' has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_MODULE_OF, *(name for name in globals() if name.startswith("__"))})
