"""Divide the vertices into two sides, find an edge that closes an odd cycle, and check both.

    every vertex has two copies, v and n + v; an edge (u, v) joins u with n + v, and n + u with v
    link the copies of all arcs; merge the trees of all ranks
    a component has an odd cycle if both copies of one of its vertices are in one tree

Else the copies of a component are two trees: the vertices with copies in one of them are a side.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.components.kernels import compress, link_roots
from mgraph.cluster.base import Rank
from mgraph.planning.admission import refuse_check_without_room
from mgraph.rank_jobs.results import StoredColumns
from mgraph.shard.edges_by_user import arcs_of_rows
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import gather_users
from mgraph.types import LEVEL, vertex_dtype
from mgraph.validation.bipartite import sides_check_bytes, validate_sides
from mgraph.validation.traversal import Violation

NO_VERTEX = np.iinfo(np.int64).max


def find_sides(rank: Rank, graph: str, key: str) -> dict[str, Any]:
    """Store the side of every vertex as `key`; return this rank's stats, and the smallest vertex without a side."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    backend = rank.backend
    comm = rank.comm
    n = shard.info.num_vertices
    lo, hi = shard.user_range
    trace = Trace(backend, comm)
    with trace.phase("find"):
        parents = backend.xp.arange(2 * n, dtype=vertex_dtype(2 * n))
        for near, far in arcs_of_rows(shard, comm, parents.dtype):
            once = near < far
            near = near[once]
            far = far[once]
            link_roots[backend](0, len(near), near, far + parents.dtype.type(n), parents)
            link_roots[backend](0, len(near), near + parents.dtype.type(n), far, parents)
        trace.superstep(method="link", frontier=shard.partition.num_positions, arcs=len(shard.rows.targets))
        compress[backend](0, 2 * n, 0, 1, parents)
        for step in [1 << k for k in range((comm.size - 1).bit_length())]:
            parts = [parents[:0]] * comm.size
            parts[(comm.rank + step) % comm.size] = parents
            received = comm.alltoallv(parts)[(comm.rank - step) % comm.size]
            link_roots[backend](0, 2 * n, None, received, parents)
            compress[backend](0, 2 * n, 0, 1, parents)
            trace.superstep(method="merge", frontier=2 * n, arcs=0)
        own, other = (parents[first + lo : first + hi] for first in (0, n))
        # The smallest vertex of a component is the root of its tree, and on side 0.
        sides = (own > other).astype(LEVEL)
        sides[own == other] = -1
    rank.objects[key] = StoredColumns(lo, {"sides": sides}, labels=shard.labels)
    without = backend.to_host(backend.xp.flatnonzero(sides < 0)[:1])
    return {
        **trace.stats(),
        "variant": "",
        "without_side": int(without[0]) + lo if len(without) else None,
    }


def find_closing_edge(rank: Rank, search: str, graph: str) -> tuple[int, int]:
    """Return the edge between two vertices of one level of a search that comes first, by level and both ends."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    comm = rank.comm
    levels = gather_users(shard, comm, rank.objects[search].columns["distances"])
    best = (NO_VERTEX, NO_VERTEX, NO_VERTEX)
    for near, far in arcs_of_rows(shard, comm, vertex_dtype(shard.info.num_vertices)):
        closes = (near < far) & (levels[near] >= 0) & (levels[near] == levels[far])
        if closes.any():
            near = near[closes]
            far = far[closes]
            level = levels[near]
            near = near[level == level.min()]
            far = far[level == level.min()]
            best = min(best, (int(level.min()), int(near.min()), int(far[near == near.min()].min())))
    of_all = comm.allgather(np.array(best, np.int64), np.empty(3 * comm.size, np.int64))
    _, first, second = min(map(tuple, of_all.reshape(-1, 3).tolist()))
    return first, second


def check_sides(rank: Rank, key: str, graph: str, cycle: list[int]) -> list[Violation]:
    """Check sides, and the odd cycle if there is one, by rules; every rank returns the same violations."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    needed = sides_check_bytes(shard, rank.backend.limits.chunk_edges)
    refuse_check_without_room("sides", needed, shard, rank.comm)
    return validate_sides(shard, rank.comm, rank.objects[key].columns["sides"], cycle)
