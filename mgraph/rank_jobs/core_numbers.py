"""Find and check core numbers."""

from __future__ import annotations

from typing import Any

from mgraph.algorithms import run_variant
from mgraph.algorithms.common.traversal import Trace
from mgraph.cluster.base import Rank
from mgraph.planning.admission import refuse_check_without_room
from mgraph.rank_jobs.results import StoredColumns
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import translate_results
from mgraph.types import vertex_dtype
from mgraph.validation.core_numbers import cores_check_bytes, validate_core_numbers
from mgraph.validation.traversal import Violation


def compute_core_numbers(rank: Rank, graph: str, key: str) -> dict[str, Any]:
    """Find core numbers; store them as `key` and return this rank's stats."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    trace = Trace(rank.backend, rank.comm)
    variant, numbers = run_variant.compute_core_numbers(shard, rank.comm, trace)
    degeneracy = int(numbers.max()) if len(numbers) else 0
    with trace.phase("translate"):
        # A core number is at most the number of arcs out and in.
        numbers = numbers.astype(vertex_dtype(2 * shard.info.num_vertices))
        (cores,) = translate_results(shard, rank.comm, numbers, None)
        # Vertices without arcs have no state, and count as unreached.
        shard.backend.xp.maximum(cores, 0, out=cores)
    rank.objects[key] = StoredColumns(shard.user_range[0], {"cores": cores}, labels=shard.labels)
    return {
        **trace.stats(),
        "variant": variant,
        "degeneracy": degeneracy,
    }


def check_core_numbers(rank: Rank, key: str, graph: str) -> list[Violation]:
    """Check core numbers by rules; every rank returns the same violations."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    cores = rank.objects[key].columns["cores"]
    refuse_check_without_room(
        "core numbers", cores_check_bytes(shard.partition, shard.info.num_vertices), shard, rank.comm
    )
    return validate_core_numbers(shard, rank.comm, cores)
