"""Validate a traversal by rules, on the ranks, in one pass over all arcs.

The rules follow the Graph500 specification (for SSSP with distances instead of levels):

1. The sources are at distance 0 and their own predecessors; no other vertex is its own predecessor.
2. Every value is in range, a reached vertex has a reached predecessor, an unreached vertex has none.
3. Every tree edge is an arc of the graph, and its weight is exactly the difference in distance (in the
   arithmetic of the state's dtype; levels differ by one).
4. No arc shortens a distance: the target of an arc from a reached vertex is reached, at most the weight
   farther, also where floats hold no such length. In an undirected graph the levels of neighbors therefore differ by at
   most one.
5. Chains of predecessors have no cycle: each ends at a source.

Together they prove every distance: by 3 and 5 it is the length of a path, by 4 no path is shorter. The
rules accept any valid predecessor, not only the one that bfs and sssp choose.

Distances and predecessors of all vertices are gathered on every rank, 10 bytes a vertex with 32-bit
states; arcs are not moved. Out-rows are enough, so directed graphs need no in-rows. Chains are followed
by pointer doubling, in about log2(depth) gathers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mgraph.backends.totals import total
from mgraph.comm.base import Communicator
from mgraph.errors import ValidationFailed
from mgraph.partition import Partition
from mgraph.shard.edge_blocks import require_blocks
from mgraph.shard.shard import GraphInfo, Shard
from mgraph.shard.user_ids import gather_states
from mgraph.types import Array, none_of, unreached_of
from mgraph.validation.traversal_kernels import check_arcs, check_edges

# Vertices or edges checked at a time, where temporary values are several times larger than the input.
PIECE = 1 << 22


@dataclass(frozen=True)
class Violation:
    """A violated rule, with the number of violating vertices of the whole graph and the lowest user id of them."""

    rule: int
    text: str
    count: int
    vertex: int

    def __str__(self) -> str:
        return f"rule {self.rule}: {self.text}: {self.count} of them, first vertex {self.vertex}"


def ensure_valid(violations: Sequence[Violation]) -> None:
    """Raise ValidationFailed with all violations in its message if there are any."""
    if violations:
        raise ValidationFailed("; ".join(map(str, violations)))


@dataclass
class Offenders:
    """Vertices of this rank that violate a rule: their number, and their lowest user id."""

    rule: int
    text: str
    count: int = 0
    lowest: int = int(np.iinfo(np.int64).max)

    def add(self, users: Array) -> None:
        """Add vertices by user id."""
        if len(users):
            self.count += len(users)
            self.lowest = min(self.lowest, int(users.min()))


def count_offenders(comm: Communicator, offenders: Sequence[Offenders]) -> list[Violation]:
    """Reduce the offenders of all ranks to violations.

    Every rank passes the same rules in the same order.
    """
    counts = comm.sum(*(own.count for own in offenders))
    lowest = np.array([own.lowest for own in offenders], np.int64)
    comm.allreduce(lowest, "min")
    return [
        Violation(own.rule, own.text, count, int(vertex))
        for own, count, vertex in zip(offenders, counts, lowest, strict=True)
        if count
    ]


def pieces(length: int) -> Iterator[slice]:
    """Yield 0 .. length in slices of PIECE."""
    for start in range(0, length, PIECE):
        yield slice(start, min(start + PIECE, length))


def users_of_owned(shard: Shard, piece: slice) -> Array:
    """Return the user ids of a slice of the owned vertices, as int64."""
    xp = shard.backend.xp
    if shard.user_of_local is None:
        return shard.partition.offset(shard.rank) + xp.arange(piece.start, piece.stop)
    return shard.user_of_local[piece].astype(np.int64)


def validate_traversal(
    shard: Shard,
    comm: Communicator,
    sources: Sequence[int],
    distances: Array,
    predecessors: Array,
    weighted: bool,
    limit: float | None = None,
) -> list[Violation]:
    """Return the rules that a result of BFS or SSSP violates: the same list on every rank.

    Parameters
    ----------
    sources
        Positions of the sources.
    distances
        Of the owned vertices, `unreached_of` its dtype where unreached.
    predecessors
        Of the owned vertices, as positions; `none_of` its dtype where unreached.
    weighted
        Whether arcs have their weights (SSSP), or all have weight 1 (BFS).
    limit
        Depth limit or cutoff: vertices beyond must be unreached. It is rounded to the dtype of the
        distances (integers: down).
    """
    check = _Check(shard, sources)
    dist, bound = _clean_distances(check, distances, weighted, limit)
    parent, has_parent = _clean_parents(check, dist, predecessors)
    parent = gather_states(shard, comm, parent)
    dist = gather_states(shard, comm, dist)

    parent_reached = dist[parent[check.owned]] != unreached_of(dist.dtype)
    check.refuse(2, "the predecessor is not reached", has_parent & ~parent_reached)
    is_explained, is_shorter = _check_arcs(check, comm, parent, dist, bound, weighted)
    check.refuse(3, "no arc from the predecessor explains the distance", has_parent & parent_reached & ~is_explained)
    if limit is None and may_overflow(shard.info, dist.dtype):
        is_shorter = is_shorter | _has_reached_neighbor(check, comm, dist)
    check.refuse(4, "an arc from another vertex leads nearer", is_shorter)

    _follow_chains(check, comm, parent)
    check.refuse(
        5, "the chain of predecessors does not end at a source", has_parent & ~check.is_source[parent[check.owned]]
    )
    return check.violations(comm)


def traversal_check_bytes(partition: Partition) -> int:
    """Return the temporary bytes of validate_traversal on the fullest rank, but for small ones.

    Of an owned vertex: position, distance and its predecessor's state in 64 bits, masks, and two further words of both.
    Of a state on several ranks: distance and parent; marks on all.
    """
    gathered = 8 + partition.dtype.itemsize if partition.num_ranks > 1 else 0
    return 48 * partition.num_owned(0) + (gathered + 3) * partition.num_states


def may_overflow(info: GraphInfo, dtype: np.dtype) -> bool:
    """Return whether the length of a path may be beyond all floats of a dtype: rounding adds at most the weight."""
    return dtype.kind == "f" and 2.0 * info.num_vertices * float(info.max_weight) > float(np.finfo(dtype).max)


def has_overflow(shard: Shard, comm: Communicator, distances: Array) -> bool:
    """Return whether an arc leads from a reached vertex to one without a distance; collective.

    Without a cutoff its distance is beyond all floats.
    """
    check = _Check(shard, [])
    beyond = _has_reached_neighbor(check, comm, gather_states(shard, comm, distances))
    return comm.any(total(shard.backend, beyond) > 0)


def _has_reached_neighbor(check: _Check, comm: Communicator, dist: Array) -> Array:
    """Return a mask of the owned vertices that are not reached, but lie behind an arc from one that is."""
    xp = check.xp
    unreached = dist.dtype.type(unreached_of(dist.dtype))
    near = xp.where(dist == unreached, unreached, dist.dtype.type(0))
    parent = xp.arange(len(dist), dtype=check.shard.partition.dtype)
    bound = np.array([np.finfo(dist.dtype).max], dist.dtype)
    _, is_behind = _check_arcs(check, comm, parent, near, bound, weighted=True)
    return is_behind


class _Check:
    """The sources and owned vertices of this rank, and the offenders found so far."""

    def __init__(self, shard: Shard, sources: Sequence[int]) -> None:
        partition = shard.partition
        xp = shard.backend.xp
        self.shard = shard
        self.xp = xp
        self.first = shard.rank * partition.stride
        self.owned = slice(self.first, self.first + shard.num_owned)
        self.positions = partition.position(xp.arange(self.owned.start, self.owned.stop, dtype=np.int64))
        self.users = self.positions if shard.user_of_local is None else shard.user_of_local
        self.is_source = xp.zeros(partition.num_states, bool)
        self.is_source[shard.backend.to_device(partition.state(np.array(sources, np.int64)))] = True
        self._offenders: list[Offenders] = []

    def refuse(self, rule: int, text: str, is_offender: Array) -> None:
        """Record the owned vertices that violate a rule.

        Every rank records the same rules in the same order.
        """
        self._offenders.append(Offenders(rule, text))
        self._offenders[-1].add(self.users[is_offender])

    def violations(self, comm: Communicator) -> list[Violation]:
        """Return the violations found by all ranks."""
        return count_offenders(comm, self._offenders)


def _clean_distances(check: _Check, distances: Array, weighted: bool, limit: float | None) -> tuple[Array, np.ndarray]:
    """Check rules 1 and 2 on distances.

    Return them, unreached where out of range, and their upper bound.
    """
    info = check.shard.info
    xp = check.xp
    dtype = np.dtype(distances.dtype)
    heaviest = info.max_weight if weighted and info.weight_dtype is not None else 1
    if dtype.kind == "f":
        wide = dtype
        longest = float(np.finfo(dtype).max)
    else:
        # A dtype in which the longest path plus one arc does not overflow.
        any_path = info.num_vertices * int(heaviest)
        wide = next((d for d in (dtype, np.dtype(np.uint32)) if any_path < unreached_of(d)), np.dtype(np.int64))
        longest = max(0, min(any_path, int(unreached_of(wide))) - int(heaviest))
    # If the distances have fewer bits than a path may need, a longer distance must be unreached.
    bound = np.array([longest if limit is None else min(limit, longest)]).astype(wide)

    unreached = distances == unreached_of(dtype)
    far = distances.astype(wide)
    # The negation also catches NaN.
    in_range = (distances >= 0) & (distances < unreached_of(dtype)) & (far <= longest)
    within = in_range & (far <= bound[0])
    check.refuse(1, "a source is not at distance 0", check.is_source[check.owned] & (distances != 0))
    check.refuse(2, "the distance is negative, not a number or longer than any path", ~unreached & ~in_range)
    check.refuse(2, f"the distance is beyond the limit {limit}", in_range & ~within)
    return xp.where(within, far, wide.type(unreached_of(wide))), bound


def _clean_parents(check: _Check, dist: Array, predecessors: Array) -> tuple[Array, Array]:
    """Check rules 1 and 2 on predecessors.

    Return the state index of every owned vertex's predecessor, or its own without one, and a mask of the vertices
    that have one and are not sources: their tree edges and chains are checked by rules 3 and 5.
    """
    partition = check.shard.partition
    is_source = check.is_source[check.owned]
    is_reached = dist != unreached_of(dist.dtype)
    is_none = predecessors == none_of(predecessors.dtype)
    in_range = ~is_none & (predecessors >= 0) & (predecessors < partition.num_positions)
    is_own = predecessors == check.positions
    check.refuse(1, "a source is not its own predecessor", is_source & ~is_own)
    check.refuse(1, "the vertex is its own predecessor but not a source", ~is_source & is_own)
    check.refuse(2, "the predecessor is not a vertex", ~is_none & ~in_range)
    check.refuse(2, "the vertex is reached and has no predecessor", is_reached & is_none & ~is_source)
    check.refuse(2, "the vertex is not reached and has a predecessor", ~is_reached & ~is_none & ~is_source)
    has_parent = is_reached & in_range & ~is_own & ~is_source
    known = check.xp.where(has_parent, predecessors, check.positions)
    return partition.state(known).astype(partition.dtype), has_parent


def _check_arcs(
    check: _Check, comm: Communicator, parent: Array, dist: Array, bound: np.ndarray, weighted: bool
) -> tuple[Array, Array]:
    """Return masks of the owned vertices that a tree edge explains, and that an arc would shorten.

    A tree edge explains the distance of its target if it has the right weight.
    """
    shard = check.shard
    backend = check.shard.backend
    num_states = shard.partition.num_states
    marks = check.xp.zeros(2 * num_states, np.uint8)
    is_explained = marks[:num_states]
    is_shorter = marks[num_states:]
    found = (parent, dist, backend.to_device(bound), is_explained, is_shorter)
    if shard.has_rows:
        rows = shard.rows
        weights = rows.weights if weighted else None
        check_arcs[backend](0, shard.num_owned, check.first, rows.indptr, rows.targets, weights, *found)
    else:
        blocks = require_blocks(shard, comm, dist.dtype)
        shape = backend.to_device(np.array([blocks.shape.segment_bits, 0 if shard.info.directed else 1], np.int64))
        for part in blocks.on_device():
            weights = part.weights if weighted else None
            check_edges[backend](0, part.num_units, *part.edges, weights, shape, *found)
    comm.allreduce(marks, "max")
    return is_explained[check.owned] != 0, is_shorter[check.owned] != 0


def _follow_chains(check: _Check, comm: Communicator, parent: Array) -> None:
    """Replace every predecessor by the end of its chain.

    A predecessor in a cycle is replaced by any vertex of the cycle.
    """
    mine = parent[check.first : check.first + check.shard.partition.stride]
    for _ in range(check.shard.info.num_vertices.bit_length()):
        grandparent = parent[mine]
        changed = comm.any(total(check.shard.backend, grandparent != mine) > 0)
        if not changed:
            return
        mine[:] = grandparent
        comm.allgather(mine, parent)
