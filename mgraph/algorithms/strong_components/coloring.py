"""Find strongly connected components: split the graph into ever smaller regions by colors that arcs carry along.

    all vertices are in one region
    repeat, along the arcs and against them by turns:
        trim: a vertex without arcs from, or to, its region is a component by itself
        the color of a vertex = the smallest priority of those that reach it by arcs within its region:
            frontier = all vertices; while it is not empty:
                push colors along the arcs of the frontier
                if that has cost as much: each vertex takes the color of the vertex that its color names
                frontier = the vertices that this has lowered
        a vertex with the color of its region is settled, and the region's name is its root
        the color of all others is their region

No component is ever divided, as its vertices have one color. In a region that is named r, r reaches all vertices, or
all reach r; so the next colors, which go the other way, show those that are in the component of r.

A color covers several arcs at a time, as in pointer jumping: what reaches the vertex that a color names reaches this
one too. So long paths take few rounds, if priorities are not in order along them: these are pseudo-random. The pivot, a
hub, has the smallest one, so that the first two passes settle the giant. Passes of trimming are repeated while each
takes many vertices: depth alone does not make their number large.

Colors and regions are by state, equal on all ranks between two rounds. Results: the state of the root of every owned
vertex; it depends on the number of ranks, the components do not.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.components.afforest import find_hub
from mgraph.algorithms.derived import IN_ROWS
from mgraph.algorithms.sssp.near_far_kernels import clear_marks, measure_rows
from mgraph.algorithms.strong_components.kernels import (
    follow_colors,
    list_lowered,
    merge_colors,
    paint,
    push_colors,
    settle_colors,
    trim,
)
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.comm.base import Communicator
from mgraph.shard.shard import Rows, Shard
from mgraph.types import Array, none_of

# Trim again after a pass that has taken at least this share of the vertices.
TRIM_SHARE = 8
# Lowered colors are exchanged as lists while fewer than one state in LIST_SHARE has one, else all colors are reduced.
LIST_SHARE = 8
# All live vertices follow their colors when the rounds since the last time have scanned an arc for every FOLLOW_SHARE
# of them; each round counts as ROUND_ARCS more. So following takes no longer than the rounds where it saves few, as on
# road maps.
FOLLOW_SHARE = 4
ROUND_ARCS = 1 << 13
# Odd, and near the golden ratio of their range: priorities of any few neighboring states are spread over all.
FACTORS = {4: 0x9E3779B1, 8: 0x4F1BBCDCBFA53E0B}


def find_strong_components(shard: Shard, comm: Communicator, trace: Trace) -> Array:
    """Return the state of the root of each owned vertex's component."""
    search = _Coloring(shard, comm, trace)
    ways = [("forward", shard.rows), ("backward", shard.incoming)]
    search.trim()
    while search.num_live:
        search.spread(*ways[0])
        search.settle()
        search.trim()
        ways.reverse()
    return search.roots


