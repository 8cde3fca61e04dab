"""HITS over rows: every vertex adds up what its arcs in bring, then what its arcs out bring, on any ranks."""

from __future__ import annotations

from functools import partial

import numpy as np

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.derived import IN_ROWS
from mgraph.algorithms.hits.mutual_iteration import HitsSpec, Hubs, Passing, iterate, iteration_bytes
from mgraph.algorithms.pagerank.kernels import pull_scores
from mgraph.algorithms.variant import Variant
from mgraph.comm.base import Communicator
from mgraph.shard.shard import Rows, Shard
from mgraph.types import Array


def hubs_by_pull(shard: Shard, comm: Communicator, trace: Trace, spec: HitsSpec) -> Hubs:
    """Find the hub and authority scores of all vertices; an iteration reads every arc twice."""
    backend = shard.backend
    num = shard.num_owned
    received = backend.xp.empty(num, np.int64)
    # What all arcs bring is left to wrap around.
    unused = backend.xp.zeros(1, np.int64)

    def pull(rows: Rows, given: Array) -> Array:
        received[:] = 0
        weights = rows.weights if spec.weighted else None
        pull_scores[backend](0, len(rows.targets), rows.indptr, num, rows.targets, weights, given, received, unused)
        return received

    arcs = len(shard.incoming.targets) + len(shard.rows.targets)
    weights = (lambda: [shard.rows.weights]) if spec.weighted else None
    ways = (partial(pull, rows) for rows in (shard.incoming, shard.rows))
    return iterate(shard, comm, trace, spec, Passing("pull", arcs, weights, *ways))


VARIANT = Variant(
    "hits.pull",
    when="on rows, on any ranks",
    applies=lambda conditions: conditions.has_rows,
    needs=(IN_ROWS,),
    bytes=iteration_bytes,
    loop=hubs_by_pull,
    keeps_checkpoints=True,
)
