"""A rank's union-find over all positions, and what the ranks tell each other of theirs.

Each rank has a forest over all positions, from the arcs of its own rows and from what it was told. At the end all
must know what any does. Most of that is a bit a vertex: whether it is with the giant, which its owner tells before the
last step. What is known of all others is told as pairs of (vertex, root); where those are many, whole forests travel:
for step = 1, 2, 4, ... < ranks to the rank `step` further on, so that after the k-th exchange a rank knows the arcs of
2^k ranks.

Bits are not written into the forests, which would take longer than all else that is told: the giant stands for a
neighbour that has its bit. A vertex without one that is connected with the giant is so by a way of such vertices, whose
owners link the first of them to the giant and each to the next, and tell all ranks so in pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.components.kernels import compress, join_giant, link_roots, list_others, mark_giant, settle
from mgraph.comm.base import Communicator
from mgraph.shard.shard import Shard
from mgraph.types import Array

# The roots of so many first positions are told before there is a giant: it takes 30 us on two H200, and fewer vertices
# hang under others that nobody has told of.
HUBS = 1 << 20


@dataclass
class Roots:
    """The root of every position: `parents` of the giant's vertex, where its state has its bit, else its own entry."""

    parents: Array
    told: Array | None  # bits; without them all entries are right
    giant: Array


class Union:
    """A rank's forest over all positions, and the vertex whose tree is the giant, the same one on all ranks."""

    def __init__(self, shard: Shard, comm: Communicator, trace: Trace) -> None:
        partition = shard.partition
        self.shard, self.comm, self.trace, self.run = shard, comm, trace, shard.backend
        self.base, self.layout = shard.rank * partition.stride, (partition.stride, partition.multiplier)
        # Owned positions are these apart from the first one on.
        self.own = (partition.offset(shard.rank), partition.multiplier)
        self.parents = self.run.xp.empty(partition.num_positions, partition.dtype)
        self.giant, self.root_of_giant = (self.run.xp.empty(1, partition.dtype) for _ in range(2))

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

    def tell_giant(self) -> Array:
        """Exchange who is with the giant, a bit for every owned state; return those of all."""
        run, n = self.run, len(self.parents)
        part = run.xp.empty(self.shard.partition.stride // 32, np.uint32)
        of_giant = (self.giant, self.parents, self.root_of_giant)
        mark_giant[run](0, len(part), self.base, n, *self.layout, *of_giant, part)
        bits = self.tell(part)
        self.trace.superstep(method="tell", frontier=n, arcs=0)
        return bits

    def tell(self, part: Array) -> Array:
        """Exchange bits of owned states; return those of all."""
        return self.comm.allgather(part, self.run.xp.empty(len(part) * self.comm.size, part.dtype))

    def meet(self, told: Array, num_rows: int, arcs: int) -> Array | None:
        """Make all forests one, which are told of but for who was with the giant; return those bits if they stand."""
        run, xp, comm, n = self.run, self.run.xp, self.comm, len(self.parents)
        # All ranks' pairs together take no more than a quarter of a forest.
        room = n // (8 * comm.size)
        for again in (False, True):
            pairs, counters = xp.zeros((2, room), self.parents.dtype), xp.zeros(1, np.int64)
            of_states = (room, n, *self.layout, told, self.giant, self.parents)
            list_others[run](0, len(told), *of_states, counters, pairs[0], pairs[1])
            counts = comm.allgather(np.array([int(counters[0]), num_rows]), np.empty((comm.size, 2), np.int64))
            found = counts[:, 0]
            if not again:
                self.trace.superstep(method="finish", frontier=int(counts[:, 1].sum()), arcs=arcs)
            if found.max() <= room:
                self.exchange_pairs(told, pairs[:, : found.max()].copy(), int(found.sum()))
                return told
            if not again:
                # Many may have come to the giant since, perhaps with others that were told of as not being with it.
                told = self.tell_giant()
                join_giant[run](0, n, *self.layout, told, self.giant, self.parents)
        self.exchange_forests()
        return None

    def exchange_pairs(self, told: Array, pairs: Array, found: int) -> None:
        """Tell all ranks of vertices, and of others that these are connected with, such as their roots.

        Every rank tells equally many; zeros say nothing. What hangs under a vertex that has no bit hangs right under
        its root then.
        """
        xp, size = self.run.xp, self.comm.size
        of_all = self.comm.allgather(pairs, xp.empty((size, *pairs.shape), pairs.dtype))
        for vertices, roots in of_all:
            link_roots[self.run](0, len(vertices), vertices, roots, self.parents)
        of_states = (len(self.parents), *self.layout, told, self.giant, self.parents)
        settle[self.run](0, len(told), *of_states)
        self.trace.superstep(method="meet", frontier=found, arcs=0)

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
