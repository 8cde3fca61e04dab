"""The states that sweeps over edge blocks lower, and which parts in host memory a sweep skips.

A sweep skips a part if no state at one end of its edges has changed since the sweep before, or none so low that it
could lower a state at the other end: earlier sweeps have applied these edges already.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mgraph.algorithms.common.swept_states_kernels import find_extremes
from mgraph.backends.base import Backend
from mgraph.shard.shard import Blocks, EdgeBlocks
from mgraph.types import Array, unreached_of

# Sweeps over the blocks on the device before parts are streamed, at most: each takes a small part of that time.
MAX_RESIDENT_SWEEPS = 16


class SweptStates:
    """The states of all vertices while sweeps lower them.

    Attributes
    ----------
    states
        Padded to whole segments; the loop writes them.
    before
        A read-only snapshot of the states, which sweeps read at the starts of edges; on a CPU the states themselves.
    least
        What an edge adds to a state, at least.
    counters
        The loop's count of improvements, if the blocks on the device may be swept until they bring none.
    counts
        What the last sweep read: EdgeBlocks.counts.
    is_whole
        Whether it read, or reads, all blocks.
    """

    is_whole = True

    def __init__(
        self,
        backend: Backend,
        blocks: EdgeBlocks,
        states: Array,
        both_ways: int,
        least: float,
        counters: Array | None = None,
    ) -> None:
        self.backend = backend
        self.blocks = blocks
        self.states = states
        self.both_ways = both_ways
        self.least = least
        self.counters = counters
        self.counts: dict[str, int] = {}
        self.before: Array | None = None
        self._compared: Array | None = None

    def sweep(self, whole_from: float = 1.0) -> Iterator[Blocks]:
        """Yield the blocks that a sweep reads, each to be launched with the states and `before` as they are then.

        All of them where at least this share of the parts in host memory is in reach.
        """
        chosen = self._parts_in_reach() if self.blocks.host_bytes else np.empty(0, bool)
        self.is_whole = bool(chosen.sum() >= whole_from * len(chosen))
        settles = len(chosen) > 0 and self.counters is not None
        self.before = self.backend.snapshot(self.states, self.before)
        read_again = 0
        for part in self.blocks.on_device(None if self.is_whole else chosen):
            if part.streamed_starts is not None:
                self._refresh(part.streamed_starts)
            yield part
            if part.streamed_starts is None and settles:
                for again in self._until_settled(part):
                    read_again += again.num_edges
                    yield again
        self.counts = self.blocks.counts
        self.counts["edges"] += read_again

    def _until_settled(self, resident: Blocks) -> Iterator[Blocks]:
        """Yield the blocks on the device again as long as they bring improvements."""
        assert self.counters is not None, "the caller knows"
        seen = 0
        for _ in range(MAX_RESIDENT_SWEEPS - 1):
            improved = int(self.counters[0])
            if improved == seen:
                return
            seen = improved
            self.before = self.backend.snapshot(self.states, self.before)
            yield resident

    def _refresh(self, segments: slice) -> None:
        """Let a part that is streamed read what earlier ones have lowered; to copy a window takes microseconds."""
        if self.before is not self.states:
            bits = self.blocks.shape.segment_bits
            own = slice(segments.start << bits, segments.stop << bits)
            self.before[own] = self.states[own]  # type: ignore[index]

    def _parts_in_reach(self) -> np.ndarray:
        """Return in which parts this sweep may lower a state; the next one compares with the states as they are now."""
        states = self.states
        top = unreached_of(states.dtype)
        if self._compared is None:
            # All that is reached has changed.
            self._compared = self.backend.full(len(states), top, states.dtype)
        bits = self.blocks.shape.segment_bits
        num = len(states) >> bits
        found = self.backend.full(2 * num, top, states.dtype)
        find_extremes[self.backend](0, num, bits, states, self._compared, found[:num], found[num:])
        self._compared[:] = states
        # Wide enough for every sum, and as monotone as those of the states.
        wide = np.float64 if states.dtype.kind == "f" else np.int64
        near_of, far_of = self.backend.to_host(found).astype(wide).reshape(2, num)

        # An entry where ranges may end; those of starts are of whole windows, and may end later.
        near_of = np.append(near_of, near_of[:1])
        far_of = np.append(far_of, far_of[:1])

        def lowers(nears: np.ndarray, fars: np.ndarray) -> np.ndarray:
            """Return in which rows the least changed state of the near segments may lower one of the far ones."""
            least = np.minimum.reduceat(near_of, np.minimum(nears, num).ravel())[::2]
            farthest = np.maximum.reduceat(far_of, np.minimum(fars, num).ravel())[::2]
            # A sum of integers may be out of range; a difference of floats is rounded otherwise than the kernels' sums.
            return least + self.least < farthest if wide is np.float64 else least < farthest - self.least

        starts, ends = self.blocks.part_ranges
        return lowers(starts, ends) | lowers(ends, starts) if self.both_ways else lowers(starts, ends)
