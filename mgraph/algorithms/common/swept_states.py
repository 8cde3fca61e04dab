"""States that sweeps over edge blocks lower, and over which edges in host memory a sweep may still lower one.

A sweep skips the edges from one range of segments to another if no state there has changed since the sweep before, or
none so low that it could lower a state at the other end. What it would find, an earlier sweep has found.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.common.swept_states_kernels import find_extremes
from mgraph.backends.base import Backend
from mgraph.shard.shard import EdgeBlocks, Reach
from mgraph.types import Array, unreached_of


class SweptStates:
    """The states of all vertices while sweeps lower them.

    Attributes
    ----------
    states
        Padded to whole segments; the loop writes them.
    before
        What sweeps read at the starts of edges: a copy from the beginning of the sweep, or the states themselves.
    least
        What an edge adds to a state, at least.
    """

    def __init__(self, backend: Backend, blocks: EdgeBlocks, states: Array, both_ways: int, least: float) -> None:
        self.backend = backend
        self.blocks = blocks
        self.states = states
        self.before: Array | None = None
        self.both_ways = both_ways
        self.least = least

    def begin_sweep(self) -> Reach | None:
        """Take the copy; return over which edges the sweep may lower a state, None if none is in host memory."""
        if not self.blocks.host_bytes:
            self.before = self.backend.snapshot(self.states, self.before)
            return None
        # Of the first sweep: all that is reached has changed.
        top = unreached_of(self.states.dtype)
        before = self.backend.full(len(self.states), top, self.states.dtype) if self.before is None else self.before
        reach = self._reach(before)
        # Not as snapshot(), which on a CPU returns the states themselves: the next sweep compares with it.
        before[:] = self.states
        self.before = before
        return reach

    def _reach(self, before: Array) -> Reach:
        bits = self.blocks.shape.segment_bits
        num_segments = len(self.states) >> bits
        found = self.backend.full(2 * num_segments, unreached_of(self.states.dtype), self.states.dtype)
        find_extremes[self.backend](
            0, num_segments, bits, self.states, before, found[:num_segments], found[num_segments:]
        )
        # Wide enough for every sum, and as monotone as those of the states.
        wide = np.float64 if self.states.dtype.kind == "f" else np.int64
        near_of, far_of = self.backend.to_host(found).astype(wide).reshape(2, num_segments)

        def lowers(near: slice, far: slice) -> bool:
            # The difference, unlike the sum, is in range: states are not negative.
            return bool(near_of[near].min() < far_of[far].max() - self.least)

        return lambda starts, ends: lowers(starts, ends) or (self.both_ways == 1 and lowers(ends, starts))
