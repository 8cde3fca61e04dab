"""Validate the labels of strongly connected components by rules, on the ranks.

1. Every label is the id of a vertex, and not larger than the vertex's own.
2. A label is its own label.
3. The label reaches every vertex that has it, and all of these reach the label, along arcs between vertices that have
   it.
4. No cycle of arcs leads from one label to another and back.

Together they prove the labels: by 3 vertices of one label are strongly connected, by 4 no others are with them; by 2
the label is one of them, and by 1 the smallest.

Rules 3 and 4 are searches from the labels, without shared code with `mgraph/algorithms/strong_components/coloring.py`:
rule 3 visits all vertices of a label at once, along arcs and against them. Rule 4 is a topological sort: it begins with
the labels that no arc of another label enters, and visits a label when all arcs into it come from visited vertices.
Each visits every arc once, in as many steps as the longest way has arcs. Every rank has tables of all states and knows
all that is visited; arcs are not moved: see `strong_check_bytes`.
"""

from __future__ import annotations

import numpy as np

from mgraph.comm.base import Communicator
from mgraph.partition import Partition
from mgraph.shard.in_rows import require_in_rows
from mgraph.shard.shard import Rows, Shard
from mgraph.shard.user_ids import gather_states, gather_users
from mgraph.types import Array, none_of, vertex_dtype
from mgraph.validation.strong_components_kernels import enter_states, release_names, visit_rows
from mgraph.validation.traversal import Offenders, Violation, count_offenders, pieces, users_of_owned


def validate_strong_labels(shard: Shard, comm: Communicator, labels: Array) -> list[Violation]:
    """Return the rules that the labels of this rank's range of user ids violate: the same list on every rank."""
    require_in_rows(shard, comm)
    out_of_range = Offenders(1, "the label is not the id of a vertex up to its own")
    not_fixed = Offenders(2, "the label has another label itself")
    apart = Offenders(3, "the label and the vertex do not reach each other inside the component")
    on_cycle = Offenders(4, "the component is on a cycle of components, or behind one")
    names = _names_of_states(shard, comm, labels, [out_of_range, not_fixed, apart])
    starts = _fixed_states(shard, names)
    from_label = _Visits(shard, comm, shard.rows, names).visit(starts)
    _add_unvisited(shard, from_label & _Visits(shard, comm, shard.incoming, names).visit(starts), apart)
    if not comm.any(apart.count > 0):
        search = _Visits(shard, comm, shard.rows, names)
        starts = starts[search.count_entering()[starts] == 0]
        _add_unvisited(shard, search.visit(starts), on_cycle)
    return count_offenders(comm, [out_of_range, not_fixed, apart, on_cycle])


