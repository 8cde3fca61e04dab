"""Run an algorithm on a rank with the variant that the table selects."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mgraph.algorithms.common.dtype_ladder import farthest, first_dtypes, is_whole
from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.components.union_find import Roots
from mgraph.algorithms.hits.mutual_iteration import HitsSpec, Hubs
from mgraph.algorithms.pagerank.fixed_point import ScoreSpec
from mgraph.algorithms.pagerank.power_iteration import Scored
from mgraph.algorithms.variant import SWEEPS, Conditions, TraversalSpec, Variant, require_variant, select
from mgraph.algorithms.variants import (
    COMPONENTS,
    CORE_NUMBERS,
    HITS,
    PAGERANK,
    PREDECESSORS,
    SPANNING_FOREST,
    STRONG_COMPONENTS,
    TABLE,
    checkpointing_variants,
)
from mgraph.comm.base import Communicator
from mgraph.comm.peer_buffers import PeerBuffers
from mgraph.shard.graph_order import owned_predecessors
from mgraph.shard.shard import Shard, cached_on_shard
from mgraph.shard.user_ids import NamedEdges, positions_of, translate_results
from mgraph.types import LEVEL, Array


@dataclass(frozen=True)
class Prepared:
    """A variant with what it needs, and the dtype in which it searches first."""

    variant: Variant
    dtype: np.dtype
    farthest: int | None  # the largest limit in a narrow dtype
    peer_buffers: PeerBuffers | None

    def limit(self, wanted: float | int | None) -> float | int | None:
        """Return the limit that distances of this dtype obey."""
        if self.farthest is None:
            return wanted
        return self.farthest if wanted is None else min(int(wanted), self.farthest)


def prepare(shard: Shard, comm: Communicator, spec: TraversalSpec) -> Prepared:
    """Select the variant of a traversal and make what it needs; the same variant on every rank."""
    variants = TABLE[spec.algorithm] if spec.checkpoint is None else checkpointing_variants(spec.algorithm)
    finds_tree = spec.predecessors or len(spec.sources) > 1
    on_host = shard.faster_on_host.get(spec.algorithm)
    key = (prepare, variants, spec.method, spec.dtype, finds_tree, shard.overflowed_itemsize, on_host)
    ready: Prepared | None = shard.kept.get(key)
    # A search of another graph may have replaced the peer buffers, or lost them.
    if ready is not None and ready.peer_buffers is comm.peer_buffers:
        return ready
    variant = require_variant(variants, shard, comm, spec.dtype, spec.method)
    if finds_tree:
        require_variant(PREDECESSORS, shard, comm, spec.dtype)
    is_complete = all(want.make(shard, comm, spec.dtype) for want in variant.wants)
    prepared = Prepared(variant, *_first_dtype(variant, shard, spec), comm.peer_buffers)
    # What had no room is tried again before the next search.
    if is_complete:
        shard.kept[key] = prepared
    return prepared


def search(prepared: Prepared, shard: Shard, comm: Communicator, spec: TraversalSpec, trace: Trace) -> Traversal:
    """Search from the sources with a variant that is prepared; the phase begins when their positions are known.

    Distances too long for a narrow dtype are searched again in the next wider one, for which the variant is prepared
    anew.
    """
    positions: list[int] = []
    until = _target_positions(shard, comm, spec)
    while True:
        variant = prepared.variant
        if not variant.takes_user_ids and not positions:
            positions = _find_sources(shard, comm, spec)
        starts = spec.sources if variant.takes_user_ids else with_arcs(shard, positions)
        dtype = prepared.dtype
        limit = prepared.limit(spec.limit)
        limits = (dtype, limit) if spec.algorithm == "sssp" else (limit,)
        how: dict[str, Any] = {"until": until} if variant.takes_until and until else {}
        if variant.takes_translate and spec.predecessors:
            how["translate"] = partial(translated_at_once, spec)
        # Progress counts vertices in BFS only: in SSSP a vertex is on several frontiers.
        with trace.phase("traverse", shard.partition.num_positions if spec.algorithm == "bfs" else 0):
            found: Traversal | None = variant.loop(shard, comm, starts, trace, *limits, **how)
            if found is not None:
                if dtype == spec.dtype or is_whole(shard, comm, found, spec.limit):
                    found.sources = found.sources or positions
                    found.variant = variant.name
                    return found
                shard.overflowed_itemsize = dtype.itemsize
            del found  # perhaps a view of the peer buffers
            prepared = prepare(shard, comm, spec)


def translated_at_once(
    spec: TraversalSpec, shard: Shard, comm: Communicator, distances: Array, predecessors: Array | None
) -> list[Array]:
    """Return what a request wants in user ids at once: `spec.at_once`, or predecessors in the graph's own order."""
    if spec.in_graph_order:
        return [] if predecessors is None else [owned_predecessors(shard, comm, predecessors)]
    return translate_results(shard, comm, distances if spec.distances_at_once else None, predecessors)


