"""Find and check the PageRank of vertices."""

from __future__ import annotations

import hashlib
from typing import Any

from mgraph.algorithms import run_variant
from mgraph.algorithms.common.checkpoints import CheckpointFolder
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.pagerank.fixed_point import SCORE_BYTES, ScoreSpec
from mgraph.algorithms.pagerank.results import scores_of_users
from mgraph.algorithms.variants import PAGERANK
from mgraph.cluster.base import Rank
from mgraph.planning.admission import refuse_check_without_room, refuse_without_room
from mgraph.rank_jobs.checkpoints import kept_in
from mgraph.rank_jobs.results import StoredColumns
from mgraph.shard.shard import Shard
from mgraph.validation.pagerank import scores_check_bytes, validate_scores
from mgraph.validation.traversal import Violation


def compute_pagerank(
    rank: Rank, graph: str, key: str, spec: ScoreSpec, checkpoint: CheckpointFolder | None = None
) -> dict[str, Any]:
    """Find the scores of all vertices; store them as `key` and return this rank's stats."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    refuse_without_room("PageRank", PAGERANK, shard, rank.comm)
    trace = Trace(rank.backend, rank.comm)
    with kept_in(checkpoint, trace, shard, SCORE_BYTES, "pagerank", **_parameters(spec)):
        variant, found = run_variant.compute_pagerank(shard, rank.comm, trace, spec)
        with trace.phase("translate"):
            scores = scores_of_users(shard, rank.comm, found)
        trace.move_seconds("iterate", "checkpoint", trace.checkpoints.seconds)
    rank.objects[key] = StoredColumns(shard.user_range[0], {"scores": scores}, labels=shard.labels)
    return {
        **trace.stats(),
        "variant": variant,
        "iterations": found.iterations,
        "change": found.change,
    }


def _parameters(spec: ScoreSpec) -> dict[str, Any]:
    """Return what the checkpoint of an equal call has."""
    shares = hashlib.sha256(spec.users.tobytes() + spec.shares.tobytes()).hexdigest()
    facts = {name: getattr(spec, name) for name in ("damping", "largest_change", "max_iterations", "weighted")}
    return facts | {"personalization": shares}


def check_scores(rank: Rank, key: str, graph: str, spec: ScoreSpec, change: int) -> list[Violation]:
    """Check scores by rules; every rank returns the same violations."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    scores = rank.objects[key].columns["scores"]
    needed = scores_check_bytes(shard.partition, shard.info.num_vertices)
    refuse_check_without_room("PageRank", needed, shard, rank.comm)
    return validate_scores(shard, rank.comm, scores, spec, change)
