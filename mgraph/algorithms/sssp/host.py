"""Find shortest paths of one GPU's graph by the CPU, over a copy of the rows in host memory.

It is faster on deep graphs with small buckets; mgraph/algorithms/common/gpu_or_host.py decides where.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from mgraph.algorithms.common.dtype_ladder import end_of, searched_bytes
from mgraph.algorithms.common.gpu_or_host import decide, give_up, is_undecided, searches_on_host
from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.derived import HOST_COPY
from mgraph.algorithms.sssp.hybrid import sssp_hybrid
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.backends.compile_clock import CLOCK
from mgraph.comm.base import Communicator
from mgraph.shard.host_copy import host_copy
from mgraph.shard.shard import Shard
from mgraph.types import unreached_of


def sssp_on_host(
    shard: Shard,
    comm: Communicator,
    sources: list[int],
    trace: Trace,
    dtype: np.dtype,
    cutoff: float | int | None = None,
    until: Sequence[int] = (),
) -> Traversal | None:
    """Find the distances, and perhaps predecessors, that hybrid.py finds; return them on the GPU.

    Return None where it turns out that the GPU is faster.
    """
    began = CLOCK.now()
    found = sssp_hybrid(host_copy(shard), comm, sources, trace, dtype, cutoff, until)
    if found is None:
        give_up(shard, "sssp")
        return None
    to_device = shard.backend.to_device
    distances = to_device(found.distances)
    parents = None if found.predecessors is None else to_device(found.predecessors)
    if is_undecided(shard, "sssp") and not until and cutoff in (None, end_of(shard.info, dtype)):
        took = CLOCK.now() - began
        reached = found.distances[found.distances != unreached_of(dtype)]
        decide(shard, "sssp", took, len(reached), float(reached.max(initial=0)))
    return Traversal(distances, parents, found.num_reached, found.reached_arcs)


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of distances and of predecessors, and of what finds these."""
    return (searched_bytes(sizes, has_peer_buffers=False) + sizes.vertex + 9) * sizes.owned


VARIANT = Variant(
    "sssp.host",
    when="by the CPU beside one GPU, if requested, or once a search has shown that buckets are too small for the GPU",
    applies=partial(searches_on_host, "sssp"),
    needs=(HOST_COPY,),
    bytes=_bytes,
    loop=sssp_on_host,
    takes_until=True,
)
