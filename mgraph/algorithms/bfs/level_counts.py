"""Count the vertices at each level from up to 64 roots, without recording which they are.

    front = each root's bit at the root
    while any bit is in front:
        count the front's bits of every root
        front = the next one of a multi-source search

Distances from a root to all vertices are summed from its counts: integers, whatever the ranks and the order. On deep
graphs the frontiers of roots hardly overlap: there a search from each root is faster, and its levels are counted.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.bfs.multi_source import MAX_ROOTS, MultiSourceSearch, search_bytes
from mgraph.algorithms.bfs.multi_source_kernels import count_roots
from mgraph.algorithms.bfs.step import DEEP_DEGREE
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.derived import IN_ROWS
from mgraph.algorithms.variant import Variant
from mgraph.comm.base import Communicator
from mgraph.shard.shard import Shard
from mgraph.types import Array, unreached_of


def count_levels(shard: Shard, comm: Communicator, roots: list[int | None], trace: Trace) -> np.ndarray:
    """Return how many vertices of all ranks are at each level (rows) from each of `roots` (columns), root included.

    Roots are positions; None is a root without arcs.
    """
    search = MultiSourceSearch(shard, comm, roots, records_levels=False)
    levels: list[Array] = []
    while search.num_front:
        counts = shard.backend.xp.zeros(MAX_ROOTS, np.int64)
        count_roots[shard.backend](0, search.num_own_front, search.frontier, search.front, counts)
        levels.append(counts)
        search.advance(trace)
    if not levels:
        return np.zeros((0, len(roots)), np.int64)
    own = shard.backend.to_host(shard.backend.xp.stack(levels))[:, : len(roots)]
    return comm.allreduce(np.ascontiguousarray(own), "sum")


def counts_of(shard: Shard, comm: Communicator, levels: Array) -> np.ndarray:
    """Return how many vertices of all ranks are at each level, of this rank's levels."""
    reached = levels[levels != unreached_of(levels.dtype)]
    (num_levels,) = comm.allreduce(np.array([int(reached.max()) + 1 if len(reached) else 0]), "max").tolist()
    own = shard.backend.to_host(shard.backend.xp.bincount(reached, minlength=num_levels))
    return comm.allreduce(own.astype(np.int64), "sum")


VARIANT = Variant(
    "bfs.level_counts",
    when=(
        f"for closeness and harmonic centrality by hops, {MAX_ROOTS} roots in one search, on graphs of more than "
        f"{DEEP_DEGREE} arcs a vertex (on others bfs from each root)"
    ),
    applies=lambda conditions: conditions.layout == "rows" and conditions.arcs_per_vertex > DEEP_DEGREE,
    needs=(IN_ROWS,),
    bytes=search_bytes,
    loop=count_levels,
)
