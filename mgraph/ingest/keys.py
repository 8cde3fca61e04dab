"""Sort keys of edges in blocks, and the plan of the passes over the input that sort them in little memory.

The words of all edges are one array. A pass stores the 64-bit keys of the edges that it will append in the unfilled end
of this array, two words a key, and further keys in a buffer. So one pass finishes half of the remaining edges and
those of the buffer: few passes over the input are enough, with little memory in addition to the graph.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from mgraph.shard.shard import BlockShape

# A pass is a run of whole buckets. More buckets would not make passes shorter, but take more memory for counts.
MAX_BUCKETS = 1 << 22
EDGES_PER_BUCKET = 256
KEY_BITS = 63


@dataclass(frozen=True)
class KeyLayout:
    """The bit fields of an edge's key: window, tile, word from the top.

    See ingest/compact_kernels.py.
    """

    shape: BlockShape
    first_window: int
    num_windows: int
    num_states: int
    bucket_shift: int  # the bits from here up are the bucket

    @property
    def word_bits(self) -> int:
        return self.shape.segment_bits + self.shape.subwindow_bits

    @property
    def num_tiles(self) -> int:
        """The number of tiles of a window."""
        shape = self.shape
        return (((self.num_states - 1) >> shape.segment_bits) + 1) << (shape.window_bits - shape.subwindow_bits)

    @property
    def tile_bits(self) -> int:
        return (self.num_tiles - 1).bit_length()

    @property
    def window_shift(self) -> int:
        """The bits of a bucket's number below its window's."""
        return self.word_bits + self.tile_bits - self.bucket_shift

    @property
    def num_buckets(self) -> int:
        return self.num_windows << self.window_shift

    @property
    def fits(self) -> bool:
        """Whether a key fits a signed 64-bit integer."""
        return (self.num_windows - 1).bit_length() + self.tile_bits + self.word_bits <= KEY_BITS


def key_layout(shape: BlockShape, num_states: int, starts: range, num_edges: int) -> KeyLayout:
    """Return the key layout for about `num_edges` edges that start at the states `starts`."""
    first = starts.start >> shape.window_bits
    num_windows = max(((starts.stop - 1) >> shape.window_bits) - first + 1, 1)
    whole = KeyLayout(shape, first, num_windows, num_states, bucket_shift=0)
    num_buckets = min(MAX_BUCKETS, max(num_edges // EDGES_PER_BUCKET, 1))
    shift = max(whole.window_shift - max((num_buckets // num_windows).bit_length() - 1, 0), 0)
    return dataclasses.replace(whole, bucket_shift=shift)


@dataclass(frozen=True)
class Pass:
    """The buckets of one pass: keys of first .. middle are stored after the words, of middle .. last in the buffer."""

    first: int
    middle: int
    last: int


def plan_passes(ends: np.ndarray, buffer_keys: int, batch_keys: int) -> list[Pass] | None:
    """Divide the buckets into passes over the input.

    Return None if one bucket exceeds the memory of a pass.

    Parameters
    ----------
    ends
        Cumulative number of edges in the buckets, beginning with 0.
    buffer_keys
        Capacity of the buffer, in keys.
    batch_keys
        A bucket of more keys is appended in parts before its last key is read: the words for all of it are reserved.
    """
    passes = []
    first = 0
    total = int(ends[-1])
    largest = np.maximum.accumulate(np.diff(ends, append=total)[::-1])[::-1]

    def reach(begin: int, capacity: int) -> int:
        """Return the largest end such that the buckets begin .. end have at most `capacity` edges."""
        return int(np.searchsorted(ends, ends[begin] + max(capacity, 0), side="right")) - 1

    while ends[first] < total:
        reserve = int(largest[first]) if largest[first] > batch_keys else 0
        middle = reach(first, (total - int(ends[first]) - reserve) // 2)
        last = reach(middle, buffer_keys)
        if last == first or ends[last] == ends[first]:
            return None
        passes.append(Pass(first, middle, last))
        first = last
    return passes
