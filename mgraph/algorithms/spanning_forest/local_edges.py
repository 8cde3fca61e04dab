"""Number the edges of one rank: the arcs from each owned vertex to higher positions.

They are in order of (lower position, higher position), without a table: edge e of row u is arc `uppers[u] + e -
offsets[u]`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgraph.algorithms.spanning_forest.boruvka import WorkList
from mgraph.algorithms.spanning_forest.kernels import (
    EDGE_MASK,
    TOP,
    find_arcs,
    find_uppers,
    list_edges,
    mark_tree,
    sample_edges,
)
from mgraph.backends.totals import total
from mgraph.comm.base import Communicator
from mgraph.shard.shard import Shard
from mgraph.types import Array

# The lowest key.
MIN_KEY = int(np.iinfo(np.int64).min)
# Edges sampled to find the bound of light ones.
SAMPLES = 4096

# A bitmap of the states that are in a tree, and the tree.
Inside = tuple[Array, int]


@dataclass(frozen=True)
class Sample:
    """Keys of a few edges between trees, in any order, and the number of edges that each represents."""

    keys: np.ndarray
    weight: int

    @property
    def num_edges(self) -> int:
        """An estimate of the number of edges between trees."""
        return len(self.keys) * self.weight

    def capacity(self, count: int | None = None) -> int:
        """Return the capacity for the edges that `count` of the sample, or all, represent.

        Four deviations more than the estimate.
        """
        count = len(self.keys) if count is None else count
        return (count + 4 * math.isqrt(count) + 4) * self.weight


class OwnEdges:
    """A rank's edges under weights of their rows' arcs."""

    def __init__(self, shard: Shard, weights: Array) -> None:
        xp = shard.backend.xp
        partition = shard.partition
        self.shard = shard
        self.backend = shard.backend
        self.weights = weights
        self.base = shard.rank * partition.stride
        self.uppers = xp.empty(shard.num_owned, np.int64)
        self.offsets = xp.zeros(shard.num_owned + 1, np.int64)
        find_uppers[self.backend](
            0, shard.num_owned, shard.rows.indptr, shard.rows.targets,
            self.base, partition.stride, partition.multiplier, self.uppers, self.offsets[1:],
        )  # fmt: skip
        xp.cumsum(self.offsets[1:], out=self.offsets[1:])
        # One rank has every edge twice, from both of its ends.
        self.num_edges = len(shard.rows.targets) // 2 if partition.num_ranks == 1 else int(self.offsets[-1])
        # Whether weight and edge do not both fit 32 bits. The last number is no edge: its key would be TOP.
        self.wide = weights.dtype.itemsize == 8 or self.num_edges >= EDGE_MASK

    def arcs(self, edges: Array) -> tuple[Array, Array]:
        """Return the rows and the arcs of edges."""
        rows = self.backend.xp.empty(len(edges), np.int64)
        arcs = self.backend.xp.empty(len(edges), np.int64)
        find_arcs[self.backend](0, len(edges), edges, self.offsets, self.shard.num_owned, self.uppers, rows, arcs)
        return rows, arcs

    def numbers(self, rows: Array, arcs: Array) -> Array:
        """Return the edges that are these arcs of rows, as `arcs` returns them."""
        return self.offsets[rows] + arcs - self.uppers[rows]

    def work_list(self, rows: Array, arcs: Array, names: Array, labels: Array) -> WorkList:
        """Return a list of edges by their rows and arcs, under these names."""
        xp = self.backend.xp
        states = xp.stack([self.base + rows, self.shard.rows.targets[arcs].astype(np.int64)], axis=1)
        weights = order_keys(xp, self.weights[arcs])
        keys = weights if self.wide else weights << 32 | names
        return WorkList(labels[states.ravel()], keys, names if self.wide else None)

    def first_weight_after(self, key: int) -> int:
        """Return the least weight of which no edge has a key up to this one, or a lower weight."""
        return key if key == TOP else key + 1 if self.wide else (key + 1) >> 32

    def last_key_before(self, weight: int) -> int:
        """Return the largest key of the edges below a weight."""
        return weight if weight == TOP else weight - 1 if self.wide else (weight << 32) - 1

    def sample(self, labels: Array) -> Sample:
        """Sample a few edges."""
        step = max(self.num_edges // SAMPLES, 1)
        count = -(-self.num_edges // step)
        keys = self.backend.xp.empty(count, np.int64)
        sample_edges[self.backend](
            0, count, step, not self.wide, self.offsets, self.shard.num_owned, self.uppers,
            self.shard.rows.targets, self.weights, labels, self.base, keys,
        )  # fmt: skip
        found = self.backend.to_host(keys)
        return Sample(found[found != TOP], step)

    def between(
        self, labels: Array, min_key: int, max_key: int, capacity: int, inside: Inside | None = None
    ) -> WorkList:
        """List the edges with keys from `min_key` to `max_key` that lead from one tree to another.

        Parameters
        ----------
        labels
            The tree of every state.
        capacity
            An estimate of their number, most likely an upper bound.
        inside
            The states of the largest tree, if it is known.
        """
        capacity = min(capacity, self.num_edges)
        bits, tree = inside or (None, -1)
        while True:
            work = WorkList.empty(self.backend, capacity, labels.dtype, self.wide)
            counters = self.backend.xp.zeros(1, np.int64)
            bounds = self.backend.to_device(np.array([min_key, max_key, capacity, self.shard.num_owned, tree]))
            list_edges[self.backend](
                0, self.num_edges, self.offsets, self.uppers, self.shard.rows.targets, self.weights, labels, self.base,
                bits, bounds, counters, work.ends, work.keys, work.edges,
            )  # fmt: skip
            found = int(counters[0])
            if found <= capacity:
                return work.first(found)
            capacity = found

    def giant(self, labels: Array) -> Inside:
        """Return the states in the tree of the first one, a hub: the largest tree, where one has most states."""
        tree = int(labels[0])
        bits = self.backend.xp.empty(-(-len(labels) // 32), np.uint32)
        mark_tree[self.backend](0, len(bits), len(labels), labels, tree, bits)
        return bits, tree


def forest_weights(shard: Shard, comm: Communicator, maximum: bool) -> Array:
    """Return the weights, in 32 bits if these keep all of them apart, inverted for the heaviest forest."""
    info = shard.info
    weights = shard.rows.weights
    assert weights is not None, "a forest needs weights"
    if weights.dtype == np.float64:
        with np.errstate(over="ignore"):
            num_short = weights.astype(np.float32)
        # Values, not ranks of values: so all ranks have the same without a table.
        weights = weights if comm.any(total(shard.backend, num_short != weights) > 0) else num_short
    elif weights.dtype == np.int64 and int(info.max_weight) - int(info.min_weight) < 2**32:
        weights = (weights - int(info.min_weight)).astype(np.uint32)
    if not maximum:
        return weights
    return -weights if weights.dtype.kind == "f" else ~weights


def order_keys(xp: Any, weights: Array) -> Array:
    """Return integers of the weights' order, as in the kernels."""
    if weights.dtype.kind != "f":
        return weights.astype(np.int64) - (2**31 if weights.dtype == np.uint32 else 0)
    bits = weights.view(np.int32 if weights.dtype == np.float32 else np.int64)
    return xp.where(bits >= 0, bits, bits ^ np.iinfo(bits.dtype).max).astype(np.int64)
