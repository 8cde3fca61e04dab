"""List a rank's edges between trees, from its rows.

An edge is in the list by one of its arcs. Where arcs from lower to higher positions are listed, their numbers rise with
(lower position, higher position), and name the edges; other arcs are sorted first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mgraph.algorithms.spanning_forest.boruvka import WorkList
from mgraph.algorithms.spanning_forest.kernels import (
    TOP,
    append_best,
    find_ends,
    list_arcs,
    list_light,
    list_outside,
    list_rows,
    sample_edges,
)
from mgraph.backends.totals import total
from mgraph.comm.base import Communicator
from mgraph.shard.shard import Shard
from mgraph.types import Array

# The lowest key.
MIN_KEY = int(np.iinfo(np.int64).min)
# Arcs sampled to find the bound of light edges; every second one leads to a lower position, and is not counted.
SAMPLES = 8192
# Edges of a sample up to a bound, at least: the number that these represent is certain to a quarter.
MIN_LIGHT = 16
# Bits of a weight's key in one word with an edge's name, by the bytes of a weight.
KEY_BITS = {1: 16, 2: 24, 4: 32}
# Two positions below this fit one word.
PACKED_POSITIONS = 1 << 31


def name_bits(itemsize: int) -> int:
    """Return the bits of an edge's name in one word with a weight of this many bytes; none with 8."""
    return 64 - KEY_BITS.get(itemsize, 64)


class Bound(NamedTuple):
    """The last of the light edges: its weight, as a key, and its lower position."""

    weight: int
    position: int


# All edges are light.
ALL = Bound(TOP, TOP)


