"""Edges of a graph back out of its rows: those with sources in a range of user ids, sorted, a range on each rank.

Rows are in the order of positions, so every rank sends the arcs of its vertices in a rank's range to that rank, which
sorts them. An undirected edge is found in the row of its smaller end.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mgraph.comm.base import Communicator
from mgraph.shard.rows_kernels import unpack_rows
from mgraph.shard.shard import Shard, degrees
from mgraph.shard.user_ids import sort_edges, translated, users_of_states
from mgraph.types import Array, vertex_dtype

# Equal parts of the user ids in which arcs are counted; a range of ids is one or more of them.
BUCKETS = 1 << 16


@dataclass
class ByUser:
    """The vertices of a rank in the order of their user ids; None in natural order, where positions are user ids."""

    users: Array | None
    local: Array | None

    def range_of(self, shard: Shard, lo: int, hi: int) -> tuple[Array, Array]:
        """Return local index and user id of this rank's vertices with user ids lo..hi."""
        xp = shard.backend.xp
        if self.users is None or self.local is None:
            first = shard.partition.offset(shard.rank)
            begin, end = (min(max(user - first, 0), shard.num_owned) for user in (lo, hi))
            local = xp.arange(begin, end)
            return local, local + first
        begin, end = (int(xp.searchsorted(self.users, xp.asarray(user))) for user in (lo, hi))
        return self.local[begin:end], self.users[begin:end]


def vertices_by_user(shard: Shard) -> ByUser:
    """Sort this rank's vertices by user id."""
    if shard.user_of_local is None:
        return ByUser(None, None)
    local = shard.backend.xp.argsort(shard.user_of_local)
    # int64, as the bounds are: a search with another dtype would convert a copy.
    return ByUser(shard.user_of_local[local].astype(np.int64), local)


def cut_by_arcs(shard: Shard, comm: Communicator, order: ByUser, num_arcs: int) -> list[int]:
    """Return rising user ids, from 0 to n, with about `num_arcs` arcs between each two; the same on every rank."""
    n = shard.info.num_vertices
    num_buckets = max(1, min(n, BUCKETS))
    local, users = order.range_of(shard, 0, n)
    xp = shard.backend.xp
    # Exact: counts of arcs are below 2^53.
    weights = degrees(shard.rows)[local].astype(np.float64)
    counts = xp.bincount(users.astype(np.int64) * num_buckets // max(n, 1), weights, num_buckets)
    ends = np.cumsum(comm.allreduce(shard.backend.to_host(counts).astype(np.int64), "sum"))
    cuts = [0]
    while cuts[-1] < num_buckets:
        begin = int(ends[cuts[-1] - 1]) if cuts[-1] else 0
        last = int(np.searchsorted(ends, begin + num_arcs, side="right"))
        cuts.append(max(last, cuts[-1] + 1))
    return [-(-cut * n // num_buckets) for cut in cuts[:-1]] + [n]


def edges_of_range(
    shard: Shard, comm: Communicator, order: ByUser, lo: int, hi: int, *, both: bool = False
) -> list[Array]:
    """Return sources, targets and weights, if there are any, of the edges with a source in lo..hi, sorted.

    Collective: every rank gives its own range, and no two ranges overlap. With `both`, an undirected edge is
    returned in both directions.
    """
    bounds = np.zeros(2 * comm.size, np.int64)
    comm.allgather(np.array([lo, hi], np.int64), bounds)
    xp = shard.backend.xp
    users = None if shard.user_of_local is None else users_of_states(shard, comm)
    parts = [_arcs(shard, users, order, begin, end, both) for begin, end in bounds.reshape(-1, 2).tolist()]
    columns = [list(column) for column in zip(*parts, strict=True)]
    if comm.size > 1:
        received = [xp.concatenate(comm.alltoallv(column)) for column in columns]
    else:
        received = [column[0] for column in columns]
    return sort_edges(shard, [ends.astype(np.int64) for ends in received[:2]] + received[2:])


def _arcs(shard: Shard, users_of: Array | None, order: ByUser, lo: int, hi: int, both: bool) -> list[Array]:
    """Return the arcs of this rank's vertices with user ids lo..hi.

    Of an undirected edge that is not wanted in both directions, the one to the larger id. `users_of` is the user id of
    every state, None if it is the state.
    """
    xp = shard.backend.xp
    rows = shard.rows
    local, users = order.range_of(shard, lo, hi)
    lengths = degrees(rows)[local]
    ends = xp.cumsum(lengths)
    num_arcs = int(ends[-1]) if len(ends) else 0
    arc = xp.arange(num_arcs)
    row = xp.searchsorted(ends, arc, side="right")
    arc += (rows.indptr[local] - (ends - lengths))[row]
    ids = vertex_dtype(shard.info.num_vertices)
    near = users[row].astype(ids)
    far = rows.targets[arc]
    far = (far if users_of is None else users_of[far]).astype(ids)
    columns = [near, far] if rows.weights is None else [near, far, rows.weights[arc]]
    if shard.info.directed or both:
        return columns
    once = near < far
    return [column[once] for column in columns]


def ranges_of(cuts: list[int], lo: int, hi: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges between cuts that lie in lo..hi, cut off at its ends."""
    inside = [lo, *(cut for cut in cuts if lo < cut < hi), hi]
    return iter(list(itertools.pairwise(inside)) if lo < hi else [])


def arcs_of_rows(shard: Shard, comm: Communicator, dtype: np.dtype) -> Iterator[tuple[Array, Array]]:
    """Yield both ends of this rank's arcs as user ids, a chunk at a time in the order of its rows.

    Ranks may have different numbers of chunks.
    """
    backend = shard.backend
    rows = shard.rows
    users = None if shard.user_of_local is None else users_of_states(shard, comm)
    base = shard.rank * shard.partition.stride
    num_arcs = len(rows.targets)
    for begin in range(0, num_arcs, backend.limits.chunk_edges):
        end = min(begin + backend.limits.chunk_edges, num_arcs)
        starts = backend.xp.empty(end - begin, shard.partition.dtype)
        unpack_rows[backend](begin, end, rows.indptr, shard.num_owned, base, 1, begin, starts)
        ends = starts, rows.targets[begin:end]
        near, far = ends if users is None else (translated(backend, part, users) for part in ends)
        yield near.astype(dtype), far.astype(dtype)
