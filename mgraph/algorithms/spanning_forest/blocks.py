"""Find minimum spanning forests over edge blocks, each edge read once, on any number of ranks.

    forest = no edges
    for the blocks that this rank holds, some after the others:
        list their edges, but for those that close a cycle with lighter edges of the forest: those heavier than its
        lighter half, between ends that this half connects
        when the list is full, or at the end: forest = that of its edges and those of the list, by Boruvka's rounds
    over all ranks:
        their forests join trees in rounds, the lightest edge of each tree being that of all ranks

Edges are ordered by (weight, lower position, higher position), as over rows, so that the result is the same set of
edges. An edge has its positions for a name, which is the same on all ranks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.components.kernels import compress, link_roots
from mgraph.algorithms.derived import EDGE_BLOCKS
from mgraph.algorithms.spanning_forest.blocks_kernels import list_block_edges
from mgraph.algorithms.spanning_forest.boruvka import Round, WorkList, agree_on_best, boruvka
from mgraph.algorithms.spanning_forest.kernels import TOP
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.backends.base import Backend
from mgraph.comm.base import Communicator
from mgraph.errors import UsageError
from mgraph.partition import Partition
from mgraph.shard.edge_blocks import require_blocks
from mgraph.shard.shard import Blocks, Shard
from mgraph.shard.user_ids import NamedEdges
from mgraph.types import LEVEL, Array

# Edges that are listed before the forest is found again: this many, and one for each LIST_SHARE positions.
LISTED = 1 << 18
LIST_SHARE = 4
# Edges of the forest from which the bound of its lighter half is drawn.
SAMPLES = 4096
# Two positions below this fit one word.
MAX_POSITIONS = 1 << 31


def msf_over_blocks(shard: Shard, comm: Communicator, trace: Trace, maximum: bool = False) -> NamedEdges:
    """Return this rank's edges of the lightest spanning forest, or of the heaviest; each edge is on one rank."""
    partition = shard.partition
    if partition.num_positions > MAX_POSITIONS:
        raise UsageError(f"a forest of {partition.num_positions:,} vertices with edges needs rows: use layout rows")
    blocks = require_blocks(shard, comm, LEVEL)
    forest = _Forest(shard.backend, partition, blocks.num_edges, maximum)
    for part in blocks.on_device():
        forest.add(part)
    forest.settle()
    trace.superstep("shrink", partition.num_positions, blocks.num_edges, **blocks.counts)
    edges = forest.edges if comm.size == 1 else _merge(shard, comm, trace, forest.edges)
    return NamedEdges(edges.names, ~edges.keys if maximum else edges.keys)


def _work_list(xp: Any, of: NamedEdges, dtype: np.dtype, edges: Array) -> WorkList:
    """Return edges as a list under other names."""
    ends = xp.empty((len(of), 2), dtype)
    ends[:, 0] = of.lower
    ends[:, 1] = of.higher
    return WorkList(ends.ravel(), of.keys, edges)


