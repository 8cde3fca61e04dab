"""Search from many roots at once, and extract the result of one."""

from __future__ import annotations

from typing import Any

from mgraph.algorithms.bfs.multi_source import MultiSourceLevels
from mgraph.algorithms.bfs.multi_source_bitmaps import BitmapLevels
from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.variant import TraversalSpec, require_variant
from mgraph.algorithms.variants import MULTI_SOURCE
from mgraph.cluster.base import Rank
from mgraph.rank_jobs.traversal import counted_searches, store_traversal
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import positions_of
from mgraph.types import LEVEL


def search_all_roots(
    rank: Rank, graph: str, keys: list[str], batches: list[list[int]], limit: int | None
) -> dict[str, Any]:
    """Search from each batch of roots.

    Store the levels as `keys` and return this rank's stats.
    """
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    comm = rank.comm
    trace = Trace(rank.backend, rank.comm, shows=len(batches) == 1)
    with trace.phase("prepare"):
        variant = require_variant(MULTI_SOURCE, shard, comm, LEVEL)
    for key, roots in zip(keys, counted_searches(rank, "bfs", batches), strict=True):
        positions = positions_of(shard, comm, roots)
        with trace.phase("traverse"):
            rank.objects[key] = variant.loop(
                shard, comm, [p if p < shard.partition.num_positions else None for p in positions], trace, limit
            )
    return {
        **trace.stats(),
        "variant": variant.name,
    }


def extract_root(rank: Rank, graph: str, levels: str, bit: int, key: str, spec: TraversalSpec) -> dict[str, Any]:
    """Extract one root's result from the stored levels.

    Store it as `key` and return this rank's stats.
    """
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    trace = Trace(rank.backend, rank.comm)
    found: MultiSourceLevels | BitmapLevels = rank.objects[levels]
    # A call that failed since the search has discarded the in-rows on all ranks.
    with trace.phase("prepare"):
        variant = require_variant(MULTI_SOURCE, shard, rank.comm, LEVEL)
    sources = positions_of(shard, rank.comm, spec.sources)
    with trace.phase("translate"):
        traversal = Traversal(found.levels(shard, bit), None)
    return {**store_traversal(rank, shard, key, spec, sources, traversal, trace), "variant": variant.name}
