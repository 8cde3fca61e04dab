"""Count the arcs of every vertex."""

from __future__ import annotations

from typing import Literal

from mgraph.cluster.base import Rank
from mgraph.rank_jobs.results import StoredColumns
from mgraph.shard.in_rows import in_degrees
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import translate_results
from mgraph.types import vertex_dtype

Direction = Literal["out", "in", "both"]


def count_degrees(rank: Rank, graph: str, key: str, direction: Direction) -> None:
    """Store the degree of every vertex as `key`."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    if direction == "out" or not shard.info.directed:
        counts = shard.degrees
    elif direction == "in":
        counts = in_degrees(shard, rank.comm)
    else:
        counts = shard.degrees + in_degrees(shard, rank.comm)
    # A degree is less than the number of vertices, the sum of two less than twice as much.
    counts = counts.astype(vertex_dtype(2 * shard.info.num_vertices))
    (degrees,) = translate_results(shard, rank.comm, counts, None)
    # Vertices without arcs have no state, and count as unreached.
    shard.backend.xp.maximum(degrees, 0, out=degrees)
    rank.objects[key] = StoredColumns(shard.user_range[0], {"degrees": degrees}, labels=shard.labels)
