"""Check a traversal by rules, on the ranks that hold it, in one look at every arc.

The rules follow the Graph500 specification's (BFS: 1-5, SSSP the same with distances for levels):

1. The sources are at distance 0 and their own predecessors; nobody else is its own predecessor.
2. Every value is in range, whoever is reached has a predecessor that is reached, and nobody else has one.
3. Every tree edge is an arc of the graph, and its weight is exactly the difference in distance (rounded as
   the state rounds; levels differ by one).
4. No arc leads nearer: its target is reached, at most its weight farther than its origin. In an undirected
   graph the levels of neighbours therefore differ by at most one, and components are spanned whole.
5. Chains of predecessors have no cycle: each ends at a source.

Together they prove every distance: by 3 and 5 it is the length of a path, by 4 no path is shorter. That
the predecessor is the very one that bfs and sssp choose is not a rule: other predecessors are as valid.

Distances and predecessors of all vertices are gathered on every rank, 10 bytes a vertex with 32-bit
states; arcs stay where they are. Out-rows are enough, so directed graphs need no in-rows. Chains are
followed by pointer doubling: as many gathers as the depth has binary digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mgraph.backends.totals import total
from mgraph.comm.base import Communicator
from mgraph.errors import ValidationFailed
from mgraph.shard.edge_blocks import require_blocks
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import gather_states
from mgraph.types import Array, none_of, unreached_of
from mgraph.validation.traversal_kernels import check_arcs, check_edges

# So many vertices or edges are checked at a time where what is computed of each takes several times what is kept.
PIECE = 1 << 22


@dataclass(frozen=True)
class Violation:
    """A rule that is broken, by how many vertices of the whole graph, and the first of them by user id."""

    rule: int
    text: str
    count: int
    vertex: int

    def __str__(self) -> str:
        return f"rule {self.rule}: {self.text}: {self.count} of them, first vertex {self.vertex}"


def ensure_valid(violations: Sequence[Violation]) -> None:
    """Raise ValidationFailed, with every violation in its message, unless there is none."""
    if violations:
        raise ValidationFailed("; ".join(map(str, violations)))


@dataclass
class Offenders:
    """Who breaks a rule on this rank: how many, and the first of them by user id."""

    rule: int
    text: str
    count: int = 0
    lowest: int = int(np.iinfo(np.int64).max)

    def add(self, users: Array) -> None:
        """Add some, by user id."""
        if len(users):
            self.count += len(users)
            self.lowest = min(self.lowest, int(users.min()))


def count_offenders(comm: Communicator, offenders: Sequence[Offenders]) -> list[Violation]:
    """Return the violations over all ranks, given those of this rank; rules and texts are alike on each."""
    counts = comm.sum(*(own.count for own in offenders))
    lowest = np.array([own.lowest for own in offenders], np.int64)
    comm.allreduce(lowest, "min")
    return [
        Violation(own.rule, own.text, count, int(vertex))
        for own, count, vertex in zip(offenders, counts, lowest, strict=True)
        if count
    ]


def pieces(length: int) -> Iterator[slice]:
    """Yield 0 .. length piece by piece."""
    for start in range(0, length, PIECE):
        yield slice(start, min(start + PIECE, length))


def users_of_owned(shard: Shard, piece: slice) -> Array:
    """Return the user ids of a few owned vertices, as int64."""
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
    """Return the rules that a result of BFS or SSSP breaks: the same list on every rank.

    Parameters
    ----------
    sources
        Positions of the sources.
    distances
        Of the owned vertices, `unreached_of` its dtype where unreached.
    predecessors
        Of the owned vertices, as positions; `none_of` its dtype where unreached.
    weighted
        Whether arcs have their weights, or all weigh 1 (BFS).
    limit
        Depth limit or cutoff: farther vertices count as unreached. It is rounded to the dtype of the
        distances (integers: down).
    """
    check = _Check(shard, sources)
    dist, bound = _clean_distances(check, distances, weighted, limit)
    parent, has_parent = _clean_parents(check, dist, predecessors)
    parent, dist = gather_states(shard, comm, parent), gather_states(shard, comm, dist)

    parent_reached = dist[parent[check.owned]] != unreached_of(dist.dtype)
    check.refuse(2, "the predecessor is not reached", has_parent & ~parent_reached)
    is_explained, is_shorter = _check_arcs(check, comm, parent, dist, bound, weighted)
    check.refuse(3, "no arc from the predecessor explains the distance", has_parent & parent_reached & ~is_explained)
    check.refuse(4, "an arc from another vertex leads nearer", is_shorter)

    _follow_chains(check, comm, parent)
    check.refuse(
        5, "the chain of predecessors does not end at a source", has_parent & ~check.is_source[parent[check.owned]]
    )
    return check.violations(comm)


class _Check:
    """What is known of the sources and of the owned vertices, and the offenders found among the latter."""

    def __init__(self, shard: Shard, sources: Sequence[int]) -> None:
        partition, xp = shard.partition, shard.backend.xp
        self.shard, self.xp = shard, xp
        self.first = shard.rank * partition.stride
        self.owned = slice(self.first, self.first + shard.num_owned)
        self.positions = partition.position(xp.arange(self.owned.start, self.owned.stop, dtype=np.int64))
        self.users = self.positions if shard.user_of_local is None else shard.user_of_local
        self.is_source = xp.zeros(partition.num_states, bool)
        self.is_source[shard.backend.to_device(partition.state(np.array(sources, np.int64)))] = True
        self._offenders: list[Offenders] = []

    def refuse(self, rule: int, text: str, is_offender: Array) -> None:
        """Note the owned vertices that break a rule; every rank notes the same rules in the same order."""
        self._offenders.append(Offenders(rule, text))
        self._offenders[-1].add(self.users[is_offender])

    def violations(self, comm: Communicator) -> list[Violation]:
        """Return what any rank found."""
        return count_offenders(comm, self._offenders)


def _clean_distances(check: _Check, distances: Array, weighted: bool, limit: float | None) -> tuple[Array, np.ndarray]:
    """Check rule 1 and 2 on distances; return them with what is out of range made unreached, and the bound."""
    info, xp, dtype = check.shard.info, check.xp, np.dtype(distances.dtype)
    heaviest = info.max_weight if weighted and info.weight_dtype is not None else 1
    if dtype.kind == "f":
        wide, longest = dtype, float(np.finfo(dtype).max)
    else:
        # Wide enough that the longest path and one more arc do not overflow.
        any_path = info.num_vertices * int(heaviest)
        wide = next((d for d in (dtype, np.dtype(np.uint32)) if any_path < unreached_of(d)), np.dtype(np.int64))
        longest = max(0, min(any_path, int(unreached_of(wide))) - int(heaviest))
    # Also of distances in fewer bits than paths may need: what these do not hold must not be there.
    bound = np.array([longest if limit is None else min(limit, longest)]).astype(wide)

    unreached, far = distances == unreached_of(dtype), distances.astype(wide)
    # The negation also catches NaN.
    in_range = (distances >= 0) & (distances < unreached_of(dtype)) & (far <= longest)
    within = in_range & (far <= bound[0])
    check.refuse(1, "a source is not at distance 0", check.is_source[check.owned] & (distances != 0))
    check.refuse(2, "the distance is negative, not a number or longer than any path", ~unreached & ~in_range)
    check.refuse(2, f"the distance is beyond the limit {limit}", in_range & ~within)
    return xp.where(within, far, wide.type(unreached_of(wide))), bound


def _clean_parents(check: _Check, dist: Array, predecessors: Array) -> tuple[Array, Array]:
    """Check rules 1 and 2 on predecessors.

    Return the state index of every owned vertex's predecessor, its own where it has none, and which of
    those who are not sources have one: whose tree edges and chains are to be checked.
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
    """Return which owned vertices' tree edges explain their distances, and which an arc would bring nearer."""
    shard, run = check.shard, check.shard.backend
    num_states = shard.partition.num_states
    marks = check.xp.zeros(2 * num_states, np.uint8)
    is_explained, is_shorter = marks[:num_states], marks[num_states:]
    found = (parent, dist, run.to_device(bound), is_explained, is_shorter)
    if shard.is_compact:
        blocks = require_blocks(shard, comm, dist.dtype)
        weights = blocks.weights if weighted else None
        shape = run.to_device(np.array([blocks.shape.segment_bits, 0 if shard.info.directed else 1], np.int64))
        check_edges[run](0, blocks.num_units, *blocks.edges, weights, shape, *found)
    else:
        rows = shard.rows
        weights = rows.weights if weighted else None
        check_arcs[run](0, shard.num_owned, check.first, rows.indptr, rows.targets, weights, *found)
    comm.allreduce(marks, "max")
    return is_explained[check.owned] != 0, is_shorter[check.owned] != 0


def _follow_chains(check: _Check, comm: Communicator, parent: Array) -> None:
    """Replace every predecessor by the end of its chain; in a cycle there is none, and any member stands."""
    mine = parent[check.first : check.first + check.shard.partition.stride]
    for _ in range(check.shard.info.num_vertices.bit_length()):
        further = parent[mine]
        changed = comm.any(total(check.shard.backend, further != mine) > 0)
        if not changed:
            return
        mine[:] = further
        comm.allgather(mine, parent)
