"""Connected components by union-find: find the giant, skip it, finish, and let the forests meet.

    hook every vertex to its first neighbour, link a sample of them to the second
    tell the other ranks about hubs
    giant = the tree that most vertices are in
    tell the other ranks who is with it
    for every vertex outside of the giant: link it to the rest of its neighbours
    tell the other ranks of whom else which root

Nearly all arcs lie within the giant and are never looked at (Sutton, Ben-Nun and Barak, 2018); an edge
between it and another vertex is seen from the other end. Where arcs are known at one end alone, in
directed graphs, none is skipped.

On several ranks a breadth-first search from a hub comes first, which they are faster at together:

    giant = whom the search has reached
    tell the other ranks who is with it, and of every edge that is outside of it or leads to it
    link both ends of all of these

If these edges are many, it was not the giant, and the above is done. The search may have ended before it was
through: whom it did not reach is outside, and linked to the giant like any other.

Left fresh: the root of every position, on every rank, the smallest position of its component; where the ranks told
bits and pairs, those of vertices with bits are the root of the giant's vertex.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.bfs.persistent_multi_gpu import VARIANT as SEARCH
from mgraph.algorithms.bfs.persistent_multi_gpu import bfs_peers
from mgraph.algorithms.bfs.step import DEEP_DEGREE
from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.components.kernels import (
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
from mgraph.shard.shard import Shard, once_a_shard
from mgraph.types import Array, none_of

# A search for the giant ends after so many levels: on RMAT graphs and uniform ones it is through before.
MOST_LEVELS = 16
# Outside of it there is room for so many edges a rank, and for one more for every so many vertices.
EDGES, EDGE_SHARE = 1 << 10, 32


@once_a_shard
def find_hub(shard: Shard, comm: Communicator) -> int:
    """Return the user id of a vertex of the most arcs, the same on every rank."""
    degrees, partition = shard.degrees, shard.partition
    local = int(degrees.argmax()) if len(degrees) else -1
    most, user = 0, -1
    if local >= 0:
        most = int(degrees[local])
        user = partition.offset(shard.rank) + local if shard.user_of_local is None else int(shard.user_of_local[local])
    of_ranks = comm.allgather(np.array([most, user]), np.empty((comm.size, 2), np.int64))
    return int(of_ranks[of_ranks[:, 0].argmax(), 1])


def find_components(shard: Shard, comm: Communicator, trace: Trace, searched: Traversal | None = None) -> Roots:
    """Find the root of every position; `searched` is what a search from a hub has reached, if there was one."""
    return _Components(shard, comm, trace).find(searched)


class _Components(Union):
    """A rank's forest, and how arcs join its trees."""

    def find(self, searched: Traversal | None) -> Roots:
        if searched is not None and (found := self.finish_around(searched)) is not None:
            return found
        self.sample()
        told = None
        if self.comm.size > 1:
            self.tell_hubs()
            self.vote()
            told = self.tell_giant()
        else:
            self.vote()
        num_rows, arcs = self.link_all(told) if self.shard.info.directed else self.link_outside(told)
        if told is not None:
            told = self.meet(told, num_rows, arcs)
        else:
            if arcs:
                self.fold()
            self.trace.superstep(method="finish", frontier=num_rows, arcs=arcs)
        return Roots(self.parents, told, self.giant)

    def finish_around(self, searched: Traversal) -> Roots | None:
        """Take whom a search has reached for the giant, and link all others; return None where they have many edges."""
        run, xp, comm, num = self.run, self.run.xp, self.comm, self.shard.num_owned
        self.giant.fill(none_of(self.giant.dtype))
        part = xp.empty(self.shard.partition.stride // 32, np.uint32)
        mark_reached[run](0, len(part), self.base, num, *self.layout, searched.distances, self.giant, part)
        comm.allreduce(self.giant, "min")
        told = self.tell(part)
        room = EDGES + self.shard.partition.stride // EDGE_SHARE
        edges, counters = xp.zeros((2, room), self.parents.dtype), xp.zeros(1, np.int64)
        of_rows = (num, self.shard.rows.indptr, self.shard.rows.targets, self.base, *self.layout)
        list_edges[run](0, len(part), *of_rows, room, told, self.giant, counters, *edges)
        # Under way before the host waits for what was counted.
        self.parents = xp.arange(len(self.parents), dtype=self.parents.dtype)
        found = comm.allgather(run.to_host(counters), np.empty(comm.size, np.int64)).tolist()
        self.trace.superstep(method="tell", frontier=len(self.parents), arcs=found[comm.rank])
        if max(found) > room:
            return None
        self.exchange_pairs(told, edges[:, : max(found)].copy(), sum(found))
        return Roots(self.parents, told, self.giant)

    def sample(self) -> None:
        """Link owned vertices to their first neighbours."""
        run, rows, owned = self.run, self.shard.rows, self.shard.num_owned
        of_rows = (rows.indptr, rows.targets, self.base)
        n, runs = len(self.parents), -(-len(self.parents) // self.layout[1])
        hook_first[run](0, runs, n, *of_rows, owned, *self.layout, self.parents)
        # Paths are long on meshes, a hundred steps: links are found faster when those are folded first (by half on
        # grid4k). In order of degree half the paths of two ranks, and more of more, end after a step.
        if self.comm.size == 1 or not self.shard.partition.cyclic:
            compress[run](0, owned, *self.own, self.parents)
        link_sample[run](0, owned, *of_rows, *self.layout, self.parents)
        # At most: the second arc of a row is looked at in a sample alone.
        sampled = min(2 * owned, len(rows.targets))
        self.trace.superstep(method="sample", frontier=len(self.parents), arcs=sampled)

    def vote(self) -> None:
        """Agree with all ranks on a vertex.

        Each skips what is with it in its own forest. So whoever wins the vote, an edge that both ends skip joins two
        vertices that are known to be connected.
        """
        vote_giant[self.run](0, 1, *self.own, self.shard.num_owned, self.parents, self.giant)
        if self.comm.size > 1:
            self.comm.allreduce(self.giant, "min")

    def link_all(self, told: Array | None) -> tuple[int, int]:
        """Link both ends of every arc; return how many rows and arcs were looked at."""
        rows, n = self.shard.rows, self.shard.num_owned
        of_rows = (rows.indptr, rows.indptr, rows.targets, self.base)
        link_arcs[self.run](
            0, len(rows.targets), None, n, *of_rows, *self.layout, told, self.giant, self.parents
        )  # fmt: skip
        return n, len(rows.targets)

    def link_outside(self, told: Array | None) -> tuple[int, int]:
        """Link the vertices outside of the giant to the rest of their neighbours; return how many rows and arcs."""
        run, xp, rows, n = self.run, self.run.xp, self.shard.rows, self.shard.num_owned
        outside, lengths, counters = xp.empty(n, self.parents.dtype), xp.empty(n, np.int64), xp.zeros(2, np.int64)
        found = (outside, lengths, counters)
        if told is None:
            list_outside[run](0, n, rows.indptr, *self.own, self.giant, self.parents, *found)
        else:
            of_states = (n, rows.indptr, self.base, *self.layout, told, self.root_of_giant, self.parents)
            list_untold[run](0, -(-n // 32), *of_states, *found)
        num_rows, arcs = run.to_host(counters).tolist()
        if arcs:
            offsets = xp.zeros(num_rows + 1, np.int64)
            xp.cumsum(lengths[:num_rows], out=offsets[1:])
            of_rows = (offsets, rows.indptr, rows.targets, self.base)
            link_arcs[run](0, arcs, outside, num_rows, *of_rows, *self.layout, told, self.giant, self.parents)
        return num_rows, arcs


def _find_around_giant(shard: Shard, comm: Communicator, trace: Trace) -> Roots:
    """Search a few levels from a hub, then find components around what that reached."""
    with trace.phase("traverse"):
        searched = bfs_peers(shard, comm, [find_hub(shard, comm)], trace, MOST_LEVELS)
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
    applies=lambda setting: SEARCH.applies(setting) and not setting.directed and setting.arcs_per_vertex > DEEP_DEGREE,
    needs=(Derived("hub", _make_hub), *SEARCH.needs),
    # The memory pool keeps what the search has freed.
    bytes=lambda sizes: SEARCH.bytes(sizes) + _bytes(sizes),
    run=_find_around_giant,
)
VARIANT = Variant(
    "components.afforest",
    when="on any ranks",
    applies=lambda setting: setting.layout == "rows",
    bytes=_bytes,
    run=_find,
)