class _Forest:
    """The forest of the edges that have been added, and those that are listed since it was found.

    Attributes
    ----------
    edges
        Those of the forest.
    labels, bound
        The tree of every position over the forest's edges up to the bound, a key and a name.
    """

    def __init__(self, backend: Backend, partition: Partition, num_edges: int, maximum: bool) -> None:
        xp = backend.xp
        self.backend = backend
        self.partition = partition
        self.maximum = maximum
        self.edges = NamedEdges(xp.empty(0, np.int64), xp.empty(0, np.int64))
        self.capacity = min(num_edges, LISTED + partition.num_positions // LIST_SHARE)
        self.listed = NamedEdges(xp.empty(self.capacity, np.int64), xp.empty(self.capacity, np.int64))
        self.num_listed = 0
        self.counters = xp.zeros(1, np.int64)
        self.labels = xp.arange(partition.num_positions, dtype=partition.dtype)
        self.bound = (TOP, TOP)

    def add(self, part: Blocks) -> None:
        """List the edges of blocks."""
        partition = self.partition
        for lo, hi, most in self._runs(part):
            if self.num_listed + most > self.capacity:
                self.settle()
            layout = part.shape.segment_bits, partition.stride, partition.multiplier
            bounds = self.backend.to_device(np.array([*layout, int(self.maximum), *self.bound], np.int64))
            list_block_edges[self.backend](
                lo, hi, *part.edges, part.weights, bounds, self.labels, self.counters, self.listed.names,
                self.listed.keys,
            )  # fmt: skip
            self.num_listed = int(self.counters[0])

    def _runs(self, part: Blocks) -> Iterator[tuple[int, int, int]]:
        """Yield runs of units, and how many edges each has: few enough to be listed."""
        ends = self.backend.to_host(part.tile_edges[part.unit_tiles])
        first = 0
        while first < part.num_units:
            most = max(self.capacity // 4, int(ends[first + 1] - ends[first]))
            last = int(np.searchsorted(ends, ends[first] + most, side="right")) - 1
            yield first, last, int(ends[last] - ends[first])
            first = last

    def settle(self) -> None:
        """Find the forest of its edges and those that are listed."""
        if not self.num_listed:
            return
        xp = self.backend.xp
        both = NamedEdges(
            xp.concatenate([self.edges.names, self.listed.names[: self.num_listed]]),
            xp.concatenate([self.edges.keys, self.listed.keys[: self.num_listed]]),
        )
        # The forest so far is freed.
        self.edges = both
        self.num_listed = 0
        self.counters[:] = 0
        work = _work_list(xp, both, self.partition.dtype, both.names)
        taken = xp.sort(boruvka(self.backend, work, self.partition.num_positions)[0])
        # Every edge is there once: it is in the forest if its name is.
        places = xp.minimum(xp.searchsorted(taken, both.names), max(len(taken) - 1, 0))
        is_taken = taken[places] == both.names
        self.edges = NamedEdges(both.names[is_taken], both.keys[is_taken])
        self._bound_lighter_half()

    def _bound_lighter_half(self) -> None:
        """Join the trees of the forest's lighter half."""
        xp = self.backend.xp
        edges = self.edges
        step = max(len(edges) // SAMPLES, 1)
        names, keys = (self.backend.to_host(column[::step].copy()) for column in (edges.names, edges.keys))
        middle = np.lexsort([names, keys])[len(keys) // 2]
        self.bound = (int(keys[middle]), int(names[middle]))
        key, name = self.bound
        is_light = (edges.keys < key) | ((edges.keys == key) & (edges.names <= name))
        light = NamedEdges(edges.names[is_light], edges.keys[is_light])
        lower, higher = (ends.astype(self.partition.dtype) for ends in (light.lower, light.higher))
        self.labels = xp.arange(self.partition.num_positions, dtype=self.partition.dtype)
        link_roots[self.backend](0, len(light), higher, lower, self.labels)
        compress[self.backend](0, len(self.labels), 0, 1, self.labels)


def _merge(shard: Shard, comm: Communicator, trace: Trace, edges: NamedEdges) -> NamedEdges:
    """Return those of the edges that are in the forest of all ranks' edges."""
    xp = shard.backend.xp
    order = xp.argsort(edges.names)
    edges = NamedEdges(edges.names[order], edges.keys[order])
    columns = [edges.keys, edges.names]
    work = _work_list(xp, edges, shard.partition.dtype, xp.arange(len(edges)))

    def agree(best: Array, above: Array) -> tuple[Array, Array]:
        return agree_on_best(shard.backend, comm, columns, best, best != TOP, above)

    def more(length: int) -> bool:
        return comm.any(length > 0)

    def note(done: Round) -> None:
        trace.superstep("merge", done.num_trees, done.num_edges)

    taken = boruvka(shard.backend, work, shard.partition.num_positions, agree, more, note)[0]
    own = taken[taken != TOP]
    return NamedEdges(edges.names[own], edges.keys[own])


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of the rounds, in which two lists of edges with their ends are held, or of the result."""
    positions = sizes.partition.num_positions
    listed = min(sizes.edges, LISTED + positions // LIST_SHARE)
    lists = 2 * (16 + 2 * sizes.vertex) * (min(positions, sizes.edges) + listed)
    # Of a tree: its best edge, the least key, the edge taken; above, label, number, and the label up to the bound.
    trees = (3 * 8 + 4 * sizes.vertex) * positions
    columns = 8 * 8 * positions + (sizes.id_bytes * sizes.states if sizes.partition.cyclic else 0)
    return 16 * listed + max(lists + trees, columns)


VARIANT = Variant(
    "spanning_forest.blocks",
    when="in the layouts compact and host, on any ranks",
    applies=lambda conditions: not conditions.has_rows,
    needs=(EDGE_BLOCKS,),
    bytes=_bytes,
    loop=msf_over_blocks,
)
