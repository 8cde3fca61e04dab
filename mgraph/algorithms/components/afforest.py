"""Find connected components by union-find: find the giant, skip its arcs, link the rest, merge all forests.

    hook every vertex to its first neighbor, link a sample of them to the second
    exchange the parents of hubs
    giant = the tree with most vertices
    exchange a bit of every vertex: whether it is in the giant
    for every vertex outside the giant: link it to the rest of its neighbors
    exchange pairs of all other vertices and their roots

Nearly all arcs lie within the giant and are never scanned (Sutton, Ben-Nun and Barak, 2018); an edge between it and
another vertex is seen from the other end. Where arcs are known at one end alone, in directed graphs, none is skipped.

On several ranks a breadth-first search from a hub comes first, at which they are faster together:

    giant = the vertices that the search has reached
    exchange their bits, and every edge outside the giant or into it
    link both ends of all of these edges

If these edges are many, it was not the giant, and the algorithm above runs. The search may have been ended early: the
vertices that it did not reach are outside, and are linked to the giant like any other.

A call with checkpoints links its rows in rounds, equally many on all ranks, and may keep its state before each: whole
forests are merged, and each owned vertex has its root, complemented while its row is not linked. Any ranks can go on
from there: they find the giant of this forest, perhaps another one, and link those of the rows left that are outside.

Results: the root of every position, on every rank, the smallest position of its component; where the ranks exchanged
bits and pairs, the root of a marked vertex is that of the giant's vertex.
"""

from __future__ import annotations

import time

import numpy as np

from mgraph.algorithms.bfs.persistent_multi_gpu import VARIANT as SEARCH
from mgraph.algorithms.bfs.persistent_multi_gpu import bfs_multi_gpu
from mgraph.algorithms.common.checkpoints import KeptState
from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.components.kernels import (
    add_up_lengths,
    compress,
    hook_first,
    link_arcs,
    link_sample,
    list_edges,
    list_outside,
    list_untold,
    mark_reached,
    vote_giant,
)
from mgraph.algorithms.components.union_find import Roots, Union
from mgraph.algorithms.variant import Derived, GraphSizes, Variant
from mgraph.backends.compile_clock import CLOCK
from mgraph.comm.base import Communicator
from mgraph.partition import Partition, chunk_range
from mgraph.shard.shard import DEEP_DEGREE, Shard, cached_on_shard
from mgraph.shard.user_ids import gather_states
from mgraph.types import Array, none_of

# A search for the giant ends after this many levels: on RMAT and uniform graphs it is complete before.
MAX_LEVELS = 16
# Capacity for edges outside the giant, per rank: this many, and one more for each EDGE_SHARE vertices.
EDGES = 1 << 10
EDGE_SHARE = 32
# The lengths of this many rows are added up by one block, in less time than the host takes to launch CuPy's cumsum.
ONE_BLOCK_ROWS = 1 << 16
# Arcs of a round, after which a state may be kept: a core links this many in less than a second.
ROUND_ARCS = 1 << 24


@cached_on_shard
def find_hub(shard: Shard, comm: Communicator) -> int:
    """Return the user id of a vertex of the most arcs, the same on every rank."""
    degrees = shard.degrees
    partition = shard.partition
    local = int(degrees.argmax()) if len(degrees) else -1
    most = 0
    user = -1
    if local >= 0:
        most = int(degrees[local])
        user = partition.offset(shard.rank) + local if shard.user_of_local is None else int(shard.user_of_local[local])
    of_ranks = comm.allgather(np.array([most, user]), np.empty((comm.size, 2), np.int64))
    return int(of_ranks[of_ranks[:, 0].argmax(), 1])


def find_components(shard: Shard, comm: Communicator, trace: Trace, searched: Traversal | None = None) -> Roots:
    """Find the root of every position; `searched` is the result of a search from a hub, if there was one."""
    return _Components(shard, comm, trace).find(searched)


