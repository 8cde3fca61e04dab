"""Count the vertices at each level from many roots, without recording which they are.

    front = each root's bit at the root
    while any bit is in front:
        count the front's bits of every root
        front = the next one of a multi-source search

Distances from a root to all vertices are summed from its counts: integers, whatever the ranks and the order. On deep
graphs the frontiers of roots hardly overlap: there a search from each root is faster, and its levels are counted.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.bfs.multi_source import BATCH_ROOTS, MAX_ROOTS, MultiSourceSearch, search_bytes
from mgraph.algorithms.bfs.multi_source_bitmaps import BitmapSearch, bitmaps_bytes, is_one_gpu
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.derived import IN_ROWS
from mgraph.algorithms.variant import Variant
from mgraph.comm.base import Communicator
from mgraph.shard.shard import DEEP_DEGREE, Shard
from mgraph.types import Array, unreached_of


def count_levels(shard: Shard, comm: Communicator, roots: list[int | None], trace: Trace) -> np.ndarray:
    """Return how many vertices of all ranks are at each level (rows) from each of `roots` (columns), root included.

    Roots are positions; None is a root without arcs.
    """
    batches = [roots[first : first + MAX_ROOTS] for first in range(0, len(roots), MAX_ROOTS)]
    parts = [
        _counted(MultiSourceSearch(shard, comm, batch, records_levels=False), len(batch), trace) for batch in batches
    ]
    levels = max(map(len, parts), default=0)
    own = np.hstack([np.pad(part, ((0, levels - len(part)), (0, 0))) for part in parts] or [np.zeros((0, 0), np.int64)])
    return comm.allreduce(np.ascontiguousarray(own), "sum") if own.size else own


def count_levels_by_bitmaps(shard: Shard, comm: Communicator, roots: list[int | None], trace: Trace) -> np.ndarray:
    """Do the same by one search on one GPU."""
    return _counted(BitmapSearch(shard, roots, records_levels=False), len(roots), trace)


def _counted(search: MultiSourceSearch | BitmapSearch, num_roots: int, trace: Trace) -> np.ndarray:
    """Return how many vertices of this rank are at each level from each root."""
    levels: list[Array] = []
    while search.num_front:
        levels.append(search.count_front())
        search.advance(trace)
    if not levels:
        return np.zeros((0, num_roots), np.int64)
    backend = search.backend
    return backend.to_host(backend.xp.stack(levels))[:, :num_roots]


def counts_of(shard: Shard, comm: Communicator, levels: Array) -> np.ndarray:
    """Return how many vertices of all ranks are at each level, of this rank's levels."""
    reached = levels[levels != unreached_of(levels.dtype)]
    (num_levels,) = comm.allreduce(np.array([int(reached.max()) + 1 if len(reached) else 0]), "max").tolist()
    own = shard.backend.to_host(shard.backend.xp.bincount(reached, minlength=num_levels))
    return comm.allreduce(own.astype(np.int64), "sum")


BITMAPS = Variant(
    "bfs.level_counts_bitmaps",
    when=(
        f"for closeness and harmonic centrality by hops, {BATCH_ROOTS} roots in one search, on one GPU, on graphs of "
        f"more than {DEEP_DEGREE} arcs a vertex"
    ),
    applies=lambda conditions: is_one_gpu(conditions) and conditions.arcs_per_vertex > DEEP_DEGREE,
    needs=(IN_ROWS,),
    bytes=lambda sizes: bitmaps_bytes(sizes) + BATCH_ROOTS // 8 * sizes.owned,
    loop=count_levels_by_bitmaps,
)
VARIANT = Variant(
    "bfs.level_counts",
    when=(
        f"for closeness and harmonic centrality by hops, {MAX_ROOTS} roots in one search, on graphs of more than "
        f"{DEEP_DEGREE} arcs a vertex (on others bfs from each root)"
    ),
    applies=lambda conditions: conditions.has_rows and conditions.arcs_per_vertex > DEEP_DEGREE,
    needs=(IN_ROWS,),
    bytes=search_bytes,
    loop=count_levels,
)
