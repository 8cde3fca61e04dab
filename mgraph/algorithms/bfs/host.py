"""Breadth-first search of one GPU's graph by the CPU, over a copy of the rows in host memory.

It is faster on deep graphs with narrow frontiers; mgraph/algorithms/common/gpu_or_host.py decides where.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from mgraph.algorithms.bfs.hybrid import bfs_hybrid, fits_words
from mgraph.algorithms.common.gpu_or_host import decide, give_up, is_undecided, searches_on_host
from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.derived import HOST_COPY, IN_ROWS
from mgraph.algorithms.variant import Variant
from mgraph.backends.compile_clock import CLOCK
from mgraph.comm.base import Communicator
from mgraph.shard.host_copy import host_copy
from mgraph.shard.shard import Shard


def bfs_on_host(
    shard: Shard,
    comm: Communicator,
    sources: list[int],
    trace: Trace,
    depth_limit: int | None = None,
    until: Sequence[int] = (),
) -> Traversal | None:
    """Find the levels and parents that hybrid.py finds; return them on the GPU.

    Return None where it turns out that the GPU is faster.
    """
    began = time.perf_counter() - CLOCK.seconds
    found = bfs_hybrid(host_copy(shard), comm, sources, trace, depth_limit, until)
    if found is None:
        give_up(shard, "bfs")
        return None
    assert found.predecessors is not None, "hybrid.py finds both"
    assert found.num_reached is not None, "and counts"
    to_device = shard.backend.to_device
    levels = to_device(np.ascontiguousarray(found.distances))
    parents = to_device(np.ascontiguousarray(found.predecessors))
    if is_undecided(shard, "bfs") and depth_limit is None and not until:
        took = time.perf_counter() - CLOCK.seconds - began
        assert found.reached is not None, "and lists what is reached"
        num_levels = int(found.distances[found.reached[-1]]) if len(found.reached) else 0
        decide(shard, "bfs", took, found.num_reached, num_levels)
    return Traversal(levels, parents, found.num_reached, found.reached_arcs)


VARIANT = Variant(
    "bfs.host",
    when="by the CPU beside one GPU, if requested, or once a search has shown that levels are too narrow for the GPU",
    applies=lambda conditions: searches_on_host("bfs", conditions) and fits_words(conditions),
    needs=(IN_ROWS, HOST_COPY),
    bytes=lambda sizes: (4 + sizes.vertex) * sizes.owned,
    loop=bfs_on_host,
    takes_until=True,
)
