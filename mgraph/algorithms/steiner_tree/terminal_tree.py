"""Connect terminals by a tree that weighs less than twice the lightest one, on any number of ranks.

    distances, parents of all vertices, from a search from all terminals at once
    nearest[v] = the terminal from which v was reached
    for every edge (u, v) of this rank between vertices of different terminals:
        its length = distance of u + weight + distance of v; keep it if it is in the lightest forest of the terminals
    the lightest forest of what all ranks have kept
    the tree = for each of its edges (u, v) the edge itself, and the paths from u and from v to their terminals

The forest is one of shortest paths between all terminals (Mehlhorn, 1988): it weighs less than twice the lightest tree.
Paths follow the parents, so that two paths share what follows a common vertex: their union is a tree, and its
leaves are terminals.
Edges are ordered by length, then by their ends: the forest, and so the tree, does not depend on ranks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.components.kernels import compress
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.backends.kernel import inline
from mgraph.comm.base import Communicator
from mgraph.shard.edges_by_user import arcs_of_rows
from mgraph.shard.shard import Shard
from mgraph.types import Array, none_of


@dataclass(frozen=True)
class Reached:
    """What a search from all terminals has found, by user id, on every rank.

    Attributes
    ----------
    terminals
        Their user ids, sorted, each once.
    distances
        Float, or int64; of vertices that are not reached infinity, or -1.
    parents
        The vertex before each on its path; the top of the dtype for terminals, and where there is no path.
    weighted
        Whether edges have weights in this search, and not all the weight 1.
    """

    terminals: np.ndarray
    distances: Array
    parents: Array
    weighted: bool


# In host memory: edges with the places of their terminals, lengths, ends and weights.
Crossing = list[np.ndarray]


def connect_terminals(shard: Shard, comm: Communicator, trace: Trace, reached: Reached) -> Crossing | None:
    """Return sources, targets and weights of the tree's edges, those with a source in this rank's range of user ids.

    None on all ranks if terminals are not connected.
    """
    nearest = _nearest(shard, reached)
    kept = _lightest_crossing(shard, comm, reached, nearest)
    trace.superstep(method="crossing", frontier=len(reached.terminals), arcs=len(shard.rows.targets))
    if comm.size > 1:
        kept = _lightest(_of_all(comm, kept), len(reached.terminals))
        trace.superstep(method="merge", frontier=len(reached.terminals), arcs=0)
    if len(kept[0]) < len(reached.terminals) - 1:
        return None
    on_path = np.zeros(len(reached.parents), bool)
    ends = np.concatenate(kept[3:5])
    mark_paths(ends, shard.backend.to_host(reached.parents), none_of(reached.parents.dtype), on_path)
    edges = _path_edges(shard, comm, reached, shard.backend.to_device(on_path))
    trace.superstep(method="paths", frontier=int(on_path.sum()), arcs=len(shard.rows.targets))
    if comm.size > 1:
        edges = _of_all(comm, edges)
    edges = [np.concatenate(both) for both in zip(edges, kept[3:], strict=True)]
    lo, hi = shard.user_range
    is_own = (edges[0] >= lo) & (edges[0] < hi)
    edges = [column[is_own] for column in edges]
    order = np.lexsort((edges[1], edges[0]))
    return [column[order] for column in edges]


def _nearest(shard: Shard, reached: Reached) -> Array:
    """Return the terminal of each vertex, the vertex itself where there is none."""
    xp = shard.backend.xp
    n = len(reached.parents)
    itself = xp.arange(n, dtype=reached.parents.dtype)
    nearest = xp.where(reached.parents == none_of(itself.dtype), itself, reached.parents)
    compress[shard.backend](0, n, 0, 1, nearest)
    return nearest


def _arcs(shard: Shard, comm: Communicator, reached: Reached) -> Iterator[tuple[Array, Array, Array]]:
    """Yield both ends of this rank's arcs as user ids, and their weights, a chunk at a time."""
    xp = shard.backend.xp
    of_rows = shard.rows.weights if reached.weighted else None
    begin = 0
    for near, far in arcs_of_rows(shard, comm, reached.parents.dtype):
        end = begin + len(near)
        yield near, far, xp.ones(len(near), np.int64) if of_rows is None else of_rows[begin:end]
        begin = end


