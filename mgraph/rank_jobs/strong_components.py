"""Find and check strongly connected components."""

from __future__ import annotations

from typing import Any

from mgraph.algorithms import run_variant
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.strong_components.labels import labels_of_users
from mgraph.cluster.base import Rank
from mgraph.planning.admission import refuse_check_without_room
from mgraph.rank_jobs.components import check_labels, compute_components, store_labels
from mgraph.shard.shard import Shard
from mgraph.validation.strong_components import strong_check_bytes, validate_strong_labels
from mgraph.validation.traversal import Violation


def compute_strong_components(rank: Rank, graph: str, key: str) -> dict[str, Any]:
    """Find the strong components; store their labels as `key` and return this rank's stats."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    if not shard.info.directed:
        return compute_components(rank, graph, key)
    trace = Trace(rank.backend, rank.comm)
    variant, roots = run_variant.compute_strong_components(shard, rank.comm, trace)
    with trace.phase("translate"):
        labels = labels_of_users(shard, rank.comm, roots)
    return store_labels(rank, shard, key, labels, variant, trace)


def check_strong_labels(rank: Rank, key: str, graph: str) -> list[Violation]:
    """Check the labels of strong components by rules; every rank returns the same violations."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    if not shard.info.directed:
        return check_labels(rank, key, graph)
    labels = rank.objects[key].columns["labels"]
    needed = strong_check_bytes(shard.partition, shard.info.num_vertices)
    refuse_check_without_room("strong components", needed, shard, rank.comm)
    return validate_strong_labels(shard, rank.comm, labels)
