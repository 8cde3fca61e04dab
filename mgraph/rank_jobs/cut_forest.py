"""Cut the edges of a spanning forest at a weight, and check the components that remain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.components.kernels import compress, link_roots
from mgraph.cluster.base import Rank
from mgraph.planning.admission import refuse_check_without_room
from mgraph.rank_jobs.components import store_labels
from mgraph.rank_jobs.spanning_forest import StoredForest
from mgraph.shard.shard import Rows, Shard
from mgraph.types import Array, vertex_dtype
from mgraph.validation.components import labels_check_bytes, validate_labels
from mgraph.validation.traversal import Violation

# Whether an edge is kept, from its weight and that of the cut.
Keeps = Callable[[Array, Any], Array]


def cut_forest(rank: Rank, forest: str, graph: str, key: str, keeps: Keeps, weight: float | int) -> dict[str, Any]:
    """Store as `key` the components of the edges that are kept; return this rank's stats.

    Every rank has all of these edges, at most one for each vertex, and the trees of all user ids.
    """
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    stored: StoredForest = rank.objects[forest]
    comm = rank.comm
    backend = rank.backend
    n = shard.info.num_vertices
    trace = Trace(backend, comm)
    with trace.phase("cut"):
        kept = keeps(stored.columns["weights"], weight)
        ends = [stored.columns[name][kept].astype(vertex_dtype(n)) for name in ("sources", "targets")]
        if comm.size > 1:
            ends = [backend.xp.concatenate(comm.alltoallv([part] * comm.size)) for part in ends]
        parents = backend.xp.arange(n, dtype=ends[0].dtype)
        # The larger of two roots becomes a child: the root of a tree is its smallest user id.
        link_roots[backend](0, len(ends[0]), *ends, parents)
        compress[backend](0, n, 0, 1, parents)
        labels = parents[slice(*shard.user_range)].astype(np.int64)
        trace.superstep(method="merge", frontier=len(ends[0]), arcs=0)
    return store_labels(rank, shard, key, labels, "", trace)


def check_cut(rank: Rank, key: str, graph: str, keeps: Keeps, weight: float | int) -> list[Violation]:
    """Check that the labels are those of the components of all edges of the graph that are kept."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    xp = rank.backend.xp
    rows = shard.rows
    # In addition to the check: which arcs are kept, their places, and a copy of them; integer weights in 64 bits.
    needed = labels_check_bytes(shard.partition, shard.info.num_vertices)
    needed += (17 + rows.targets.itemsize) * len(rows.targets) + rows.indptr.nbytes
    refuse_check_without_room("the components of a cut", needed, shard, rank.comm)
    assert rows.weights is not None, "a graph with a forest has weights"
    weights = rows.weights if rows.weights.dtype.kind == "f" else rows.weights.astype(np.int64)
    kept = keeps(weights, weight)
    ends = xp.zeros(len(kept) + 1, np.int64)
    xp.cumsum(kept, dtype=np.int64, out=ends[1:])
    of_kept = replace(shard, stored_rows=Rows(ends[rows.indptr], rows.targets[kept], None), blocks={}, kept={})
    return validate_labels(of_kept, rank.comm, rank.objects[key].columns["labels"])