def _lightest_crossing(shard: Shard, comm: Communicator, reached: Reached, nearest: Array) -> Crossing:
    """Return those of this rank's edges between vertices of two terminals that are in the lightest forest of these."""
    backend = shard.backend
    wide = np.dtype(np.float64 if reached.distances.dtype.kind == "f" else np.int64)
    kept: Crossing = [np.empty(0, dtype) for dtype in (np.int64, np.int64, wide, np.int64, np.int64, wide)]
    is_reached = (reached.distances >= 0) & (reached.distances < np.inf)
    for near, far, weights in _arcs(shard, comm, reached):
        crosses = (near < far) & (nearest[near] != nearest[far]) & is_reached[near]
        near, far = near[crosses], far[crosses]
        weights = weights[crosses].astype(wide)
        lengths = reached.distances[near].astype(wide) + reached.distances[far].astype(wide) + weights
        columns = [backend.to_host(one) for one in (nearest[near], nearest[far], lengths, near, far, weights)]
        places = [np.searchsorted(reached.terminals, column.astype(np.int64)) for column in columns[:2]]
        found = [*places, columns[2], columns[3].astype(np.int64), columns[4].astype(np.int64), columns[5]]
        kept = _lightest([np.concatenate(both) for both in zip(kept, found, strict=True)], len(reached.terminals))
    return kept


def _lightest(edges: Crossing, num_terminals: int) -> Crossing:
    """Return the edges of the lightest forest of the terminals, by length and then by both ends."""
    order = np.lexsort((edges[4], edges[3], edges[2]))
    first, second = (column[order] for column in edges[:2])
    taken = order[take_joining(first, second, np.arange(num_terminals))]
    return [column[taken] for column in edges]


@inline
def take_joining(first, second, parents):
    """Return a mask of the edges, in their order, that join two trees."""
    taken = np.zeros(len(first), np.bool_)
    for i in range(len(first)):
        u = first[i]
        while parents[u] != u:
            parents[u] = parents[parents[u]]
            u = parents[u]
        v = second[i]
        while parents[v] != v:
            parents[v] = parents[parents[v]]
            v = parents[v]
        taken[i] = u != v
        parents[max(u, v)] = min(u, v)
    return taken


@inline
def mark_paths(ends, parents, none, on_path):
    """Mark the vertices from each end on along parents, until one is marked."""
    for v in ends:
        while not on_path[v]:
            on_path[v] = True
            if parents[v] == none:
                break
            v = np.int64(parents[v])


def _path_edges(shard: Shard, comm: Communicator, reached: Reached, on_path: Array) -> list[np.ndarray]:
    """Return those of this rank's edges that lead from a marked vertex to its parent: both ends, and weights."""
    parents = reached.parents
    parts = []
    for near, far, weights in _arcs(shard, comm, reached):
        is_edge = (on_path[near] & (parents[near] == far)) | (on_path[far] & (parents[far] == near))
        is_edge &= near < far
        parts.append([shard.backend.to_host(column[is_edge]) for column in (near, far, weights)])
    wide = np.float64 if reached.distances.dtype.kind == "f" else np.int64
    columns = [[part[k] for part in parts] for k in range(3)]
    dtypes = (np.int64, np.int64, wide)
    return [
        np.concatenate([np.empty(0, dtype), *column]).astype(dtype)
        for column, dtype in zip(columns, dtypes, strict=True)
    ]


def _of_all(comm: Communicator, columns: list[np.ndarray]) -> list[np.ndarray]:
    """Return the columns of all ranks, one after the other."""
    return [np.concatenate(comm.alltoallv([column] * comm.size)) for column in columns]


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of distances, parents and terminals of all vertices, as gathered and as the loop has them."""
    return (16 + 3 * sizes.id_bytes + 4) * sizes.num_vertices


VARIANT = Variant(
    "steiner_tree.terminal_tree",
    when="after a search from all terminals at once, on any ranks",
    applies=lambda conditions: conditions.has_rows,
    bytes=_bytes,
    loop=connect_terminals,
)