def strong_check_bytes(partition: Partition, num_vertices: int) -> int:
    """Return the temporary bytes of validate_strong_labels on the fullest rank, in addition to the in-rows."""
    states = partition.num_states
    owned = partition.num_owned(0)
    vertex = partition.dtype.itemsize
    user = vertex_dtype(num_vertices).itemsize
    users = -(-num_vertices // partition.num_ranks)
    # Tables are gathered from all ranks; a single rank uses its own.
    of_users = num_vertices if partition.num_ranks > 1 else 0
    naming = user * (users + of_users + owned) + vertex * (users + of_users + owned)
    # Names, bitmaps, two counts for each; lists of states, of names and of the frontier.
    visiting = (vertex + 16) * states + states // 4 + vertex * (3 * states + 2 * owned)
    if partition.num_ranks > 1:
        # What others have found, and counted.
        visiting += (2 * vertex + 8) * states
    return max(naming + vertex * states, visiting)


class _Visits:
    """A search from labels over all ranks."""

    def __init__(self, shard: Shard, comm: Communicator, rows: Rows, names: Array) -> None:
        xp = shard.backend.xp
        num_states = shard.partition.num_states
        self.shard = shard
        self.comm = comm
        self.rows = rows
        self.names = names
        self.base = shard.rank * shard.partition.stride
        self.noted, self.visited = (xp.zeros(num_states // 32, np.uint32) for _ in range(2))
        self.found, self.touched = (xp.empty(num_states, names.dtype) for _ in range(2))
        # By name: arcs that this rank has visited in this step, and arcs of all ranks that are not visited yet.
        self.counts: Array | None = None
        self.pending: Array | None = None

    def count_entering(self) -> Array:
        """Count and return the arcs from other names into each; a name is then visited when none of them is left."""
        xp = self.shard.backend.xp
        pending = self.counts = xp.zeros(len(self.names), np.int64)
        self._visit_rows(xp.arange(self.base, self.base + self.shard.num_owned, dtype=self.names.dtype))
        self.noted[:] = 0
        self.counts = xp.zeros(len(self.names), np.int64)
        self.pending = self.comm.allreduce(pending, "sum")
        return self.pending

    def visit(self, starts: Array) -> Array:
        """Visit all that can be visited from this rank's `starts` and those of others; return the bitmap of it."""
        xp = self.shard.backend.xp
        comm = self.comm
        entered = starts
        while True:
            frontier = self._enter(xp.concatenate(comm.alltoallv([entered] * comm.size)))
            if not comm.any(len(frontier) > 0):
                return self.visited
            entered, touched = self._visit_rows(frontier)
            if self.counts is not None:
                entered = xp.concatenate([entered, self._release(touched)])

    def _visit_rows(self, frontier: Array) -> tuple[Array, Array]:
        """Visit the rows of the frontier; return the states found and the names entered by other arcs."""
        counters = self.shard.backend.xp.zeros(2, np.int64)
        visit_rows[self.shard.backend](
            0, len(frontier), frontier, self.base, self.rows.indptr, self.rows.targets, self.names, self.noted,
            self.counts, self.found, self.touched, counters,
        )  # fmt: skip
        num_found, num_touched = self.shard.backend.to_host(counters).tolist()
        return self.found[:num_found].copy(), self.touched[:num_touched].copy()

    def _release(self, touched: Array) -> Array:
        """Subtract what all ranks have counted; return the names that no unvisited arc enters."""
        assert self.counts is not None, "names are released where arcs are counted"
        backend = self.shard.backend
        xp = backend.xp
        comm = self.comm
        counts = self.counts[touched]
        self.counts[touched] = 0
        names, counts = (xp.concatenate(comm.alltoallv([part] * comm.size)) for part in (touched, counts))
        released = xp.empty(len(names), names.dtype)
        counters = xp.zeros(1, np.int64)
        release_names[backend](0, len(names), names, counts, self.pending, released, counters)
        return released[: int(counters[0])].copy()

    def _enter(self, states: Array) -> Array:
        """Mark states as visited; return those that this rank owns and that were not before."""
        backend = self.shard.backend
        num = self.shard.num_owned
        frontier = backend.xp.empty(min(len(states), num), states.dtype)
        counters = backend.xp.zeros(1, np.int64)
        enter_states[backend](0, len(states), states, self.base, num, self.visited, frontier, counters)
        return frontier[: int(counters[0])].copy()


def _names_of_states(shard: Shard, comm: Communicator, labels: Array, offenders: list[Offenders]) -> Array:
    """Return the state of each state's label, with its own for one that is no state; add offenders of rules 1 to 3."""
    xp = shard.backend.xp
    out_of_range, not_fixed, apart = offenders
    (lo, hi) = shard.user_range
    ids = xp.empty(hi - lo, vertex_dtype(shard.info.num_vertices))
    for piece in pieces(hi - lo):
        users = xp.arange(lo + piece.start, lo + piece.stop)
        in_range = (labels[piece] >= 0) & (labels[piece] <= users)
        ids[piece] = xp.where(in_range, labels[piece], users)
        out_of_range.add(users[~in_range])
    all_labels = gather_users(shard, comm, ids)
    states = _states_of_users(shard, comm)
    for piece in pieces(hi - lo):
        users = xp.arange(lo + piece.start, lo + piece.stop)
        label = ids[piece]
        not_fixed.add(users[all_labels[label] != label])
        if states is not None:
            # A vertex without arcs is alone.
            has_none = none_of(states.dtype)
            apart.add(users[(label != users) & ((states[label] == has_none) | (states[users] == has_none))])
    owned = xp.empty(shard.num_owned, shard.partition.dtype)
    base = shard.rank * shard.partition.stride
    for piece in pieces(shard.num_owned):
        label = all_labels[users_of_owned(shard, piece)]
        own = xp.arange(base + piece.start, base + piece.stop)
        name = label if states is None else states[label]
        owned[piece] = xp.where(name == none_of(name.dtype), own, name)
    return gather_states(shard, comm, owned)


def _states_of_users(shard: Shard, comm: Communicator) -> Array | None:
    """Return the state of every user id, the sentinel for a vertex without one; None where these are equal."""
    if shard.position_of_user is None:
        return None
    xp = shard.backend.xp
    partition = shard.partition
    of_range = xp.empty(len(shard.position_of_user), partition.dtype)
    for piece in pieces(len(of_range)):
        positions = shard.position_of_user[piece].astype(np.int64)
        isolated = positions >= partition.num_positions
        of_range[piece] = xp.where(isolated, none_of(partition.dtype), partition.state(positions))
    return gather_users(shard, comm, of_range)


def _fixed_states(shard: Shard, names: Array) -> Array:
    """Return the owned states that are names."""
    xp = shard.backend.xp
    base = shard.rank * shard.partition.stride
    own = xp.arange(base, base + shard.num_owned, dtype=names.dtype)
    return own[names[own] == own]


def _add_unvisited(shard: Shard, visited: Array, offenders: Offenders) -> None:
    """Add the owned vertices without a bit."""
    xp = shard.backend.xp
    base = shard.rank * shard.partition.stride
    for piece in pieces(shard.num_owned):
        states = xp.arange(base + piece.start, base + piece.stop)
        bits = visited[states >> 5] >> (states & 31).astype(np.uint32) & np.uint32(1)
        offenders.add(users_of_owned(shard, piece)[bits == 0])
