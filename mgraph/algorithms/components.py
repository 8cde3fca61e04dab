"""Connected components by union-find: sample, skip the giant, finish, and let the forests meet.

    hook every vertex to its first neighbour, link a sample of them to the second
    tell the other ranks about hubs
    giant = the tree that most vertices are in
    tell the other ranks who is with it
    for every vertex outside of the giant: link it to the rest of its neighbours
    tell the other ranks of whom else which root

Nearly all arcs lie within the giant and are never looked at (Sutton, Ben-Nun and Barak, 2018); an edge
between it and another vertex is seen from the other end. Where arcs are known at one end alone, in
directed graphs, none is skipped.

Each rank has a forest over all positions, from the arcs of its own rows and from what it was told. At the end all
must know what any does. Most of that is a bit a vertex: whether it is with the giant, which its owner tells before the
last step. What is known of all others is told as pairs of (vertex, root); where those are many, whole forests travel:
for step = 1, 2, 4, ... < ranks to the rank `step` further on, so that after the k-th exchange a rank knows the arcs of
2^k ranks.

Left fresh: the root of every position, on every rank, the smallest position of its component.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.traversal import Trace
from mgraph.comm.base import Communicator
from mgraph.kernels.components import (
    compress,
    hook_first,
    join_giant,
    link_arcs,
    link_roots,
    link_sample,
    list_others,
    list_outside,
    mark_giant,
    vote_giant,
)
from mgraph.shard import Shard
from mgraph.types import Array

# The roots of so many first positions are told before there is a giant.
HUBS = 1 << 16


def find_components(shard: Shard, comm: Communicator, trace: Trace) -> Array:
    """Return the root of every position."""
    return _Union(shard, comm, trace).find()


class _Union:
    """A rank's forest over all positions, and the vertex whose tree is the giant, the same one on all ranks."""

    def __init__(self, shard: Shard, comm: Communicator, trace: Trace) -> None:
        partition = shard.partition
        self.shard, self.comm, self.trace, self.run = shard, comm, trace, shard.backend
        self.base, self.layout = shard.rank * partition.stride, (partition.stride, partition.multiplier)
        # Owned positions are these apart from the first one on.
        self.own = (partition.offset(shard.rank), partition.multiplier)
        self.parents = self.run.xp.empty(partition.num_positions, partition.dtype)
        self.giant = self.run.xp.empty(1, partition.dtype)

    def find(self) -> Array:
        several = self.comm.size > 1
        self.sample()
        if several:
            self.tell_hubs()
        self.vote()
        told = self.tell_giant() if several else None
        num_rows, arcs = self.link_all() if self.shard.info.directed else self.link_outside()
        if told is not None:
            self.meet(told, num_rows, arcs)
            return self.parents
        if arcs:
            self.fold()
        self.trace.superstep(method="finish", frontier=num_rows, arcs=arcs)
        return self.parents

    def sample(self) -> None:
        """Link owned vertices to their first neighbours."""
        run, rows, owned = self.run, self.shard.rows, self.shard.num_owned
        of_rows = (rows.indptr, rows.targets, self.base)
        hook_first[run](0, len(self.parents), *of_rows, owned, *self.layout, self.parents)
        # Paths are long on meshes, a hundred steps: links are found faster when those are folded first (by half on
        # grid4k).
        self.fold_own()
        link_sample[run](0, owned, *of_rows, *self.layout, self.parents)
        # At most: the second arc of a row is looked at in a sample alone.
        sampled = min(2 * owned, len(rows.targets))
        self.trace.superstep(method="sample", frontier=len(self.parents), arcs=sampled)

    def fold_own(self) -> None:
        """Hang every owned position right under its root."""
        compress[self.run](0, self.shard.num_owned, *self.own, self.parents)

    def fold(self) -> None:
        """Hang every position right under its root."""
        compress[self.run](0, len(self.parents), 0, 1, self.parents)

    def tell_hubs(self) -> None:
        """Exchange what the first positions hang under, which come before them: most vertices hang under those."""
        xp, hubs, size = self.run.xp, min(HUBS, len(self.parents)), self.comm.size
        parents = self.comm.allgather(self.parents[:hubs], xp.empty(size * hubs, self.parents.dtype))
        for theirs in parents.reshape(size, hubs):
            link_roots[self.run](0, hubs, None, theirs, self.parents)
        self.trace.superstep(method="tell", frontier=hubs, arcs=0)

    def vote(self) -> None:
        """Agree with all ranks on a vertex.

        Each skips what is with it in its own forest. So whoever wins the vote, an edge that both ends skip joins two
        vertices that are known to be connected.
        """
        vote_giant[self.run](0, 1, *self.own, self.shard.num_owned, self.parents, self.giant)
        if self.comm.size > 1:
            self.comm.allreduce(self.giant, "min")

    def tell_giant(self) -> Array:
        """Exchange who is with the giant, a bit for every owned state; return those of all."""
        run, xp, partition, n = self.run, self.run.xp, self.shard.partition, len(self.parents)
        part = xp.empty(partition.stride // 32, np.uint32)
        mark_giant[run](0, len(part), self.base, n, *self.layout, self.giant, self.parents, part)
        bits = self.comm.allgather(part, xp.empty(partition.num_states // 32, np.uint32))
        join_giant[run](0, n, *self.layout, bits, self.giant, self.parents)
        self.trace.superstep(method="tell", frontier=n, arcs=0)
        return bits

    def link_all(self) -> tuple[int, int]:
        """Link both ends of every arc; return how many rows and arcs were looked at."""
        rows, n = self.shard.rows, self.shard.num_owned
        of_rows = (rows.indptr, rows.indptr, rows.targets, self.base)
        link_arcs[self.run](0, len(rows.targets), None, n, *of_rows, *self.layout, self.parents)
        return n, len(rows.targets)

    def link_outside(self) -> tuple[int, int]:
        """Link the vertices outside of the giant to the rest of their neighbours; return how many rows and arcs."""
        run, xp, rows, n = self.run, self.run.xp, self.shard.rows, self.shard.num_owned
        outside, lengths, counters = xp.empty(n, self.parents.dtype), xp.empty(n, np.int64), xp.zeros(2, np.int64)
        list_outside[run](0, n, rows.indptr, *self.own, self.giant, self.parents, outside, lengths, counters)
        num_rows, arcs = run.to_host(counters).tolist()
        if arcs:
            offsets = xp.zeros(num_rows + 1, np.int64)
            xp.cumsum(lengths[:num_rows], out=offsets[1:])
            of_rows = (offsets, rows.indptr, rows.targets, self.base)
            link_arcs[run](0, arcs, outside, num_rows, *of_rows, *self.layout, self.parents)
        return num_rows, arcs

    def meet(self, told: Array, num_rows: int, arcs: int) -> None:
        """Make all forests one, which are told of but for who was with the giant."""
        run, xp, comm, n = self.run, self.run.xp, self.comm, len(self.parents)
        # All ranks' pairs together take no more than a quarter of a forest.
        room = n // (8 * comm.size)
        others, roots = (xp.empty(room, self.parents.dtype) for _ in range(2))
        for again in (False, True):
            counters = xp.zeros(1, np.int64)
            of_states = (room, n, *self.layout, told, self.giant, self.parents)
            list_others[run](0, len(told), *of_states, counters, others, roots)
            found = int(counters[0])
            total_rows, crowded = comm.sum(num_rows, found > room)
            if not again:
                self.trace.superstep(method="finish", frontier=total_rows, arcs=arcs)
            if not crowded:
                self.exchange_pairs(xp.concatenate([others[:found], roots[:found]]))
                return
            if not again:
                # Many may have come to the giant since.
                told = self.tell_giant()
        self.exchange_forests()

    def exchange_pairs(self, pairs: Array) -> None:
        """Tell all ranks of vertices and then of their roots."""
        for theirs in self.comm.alltoallv([pairs] * self.comm.size):
            vertices, roots = theirs.reshape(2, len(theirs) // 2)
            link_roots[self.run](0, len(vertices), vertices, roots, self.parents)
        self.fold()
        self.trace.superstep(method="meet", frontier=len(pairs) // 2, arcs=0)

    def exchange_forests(self) -> None:
        """Send whole forests: after 1, 2, 4, ... < size everyone has heard of everyone."""
        size, rank = self.comm.size, self.comm.rank
        for step in [1 << k for k in range((size - 1).bit_length())]:
            self.fold()
            parts = [self.parents[:0]] * size
            parts[(rank + step) % size] = self.parents
            theirs = self.comm.alltoallv(parts)[(rank - step) % size]
            link_roots[self.run](0, len(self.parents), None, theirs, self.parents)
            self.trace.superstep(method="meet", frontier=len(self.parents), arcs=0)
        self.fold()
