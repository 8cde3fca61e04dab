"""Run an algorithm on a rank with the variant that the table selects."""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.common.dtype_ladder import first_dtypes, is_whole, narrow_cutoff
from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.components.union_find import Roots
from mgraph.algorithms.variant import Setting, TraversalSpec, Variant, require_variant, select
from mgraph.algorithms.variants import COMPONENTS, PREDECESSORS, SPANNING_FOREST, TABLE
from mgraph.comm.base import Communicator
from mgraph.shard.shard import Shard, cached_on_shard
from mgraph.shard.user_ids import positions_of, tree_of_users
from mgraph.types import LEVEL, Array


def prepare(shard: Shard, comm: Communicator, spec: TraversalSpec) -> Variant:
    """Select the variant of a traversal and make what it needs; the same variant on every rank."""
    rows = TABLE[spec.algorithm]
    finds_tree = spec.predecessors or len(spec.sources) > 1
    key = (prepare, rows, spec.method, spec.dtype, finds_tree, shard.overflowed_itemsize)
    ready = shard.kept.get(key)
    # A search of another graph may have replaced the peer buffers, or lost them.
    if ready is not None and ready[1] is comm.peer_buffers:
        prepared: Variant = ready[0]
        return prepared
    variant = require_variant(rows, shard, comm, spec.dtype, spec.method)
    if finds_tree:
        require_variant(PREDECESSORS, shard, comm, spec.dtype)
    # What had no room is tried again before the next search.
    if all(want.make(shard, comm, spec.dtype) for want in variant.wants):
        shard.kept[key] = variant, comm.peer_buffers
    return variant


def search(variant: Variant, shard: Shard, comm: Communicator, spec: TraversalSpec, trace: Trace) -> Traversal:
    """Search from the sources with a variant that is prepared; the phase begins when their positions are known.

    Distances too long for a narrow dtype are searched again in the next wider one, for which the variant is prepared
    anew.
    """
    positions: list[int] = []
    while True:
        if not variant.takes_user_ids and not positions:
            positions = _find_sources(shard, comm, spec)
        starts = spec.sources if variant.takes_user_ids else connected(shard, positions)
        with trace.phase("traverse"):
            dtype, limit = _first_dtype(variant, shard, spec)
            if spec.algorithm == "sssp":
                found: Traversal = variant.run(shard, comm, starts, trace, dtype, limit)
            elif variant.translates and spec.predecessors:
                found = variant.run(shard, comm, starts, trace, limit, behind=tree_of_users)
            else:
                found = variant.run(shard, comm, starts, trace, limit)
            if dtype == spec.dtype or is_whole(shard, comm, found, spec.limit):
                found.sources = found.sources or positions
                return found
            del found  # perhaps a view of the peer buffers
            shard.overflowed_itemsize = dtype.itemsize
            variant = prepare(shard, comm, spec)


def find_tree(
    shard: Shard, comm: Communicator, sources: list[int], distances: Array, everywhere: Array | None
) -> Array:
    """Return the predecessors that explain distances, as positions."""
    tree: Array = _tree_variant(shard, comm).run(shard, comm, connected(shard, sources), distances, everywhere)
    return tree


@cached_on_shard
def _tree_variant(shard: Shard, comm: Communicator) -> Variant:
    return select(PREDECESSORS, Setting.of(shard, comm))


def compute_components(shard: Shard, comm: Communicator, trace: Trace) -> tuple[str, Roots]:
    """Return the name of the variant that ran, and the root of every position."""
    variant = select(COMPONENTS, Setting.of(shard, comm))
    if variant.needs:
        with trace.phase("prepare"):
            variant = require_variant(COMPONENTS, shard, comm, LEVEL)
    return variant.name, variant.run(shard, comm, trace)


def compute_spanning_forest(shard: Shard, comm: Communicator, trace: Trace, maximum: bool) -> tuple[str, Array]:
    """Return the name of the variant that ran, and this rank's arcs of a spanning forest."""
    variant = select(SPANNING_FOREST, Setting.of(shard, comm))
    with trace.phase("forest"):
        return variant.name, variant.run(shard, comm, trace, maximum)


def connected(shard: Shard, positions: list[int]) -> list[int]:
    """Return the positions of vertices that have arcs: only they have a state."""
    return [p for p in positions if p < shard.partition.num_positions]


def _find_sources(shard: Shard, comm: Communicator, spec: TraversalSpec) -> list[int]:
    """Return the positions of the sources; the barrier makes all ranks begin the search at about the same time."""
    positions = positions_of(shard, comm, spec.sources)
    if comm.size > 1:
        comm.barrier()
    return positions


def _first_dtype(variant: Variant, shard: Shard, spec: TraversalSpec) -> tuple[np.dtype, float | int | None]:
    """Return the dtype that a search tries first, and the limit that its distances obey."""
    if spec.algorithm == "sssp" and variant.short_name != "sweep":
        for narrow in first_dtypes(shard, spec.dtype, has_peer_buffers=variant.has_peer_buffers):
            return narrow, narrow_cutoff(shard.info, narrow, spec.limit)
    return spec.dtype, spec.limit
