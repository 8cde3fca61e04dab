"""Find bridges: the edges of a breadth-first forest that are on no cycle, on any number of ranks.

    parents, levels of all vertices, from a search from one vertex of every component
    for every edge of this rank that is not in the forest: cover the path through the forest between both its ends
    covered = what any rank has covered
    bridges = the edges of the forest that are not covered

An edge outside the forest closes a cycle with its path; an edge of the forest is on a cycle if such a path has it. (An
edge outside the forest is on a cycle, and no bridge.) Covered paths are contracted as by union-find, so that each edge
of the forest is covered once, and an edge between covered vertices compares their tops only. Which edges are bridges
does not depend on the forest, and what is covered not on an order; ranks need no exchange before the end.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.bridges.kernels import cover_paths
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.comm.base import Communicator
from mgraph.shard.edges_by_user import arcs_of_rows
from mgraph.shard.shard import Shard
from mgraph.types import Array


def find_bridges(shard: Shard, comm: Communicator, trace: Trace, levels: Array, parents: Array) -> tuple[Array, Array]:
    """Return the ends of the bridges, sorted, of which the smaller is in this rank's range of user ids.

    `levels` and `parents` are by user id; without a parent that is the top of the dtype.
    """
    backend = shard.backend
    xp = backend.xp
    n = len(parents)
    tops = xp.arange(n, dtype=parents.dtype)
    for near, far in arcs_of_rows(shard, comm, parents.dtype):
        cover_paths[backend](0, len(near), near, far, levels, parents, tops)
    trace.superstep(method="cover", frontier=n, arcs=len(shard.rows.targets))
    # Roots have no edge to a parent; neither have vertices without edges.
    is_left = ((tops == xp.arange(n, dtype=parents.dtype)) & (parents < n)).astype(np.uint8)
    if comm.size > 1:
        comm.allreduce(is_left, "min")
        trace.superstep(method="merge", frontier=n, arcs=0)
    child = xp.flatnonzero(is_left)
    parent = parents[child].astype(np.int64)
    source = xp.minimum(child, parent)
    lo, hi = shard.user_range
    is_own = (source >= lo) & (source < hi)
    target = xp.maximum(child, parent)[is_own]
    source = source[is_own]
    order = xp.lexsort(xp.stack([target, source]))
    return source[order], target[order]


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of levels, parents, as gathered and by position, and tops; or of the bridges of a path."""
    n = sizes.num_vertices
    gathered = (12 if sizes.partition.num_ranks > 1 else 0) * n
    found = 5 * 8 * n
    return gathered + 2 * sizes.id_bytes * n + found


VARIANT = Variant(
    "bridges.cover",
    when="after a breadth-first search from every component, on any ranks",
    applies=lambda conditions: conditions.has_rows,
    bytes=_bytes,
    loop=find_bridges,
)
