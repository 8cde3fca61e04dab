"""Find core numbers: peel the vertices of fewest remaining neighbors, level by level.

    left[v] = the arcs of v;  level = the fewest arcs of any vertex
    while vertices remain:
        frontier = the vertices of `level` arcs
        while it is not empty:
            every neighbor of the frontier that remains loses an arc
            frontier = the vertices that now have no more than `level`; left[v] = level, their core number
        level = level + 1, or the fewest arcs of any vertex if none has so few

The k-core is what remains before level k, whatever the order in which a level peels: so core numbers are unique, and
the same for any number of ranks. On its own rank a vertex that is peeled leads to the next one within a launch; paths
over ranks take a superstep for each arc between two.

Arcs of a directed graph count at both ends, and two opposite arcs count twice, as in NetworkX.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.common.send_to_owners import send_to_owners
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.core_numbers.kernels import list_level, merge_losses, peel
from mgraph.algorithms.derived import IN_ROWS
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.comm.base import Communicator
from mgraph.shard.shard import Shard, degrees
from mgraph.types import Array

NO_ARCS = np.iinfo(np.int64).max


def find_core_numbers(shard: Shard, comm: Communicator, trace: Trace) -> Array:
    """Return the core number of each owned vertex, as int64."""
    search = _Peeling(shard, comm, trace)
    level = 0
    while search.num_left:
        frontier, fewest = search.begin_level(level)
        level = level + 1 if search.peel_level(level, frontier) else fewest
    return search.left


class _Peeling:
    """The arcs left to each owned vertex, and those of more than the level; `num_left` counts them on all ranks."""

    def __init__(self, shard: Shard, comm: Communicator, trace: Trace) -> None:
        partition = shard.partition
        xp = shard.backend.xp
        self.shard = shard
        self.comm = comm
        self.trace = trace
        self.backend = shard.backend
        self.base = comm.rank * partition.stride
        self.is_alone = comm.size == 1
        self.left = shard.degrees
        self.rows = (shard.rows.indptr, shard.rows.targets, None, None)
        if shard.info.directed:
            self.left = self.left + degrees(shard.incoming)
            self.rows = (*self.rows[:2], shard.incoming.indptr, shard.incoming.targets)
        self.listed = xp.arange(self.base, self.base + shard.num_owned, dtype=partition.dtype)
        self.num_left = partition.num_positions
        self.losses = xp.zeros(0 if self.is_alone else partition.num_states, partition.dtype)
        self.found = xp.empty(shard.num_owned if self.is_alone else partition.num_states, partition.dtype)

    def begin_level(self, level: int) -> tuple[Array, int]:
        """Return this rank's vertices of `level` arcs, and the fewest arcs of all others; only these are left."""
        backend = self.backend
        rest = backend.xp.empty_like(self.listed)
        counters = backend.to_device(np.array([0, 0, NO_ARCS]))
        list_level[backend](
            0, len(self.listed), self.listed, self.base, level, self.left, rest, self.found, counters
        )  # fmt: skip
        num_rest, num_found, fewest = backend.to_host(counters).tolist()
        self.trace.superstep(method="list", frontier=self.num_left, arcs=0)
        self.listed = rest[:num_rest].copy()
        self.num_left = num_rest
        if not self.is_alone:
            (self.num_left,) = self.comm.sum(num_rest)
            fewest = int(self.comm.allreduce(np.array([fewest]), "min")[0])
        return self.found[:num_found].copy(), fewest

    def peel_level(self, level: int, frontier: Array) -> int:
        """Peel the frontier and all that this leaves with no more than `level` arcs; return the frontiers' length."""
        num_peeled = 0
        while True:
            num_frontier = len(frontier) if self.is_alone else self.comm.sum(len(frontier))[0]
            if not num_frontier:
                return num_peeled
            num_peeled += num_frontier
            frontier, arcs = self._peel(level, frontier)
            self.trace.superstep(method="peel", frontier=num_frontier, arcs=arcs)

    def _peel(self, level: int, frontier: Array) -> tuple[Array, int]:
        """Peel the frontier; return the next one, of owned vertices, and the arcs scanned."""
        backend = self.backend
        counters = backend.xp.zeros(2, np.int64)
        peel[backend](
            0, len(frontier), frontier, self.base, self.shard.num_owned, level, *self.rows, self.left, self.losses,
            self.found, counters,
        )  # fmt: skip
        num_found, arcs = backend.to_host(counters).tolist()
        found = self.found[:num_found].copy()
        if self.is_alone:
            return found, arcs
        own, (states, counts) = send_to_owners(self.shard, self.comm, found, self.losses)
        self.losses[found] = 0
        counters = backend.xp.zeros(1, np.int64)
        merge_losses[backend](0, len(states), states, counts, self.base, level, self.left, self.found, counters)
        return backend.xp.concatenate([own, self.found[: int(counters[0])]]), arcs


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of the arcs left, of losses and lists; or of what translates them to user ids."""
    owned = sizes.owned
    several = sizes.partition.num_ranks > 1
    # Arcs left; vertices listed and those of the next level; lists of a frontier and the next.
    search = 8 * owned + sizes.vertex * (4 * owned)
    search += sizes.vertex * (2 * sizes.states + 2 * owned if several else owned)
    if sizes.directed:
        search += 8 * owned
    sent = 2 * sizes.id_bytes * owned if several and sizes.partition.cyclic else 0
    return max(search, 8 * owned + sizes.id_bytes * owned + 8 * sizes.users + sent)


VARIANT = Variant(
    "core_numbers.peeling",
    when="on any ranks, the host starting each round of a level",
    applies=lambda conditions: conditions.has_rows,
    needs=(IN_ROWS,),
    bytes=_bytes,
    loop=find_core_numbers,
)
