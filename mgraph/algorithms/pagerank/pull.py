"""PageRank over rows: every vertex adds up what its arcs in bring, on any number of ranks."""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.derived import IN_ROWS
from mgraph.algorithms.pagerank.fixed_point import ScoreSpec
from mgraph.algorithms.pagerank.kernels import pull_scores, total_weights
from mgraph.algorithms.pagerank.power_iteration import Passing, Scored, iterate, iteration_bytes, refuse_totals
from mgraph.algorithms.variant import Variant
from mgraph.comm.base import Communicator
from mgraph.shard.shard import Shard
from mgraph.types import Array


def score_by_pull(shard: Shard, comm: Communicator, trace: Trace, spec: ScoreSpec) -> Scored:
    """Find the scores of all vertices; every arc is read in every iteration."""
    backend = shard.backend
    xp = backend.xp
    rows = shard.incoming
    num = shard.num_owned
    num_arcs = len(rows.targets)
    weights = rows.weights if spec.weighted else None
    received = xp.empty(num, np.int64)
    arrived = xp.empty(1, np.int64)

    def pull(given: Array) -> tuple[Array, int]:
        received[:] = 0
        arrived[:] = 0
        pull_scores[backend](0, num_arcs, rows.indptr, num, rows.targets, weights, given, received, arrived)
        return received, int(arrived[0])

    totals = _totals(shard, comm) if spec.weighted else None
    return iterate(shard, comm, trace, spec, Passing("pull", num_arcs, totals, pull))


def _totals(shard: Shard, comm: Communicator) -> Array:
    """Return the sum of the weights out of each owned vertex."""
    rows = shard.rows
    totals = shard.backend.xp.empty(shard.num_owned, np.float64)
    refused = shard.backend.xp.zeros(1, np.int64)
    total_weights[shard.backend](0, shard.num_owned, rows.indptr, rows.weights, totals, refused)
    refuse_totals(comm, int(refused[0]))
    return totals


VARIANT = Variant(
    "pagerank.pull",
    when="on rows, on any ranks",
    applies=lambda conditions: conditions.has_rows,
    needs=(IN_ROWS,),
    bytes=iteration_bytes,
    loop=score_by_pull,
    keeps_checkpoints=True,
)
