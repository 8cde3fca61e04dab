"""List a vertex of every component, find bridges by a search from these, and check bridges."""

from __future__ import annotations

from typing import Any

import numpy as np

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.variant import Conditions, select
from mgraph.algorithms.variants import BRIDGES
from mgraph.cluster.base import Rank
from mgraph.planning.admission import refuse_check_without_room, refuse_without_room
from mgraph.rank_jobs.results import StoredColumns
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import gather_users
from mgraph.types import Array, none_of, vertex_dtype
from mgraph.validation.bridges import bridges_check_bytes, validate_bridges
from mgraph.validation.traversal import Violation


def list_roots(rank: Rank, components: str, graph: str) -> np.ndarray:
    """Return the smallest vertices of all components of several vertices, of those that this rank serves."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    lo, hi = shard.user_range
    is_root = rank.objects[components].columns["labels"] == rank.backend.xp.arange(lo, hi)
    if shard.position_of_user is not None:
        is_root &= shard.position_of_user < shard.partition.num_positions
    else:
        # In the graph's own order this rank has their rows.
        is_root[: shard.num_owned] &= shard.degrees > 0
        is_root[shard.num_owned :] = False
    return rank.backend.to_host(rank.backend.xp.flatnonzero(is_root)) + lo


def compute_bridges(rank: Rank, graph: str, search: str, key: str) -> dict[str, Any]:
    """Store the ends of all bridges as `key`, a part on each rank; return this rank's stats."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    refuse_without_room("bridges", BRIDGES, shard, rank.comm)
    comm = rank.comm
    trace = Trace(rank.backend, comm)
    variant = select(BRIDGES, Conditions.of(shard, comm))
    with trace.phase("cover"):
        levels, parents = forest_of(rank, shard, search)
        sources, targets = variant.loop(shard, comm, trace, levels, parents)
    counts = comm.allgather(np.array([len(sources)], np.int64), np.empty(comm.size, np.int64))
    first = int(counts[: rank.index].sum())
    rank.objects[key] = StoredColumns(first, {"sources": sources, "targets": targets}, labels=shard.labels)
    return {
        **trace.stats(),
        "variant": variant.name,
        "edges": len(sources),
    }


def forest_of(rank: Rank, shard: Shard, search: str) -> tuple[Array, Array]:
    """Return levels and parents of all vertices, by user id; the parent of a source is none."""
    n = shard.info.num_vertices
    columns = rank.objects[search].columns
    levels = gather_users(shard, rank.comm, columns["distances"])[:n]
    found = gather_users(shard, rank.comm, columns["predecessors"])[:n]
    dtype = vertex_dtype(n)
    is_child = (found >= 0) & (levels > 0)
    return levels, rank.backend.xp.where(is_child, found, none_of(dtype)).astype(dtype)


def check_bridges(rank: Rank, key: str, graph: str, search: str) -> list[Violation]:
    """Check bridges by rules and another search; every rank returns the same violations."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    needed = bridges_check_bytes(shard, rank.backend.limits.chunk_edges)
    refuse_check_without_room("bridges", needed, shard, rank.comm)
    columns = rank.objects[key].columns
    return validate_bridges(shard, rank.comm, columns["sources"], columns["targets"], *forest_of(rank, shard, search))