def find_tree(
    shard: Shard, comm: Communicator, sources: list[int], distances: Array, all_distances: Array | None
) -> Array:
    """Return the predecessors that explain distances, as positions."""
    tree: Array = _tree_variant(shard, comm).loop(shard, comm, with_arcs(shard, sources), distances, all_distances)
    return tree


@cached_on_shard
def _tree_variant(shard: Shard, comm: Communicator) -> Variant:
    return select(PREDECESSORS, Conditions.of(shard, comm))


def compute_components(shard: Shard, comm: Communicator, trace: Trace) -> tuple[str, Roots]:
    """Return the name of the variant that ran, and the root of every position."""
    variants = checkpointing_variants("components") if trace.checkpoints.is_on else COMPONENTS
    variant = select(variants, Conditions.of(shard, comm))
    if variant.needs:
        with trace.phase("prepare"):
            variant = require_variant(variants, shard, comm, LEVEL)
    return variant.name, variant.loop(shard, comm, trace)


def compute_strong_components(shard: Shard, comm: Communicator, trace: Trace) -> tuple[str, Array]:
    """Return the name of the variant that ran, and the state of the root of each owned vertex."""
    with trace.phase("prepare"):
        variant = require_variant(STRONG_COMPONENTS, shard, comm, LEVEL)
    with trace.phase("find"):
        return variant.name, variant.loop(shard, comm, trace)


def compute_core_numbers(shard: Shard, comm: Communicator, trace: Trace) -> tuple[str, Array]:
    """Return the name of the variant that ran, and the core number of each owned vertex."""
    with trace.phase("prepare"):
        variant = require_variant(CORE_NUMBERS, shard, comm, LEVEL)
    with trace.phase("peel"):
        return variant.name, variant.loop(shard, comm, trace)


def compute_spanning_forest(
    shard: Shard, comm: Communicator, trace: Trace, maximum: bool
) -> tuple[str, Array | NamedEdges]:
    """Return the name of the variant that ran, and this rank's edges of a spanning forest."""
    variants = checkpointing_variants("spanning_forest") if trace.checkpoints.is_on else SPANNING_FOREST
    variant = select(variants, Conditions.of(shard, comm))
    with trace.phase("forest"):
        return variant.name, variant.loop(shard, comm, trace, maximum)


def compute_pagerank(shard: Shard, comm: Communicator, trace: Trace, spec: ScoreSpec) -> tuple[str, Scored]:
    """Return the name of the variant that ran, and the scores of the owned vertices."""
    with trace.phase("prepare"):
        variant = require_variant(PAGERANK, shard, comm, np.dtype(np.int64), by_hops=not spec.weighted)
    with trace.phase("iterate"):
        return variant.name, variant.loop(shard, comm, trace, spec)


def compute_hits(shard: Shard, comm: Communicator, trace: Trace, spec: HitsSpec) -> tuple[str, Hubs]:
    """Return the name of the variant that ran, and both scores of the owned vertices."""
    with trace.phase("prepare"):
        variant = require_variant(HITS, shard, comm, np.dtype(np.int64))
    with trace.phase("iterate"):
        return variant.name, variant.loop(shard, comm, trace, spec)


def with_arcs(shard: Shard, positions: list[int]) -> list[int]:
    """Return the positions of vertices that have arcs: only they have a state."""
    return [p for p in positions if p < shard.partition.num_positions]


def _find_sources(shard: Shard, comm: Communicator, spec: TraversalSpec) -> list[int]:
    """Return the positions of the sources; all ranks begin the search at about the same time.

    Where user ids are looked up, the reduction of what the ranks have found is a barrier.
    """
    positions = positions_of(shard, comm, spec.sources)
    if comm.size > 1 and shard.position_of_user is None:
        comm.barrier()
    return positions


def _target_positions(shard: Shard, comm: Communicator, spec: TraversalSpec) -> list[int]:
    """Return the positions at which a search may end; none if it goes on to the end.

    A target without arcs is the source or unreached: without others the search ends where it begins.
    """
    if not spec.targets:
        return []
    return with_arcs(shard, positions_of(shard, comm, [*spec.targets])) or with_arcs(
        shard, positions_of(shard, comm, [*spec.sources])
    )


def _first_dtype(variant: Variant, shard: Shard, spec: TraversalSpec) -> tuple[np.dtype, int | None]:
    """Return the dtype that a search tries first, and the largest limit in it, None if there is none."""
    # A checkpoint has the final dtype.
    if spec.algorithm == "sssp" and variant.short_name not in SWEEPS and spec.checkpoint is None:
        for narrow in first_dtypes(shard, spec.dtype, has_peer_buffers=variant.has_peer_buffers):
            return narrow, farthest(narrow, shard.info.max_weight)
    return spec.dtype, None
