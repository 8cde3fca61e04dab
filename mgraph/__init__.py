"""Graph algorithms on a Dask cluster of GPUs, or on CPUs.

Public names are imported at first use, so that `import mgraph` loads no CuPy, Dask, Numba or SciPy.
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

# For type checkers and editors: the names of the table below.
if TYPE_CHECKING:
    from mgraph.api.bipartite import is_bipartite as is_bipartite
    from mgraph.api.bridges import bridges as bridges
    from mgraph.api.centrality import closeness as closeness
    from mgraph.api.centrality import harmonic as harmonic
    from mgraph.api.components import connected_components as connected_components
    from mgraph.api.core_numbers import core_numbers as core_numbers
    from mgraph.api.core_numbers import k_core as k_core
    from mgraph.api.create import fixed_out_degree as fixed_out_degree
    from mgraph.api.create import grid as grid
    from mgraph.api.create import load as load
    from mgraph.api.create import read as read
    from mgraph.api.create import rmat as rmat
    from mgraph.api.create import ssca2 as ssca2
    from mgraph.api.create import uniform as uniform
    from mgraph.api.degrees import degrees as degrees
    from mgraph.api.distance_matrix import distance_matrix as distance_matrix
    from mgraph.api.eccentricity import diameter as diameter
    from mgraph.api.eccentricity import eccentricity as eccentricity
    from mgraph.api.eccentricity import radius as radius
    from mgraph.api.from_memory import from_csr as from_csr
    from mgraph.api.from_memory import from_dask as from_dask
    from mgraph.api.from_memory import from_edges as from_edges
    from mgraph.api.from_memory import from_networkx as from_networkx
    from mgraph.api.from_memory import from_pandas as from_pandas
    from mgraph.api.from_memory import from_scipy as from_scipy
    from mgraph.api.from_memory import from_table as from_table
    from mgraph.api.graph import Graph as Graph
    from mgraph.api.hits import hits as hits
    from mgraph.api.multi_source import bfs_together as bfs_together
    from mgraph.api.neighborhood import k_hop as k_hop
    from mgraph.api.neighborhood import neighbors as neighbors
    from mgraph.api.pagerank import pagerank as pagerank
    from mgraph.api.paths import shortest_path as shortest_path
    from mgraph.api.paths import shortest_paths as shortest_paths
    from mgraph.api.results import validate as validate
    from mgraph.api.spanning_forest import minimum_spanning_forest as minimum_spanning_forest
    from mgraph.api.spanning_forest import minimum_spanning_tree as minimum_spanning_tree
    from mgraph.api.steiner_tree import steiner_tree as steiner_tree
    from mgraph.api.strong_components import strongly_connected_components as strongly_connected_components
    from mgraph.api.subgraph import largest_component as largest_component
    from mgraph.api.subgraph import subgraph as subgraph
    from mgraph.api.traversal import bfs as bfs
    from mgraph.api.traversal import bfs_many as bfs_many
    from mgraph.api.traversal import sssp as sssp
    from mgraph.api.traversal import sssp_many as sssp_many
    from mgraph.cluster.connect import connect as connect
    from mgraph.errors import ClusterError as ClusterError
    from mgraph.errors import CommAborted as CommAborted
    from mgraph.errors import CommTimeout as CommTimeout
    from mgraph.errors import GangLost as GangLost
    from mgraph.errors import GraphClosed as GraphClosed
    from mgraph.errors import InputError as InputError
    from mgraph.errors import MgraphError as MgraphError
    from mgraph.errors import NotConverged as NotConverged
    from mgraph.errors import RendezvousTimeout as RendezvousTimeout
    from mgraph.errors import UnknownFormat as UnknownFormat
    from mgraph.errors import UsageError as UsageError
    from mgraph.errors import ValidationFailed as ValidationFailed
    from mgraph.errors import WouldNotFit as WouldNotFit

__version__ = "0.1.0"

# A library shows nothing by itself: docs/configuration.md says what the logger has.
logging.getLogger("mgraph").addHandler(logging.NullHandler())

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
    "distance_matrix": "mgraph.api.distance_matrix",
    "k_hop": "mgraph.api.neighborhood",
    "neighbors": "mgraph.api.neighborhood",
    "shortest_path": "mgraph.api.paths",
    "shortest_paths": "mgraph.api.paths",
    "connected_components": "mgraph.api.components",
    "degrees": "mgraph.api.degrees",
    "is_bipartite": "mgraph.api.bipartite",
    "bridges": "mgraph.api.bridges",
    "closeness": "mgraph.api.centrality",
    "harmonic": "mgraph.api.centrality",
    "core_numbers": "mgraph.api.core_numbers",
    "k_core": "mgraph.api.core_numbers",
    "eccentricity": "mgraph.api.eccentricity",
    "diameter": "mgraph.api.eccentricity",
    "radius": "mgraph.api.eccentricity",
    "largest_component": "mgraph.api.subgraph",
    "subgraph": "mgraph.api.subgraph",
    "strongly_connected_components": "mgraph.api.strong_components",
    "minimum_spanning_forest": "mgraph.api.spanning_forest",
    "minimum_spanning_tree": "mgraph.api.spanning_forest",
    "steiner_tree": "mgraph.api.steiner_tree",
    "pagerank": "mgraph.api.pagerank",
    "hits": "mgraph.api.hits",
    "validate": "mgraph.api.results",
    "MgraphError": "mgraph.errors",
    "UsageError": "mgraph.errors",
    "InputError": "mgraph.errors",
    "NotConverged": "mgraph.errors",
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


# Type checkers would accept any name because of this function.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'mgraph' has no attribute {name!r}")
        value = getattr(importlib.import_module(_MODULE_OF[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*_MODULE_OF, *(name for name in globals() if name.startswith("__"))})
