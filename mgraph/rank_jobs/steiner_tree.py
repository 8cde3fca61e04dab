"""Connect terminals by a tree, of a search from all of them, and check such a tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from mgraph.algorithms.common.exact_sum import exact_sum
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.steiner_tree.terminal_tree import Reached
from mgraph.algorithms.variant import Conditions, select
from mgraph.algorithms.variants import STEINER_TREE
from mgraph.cluster.base import Rank
from mgraph.planning.admission import refuse_check_without_room, refuse_without_room
from mgraph.rank_jobs.results import StoredColumns
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import gather_users
from mgraph.types import none_of, vertex_dtype
from mgraph.validation.steiner_tree import tree_check_bytes, validate_tree
from mgraph.validation.traversal import Violation


def compute_steiner_tree(
    rank: Rank, graph: str, search: str, key: str, terminals: np.ndarray, weighted: bool
) -> dict[str, Any]:
    """Store the edges of the tree as `key`, a part on each rank; return this rank's stats.

    Nothing is stored if terminals are not connected.
    """
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    refuse_without_room("a Steiner tree", STEINER_TREE, shard, rank.comm)
    comm = rank.comm
    xp = rank.backend.xp
    trace = Trace(rank.backend, comm)
    variant = select(STEINER_TREE, Conditions.of(shard, comm))
    n = shard.info.num_vertices
    with trace.phase("connect"):
        columns = rank.objects[search].columns
        distances = gather_users(shard, comm, columns["distances"])[:n]
        found = gather_users(shard, comm, columns["predecessors"])[:n]
        parents = xp.where(found >= 0, found, none_of(vertex_dtype(n))).astype(vertex_dtype(n))
        # A search calls itself the parent of a source.
        parents[rank.backend.to_device(terminals)] = none_of(parents.dtype)
        edges = variant.loop(shard, comm, trace, Reached(terminals, distances, parents, weighted))
    stats = trace.stats()
    if edges is None:
        return {**stats, "variant": variant.name, "edges": None, "total": 0}
    counts = comm.allgather(np.array([len(edges[0])], np.int64), np.empty(comm.size, np.int64))
    dtype = np.dtype(shard.info.weight_dtype) if weighted else np.dtype(np.int64)
    weights = edges[2].astype(dtype if dtype.kind == "f" else np.int64)
    stored = {"sources": edges[0], "targets": edges[1], "weights": weights}
    first = int(counts[: rank.index].sum())
    on_device = {name: rank.backend.to_device(column) for name, column in stored.items()}
    rank.objects[key] = StoredColumns(first, on_device, labels=shard.labels)
    return {**stats, "variant": variant.name, "edges": len(weights), "total": exact_sum(np, weights)}


def check_steiner_tree(rank: Rank, key: str, graph: str, terminals: np.ndarray, weighted: bool) -> list[Violation]:
    """Check a tree by rules; every rank returns the same violations."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    refuse_check_without_room("a Steiner tree", tree_check_bytes(shard), shard, rank.comm)
    columns = [rank.backend.to_host(column) for column in rank.objects[key].columns.values()]
    return validate_tree(shard, rank.comm, columns, terminals, weighted=weighted)
