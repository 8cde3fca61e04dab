"""Find the hops from many sources, 64 or 256 of them in one search (mgraph/algorithms/bfs/multi_source.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from mgraph.algorithms.bfs.multi_source import BATCH_ROOTS, MAX_ROOTS, MultiSourceLevels, bfs_together
from mgraph.algorithms.bfs.multi_source import VARIANT as BFS
from mgraph.algorithms.bfs.multi_source_bitmaps import VARIANT as BFS_BITMAPS
from mgraph.algorithms.bfs.multi_source_bitmaps import BitmapLevels, bfs_bitmaps, is_one_gpu
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.derived import IN_ROWS
from mgraph.algorithms.distance_matrix.searches import Searches, own_columns
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.comm.base import Communicator
from mgraph.shard.shard import Shard
from mgraph.types import LEVEL, Array

# Rows that are yielded together.
ROWS_AT_ONCE = 64


def search_together(
    search: Callable[..., MultiSourceLevels | BitmapLevels],
    shard: Shard,
    comm: Communicator,
    searches: Searches,
    trace: Trace,
) -> Iterator[Array]:
    """Yield the hops from some sources after others: a row for each, a column for each own target or vertex."""
    columns = own_columns(shard, comm.rank, searches)
    width = shard.num_owned if columns is None else len(columns)
    limit = None if searches.limit is None else int(searches.limit)
    for first in range(0, len(searches.sources), BATCH_ROOTS):
        batch = searches.sources[first : first + BATCH_ROOTS]
        found = search(shard, comm, list(batch), trace, limit)
        if columns is not None:
            found = found.of_vertices(columns)
        for begin in range(0, len(batch), ROWS_AT_ONCE):
            roots = range(begin, min(begin + ROWS_AT_ONCE, len(batch)))
            rows = shard.backend.xp.empty((len(roots), width), LEVEL)
            for row, root in enumerate(roots):
                rows[row] = found.levels(shard, root)
            yield rows


def _row_bytes(sizes: GraphSizes) -> int:
    """Return the bytes of the rows that are yielded together, and of one more."""
    return LEVEL.itemsize * (ROWS_AT_ONCE + 1) * sizes.owned


BITMAPS = Variant(
    "distance_matrix.multi_source_bitmaps",
    when=f"by hops, {BATCH_ROOTS} sources in one search, on one GPU",
    applies=lambda conditions: is_one_gpu(conditions) and conditions.by_hops,
    needs=(IN_ROWS,),
    bytes=lambda sizes: BFS_BITMAPS.bytes(sizes) + _row_bytes(sizes),
    loop=partial(search_together, bfs_bitmaps),
)
VARIANT = Variant(
    "distance_matrix.multi_source",
    when=f"by hops, {MAX_ROOTS} sources in one search, on all others",
    applies=lambda conditions: conditions.has_rows and conditions.by_hops,
    needs=(IN_ROWS,),
    bytes=lambda sizes: BFS.bytes(sizes) + _row_bytes(sizes),
    loop=partial(search_together, bfs_together),
)
