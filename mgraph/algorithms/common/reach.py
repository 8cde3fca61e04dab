"""Which parts of the edges are in reach of a search: see streamed_search.py.

Every launch that may lower states marks their grains, and is followed by a stamp of what it has lowered. A part is in
reach if a state has been lowered since its last visit, and over an edge of the least weight it could lower a state at
the other ends of the part's edges, or equal it and be a smaller parent. States are compared by grains.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mgraph.algorithms.common.reach_kernels import find_farthest, find_nearest, find_reach, note_lowered
from mgraph.shard.host_blocks import HostBlocks, Part
from mgraph.shard.shard import Shard
from mgraph.types import Array

# States of a grain, as bits: small compared with the starts of a part, large compared with a warp.
GRAIN_BITS = 12
# A part may have many more grains than others: those of each direction are divided into this many slices.
SLICES = 16
# Of a visit.
STAMP = np.dtype(np.int32)
# Parts with smaller states in reach than half of all go first if they are at most this share of the edges in reach.
EARLY_SHARE = 0.25


class Grains(NamedTuple):
    """Of each grain: the last visit that lowered a state, the greatest state, and the greatest parent with it."""

    latest: Array
    far_states: Array
    far_parents: Array


class Reach:
    """What has been lowered, and when.

    Attributes
    ----------
    before
        The states as they are between two launches of a sweep.
    lowered
        Whether a state of each grain may have been lowered since.
    stamps
        The visit in which each state was lowered.
    visited
        The visit up to which each part has been processed with all states: those on the device, then host parts.
    """

    def __init__(
        self,
        shard: Shard,
        blocks: HostBlocks,
        on_device: list[Part],
        states: Array,
        parents: Array,
        bounds: tuple[float | int, ...],
    ) -> None:
        backend = shard.backend
        partition = shard.partition
        self.backend = backend
        self.states = states
        self.parents = parents
        self.top = bounds[2]
        self.before = backend.full(len(states), self.top, states.dtype)
        self.stamps = backend.xp.zeros(len(states), STAMP)
        self.counters = backend.xp.zeros(1, np.int64)
        self.grain_bits = min(GRAIN_BITS, blocks.shape.segment_bits)
        num_grains = len(states) >> self.grain_bits
        self.lowered = backend.xp.ones(num_grains, np.uint8)
        self.grains = Grains(
            backend.xp.zeros(num_grains, STAMP),
            backend.xp.empty(num_grains, states.dtype),
            backend.xp.empty(num_grains, parents.dtype),
        )
        self.sizes = np.array([part.num_edges for part in blocks.parts], np.int64)
        self.visit = 0
        parts = [*on_device, *blocks.parts]
        self.visited = np.zeros(len(parts), np.int64)
        self.ranges = backend.to_device(np.array([*map(self._grains_of, parts)], np.int64).reshape(-1, 4))
        both_ways = 0 if shard.info.directed else 1
        layout = self.grain_bits, both_ways, partition.stride, partition.multiplier, SLICES
        self.shape = backend.to_device(np.array(layout, np.int64))
        self.bounds = backend.to_device(np.array(bounds[:2], states.dtype))
        self.nearest = backend.xp.empty(2 * SLICES * len(self.visited), states.dtype)
        self.positions = backend.xp.empty(len(self.nearest), parents.dtype)
        self.found = backend.xp.empty(2 * len(self.visited), states.dtype)

    def _grains_of(self, part: Part) -> list[int]:
        """Return the first and the last grain, excluded, of a part's starts, and of its ends.

        A sub-window of starts may end beyond the last state.
        """
        spans = [(span.start, min(span.stop, len(self.states))) for span in (part.starts, part.ends)]
        return [at for start, stop in spans for at in (start >> self.grain_bits, -(-stop >> self.grain_bits))]

    def begin_visit(self, index: int) -> None:
        """Note that a part is processed with all that has been lowered so far, but not with what it lowers now."""
        self.visited[index] = self.visit

    def note(self) -> None:
        """Stamp what has been lowered in grains that are marked, and count it."""
        self.visit += 1
        note_lowered[self.backend](
            0, len(self.lowered), self.grain_bits, self.visit, self.states, self.lowered, self.before, self.parents,
            self.stamps, self.grains.latest, self.counters,
        )  # fmt: skip

    def note_all(self) -> None:
        """Stamp and count what has been lowered anywhere."""
        self.lowered[:] = 1
        self.note()

    @property
    def num_lowered(self) -> int:
        """How many states have been lowered since `counters` was cleared, each as often as that was noted."""
        return int(self.counters[0])

    def find(self) -> np.ndarray:
        """Return the least state in reach of each part, unreached if none is."""
        num_grains = len(self.lowered)
        find_farthest[self.backend](0, num_grains, self.grain_bits, self.states, self.parents, *self.grains[1:])
        find_nearest[self.backend](
            0, len(self.nearest), self.shape, self.ranges, self.backend.to_device(self.visited), self.states,
            self.stamps, self.grains.latest, self.nearest, self.positions,
        )  # fmt: skip
        find_reach[self.backend](
            0, len(self.found), SLICES, self.bounds, self.ranges, self.nearest, self.positions, *self.grains[1:],
            self.found,
        )  # fmt: skip
        return self.backend.to_host(self.found).reshape(-1, 2).min(axis=1)

    def choose(self, reach: np.ndarray) -> np.ndarray:
        """Return which host parts to visit; `reach` is the least state in reach of each."""
        chosen = reach < self.top
        if not chosen.any():
            return np.flatnonzero(chosen)
        is_early = reach < np.sort(reach[chosen])[chosen.sum() // 2]
        if is_early.any() and self.sizes[is_early].sum() <= EARLY_SHARE * self.sizes[chosen].sum():
            chosen = is_early
        return np.flatnonzero(chosen)
