"""PageRank by sweeps over edge blocks, each edge read once for both its ends, on any number of ranks.

    sweep: for every edge (u, v) this rank holds:
        what arrives at v += what u gives along it
        what arrives at u += what v gives along it     if the edge goes both ways
    what arrives = the sum over the ranks

Every rank holds an equal share of the edges, and what all states give and receive.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.derived import EDGE_BLOCKS
from mgraph.algorithms.pagerank.fixed_point import ScoreSpec
from mgraph.algorithms.pagerank.power_iteration import Passing, Scored, iterate, iteration_bytes, refuse_totals
from mgraph.algorithms.pagerank.sweep_kernels import AGAINST, ALONG, add_weights, find_greatest, join_sums, sweep_scores
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.comm.base import Communicator
from mgraph.shard.edge_blocks import require_blocks
from mgraph.shard.shard import EdgeBlocks, Shard
from mgraph.types import Array


def score_by_sweep(shard: Shard, comm: Communicator, trace: Trace, spec: ScoreSpec) -> Scored:
    """Find the scores of all vertices; every edge is read once in every iteration."""
    backend = shard.backend
    xp = backend.xp
    partition = shard.partition
    blocks = require_blocks(shard, comm, np.dtype(np.int64))
    shape = blocks.shape.segment_bits, ALONG if shard.info.directed else ALONG | AGAINST
    base = comm.rank * partition.stride
    received = xp.empty(partition.num_states, np.int64)
    arrived = xp.empty(1, np.int64)

    def sweep(given: Array) -> tuple[Array, int]:
        received[:] = 0
        arrived[:] = 0
        for part in blocks.on_device():
            weights = part.weights if spec.weighted else None
            sweep_scores[backend](0, part.num_units, *part.edges, weights, *shape, given, received, arrived)
        if comm.size > 1:
            comm.allreduce(received, "sum")
        return received[base : base + shard.num_owned], int(arrived[0])

    totals = _totals(shard, comm, blocks) if spec.weighted else None
    num_arcs = blocks.num_edges * (1 if shard.info.directed else 2)
    return iterate(shard, comm, trace, spec, Passing("sweep", num_arcs, totals, sweep))


def _totals(shard: Shard, comm: Communicator, blocks: EdgeBlocks) -> Array:
    """Return the sum of the weights out of each owned vertex."""
    backend = shard.backend
    xp = backend.xp
    num_states = shard.partition.num_states
    num = shard.num_owned
    base = comm.rank * shard.partition.stride
    segment_bits = blocks.shape.segment_bits
    both_ways = 0 if shard.info.directed else 1
    greatest = xp.zeros(num_states, np.int64)
    for part in blocks.on_device():
        find_greatest[backend](0, part.num_units, *part.edges, part.weights, segment_bits, both_ways, greatest)
    if comm.size > 1:
        comm.allreduce(greatest, "min")
    xp.negative(greatest, out=greatest)
    sums = xp.zeros(2 * num_states, np.int64)
    most = greatest.view(np.float64)
    for part in blocks.on_device():
        add_weights[backend](0, part.num_units, *part.edges, part.weights, segment_bits, both_ways, most, sums)
    if comm.size > 1:
        comm.allreduce(sums, "sum")
    totals = xp.empty(num, np.float64)
    refused = xp.zeros(1, np.int64)
    join_sums[backend](0, num, greatest.view(np.float64)[base:], sums[2 * base :], totals, refused)
    refuse_totals(comm, int(refused[0]))
    return totals


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of the iteration, which receives for all states, and of totals of weights before it."""
    totals = 24 * sizes.states if sizes.weight else 0
    return max(iteration_bytes(sizes) + 8 * (sizes.states - sizes.owned), 8 * sizes.states + totals)


VARIANT = Variant(
    "pagerank.sweep",
    when="on any ranks, if the layout is compact or host",
    applies=lambda conditions: not conditions.has_rows,
    needs=(EDGE_BLOCKS,),
    bytes=_bytes,
    loop=score_by_sweep,
)
