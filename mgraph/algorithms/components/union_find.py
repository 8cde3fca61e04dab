"""Maintain a rank's union-find over all positions, and merge the forests of all ranks.

Each rank has a forest over all positions, from the arcs of its own rows and from what it received. At the end all ranks
must know all connections. For most vertices that is a bit: whether it is in the giant, which its owner sends before the
last step. For the others pairs of (vertex, root) are exchanged; where those are many, whole forests: for step = 1, 2,
4, ... < ranks to the rank `step` further on, so that after the k-th exchange a rank has the arcs of 2^k ranks.

Bits are not written into the forests, which would take longer than the whole exchange: giant[0] replaces a marked
neighbor. An unmarked vertex that is connected with the giant is so by a path of unmarked vertices: their owners link
the first of them to the giant and each to the next, and send these links to all ranks as pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.components.kernels import compress, join_giant, link_roots, list_others, mark_giant, settle
from mgraph.comm.base import Communicator
from mgraph.shard.shard import Shard
from mgraph.types import Array

# The parents of this many first positions are exchanged before there is a giant: it takes 30 us on two H200, and fewer
# vertices are in trees that only one rank knows.
HUBS = 1 << 20


@dataclass
class Roots:
    """The root of every position: that of the giant's vertex where its state is marked, else its entry of `parents`."""

    parents: Array
    marked: Array | None  # bits; without them all entries are final
    giant: Array
    num_roots: int | None = None  # where they were counted


class Union:
    """A rank's forest over all positions, and the giant's vertex, the same one on all ranks."""

    def __init__(self, shard: Shard, comm: Communicator, trace: Trace) -> None:
        partition = shard.partition
        self.shard = shard
        self.comm = comm
        self.trace = trace
        self.backend = shard.backend
        self.base = shard.rank * partition.stride
        self.layout = (partition.stride, partition.multiplier)
        # The first owned position, and the step between owned positions.
        self.own = (partition.offset(shard.rank), partition.multiplier)
        self.parents = self.backend.xp.empty(partition.num_positions, partition.dtype)
        self.giant, self.root_of_giant = (self.backend.xp.empty(1, partition.dtype) for _ in range(2))

    def compress_paths(self) -> None:
        """Compress all paths."""
        compress[self.backend](0, len(self.parents), 0, 1, self.parents)

    def exchange_hubs(self) -> None:
        """Exchange the parents of the first positions: most vertices are in the trees of these."""
        xp = self.backend.xp
        hubs = min(HUBS, len(self.parents))
        size = self.comm.size
        parents = self.comm.allgather(self.parents[:hubs], xp.empty(size * hubs, self.parents.dtype))
        for received in parents.reshape(size, hubs):
            link_roots[self.backend](0, hubs, None, received, self.parents)
        self.trace.superstep(method="broadcast", frontier=hubs, arcs=0)

    def exchange_giant(self) -> Array:
        """Exchange a bit for every owned state, whether it is in the giant; return those of all."""
        backend = self.backend
        n = len(self.parents)
        part = backend.xp.empty(self.shard.partition.stride // 32, np.uint32)
        of_giant = (self.giant, self.parents, self.root_of_giant)
        mark_giant[backend](0, len(part), self.base, n, *self.layout, *of_giant, part)
        bits = self.allgather_bits(part)
        self.trace.superstep(method="broadcast", frontier=n, arcs=0)
        return bits

    def allgather_bits(self, part: Array) -> Array:
        """Exchange bits of owned states; return those of all."""
        return self.comm.allgather(part, self.backend.xp.empty(len(part) * self.comm.size, part.dtype))

    def merge_forests(self, marked: Array, num_rows: int, arcs: int) -> Array | None:
        """Merge all forests; return the giant's bits if they are valid.

        Without bits the forests themselves were exchanged.
        """
        backend = self.backend
        xp = self.backend.xp
        comm = self.comm
        n = len(self.parents)
        # All ranks' pairs together are no more than a quarter of a forest.
        capacity = n // (8 * comm.size)
        for is_second in (False, True):
            pairs = xp.zeros((2, capacity), self.parents.dtype)
            counters = xp.zeros(1, np.int64)
            of_states = (capacity, n, *self.layout, marked, self.giant, self.parents)
            list_others[backend](0, len(marked), *of_states, counters, pairs[0], pairs[1])
            counts = comm.allgather(np.array([int(counters[0]), num_rows]), np.empty((comm.size, 2), np.int64))
            found = counts[:, 0]
            if not is_second:
                self.trace.superstep(method="finish", frontier=int(counts[:, 1].sum()), arcs=arcs)
            if found.max() <= capacity:
                self.exchange_pairs(marked, pairs[:, : found.max()].copy(), int(found.sum()))
                return marked
            if not is_second:
                # Many vertices may have been linked to the giant since, perhaps with others that were sent as unmarked.
                marked = self.exchange_giant()
                join_giant[backend](0, n, *self.layout, marked, self.giant, self.parents)
        self.exchange_forests()
        return None

    def exchange_pairs(self, marked: Array, pairs: Array, found: int) -> None:
        """Exchange pairs of connected vertices, such as a vertex and its root.

        Every rank sends equally many; a pair of zeros has no effect. Afterwards all unmarked vertices are children of
        their roots.
        """
        xp = self.backend.xp
        size = self.comm.size
        of_all = self.comm.allgather(pairs, xp.empty((size, *pairs.shape), pairs.dtype))
        for vertices, roots in of_all:
            link_roots[self.backend](0, len(vertices), vertices, roots, self.parents)
        of_states = (len(self.parents), *self.layout, marked, self.giant, self.parents)
        settle[self.backend](0, len(marked), *of_states)
        self.trace.superstep(method="merge", frontier=found, arcs=0)

    def exchange_forests(self) -> None:
        """Exchange whole forests: after 1, 2, 4, ... < size every rank has the arcs of all."""
        size = self.comm.size
        rank = self.comm.rank
        for step in [1 << k for k in range((size - 1).bit_length())]:
            self.compress_paths()
            parts = [self.parents[:0]] * size
            parts[(rank + step) % size] = self.parents
            received = self.comm.alltoallv(parts)[(rank - step) % size]
            link_roots[self.backend](0, len(self.parents), None, received, self.parents)
            self.trace.superstep(method="merge", frontier=len(self.parents), arcs=0)
        self.compress_paths()
