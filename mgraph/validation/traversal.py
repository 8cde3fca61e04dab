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

Distances and predecessors of all vertices are gathered on every rank; arcs are not moved. Out-rows are enough, so
directed graphs need no in-rows. Vertices are checked in pieces, in the memory of `traversal_check_bytes`. Chains are
followed by pointer doubling, in about log2(depth) gathers.
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
# Temporary bytes of a vertex of a piece: positions, states, and masks.
PIECE_BYTES = 40


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


def users_of_own_states(shard: Shard, states: Array) -> Array:
    """Return the user ids of those states that this rank owns, as int64."""
    local = states.astype(np.int64) - shard.rank * shard.partition.stride
    local = local[(local >= 0) & (local < shard.num_owned)]
    if shard.user_of_local is None:
        return shard.partition.offset(shard.rank) + local
    return shard.user_of_local[local].astype(np.int64)


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
    marks = check.no_marks()
    _mark_arcs(check, comm, parent, dist, bound, marks, weighted=weighted)
    is_explained, is_shorter = marks
    _check_tree_edges(check, parent, dist, has_parent, is_explained)
    if limit is None and may_overflow(shard.info, dist.dtype):
        _mark_behind_reached(check, comm, parent, dist, marks)
    del dist
    _follow_chains(check, comm, parent)
    for piece in check.pieces:
        states = check.states(piece)
        ends_elsewhere = has_parent[piece] & ~check.is_source[parent[states]]
        check.refuse(4, "an arc from another vertex leads nearer", piece, is_shorter[states] != 0)
        check.refuse(5, "the chain of predecessors does not end at a source", piece, ends_elsewhere)
    return check.violations(comm)


def traversal_check_bytes(partition: Partition) -> int:
    """Return the temporary bytes of validate_traversal on the fullest rank, but for small ones.

    Of an owned vertex: distance in 64 bits, its predecessor's state, and whether it has one. Of a state whether it is a
    source, and marks; on several ranks distance and parent. Words of a piece.
    """
    own = 8 + partition.dtype.itemsize
    gathered = own if partition.num_ranks > 1 else 0
    owned = partition.num_owned(0)
    return (own + 1) * owned + (gathered + 3) * partition.num_states + PIECE_BYTES * min(owned, PIECE)


def may_overflow(info: GraphInfo, dtype: np.dtype) -> bool:
    """Return whether the length of a path may be beyond all floats of a dtype: rounding adds at most the weight."""
    return dtype.kind == "f" and 2.0 * info.num_vertices * float(info.max_weight) > float(np.finfo(dtype).max)


def has_overflow(shard: Shard, comm: Communicator, distances: Array) -> bool:
    """Return whether an arc leads from a reached vertex to one without a distance; collective.

    Without a cutoff its distance is beyond all floats.
    """
    check = _Check(shard, [])
    # Overwritten below; a single rank's are not gathered.
    dist = gather_states(shard, comm, distances.copy() if comm.size == 1 else distances)
    parent = check.xp.arange(len(dist), dtype=shard.partition.dtype)
    marks = check.no_marks()
    _mark_behind_reached(check, comm, parent, dist, marks)
    return comm.any(total(shard.backend, marks[1] != 0) > 0)


class _Check:
    """The sources and owned vertices of this rank, and the offenders found so far.

    Owned vertices are checked in pieces: temporary values of all of them would be several times larger than the input.
    """

    def __init__(self, shard: Shard, sources: Sequence[int]) -> None:
        partition = shard.partition
        self.shard = shard
        self.xp = shard.backend.xp
        self.first = shard.rank * partition.stride
        # Every rank records the same rules, also one without vertices.
        self.pieces = list(pieces(shard.num_owned)) or [slice(0, 0)]
        self.is_source = self.xp.zeros(partition.num_states, bool)
        self.is_source[shard.backend.to_device(partition.state(np.array(sources, np.int64)))] = True
        self._offenders: dict[tuple[int, str], Offenders] = {}

    def no_marks(self) -> Array:
        """Return two marks of each state: whether a tree edge explains it, and whether an arc would shorten it."""
        return self.xp.zeros((2, self.shard.partition.num_states), np.uint8)

    def states(self, piece: slice) -> slice:
        """Return the states of a piece of the owned vertices."""
        return slice(self.first + piece.start, self.first + piece.stop)

    def positions(self, piece: slice) -> Array:
        """Return the positions of a piece of the owned vertices."""
        states = self.states(piece)
        return self.shard.partition.position(self.xp.arange(states.start, states.stop, dtype=np.int64))

    def refuse(self, rule: int, text: str, piece: slice, is_offender: Array) -> None:
        """Record those of a piece of the owned vertices that violate a rule.

        Every rank records the same rules in the same order.
        """
        offenders = self._offenders.setdefault((rule, text), Offenders(rule, text))
        if is_offender.any():
            offenders.add(users_of_owned(self.shard, piece)[is_offender])

    def violations(self, comm: Communicator) -> list[Violation]:
        """Return the violations found by all ranks."""
        return count_offenders(comm, list(self._offenders.values()))


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
    clean = xp.empty(len(distances), wide)
    for piece in check.pieces:
        found = distances[piece]
        far = found.astype(wide)
        # The negation also catches NaN.
        in_range = (found >= 0) & (found < unreached_of(dtype)) & (far <= longest)
        within = in_range & (far <= bound[0])
        wrong = "the distance is negative, not a number or longer than any path"
        check.refuse(1, "a source is not at distance 0", piece, check.is_source[check.states(piece)] & (found != 0))
        check.refuse(2, wrong, piece, (found != unreached_of(dtype)) & ~in_range)
        check.refuse(2, f"the distance is beyond the limit {limit}", piece, in_range & ~within)
        clean[piece] = xp.where(within, far, wide.type(unreached_of(wide)))
    return clean, bound


