"""HITS by sweeps over edge blocks, on any number of ranks.

    sweep along arcs: for every edge (u, v) this rank holds, what arrives at v += what u gives along it
    sweep against them: the same from v to u
    what arrives = the sum over the ranks

Of an undirected graph both sweeps go both ways.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.derived import EDGE_BLOCKS
from mgraph.algorithms.hits.mutual_iteration import HitsSpec, Hubs, Passing, iterate, iteration_bytes
from mgraph.algorithms.pagerank.sweep_kernels import AGAINST, ALONG, sweep_scores
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.comm.base import Communicator
from mgraph.shard.edge_blocks import require_blocks
from mgraph.shard.shard import Shard
from mgraph.types import Array


def hubs_by_sweep(shard: Shard, comm: Communicator, trace: Trace, spec: HitsSpec) -> Hubs:
    """Find the hub and authority scores of all vertices; an iteration reads every edge twice."""
    backend = shard.backend
    partition = shard.partition
    blocks = require_blocks(shard, comm, np.dtype(np.int64))
    base = comm.rank * partition.stride
    received = backend.xp.empty(partition.num_states, np.int64)
    # What all edges bring is left to wrap around.
    unused = backend.xp.zeros(1, np.int64)

    def sweep(ways: int, given: Array) -> Array:
        received[:] = 0
        shape = blocks.shape.segment_bits, ways if shard.info.directed else ALONG | AGAINST
        for part in blocks.on_device():
            weights = part.weights if spec.weighted else None
            sweep_scores[backend](0, part.num_units, *part.edges, weights, *shape, given, received, unused)
        if comm.size > 1:
            comm.allreduce(received, "sum")
        return received[base : base + shard.num_owned]

    def weights() -> Iterator[Array]:
        return (part.weights for part in blocks.on_device())

    arcs = blocks.num_edges * (2 if shard.info.directed else 4)
    ways = (partial(sweep, way) for way in (ALONG, AGAINST))
    return iterate(shard, comm, trace, spec, Passing("sweep", arcs, weights if spec.weighted else None, *ways))


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of the iteration, which receives for all states."""
    return iteration_bytes(sizes) + 8 * (sizes.states - sizes.owned)


VARIANT = Variant(
    "hits.sweep",
    when="on any ranks, if the layout is compact or host",
    applies=lambda conditions: not conditions.has_rows,
    needs=(EDGE_BLOCKS,),
    bytes=_bytes,
    loop=hubs_by_sweep,
)
