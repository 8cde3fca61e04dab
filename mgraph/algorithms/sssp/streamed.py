"""Find shortest paths over blocks of which some are in host memory: the loop is common/streamed_search.py."""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.common.streamed_search import search_streamed, streamed_bytes
from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.derived import EDGE_BLOCKS
from mgraph.algorithms.variant import Variant
from mgraph.comm.base import Communicator
from mgraph.shard.shard import Shard


def sssp_streamed(
    shard: Shard,
    comm: Communicator,
    sources: list[int],
    trace: Trace,
    dtype: np.dtype,
    cutoff: float | int | None = None,
) -> Traversal:
    """Find distances in `dtype` and predecessors from positions `sources`."""
    return search_streamed(shard, comm, sources, trace, dtype, cutoff)


VARIANT = Variant(
    "sssp.streamed",
    when="on any ranks, if the layout is host",
    applies=lambda conditions: conditions.layout == "host",
    needs=(EDGE_BLOCKS,),
    bytes=lambda sizes: streamed_bytes(sizes, sizes.state),
    loop=sssp_streamed,
    keeps_checkpoints=True,
)
