"""Find and check connected components."""

from __future__ import annotations

from typing import Any

import numpy as np

from mgraph.algorithms import run_variant
from mgraph.algorithms.common.checkpoints import CheckpointFolder
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.components.afforest import state_dtype
from mgraph.algorithms.components.labels import labels_of_users
from mgraph.backends.totals import total
from mgraph.cluster.base import Rank
from mgraph.planning.admission import refuse_check_without_room
from mgraph.rank_jobs.checkpoints import kept_in
from mgraph.rank_jobs.results import StoredColumns
from mgraph.shard.shard import Shard
from mgraph.types import Array
from mgraph.validation.components import labels_check_bytes, validate_labels
from mgraph.validation.traversal import Violation


def compute_components(rank: Rank, graph: str, key: str, checkpoint: CheckpointFolder | None = None) -> dict[str, Any]:
    """Find the components; store their labels as `key` and return this rank's stats."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    trace = Trace(rank.backend, rank.comm)
    with kept_in(checkpoint, trace, shard, state_dtype(shard.partition).itemsize, "components"):
        variant, roots = run_variant.compute_components(shard, rank.comm, trace)
        with trace.phase("translate"):
            labels = labels_of_users(shard, rank.comm, roots)
        num = roots.num_roots
        if num is not None:
            # An isolated vertex has no position.
            num += shard.info.num_vertices - shard.partition.num_positions
        trace.move_seconds("find", "checkpoint", trace.checkpoints.seconds)
        return store_labels(rank, shard, key, labels, variant, trace, num)


def store_labels(
    rank: Rank, shard: Shard, key: str, labels: Array, variant: str, trace: Trace, num_components: int | None = None
) -> dict[str, Any]:
    """Store the labels of this rank's range of user ids as `key` and return this rank's stats.

    `num_components` are those with a label in the range, where they were counted.
    """
    lo, hi = shard.user_range
    if num_components is None:
        num_components = total(rank.backend, labels == rank.backend.xp.arange(lo, hi))
    rank.objects[key] = StoredColumns(lo, {"labels": labels}, labels=shard.labels)
    return {
        **trace.stats(),
        "variant": variant,
        "components": num_components,
    }


def count_sizes(rank: Rank, key: str, sizes: str) -> int:
    """Store the labels that are in this rank's range of vertices, and their counts, as `sizes`; return how many."""
    result: StoredColumns = rank.objects[key]
    comm = rank.comm
    xp = rank.backend.xp
    own = result.columns["labels"]
    labels, counts = xp.unique(own, return_counts=True)
    firsts = comm.allgather(np.array([result.first], np.int64), np.empty(comm.size, np.int64))
    # A label is a vertex: the rank that serves it adds the counts of all ranks.
    cuts = xp.searchsorted(labels, rank.backend.to_device(firsts[1:])).tolist()
    received = [comm.alltoallv(xp.split(column, cuts)) for column in (labels, counts.astype(np.int64))]
    summed = xp.zeros(len(own), np.int64)
    for places, found in zip(*received, strict=True):
        summed[places - result.first] += found
    places = xp.flatnonzero(summed)
    first = int(np.cumsum(comm.allgather(np.array([len(places)], np.int64), firsts))[comm.rank]) - len(places)
    columns = {"labels": places + result.first, "sizes": summed[places]}
    rank.objects[sizes] = StoredColumns(first, columns, labels=result.labels)
    return len(places)


def check_labels(rank: Rank, key: str, graph: str) -> list[Violation]:
    """Check the labels of components by rules; every rank returns the same violations."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    labels = rank.objects[key].columns["labels"]
    needed = labels_check_bytes(shard.partition, shard.info.num_vertices)
    refuse_check_without_room("components", needed, shard, rank.comm)
    return validate_labels(shard, rank.comm, labels)
