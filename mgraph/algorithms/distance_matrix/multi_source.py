"""Find the hops from many sources, 64 of them in one search (mgraph/algorithms/bfs/multi_source.py)."""

from __future__ import annotations

from collections.abc import Iterator

from mgraph.algorithms.bfs.multi_source import MAX_ROOTS, MultiSourceLevels, bfs_together, search_bytes
from mgraph.algorithms.bfs.multi_source_kernels import levels_of_root
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.derived import IN_ROWS
from mgraph.algorithms.distance_matrix.searches import Searches, own_columns
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.comm.base import Communicator
from mgraph.shard.shard import Shard
from mgraph.types import LEVEL, Array


def search_together(shard: Shard, comm: Communicator, searches: Searches, trace: Trace) -> Iterator[Array]:
    """Yield the hops from some sources after others: a row for each, a column for each own target or vertex."""
    columns = own_columns(shard, comm.rank, searches)
    limit = None if searches.limit is None else int(searches.limit)
    for first in range(0, len(searches.sources), MAX_ROOTS):
        batch = searches.sources[first : first + MAX_ROOTS]
        yield _rows(shard, bfs_together(shard, comm, list(batch), trace, limit), len(batch), columns)


def _rows(shard: Shard, found: MultiSourceLevels, count: int, columns: Array | None) -> Array:
    """Return the levels of `count` roots, all or of some owned vertices."""
    xp = shard.backend.xp
    width = shard.num_owned if columns is None else len(columns)
    seen = found.seen
    planes = found.planes
    if columns is not None:
        seen = seen[columns]
        planes = xp.ascontiguousarray(planes.reshape(found.num_planes, shard.num_owned)[:, columns]).reshape(-1)
    rows = xp.empty((count, width), LEVEL)
    for root in range(count):
        levels_of_root[shard.backend](0, width, seen, planes, found.num_planes, width, root, rows[root])
    return rows


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of a search, of four planes of levels, and of the levels of its roots."""
    return search_bytes(sizes) + (8 * 4 + LEVEL.itemsize * MAX_ROOTS) * sizes.owned


VARIANT = Variant(
    "distance_matrix.multi_source",
    when=f"by hops, {MAX_ROOTS} sources in one search, on all others",
    applies=lambda conditions: conditions.layout == "rows" and conditions.by_hops,
    needs=(IN_ROWS,),
    bytes=_bytes,
    loop=search_together,
)
