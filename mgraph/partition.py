"""Ownership of positions: pure arithmetic between positions, owners, locals and state indices.

    position  a vertex's index in the vertex order; does not depend on the number of ranks
    owner     the rank that holds its final value
    local     its index among the owner's vertices
    state     owner * stride + local: each owner's slice of a replicated array is contiguous

Degree order assigns positions to ranks round-robin (hubs are spread evenly), natural order in ranges
(neighbors stay together). Every function takes integers or integer arrays of any backend.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from mgraph.errors import UsageError
from mgraph.types import vertex_dtype

T = TypeVar("T")

# Slices start at whole 64-bit words of a bitmap, so that ranks gather bitmaps without shifting.
ALIGNMENT = 64


@dataclass(frozen=True)
class Partition:
    """The assignment of `num_positions` positions to `num_ranks` ranks."""

    num_positions: int
    num_ranks: int
    cyclic: bool

    @cached_property
    def stride(self) -> int:
        """Length of each rank's slice in the replicated state arrays."""
        share = -(-self.num_positions // self.num_ranks)
        return max(ALIGNMENT, -(-share // ALIGNMENT) * ALIGNMENT)

    @cached_property
    def num_states(self) -> int:
        """Length of a replicated state array; the slices' tails are padding."""
        return self.stride * self.num_ranks

    @cached_property
    def dtype(self) -> np.dtype:
        """The dtype of state indices and positions."""
        return vertex_dtype(self.num_states)

    @property
    def multiplier(self) -> int:
        """The factor in position = local * multiplier + offset(rank)."""
        return self.num_ranks if self.cyclic else 1

    def offset(self, rank: int) -> int:
        """Return the first position of `rank`."""
        return rank if self.cyclic else rank * self.stride

    def num_owned(self, rank: int) -> int:
        """Return the number of positions that `rank` owns."""
        if self.cyclic:
            return (self.num_positions - rank + self.num_ranks - 1) // self.num_ranks
        return min(max(self.num_positions - rank * self.stride, 0), self.stride)

    def owner(self, position: T) -> T:
        """Return the rank that owns each position."""
        return position % self.num_ranks if self.cyclic else position // self.stride  # type: ignore[operator, return-value]

    def local(self, position: T) -> T:
        """Return each position's index among those of its owner."""
        return position // self.num_ranks if self.cyclic else position % self.stride  # type: ignore[operator, return-value]

    def state(self, position: T) -> T:
        """Return each position's state index."""
        if self.num_ranks == 1 or not self.cyclic:
            return position
        return self.owner(position) * self.stride + self.local(position)  # type: ignore[operator, return-value]

    def position(self, state: T) -> T:
        """Return the position of each state index (which must not be padding)."""
        if self.num_ranks == 1 or not self.cyclic:
            return state
        return state % self.stride * self.num_ranks + state // self.stride  # type: ignore[operator, return-value]


def own_states(partition: Partition, rank: int, positions: Iterable[int]) -> np.ndarray:
    """Return the state indices of those positions that a rank owns, each once and in order."""
    if partition.num_ranks == 1:
        return np.array(
            sorted({position for position in positions if 0 <= position < partition.num_positions}), partition.dtype
        )
    base = rank * partition.stride
    own = range(base, base + partition.num_owned(rank))
    states = sorted({int(partition.state(position)) for position in positions})
    return np.array([state for state in states if state in own], partition.dtype)


def common_locals(one: Partition, rank: int, other: Partition, other_rank: int) -> tuple[slice, slice]:
    """Return the locals of those positions that a rank of each of two partitions owns, as slices of equal length."""
    # Positions offset + multiplier * local of both: they meet at every `period`-th local of one.
    shared = math.gcd(one.multiplier, other.multiplier)
    step = one.multiplier // shared
    period = other.multiplier // shared
    gap = other.offset(other_rank) - one.offset(rank)
    if gap % shared:
        return slice(0, 0, 1), slice(0, 0, 1)
    first = gap // shared * pow(step, -1, period) % period
    first += max(0, -(-(gap - one.multiplier * first) // (one.multiplier * period))) * period
    of_other = (one.multiplier * first - gap) // other.multiplier
    in_one = -(-(one.num_owned(rank) - first) // period)
    in_other = -(-(other.num_owned(other_rank) - of_other) // step)
    count = max(0, min(in_one, in_other))
    return slice(first, first + count * period, period), slice(of_other, of_other + count * step, step)


def chunk_range(num_items: int, k: int, num_chunks: int) -> tuple[int, int]:
    """Return part k of num_chunks nearly equal parts of 0..num_items."""
    if not 0 <= k < num_chunks:
        raise UsageError(f"there is no chunk {k} of {num_chunks}: chunks are numbered from 0")
    return num_items * k // num_chunks, num_items * (k + 1) // num_chunks