class _Components(Union):
    """A rank's forest, and the steps that join its trees over arcs."""

    # By owned vertex, whether its row is to be linked: of a call that goes on from a checkpoint.
    is_left: Array | None = None

    def find(self, searched: Traversal | None) -> Roots:
        if searched is not None and (found := self.finish_around(searched)) is not None:
            return found
        if (state := self.trace.checkpoints.found) is not None:
            self.go_on_from(state)
        else:
            began = CLOCK.now()
            self.sample()
            if self.comm.size > 1:
                self.exchange_hubs()
            # A state is made by passes over the vertices, as the sample is: one for each exchange of forests.
            self.trace.checkpoints.expect(max(1, (self.comm.size - 1).bit_length()), began)
        self.vote()
        marked = self.exchange_giant() if self.comm.size > 1 else None
        rows, offsets, arcs = self.list_rows(marked)
        num_rows = len(offsets) - 1
        self.link_rows(rows, offsets, arcs, marked)
        if marked is not None:
            marked = self.merge_forests(marked, num_rows, arcs)
        else:
            if arcs:
                self.compress_paths()
            self.trace.superstep(method="finish", frontier=num_rows, arcs=arcs)
        return Roots(self.parents, marked, self.giant)

    def finish_around(self, searched: Traversal) -> Roots | None:
        """Use a search's reached vertices as the giant, link all others; None if they have many edges."""
        backend = self.backend
        xp = self.backend.xp
        comm = self.comm
        num = self.shard.num_owned
        self.giant.fill(none_of(self.giant.dtype))
        part = xp.empty(self.shard.partition.stride // 32, np.uint32)
        mark_reached[backend](0, len(part), self.base, num, *self.layout, searched.distances, self.giant, part)
        comm.allreduce(self.giant, "min")
        marked = self.allgather_bits(part)
        capacity = EDGES + self.shard.partition.stride // EDGE_SHARE
        edges = xp.zeros((2, capacity), self.parents.dtype)
        counters = xp.zeros(1, np.int64)
        of_rows = (num, self.shard.rows.indptr, self.shard.rows.targets, self.base, *self.layout)
        list_edges[backend](0, len(part), *of_rows, capacity, marked, self.giant, counters, *edges)
        # Enqueued before the host waits for the count.
        self.parents = xp.arange(len(self.parents), dtype=self.parents.dtype)
        found = comm.allgather(backend.to_host(counters), np.empty(comm.size, np.int64)).tolist()
        self.trace.superstep(method="broadcast", frontier=len(self.parents), arcs=found[comm.rank])
        if max(found) > capacity:
            return None
        self.exchange_pairs(marked, edges[:, : max(found)].copy(), sum(found))
        return Roots(self.parents, marked, self.giant)

    def sample(self) -> None:
        """Link owned vertices to their first neighbors."""
        backend = self.backend
        rows = self.shard.rows
        owned = self.shard.num_owned
        of_rows = (rows.indptr, rows.targets, self.base)
        n = len(self.parents)
        runs = -(-len(self.parents) // self.layout[1])
        hook_first[backend](0, runs, n, *of_rows, owned, *self.layout, self.parents)
        # Paths are long on meshes, a hundred steps: links are faster when paths are compressed first (by half on
        # grid4k). In degree order half the paths of two ranks, and more on more ranks, end after a step.
        if self.comm.size == 1 or not self.shard.partition.cyclic:
            compress[backend](0, owned, *self.own, self.parents)
        link_sample[backend](0, owned, *of_rows, *self.layout, self.parents)
        # An upper bound: the second arc of a row is scanned in a sample alone.
        sampled = min(2 * owned, len(rows.targets))
        self.trace.superstep(method="sample", frontier=len(self.parents), arcs=sampled)

    def vote(self) -> None:
        """Agree with all ranks on a vertex of the giant.

        Each rank skips the tree of that vertex in its own forest. So, whichever vertex is chosen, an edge that both
        ends skip joins two vertices that are known to be connected.
        """
        vote_giant[self.backend](0, 1, *self.own, self.shard.num_owned, self.parents, self.giant)
        if self.comm.size > 1:
            self.comm.allreduce(self.giant, "min")

    def list_rows(self, marked: Array | None) -> tuple[Array | None, Array, int]:
        """List the rows to be linked: None for all, else a list; with where their arcs begin, and how many there are.

        Directed graphs have an edge at one end alone. Of others the rows of the giant are left out.
        """
        rows = self.shard.rows
        if self.shard.info.directed and self.is_left is None:
            return None, rows.indptr, len(rows.targets)
        if self.shard.info.directed:
            listed = self.backend.xp.arange(self.shard.num_owned, dtype=self.parents.dtype)
            lengths = rows.indptr[1:] - rows.indptr[:-1]
            arcs = len(rows.targets)
        else:
            listed, lengths, arcs = self.list_outside(marked)
        if self.is_left is not None:
            left = self.is_left[listed]
            listed = listed[left]
            lengths = lengths[left]
            arcs = int(lengths.sum())
        if not arcs:
            return listed[:0], self.backend.xp.zeros(1, np.int64), 0
        offsets = self.backend.xp.empty(len(listed) + 1, np.int64)
        if len(listed) <= ONE_BLOCK_ROWS:
            add_up_lengths[self.backend](0, 1, len(listed), lengths, offsets)
        else:
            offsets[0] = 0
            self.backend.xp.cumsum(lengths, out=offsets[1:])
        return listed, offsets, arcs

    def list_outside(self, marked: Array | None) -> tuple[Array, Array, int]:
        """List the rows outside the giant, with the numbers of their arcs, and the number of all of these."""
        backend = self.backend
        xp = self.backend.xp
        rows = self.shard.rows
        n = self.shard.num_owned
        outside = xp.empty(n, self.parents.dtype)
        lengths = xp.empty(n, np.int64)
        counters = xp.zeros(2, np.int64)
        found = (outside, lengths, counters)
        if marked is None:
            list_outside[backend](0, n, rows.indptr, *self.own, self.giant, self.parents, *found)
        else:
            of_states = (n, rows.indptr, self.base, *self.layout, marked, self.root_of_giant, self.parents)
            list_untold[backend](0, -(-n // 32), *of_states, *found)
        num_rows, arcs = backend.to_host(counters).tolist()
        return outside[:num_rows], lengths[:num_rows], arcs

    def link_rows(self, listed: Array | None, offsets: Array, arcs: int, marked: Array | None) -> None:
        """Link both ends of the arcs of listed rows, in rounds if their state is kept."""
        checkpoints = self.trace.checkpoints
        rows = self.shard.rows
        of_rows = (offsets, rows.indptr, rows.targets, self.base)
        num_rounds = 1
        if checkpoints.is_on:
            wanted = np.array([1 + arcs // ROUND_ARCS])
            num_rounds = int(self.comm.allreduce(wanted, "max")[0])
        for k in range(num_rounds):
            lo, hi = chunk_range(arcs, k, num_rounds)
            if checkpoints.are_due(self.comm):
                self.keep(listed, offsets, lo)
            if hi > lo:
                link_arcs[self.backend](
                    lo, hi, listed, len(offsets) - 1, *of_rows, *self.layout, marked, self.giant, self.parents
                )

    def keep(self, listed: Array | None, offsets: Array, num_linked: int) -> None:
        """Keep the state after the first arcs of the listed rows."""
        since = time.monotonic()
        xp = self.backend.xp
        if self.comm.size > 1:
            self.exchange_forests()
        else:
            self.compress_paths()
        first, step = self.own
        values = self.parents[first::step][: self.shard.num_owned].astype(state_dtype(self.shard.partition))
        # A row is linked when its last arc is; one in the giant is not.
        num_rows = int(xp.searchsorted(offsets[1:], num_linked, side="right"))
        left = xp.ones(len(values), bool) if self.is_left is None else self.is_left.copy()
        left[slice(num_rows) if listed is None else listed[:num_rows]] = False
        self.trace.checkpoints.keep(KeptState(xp.where(left, ~values, values)), since)

    def go_on_from(self, found: KeptState) -> None:
        """Begin with the forest of a checkpoint."""
        partition = self.shard.partition
        self.is_left = found.values < 0
        roots = self.backend.xp.where(self.is_left, ~found.values, found.values).astype(partition.dtype)
        of_states = gather_states(self.shard, self.comm, roots)
        self.parents = of_states[partition.state(self.backend.xp.arange(partition.num_positions))]


def state_dtype(partition: Partition) -> np.dtype:
    """Return the dtype of tree roots in a checkpoint, and of their complements: the same on any number of ranks."""
    return np.dtype(np.int32 if partition.num_positions <= 1 << 31 else np.int64)


def _find_around_giant(shard: Shard, comm: Communicator, trace: Trace) -> Roots:
    """Search a few levels from a hub, then find components around what that reached."""
    with trace.phase("traverse"):
        searched = bfs_multi_gpu(shard, comm, [find_hub(shard, comm)], trace, MAX_LEVELS)
    with trace.phase("find"):
        return find_components(shard, comm, trace, searched)


def _find(shard: Shard, comm: Communicator, trace: Trace) -> Roots:
    with trace.phase("find"):
        return find_components(shard, comm, trace)


def _make_hub(shard: Shard, comm: Communicator, dtype: np.dtype) -> bool:
    find_hub(shard, comm)
    return True


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of parents, and of rows outside of the giant, another rank's parents or labels."""
    several = sizes.partition.num_ranks > 1
    joining = max((sizes.vertex + 16) * sizes.owned, sizes.vertex * sizes.states if several else 0)
    labelling = 8 * sizes.users + (sizes.id_bytes * sizes.states if sizes.partition.cyclic else 0)
    return sizes.vertex * sizes.states + max(joining, labelling)


AROUND_GIANT = Variant(
    "components.around_giant",
    when=f"where bfs.persistent_multi_gpu runs, on undirected graphs of more than {DEEP_DEGREE} arcs a vertex",
    applies=lambda conditions: (
        SEARCH.applies(conditions) and not conditions.directed and conditions.arcs_per_vertex > DEEP_DEGREE
    ),
    needs=(Derived("hub", _make_hub), *SEARCH.needs),
    # The memory pool keeps what the search has freed.
    bytes=lambda sizes: SEARCH.bytes(sizes) + _bytes(sizes),
    loop=_find_around_giant,
)
VARIANT = Variant(
    "components.afforest",
    when="on rows, on any ranks",
    applies=lambda conditions: conditions.has_rows,
    bytes=_bytes,
    loop=_find,
    keeps_checkpoints=True,
)