def _clean_parents(check: _Check, dist: Array, predecessors: Array) -> tuple[Array, Array]:
    """Check rules 1 and 2 on predecessors.

    Return the state index of every owned vertex's predecessor, or its own without one, and a mask of the vertices
    that have one and are not sources: their tree edges and chains are checked by rules 3 and 5.
    """
    partition = check.shard.partition
    parent = check.xp.empty(len(predecessors), partition.dtype)
    has_parent = check.xp.empty(len(predecessors), bool)
    for piece in check.pieces:
        found = predecessors[piece]
        positions = check.positions(piece)
        is_source = check.is_source[check.states(piece)]
        is_reached = dist[piece] != unreached_of(dist.dtype)
        is_none = found == none_of(found.dtype)
        in_range = ~is_none & (found >= 0) & (found < partition.num_positions)
        is_own = found == positions
        is_other = ~is_source & ~is_none
        check.refuse(1, "a source is not its own predecessor", piece, is_source & ~is_own)
        check.refuse(1, "the vertex is its own predecessor but not a source", piece, ~is_source & is_own)
        check.refuse(2, "the predecessor is not a vertex", piece, ~is_none & ~in_range)
        check.refuse(2, "the vertex is reached and has no predecessor", piece, is_reached & is_none & ~is_source)
        check.refuse(2, "the vertex is not reached and has a predecessor", piece, ~is_reached & is_other)
        has_parent[piece] = is_reached & in_range & ~is_own & ~is_source
        known = check.xp.where(has_parent[piece], found, positions)
        parent[piece] = partition.state(known).astype(partition.dtype)
    return parent, has_parent


def _check_tree_edges(check: _Check, parent: Array, dist: Array, has_parent: Array, is_explained: Array) -> None:
    """Check rule 2 on the vertices' predecessors, and rule 3."""
    for piece in check.pieces:
        states = check.states(piece)
        is_reached = dist[parent[states]] != unreached_of(dist.dtype)
        is_wrong = has_parent[piece] & is_reached & (is_explained[states] == 0)
        check.refuse(2, "the predecessor is not reached", piece, has_parent[piece] & ~is_reached)
        check.refuse(3, "no arc from the predecessor explains the distance", piece, is_wrong)


def _mark_arcs(
    check: _Check, comm: Communicator, parent: Array, dist: Array, bound: np.ndarray, marks: Array, *, weighted: bool
) -> None:
    """Mark the states that a tree edge explains, and those that an arc would shorten.

    A tree edge explains the distance of its target if it has the right weight.
    """
    shard = check.shard
    backend = check.shard.backend
    found = (parent, dist, backend.to_device(bound), *marks)
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
    comm.allreduce(marks.ravel(), "max")


def _mark_behind_reached(check: _Check, comm: Communicator, parent: Array, dist: Array, marks: Array) -> None:
    """Mark, as if to be shortened, the states that are not reached, but lie behind an arc from one that is.

    Distances of reached states become 0.
    """
    for piece in pieces(len(dist)):
        near = dist[piece]
        near[near != unreached_of(dist.dtype)] = 0
    _mark_arcs(check, comm, parent, dist, np.array([np.finfo(dist.dtype).max], dist.dtype), marks, weighted=True)


def _follow_chains(check: _Check, comm: Communicator, parent: Array) -> None:
    """Replace every predecessor by the end of its chain.

    A predecessor in a cycle is replaced by any vertex of the cycle. A piece may follow predecessors that one before it
    has replaced: these are further on.
    """
    mine = parent[check.first : check.first + check.shard.partition.stride]
    for _ in range(check.shard.info.num_vertices.bit_length()):
        num_changed = 0
        for piece in pieces(len(mine)):
            grandparent = parent[mine[piece]]
            num_changed += total(check.shard.backend, grandparent != mine[piece])
            mine[piece] = grandparent
        if not comm.any(num_changed > 0):
            return
        comm.allgather(mine, parent)
