"""Find and check a spanning forest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mgraph.algorithms import run_variant
from mgraph.algorithms.common.checkpoints import CheckpointFolder
from mgraph.algorithms.common.exact_sum import exact_sum
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.variants import SPANNING_FOREST
from mgraph.cluster.base import Rank
from mgraph.planning.admission import refuse_check_without_room, refuse_without_room
from mgraph.rank_jobs.checkpoints import kept_in
from mgraph.rank_jobs.results import StoredColumns
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import edges_of_users
from mgraph.validation.spanning_forest import forest_check_bytes, validate_forest
from mgraph.validation.traversal import Violation


@dataclass
class StoredForest(StoredColumns):
    """One rank's part of a forest; edges are numbered over all ranks."""

    maximum: bool


def compute_spanning_forest(
    rank: Rank, graph: str, key: str, maximum: bool, checkpoint: CheckpointFolder | None = None
) -> dict[str, Any]:
    """Find a spanning forest; store its edges as `key` and return this rank's stats."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    # Over rows the weights of a heaviest forest are inverted in a copy.
    copied = shard.rows.weights.itemsize if maximum and shard.has_rows and shard.rows.weights is not None else 0
    refuse_without_room("a spanning forest", SPANNING_FOREST, shard, rank.comm, copied)
    comm = rank.comm
    trace = Trace(rank.backend, rank.comm)
    # A tree, and two edges of two words.
    vertex_bytes = 5 * shard.partition.dtype.itemsize
    with kept_in(checkpoint, trace, shard, vertex_bytes, "spanning_forest", maximum=maximum):
        variant, found = run_variant.compute_spanning_forest(shard, comm, trace, maximum)
        num_edges = len(found)
        with trace.phase("translate"):
            first, columns = edges_of_users(shard, comm, found)
            weights = columns["weights"]
            total = exact_sum(rank.backend.xp, weights)
            if weights.dtype.kind != "f":
                columns["weights"] = weights.astype(np.int64, copy=False)
        trace.move_seconds("forest", "checkpoint", trace.checkpoints.seconds)
        rank.objects[key] = StoredForest(first, columns, maximum, labels=shard.labels)
    return {
        **trace.stats(),
        "variant": variant,
        "edges": num_edges,
        "total": total,
    }


def check_forest(rank: Rank, key: str, graph: str) -> list[Violation]:
    """Check a spanning forest by rules; every rank returns the same violations."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    forest = rank.objects[key]
    info = shard.info
    weight = np.dtype(shard.info.weight_dtype).itemsize
    row_edges = -(-info.num_edges // rank.size) if shard.has_rows else 0
    needed = forest_check_bytes(shard.partition, info.num_vertices, row_edges, weight, forest.maximum)
    refuse_check_without_room("a spanning forest", needed, shard, rank.comm)
    return validate_forest(shard, rank.comm, forest.columns, forest.maximum)
