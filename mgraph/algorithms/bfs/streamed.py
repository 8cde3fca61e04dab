"""Breadth-first search over blocks in host memory: the loop of common/streamed_search.py, every edge counting 1."""

from __future__ import annotations

from mgraph.algorithms.common.streamed_search import search_streamed, streamed_bytes
from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.derived import EDGE_BLOCKS
from mgraph.algorithms.variant import Variant
from mgraph.comm.base import Communicator
from mgraph.shard.shard import Shard
from mgraph.types import LEVEL


def bfs_streamed(
    shard: Shard, comm: Communicator, sources: list[int], trace: Trace, depth_limit: int | None = None
) -> Traversal:
    """Find levels and predecessors from `sources`, which are positions."""
    return search_streamed(shard, comm, sources, trace, LEVEL, depth_limit)


VARIANT = Variant(
    "bfs.streamed",
    when="on any ranks, if the layout is host",
    applies=lambda conditions: conditions.layout == "host",
    needs=(EDGE_BLOCKS,),
    bytes=lambda sizes: streamed_bytes(sizes, LEVEL.itemsize),
    loop=bfs_streamed,
    keeps_checkpoints=True,
)
