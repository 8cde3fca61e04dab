"""Which units a sweep reads: those that may join an active state with an open one.

An active state may lower others, or be the parent of others; an open one may be lowered, or has no parent yet. Each
range of states has two flags, whether one of it is active and whether one is open. A unit of edge blocks has one window
of starts and one segment of ends, so that four flags decide whether it is read.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.common.unit_flags_kernels import mark_states, mark_units
from mgraph.shard.shard import Blocks, BlockShape, Shard
from mgraph.types import Array

ALL_BITS = 0xFFFFFFFF


class UnitFlags:
    """Two flags of every range of states.

    Attributes
    ----------
    num_words
        Words of a bit of every state, with those of a last segment that ends beyond the last state.
    both_ways
        1 if edges go both ways, else 0.
    shape
        That, the stride and the multiplier of states, and the bits of a segment and of a window, for kernels.
    segments, windows
        Whether each range has an active state, and whether it has an open one.
    """

    def __init__(self, shard: Shard, shape: BlockShape) -> None:
        backend = shard.backend
        xp = backend.xp
        partition = shard.partition
        self.backend = backend
        self.num_words = -(-shape.padded(partition.num_states) // 32)
        self.both_ways = 0 if shard.info.directed else 1
        # Flags are raised for whole words of bits.
        ranges = [max(bits, 5) for bits in (shape.segment_bits, shape.window_bits)]
        layout = self.both_ways, partition.stride, partition.multiplier, *ranges
        self.shape = backend.to_device(np.array(layout, np.int64))
        self.segments, self.windows = (xp.zeros(2 * ((32 * self.num_words >> bits) + 1), np.uint8) for bits in ranges)
        self.counters = xp.zeros(1, np.int64)

    def mark(self, active: Array, bound: np.generic, dist: Array, marks: Array) -> None:
        """Set the marks of all states: active ones by bits, open ones by distances beyond a bound."""
        self.clear()
        on_device = self.backend.to_device(np.array([bound], dist.dtype))
        mark_states[self.backend](
            0, self.num_words, len(dist), on_device, self.shape, active, dist, marks, self.segments, self.windows
        )

    def clear(self) -> None:
        """Lower all flags."""
        self.segments[:] = 0
        self.windows[:] = 0

    def units_of(self, part: Blocks, group: Array | None = None) -> tuple[Array, int]:
        """Return the units to read, of a group of units or of all, and how many edges they have.

        In order: units of one window follow each other, so that its states stay in the cache.
        """
        xp = self.backend.xp
        is_read = xp.ones(part.num_units, np.uint8) if group is None else group.copy()
        self.counters[:] = 0
        mark_units[self.backend](
            0, part.num_units, *part.edges[:-1], self.shape, self.segments, self.windows, is_read, self.counters
        )
        return xp.flatnonzero(is_read), int(self.counters[0])
