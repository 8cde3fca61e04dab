"""Find closeness and harmonic centrality, from the distances between a vertex and all others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal

import numpy as np

from mgraph.algorithms.bfs.level_counts import counts_of
from mgraph.algorithms.bfs.multi_source import BATCH_ROOTS
from mgraph.algorithms.common.exact_sum import as_float, exact_sum, sum_of_ranks
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.distance_matrix.searches import Searches
from mgraph.algorithms.run_variant import prepare, search
from mgraph.algorithms.variant import Conditions, TraversalSpec, require_variant
from mgraph.algorithms.variants import LEVEL_COUNTS
from mgraph.cluster.base import Rank
from mgraph.rank_jobs.distance_matrix import find_distances, positions_with_arcs
from mgraph.rank_jobs.results import StoredColumns
from mgraph.rank_jobs.traversal import counted_searches
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import positions_of
from mgraph.types import LEVEL, Array, unreached_of

Measure = Literal["closeness", "harmonic"]
# Sources whose positions are known at once.
PREPARED_AT_ONCE = 1 << 12


def find_centralities(
    rank: Rank, graph: str, users: Sequence[int], measure: Measure, dtype: np.dtype | None
) -> list[float]:
    """Return the centrality of some vertices, by distances of this dtype, or by hops without one."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    return list(_values(rank, shard, users, measure, dtype))


def store_centralities(rank: Rank, graph: str, key: str, measure: Measure, dtype: np.dtype | None) -> None:
    """Store the centrality of every vertex as `key`."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    lo, hi = shard.user_range
    # Every rank finds all values, and keeps its own.
    values = _values(rank, shard, range(shard.info.num_vertices), measure, dtype)
    own = np.fromiter(islice(values, lo, hi), np.float64, hi - lo)
    for _ in values:
        pass
    rank.objects[key] = StoredColumns(lo, {measure: rank.backend.to_device(own)}, labels=shard.labels)


def _values(
    rank: Rank, shard: Shard, users: Sequence[int], measure: Measure, dtype: np.dtype | None
) -> Iterator[float]:
    if dtype is None:
        return _by_hops(rank, shard, users, measure)
    return _by_weights(rank, shard, users, measure, dtype)


def _by_hops(rank: Rank, shard: Shard, users: Sequence[int], measure: Measure) -> Iterator[float]:
    for counts in _level_counts(rank, shard, users, measure):
        levels = np.arange(len(counts))
        if measure == "closeness":
            yield closeness(int(counts.sum()), int(levels @ counts), shard.info.num_vertices)
        else:
            # One by one from level 1 on: a sum by pairs would depend on the machine.
            yield float(np.cumsum(counts[1:] / levels[1:])[-1]) if len(levels) > 1 else 0.0


def _level_counts(rank: Rank, shard: Shard, users: Sequence[int], doing: str) -> Iterator[np.ndarray]:
    """Yield for each user id how many vertices are at each level from it."""
    comm = rank.comm
    trace = Trace(rank.backend, comm, shows=False)
    conditions = Conditions.of(shard, comm)
    if not any(variant.applies(conditions) for variant in LEVEL_COUNTS):
        for user in counted_searches(rank, doing, users):
            spec = TraversalSpec("bfs", "auto", (user,), LEVEL, predecessors=False)
            yield counts_of(shard, comm, search(prepare(shard, comm, spec), shard, comm, spec, trace).distances)
        return
    variant = require_variant(LEVEL_COUNTS, shard, comm, LEVEL)
    batches = [users[first : first + BATCH_ROOTS] for first in range(0, len(users), BATCH_ROOTS)]
    for batch in counted_searches(rank, doing, batches):
        positions = positions_of(shard, comm, batch)
        starts = [p if p < shard.partition.num_positions else None for p in positions]
        yield from variant.loop(shard, comm, starts, trace).T


def _by_weights(rank: Rank, shard: Shard, users: Sequence[int], measure: Measure, dtype: np.dtype) -> Iterator[float]:
    trace = Trace(rank.backend, rank.comm, shows=False)
    for first in range(0, len(users), PREPARED_AT_ONCE):
        some = users[first : first + PREPARED_AT_ONCE]
        starts, which, own_users = positions_with_arcs(shard, rank.comm, some)
        searches = Searches(starts, True, dtype, users=own_users)
        _, batches = find_distances(rank, shard, searches, trace, measure)
        values = np.zeros(len(some))
        found = (_of_distances(rank, shard, row, measure) for batch in batches for row in batch)
        # Vertices without arcs are at no distance of others.
        values[which] = np.fromiter(found, np.float64, len(which))
        yield from values.tolist()


def _of_distances(rank: Rank, shard: Shard, distances: Array, measure: Measure) -> float:
    """Return the centrality of a vertex from the distances of the owned vertices of every rank."""
    comm = rank.comm
    xp = rank.backend.xp
    distances = distances[distances != unreached_of(distances.dtype)]
    if measure == "closeness":
        total = sum_of_ranks(comm, exact_sum(xp, distances))
        (num_reached,) = comm.sum(len(distances))
        is_float = distances.dtype.kind == "f"
        return closeness(num_reached, as_float(total) if is_float else total, shard.info.num_vertices)
    inverses = 1 / distances[distances > 0].astype(np.float64)
    return as_float(sum_of_ranks(comm, exact_sum(xp, inverses)))


def closeness(num_reached: int, total: float, num_vertices: int) -> float:
    """Return the closeness of a vertex: the inverse of the mean distance, times the share of vertices at a distance."""
    if num_reached < 2 or total <= 0:
        return 0.0
    return (num_reached - 1) / total * ((num_reached - 1) / (num_vertices - 1))