@dataclass(frozen=True)
class Sample:
    """Weights, as keys, and lower positions of a few edges between trees, and how many each represents."""

    keys: np.ndarray
    positions: np.ndarray
    weight: int

    @property
    def num_edges(self) -> int:
        """An estimate of the number of edges between trees."""
        return len(self.keys) * self.weight

    def bound(self, count: int) -> Bound:
        """Return the bound of the `count` first edges, estimated from the sample."""
        place = min(max(count // self.weight, MIN_LIGHT), len(self.keys) - 1)
        heaviest = int(np.partition(self.keys, place)[place])
        place -= int(np.count_nonzero(self.keys < heaviest))
        return Bound(heaviest, int(np.partition(self.positions[self.keys == heaviest], place)[place]))

    def capacity(self, bound: Bound) -> int:
        """Return the capacity for the edges up to a bound: four deviations more than the estimate."""
        is_heaviest = self.keys == bound.weight
        below = (self.keys < bound.weight) | (is_heaviest & (self.positions <= bound.position))
        count = int(np.count_nonzero(below))
        return (count + 4 * math.isqrt(count) + 4) * self.weight


class OutsideRows(NamedTuple):
    """Rows outside a tree; the arcs of all of them are numbered, and `offsets` has the first number of each row."""

    rows: Array
    offsets: Array
    num_arcs: int


class OwnEdges:
    """The edges in a rank's rows, under weights of their arcs."""

    def __init__(self, shard: Shard, weights: Array) -> None:
        self.shard = shard
        self.backend = shard.backend
        self.weights = weights
        self.base = shard.rank * shard.partition.stride
        self.num_arcs = len(shard.rows.targets)
        self.shift = name_bits(weights.dtype.itemsize)
        # Whether weight and arc do not both fit one word. The last number is no arc: its key could be TOP.
        self.wide = self.num_arcs >= 1 << self.shift

    def sample(self, labels: Array) -> Sample:
        """Sample the edges between trees at their arcs to higher positions."""
        partition = self.shard.partition
        step = max(self.num_arcs // SAMPLES, 1)
        count = -(-self.num_arcs // step)
        edges = self.backend.xp.empty((2, count), np.int64)
        sample_edges[self.backend](
            0, count, step, self.shard.rows.indptr, self.shard.num_owned, self.shard.rows.targets, self.weights, labels,
            self.base, partition.stride, partition.multiplier, *edges,
        )  # fmt: skip
        keys, positions = self.backend.to_host(edges)
        is_edge = positions != TOP
        return Sample(keys[is_edge], positions[is_edge], step)

    def up_to(self, labels: Array, bound: Bound, capacity: int) -> WorkList:
        """List the edges between trees up to a bound, under the numbers of their arcs to higher positions.

        Parameters
        ----------
        labels
            The tree of every state.
        capacity
            An estimate of their number, most likely an upper bound.
        """
        partition = self.shard.partition
        capacity = min(capacity, self.num_arcs)
        while True:
            work = WorkList.empty(self.backend, capacity, labels.dtype, self.wide, self.shift)
            counters = self.backend.xp.zeros(1, np.int64)
            bounds = (*bound, capacity, self.shard.num_owned, self.base, partition.stride, partition.multiplier)
            list_light[self.backend](
                0, self.num_arcs, self.shard.rows.indptr, self.shard.rows.targets, self.weights, labels,
                self.backend.to_device(np.array([*bounds, self.shift])), counters, work.ends, work.keys, work.edges,
            )  # fmt: skip
            found = int(self.backend.to_host(counters)[0])
            if found <= capacity:
                return work.first(found)
            capacity = found

    def rows_outside(self, labels: Array) -> OutsideRows:
        """List the rows outside the tree of the first state, in degree order a hub: the largest, if one is large."""
        xp = self.backend.xp
        shard = self.shard
        counters = xp.zeros(2, np.int64)
        rows, lengths = (xp.empty(shard.num_owned, np.int64) for _ in range(2))
        list_rows[self.backend](0, shard.num_owned, shard.rows.indptr, labels, self.base, counters, rows, lengths)
        num_rows, num_arcs = self.backend.to_host(counters).tolist()
        offsets = xp.zeros(num_rows + 1, np.int64)
        xp.cumsum(lengths[:num_rows], out=offsets[1:])
        return OutsideRows(rows[:num_rows], offsets, num_arcs)

    def outside(self, labels: Array, outside: OutsideRows, capacity: int) -> Array:
        """List the arcs of the edges between trees, from the rows outside one tree: edges into it at their other ends.

        `capacity` is as for `up_to`.
        """
        xp = self.backend.xp
        shard = self.shard
        partition = shard.partition
        rows, offsets, num_arcs = outside
        num_rows = len(rows)
        best = None if self.wide else xp.full(num_rows, TOP, np.int64)
        capacity = min(capacity, num_arcs) + num_rows
        while True:
            arcs = xp.empty(capacity, np.int64)
            counters = xp.zeros(1, np.int64)
            bounds = (capacity, num_rows, self.base, partition.stride, partition.multiplier, self.shift)
            list_outside[self.backend](
                0, num_arcs, offsets, rows, shard.rows.indptr, shard.rows.targets, self.weights, labels,
                self.backend.to_device(np.array(bounds)), counters, arcs, best,
            )  # fmt: skip
            if best is not None:
                mask = (1 << self.shift) - 1
                append_best[self.backend](0, num_rows, best, mask, capacity, counters, arcs)
            found = int(self.backend.to_host(counters)[0])
            if found <= capacity:
                return arcs[:found]
            capacity = found

    def in_order(self, arcs: Array) -> Array:
        """Return the arcs of edges in the order of (lower position, higher position)."""
        return arcs[self._order(self._ends(arcs))]

    def gather(self, comm: Communicator, arcs: Array, labels: Array) -> tuple[WorkList, Array]:
        """List the edges of all ranks, each of which gives its arcs, in order under their places.

        Return the list, and for each edge which of this rank's arcs it is; others are negative or beyond the last.
        """
        xp = self.backend.xp
        columns = [*self._ends(arcs), order_keys(xp, self.weights[arcs])]
        counts = comm.allgather(np.array([len(arcs)]), np.empty(comm.size, np.int64))
        own = xp.zeros((len(columns), int(counts.max())), np.int64)
        for row, column in zip(own, columns, strict=True):
            row[: len(arcs)] = column
        padded = comm.allgather(own, xp.empty((comm.size, *own.shape), np.int64))
        gathered = xp.concatenate([padded[r, :, :count] for r, count in enumerate(counts.tolist())], axis=1)
        del columns, own, padded
        order = self._order(list(gathered[:-1]))
        *sides, keys = (column[order] for column in gathered)
        del gathered
        ends = xp.empty((len(order), 2), labels.dtype)
        for side, positions in enumerate(sides if len(sides) == 2 else (sides[0] >> 32, sides[0] & (2**32 - 1))):
            ends[:, side] = labels[self.shard.partition.state(positions)]
        del sides
        places = xp.arange(len(order))
        wide = len(order) >= 1 << self.shift
        keys = keys if wide else keys << self.shift | places
        work = WorkList(ends.ravel(), keys, places if wide else None, self.shift)
        return work, order - int(counts[: comm.rank].sum())

    def _ends(self, arcs: Array) -> list[Array]:
        """Return the positions of edges' ends: lower << 32 | higher where both fit, else two columns."""
        rows = self.shard.rows
        partition = self.shard.partition
        packed = partition.num_positions <= PACKED_POSITIONS
        columns = [self.backend.xp.empty(len(arcs), np.int64) for _ in range(1 if packed else 2)]
        find_ends[self.backend](
            0, len(arcs), arcs, rows.indptr, self.shard.num_owned, rows.targets,
            self.base, partition.stride, partition.multiplier, columns[0], None if packed else columns[1],
        )  # fmt: skip
        return columns

    def _order(self, ends: list[Array]) -> Array:
        """Return what sorts edges by their ends."""
        xp = self.backend.xp
        return xp.argsort(ends[0]) if len(ends) == 1 else xp.lexsort(xp.stack(ends[::-1]))

    def work_list(self, arcs: Array, labels: Array) -> WorkList:
        """Return a list of edges in order, under their places in it."""
        rows = self.shard.rows
        wide = len(arcs) >= 1 << self.shift
        work = WorkList.empty(self.backend, len(arcs), labels.dtype, wide, self.shift)
        list_arcs[self.backend](
            0, len(arcs), arcs, rows.indptr, self.shard.num_owned, rows.targets, self.weights, labels,
            self.base, self.shift, work.ends, work.keys, work.edges,
        )  # fmt: skip
        return work


def forest_weights(shard: Shard, comm: Communicator, maximum: bool) -> tuple[Array, int]:
    """Return the weights, in 32 bits if these keep all of them apart, inverted for the heaviest forest.

    With the key of the lowest, or one below it.
    """
    info = shard.info
    weights = shard.rows.weights
    assert weights is not None, "a forest needs weights"
    lowest = np.array([info.max_weight if maximum else info.min_weight]).astype(weights.dtype)
    if weights.dtype == np.float64:
        with np.errstate(over="ignore"):
            num_short = weights.astype(np.float32)
        # Values, not ranks of values: so all ranks have the same without a table.
        weights = weights if comm.any(total(shard.backend, num_short != weights) > 0) else num_short
    elif weights.dtype == np.int64 and int(info.max_weight) - int(info.min_weight) < 2**32:
        weights = (weights - int(info.min_weight)).astype(np.uint32)
        lowest -= int(info.min_weight)
    lowest = lowest.astype(weights.dtype)
    if weights.dtype.kind == "f":
        # Zeros of both signs are equal, and of two keys.
        lowest = np.where(lowest == 0, lowest.dtype.type(-0.0), -lowest if maximum else lowest)
        return -weights if maximum else weights, int(order_keys(np, lowest)[0])
    return ~weights if maximum else weights, int(order_keys(np, ~lowest if maximum else lowest)[0])


def order_keys(xp: Any, weights: Array) -> Array:
    """Return integers of the weights' order, as in the kernels."""
    if weights.dtype.kind != "f":
        return weights.astype(np.int64) - (2**31 if weights.dtype == np.uint32 else 0)
    bits = weights.view(np.int32 if weights.dtype == np.float32 else np.int64)
    return xp.where(bits >= 0, bits, bits ^ np.iinfo(bits.dtype).max).astype(np.int64)
