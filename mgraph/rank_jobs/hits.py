"""Find and check hubs and authorities."""

from __future__ import annotations

import dataclasses
from typing import Any

from mgraph.algorithms import run_variant
from mgraph.algorithms.common.checkpoints import CheckpointFolder
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.hits.mutual_iteration import HitsSpec
from mgraph.algorithms.hits.results import columns_of_users
from mgraph.algorithms.pagerank.fixed_point import SCORE_BYTES
from mgraph.algorithms.variants import HITS
from mgraph.cluster.base import Rank
from mgraph.planning.admission import refuse_check_without_room, refuse_without_room
from mgraph.rank_jobs.checkpoints import kept_in
from mgraph.rank_jobs.results import StoredColumns
from mgraph.shard.shard import Shard
from mgraph.validation.hits import hubs_check_bytes, validate_hubs
from mgraph.validation.traversal import Violation


def compute_hits(
    rank: Rank, graph: str, key: str, spec: HitsSpec, checkpoint: CheckpointFolder | None = None
) -> dict[str, Any]:
    """Find both scores of all vertices; store them as `key` and return this rank's stats."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    refuse_without_room("HITS", HITS, shard, rank.comm)
    trace = Trace(rank.backend, rank.comm)
    with kept_in(checkpoint, trace, shard, SCORE_BYTES, "hits", **dataclasses.asdict(spec)):
        variant, found = run_variant.compute_hits(shard, rank.comm, trace, spec)
        with trace.phase("translate"):
            columns = columns_of_users(shard, rank.comm, found, spec.normalized)
        trace.move_seconds("iterate", "checkpoint", trace.checkpoints.seconds)
    rank.objects[key] = StoredColumns(shard.user_range[0], columns, labels=shard.labels)
    return {
        **trace.stats(),
        "variant": variant,
        "iterations": found.iterations,
        "change": found.change,
    }


def check_hubs(rank: Rank, key: str, graph: str, spec: HitsSpec, change: float) -> list[Violation]:
    """Check scores by rules; every rank returns the same violations."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    columns = rank.objects[key].columns
    needed = hubs_check_bytes(shard.partition, shard.info.num_vertices)
    refuse_check_without_room("HITS", needed, shard, rank.comm)
    return validate_hubs(shard, rank.comm, columns["hubs"], columns["authorities"], spec, change)
