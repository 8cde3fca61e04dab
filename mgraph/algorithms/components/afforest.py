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

Results: the root of every position, on every rank, the smallest position of its component; where the ranks exchanged
bits and pairs, the root of a marked vertex is that of the giant's vertex.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.bfs.persistent_multi_gpu import VARIANT as SEARCH
from mgraph.algorithms.bfs.persistent_multi_gpu import bfs_multi_gpu
from mgraph.algorithms.bfs.step import DEEP_DEGREE
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
from mgraph.comm.base import Communicator
from mgraph.shard.shard import Shard, cached_on_shard
from mgraph.types import Array, none_of

# A search for the giant ends after so many levels: on RMAT and uniform graphs it is complete before.
MAX_LEVELS = 16
# Capacity for edges outside the giant, per rank: so many, and one more for every so many vertices.
EDGES = 1 << 10
EDGE_SHARE = 32
# The lengths of so many rows are added up by one block, in less time than the host takes to launch CuPy's cumsum.
ONE_BLOCK_ROWS = 1 << 16


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

    def find(self, searched: Traversal | None) -> Roots:
        if searched is not None and (found := self.finish_around(searched)) is not None:
            return found
        self.sample()
        marked = None
        if self.comm.size > 1:
            self.exchange_hubs()
            self.vote()
            marked = self.exchange_giant()
        else:
            self.vote()
        num_rows, arcs = self.link_all(marked) if self.shard.info.directed else self.link_outside(marked)
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

    def link_all(self, marked: Array | None) -> tuple[int, int]:
        """Link both ends of every arc; return the numbers of rows and arcs scanned."""
        rows = self.shard.rows
        n = self.shard.num_owned
        of_rows = (rows.indptr, rows.indptr, rows.targets, self.base)
        link_arcs[self.backend](
            0, len(rows.targets), None, n, *of_rows, *self.layout, marked, self.giant, self.parents
        )  # fmt: skip
        return n, len(rows.targets)

    def link_outside(self, marked: Array | None) -> tuple[int, int]:
        """Link vertices outside the giant to their other neighbors; return the numbers of rows and arcs."""
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
        if arcs:
            offsets = xp.empty(num_rows + 1, np.int64)
            if num_rows <= ONE_BLOCK_ROWS:
                add_up_lengths[backend](0, 1, num_rows, lengths, offsets)
            else:
                offsets[0] = 0
                xp.cumsum(lengths[:num_rows], out=offsets[1:])
            of_rows = (offsets, rows.indptr, rows.targets, self.base)
            link_arcs[backend](0, arcs, outside, num_rows, *of_rows, *self.layout, marked, self.giant, self.parents)
        return num_rows, arcs


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
    when="on any ranks",
    applies=lambda conditions: conditions.layout == "rows",
    bytes=_bytes,
    loop=_find,
)
