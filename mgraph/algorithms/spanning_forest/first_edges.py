"""Find spanning forests on one CPU rank where all weights are equal: Kruskal's algorithm without the sort.

    for each edge, in order of (lower position, higher position): take it if its ends are in two trees, and join these

Edges of equal weight are ordered by their ends, as they are in the rows: so it is the forest of the other variants.
One core scans each row once.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.components.serial import STEP_ROWS
from mgraph.algorithms.components.serial_kernels import make_roots, take_first_edges
from mgraph.algorithms.spanning_forest.filter_boruvka import forest_bytes
from mgraph.algorithms.variant import Variant
from mgraph.comm.base import Communicator
from mgraph.errors import CommAborted
from mgraph.shard.shard import Shard
from mgraph.types import Array


def take_forest(shard: Shard, comm: Communicator, trace: Trace, maximum: bool = False) -> Array:
    """Return the arcs of the spanning forest: the lightest is the heaviest one."""
    rows = shard.rows
    size = shard.num_owned
    parents = np.empty(size, shard.partition.dtype)
    taken = np.empty(size, np.int64)
    make_roots(parents)
    num_taken = 0
    for first in range(0, size, STEP_ROWS):
        if shard.backend.stopped is not None:
            raise CommAborted(shard.backend.stopped)
        last = min(first + STEP_ROWS, size)
        num_taken = take_first_edges(first, last, rows.indptr, rows.targets, parents, taken, num_taken)
    trace.superstep("rows", size, len(rows.targets))
    return taken[:num_taken]


VARIANT = Variant(
    "spanning_forest.first_edges",
    when="on one CPU rank, if all weights are equal",
    applies=lambda conditions: conditions.is_one_cpu and conditions.has_equal_weights,
    bytes=forest_bytes,
    loop=take_forest,
)
