"""Functions of `scipy.sparse.csgraph` with their names, parameters and results, run on the ranks of a cluster.

`matrices.py` reads matrices as SciPy does and builds graphs of them. A module beside it has the functions of one
algorithm. The functions of SciPy that are not here need negative weights, or another order than breadth first.
"""

from __future__ import annotations

from typing import NoReturn

try:
    import scipy.sparse.csgraph
except ImportError as error:
    raise ImportError("mgraph.csgraph needs SciPy: pip install 'dask-mgraph[scipy]'") from error

# It searches nothing: SciPy's own serves.
from scipy.sparse.csgraph import reconstruct_path

from mgraph.csgraph.breadth_first import breadth_first_order, breadth_first_tree
from mgraph.csgraph.components import connected_components
from mgraph.csgraph.shortest_paths import dijkstra, johnson, shortest_path
from mgraph.csgraph.spanning_tree import minimum_spanning_tree

__all__ = [
    "breadth_first_order",
    "breadth_first_tree",
    "connected_components",
    "dijkstra",
    "johnson",
    "minimum_spanning_tree",
    "reconstruct_path",
    "shortest_path",
]


def __getattr__(name: str) -> NoReturn:
    where = ": it is in scipy.sparse.csgraph" if name in scipy.sparse.csgraph.__all__ else ""
    raise AttributeError(f"mgraph.csgraph has no {name}{where}")