class _Coloring:
    """Regions, colors and the live vertices of one rank; `num_live` is over all ranks."""

    def __init__(self, shard: Shard, comm: Communicator, trace: Trace) -> None:
        partition = shard.partition
        dtype = partition.dtype
        num_states = partition.num_states
        backend = shard.backend
        xp = backend.xp
        self.shard = shard
        self.comm = comm
        self.trace = trace
        self.backend = backend
        self.base = base = comm.rank * partition.stride
        self.numbering = backend.to_device(_numbering(dtype, 0 if partition.cyclic else find_hub(shard, comm)))
        # No vertex is settled by its color before the first pass. The first region may have the name of any vertex: one
        # that keeps the largest of all priorities as its color is reached by no other, and is settled rightly.
        self.regions = backend.full(num_states, none_of(dtype), dtype)
        self.colors = xp.zeros(num_states, dtype)
        # Padding has its bits, and no arcs.
        self.live = xp.full(num_states // 32, 0xFFFFFFFF, np.uint32)
        self.marked = xp.zeros(num_states // 32, np.uint32)
        self.found = xp.empty(num_states if comm.size > 1 else shard.num_owned, dtype)
        self.roots = xp.arange(base, base + shard.num_owned, dtype=dtype)
        self.listed = self.roots.copy()
        self.num_live = partition.num_positions

    def trim(self) -> None:
        """Take vertices without arcs in or out of their region, as often as that takes many."""
        while self.num_live:
            before = self.num_live
            arcs = self._trim_rows(self.shard.rows) + self._trim_rows(self.shard.incoming)
            self._count()
            self.trace.superstep(method="trim", frontier=before, arcs=arcs)
            if (before - self.num_live) * TRIM_SHARE < before:
                return

    def spread(self, method: str, rows: Rows) -> None:
        """Spread colors along rows until no arc lowers one."""
        backend = self.backend
        comm = self.comm
        paint[backend](0, len(self.live), self.live, self.numbering, self.colors)
        frontier = self.listed
        unfollowed = len(self.listed)
        while True:
            before = self.colors[self.base :][: self.shard.num_owned].copy() if comm.size > 1 else None
            counters = backend.xp.zeros(1, np.int64)
            arcs = self._push(rows, frontier, counters)
            unfollowed += arcs + ROUND_ARCS
            if unfollowed * FOLLOW_SHARE >= len(self.listed):
                self._follow(counters)
                unfollowed = 0
            found = self.found[: int(counters[0])].copy()
            clear_marks[backend](0, len(found), found, self.marked)
            num_found = len(found)
            num_frontier = len(frontier)
            if comm.size > 1:
                counts = comm.allgather(np.array([num_found, num_frontier]), np.empty((comm.size, 2), np.int64))
                num_found, num_frontier = counts.sum(axis=0).tolist()
                frontier = self._exchange(found, before, num_found)
            else:
                frontier = found
            self.trace.superstep(method=method, frontier=num_frontier, arcs=arcs)
            if not num_found:
                return

    def settle(self) -> None:
        """Take the vertices with the color of their region; colors are the regions of the others."""
        settled = self.backend.xp.empty_like(self.listed)
        left = self.backend.xp.empty_like(self.listed)
        counters = self.backend.xp.zeros(2, np.int64)
        settle_colors[self.backend](
            0, len(self.listed), self.listed, self.base, self.numbering, self.regions, self.colors, self.roots,
            left, settled, counters,
        )  # fmt: skip
        self._take(left, settled, counters)
        self.regions, self.colors = self.colors, self.regions
        self._count()

    def _push(self, rows: Rows, frontier: Array, counters: Array) -> int:
        """Push the colors of the frontier along its arcs; return their number."""
        backend = self.backend
        size = len(frontier)
        offsets = backend.xp.zeros(size + 1, np.int64)
        begins = backend.xp.empty(size, np.int64)
        measure_rows[backend](0, size, frontier, rows.indptr, self.shard.partition.stride, begins, offsets[1:])
        backend.xp.cumsum(offsets[1:], out=offsets[1:])
        arcs = int(offsets[-1])
        push_colors[backend](
            0, arcs, frontier, size, offsets, begins, rows.targets, self.live, self.regions, self.colors, self.marked,
            self.found, counters,
        )  # fmt: skip
        return arcs

    def _follow(self, counters: Array) -> None:
        """Lower the color of each live vertex to that of the vertex that it names."""
        follow_colors[self.backend](
            0, len(self.listed), self.listed, self.numbering, self.colors, self.marked, self.found, counters
        )

    def _exchange(self, found: Array, before: Array, num_found: int) -> Array:
        """Lower the colors of this rank to those of all; return the owned vertices that any rank has lowered.

        `before` has the colors of the owned vertices before this round, `num_found` how many all ranks have lowered.
        """
        backend = self.backend
        xp = backend.xp
        comm = self.comm
        num = self.shard.num_owned
        counters = xp.zeros(1, np.int64)
        frontier = xp.empty(num, self.listed.dtype)
        if num_found * LIST_SHARE < len(self.colors):
            values = self.colors[found]
            states, values = (xp.concatenate(comm.alltoallv([part] * comm.size)) for part in (found, values))
            merge_colors[backend](
                0, len(states), states, values, self.base, num, self.colors, self.marked, frontier, counters
            )
            frontier = frontier[: int(counters[0])].copy()
            clear_marks[backend](0, len(frontier), frontier, self.marked)
            return frontier
        comm.allreduce(self.colors, "min")
        list_lowered[backend](0, len(self.listed), self.listed, before, self.base, self.colors, frontier, counters)
        return frontier[: int(counters[0])].copy()

    def _trim_rows(self, rows: Rows) -> int:
        """Take vertices without arcs in their rows that count; return the arcs scanned."""
        left = self.backend.xp.empty_like(self.listed)
        trimmed = self.backend.xp.empty_like(self.listed)
        counters = self.backend.xp.zeros(3, np.int64)
        trim[self.backend](
            0, len(self.listed), self.listed, self.base, rows.indptr, rows.targets, self.live, self.regions, left,
            trimmed, counters,
        )  # fmt: skip
        return self._take(left, trimmed, counters)

    def _take(self, left: Array, taken: Array, counters: Array) -> int:
        """Keep those of this rank's live vertices that are left; return the arcs that the counters count."""
        num_left, num_taken, *arcs = self.backend.to_host(counters).tolist()
        clear_marks[self.backend](0, num_taken, taken, self.live)
        self.listed = left[:num_left].copy()
        return sum(arcs)

    def _count(self) -> None:
        """Count the live vertices of all ranks, and gather their bits."""
        (self.num_live,) = self.comm.sum(len(self.listed)) if self.comm.size > 1 else (len(self.listed),)
        if self.comm.size > 1 and self.num_live:
            words = self.shard.partition.stride // 32
            self.comm.allgather(self.live[self.comm.rank * words :][:words], self.live)


def _numbering(dtype: np.dtype, pivot: int) -> np.ndarray:
    """Return pivot, factor, inverse and mask: the arithmetic between states and priorities."""
    bits = 32 if dtype.itemsize == 4 else 63
    factor = FACTORS[dtype.itemsize]
    return np.array([pivot, factor, pow(factor, -1, 1 << bits), (1 << bits) - 1], np.int64)


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of the search, or of labels by state, sent, and by user id, which come after it."""
    states = sizes.states
    owned = sizes.owned
    several = sizes.partition.num_ranks > 1
    # Colors and regions; bitmaps; the list of what is lowered, and on several ranks a part of it from all others.
    search = 2 * sizes.vertex * states + states // 4 + sizes.vertex * (2 * states if several else owned)
    # Roots, live vertices with those left and taken or a frontier with the next, colors before a round; its rows.
    search += (6 if several else 5) * sizes.vertex * owned + 16 * owned
    labels = sizes.vertex * owned + sizes.id_bytes * (states + owned) + 8 * sizes.users
    return max(search, labels + (8 if several and sizes.partition.cyclic else 0) * owned)


VARIANT = Variant(
    "strong_components.coloring",
    when="on any ranks, the host starting each round",
    applies=lambda conditions: conditions.has_rows,
    needs=(IN_ROWS,),
    bytes=_bytes,
    loop=find_strong_components,
)
