"""The order of the edges in blocks as numbers, and in which passes they are put in it, from counts alone.

The words of all edges are one array, and what of it is not filled yet is where a pass keeps the keys of the
edges that it will fill in: at its end, two words a key. So half of what is left can be done in one pass, and
what a buffer beside it holds: a few passes over the input, with little memory beside the graph.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from mgraph.shard.shard import BlockShape

# Passes are cut where buckets end: finer than this they would not be shorter, and their counts grow.
MOST_BUCKETS = 1 << 22
EDGES_A_BUCKET = 256
KEY_BITS = 63


@dataclass(frozen=True)
class KeyLayout:
    """Where the parts of an edge's key stand: window, tile, word from the top; see ingest/compact_kernels.py."""

    shape: BlockShape
    first_window: int
    num_windows: int
    num_states: int
    bucket_shift: int  # what is above it is the bucket

    @property
    def word_bits(self) -> int:
        return self.shape.segment_bits + self.shape.subwindow_bits

    @property
    def num_tiles(self) -> int:
        """Of a window."""
        shape = self.shape
        return (((self.num_states - 1) >> shape.segment_bits) + 1) << (shape.window_bits - shape.subwindow_bits)

    @property
    def tile_bits(self) -> int:
        return (self.num_tiles - 1).bit_length()

    @property
    def window_shift(self) -> int:
        """A bucket of this number of bits is a window."""
        return self.word_bits + self.tile_bits - self.bucket_shift

    @property
    def num_buckets(self) -> int:
        return self.num_windows << self.window_shift

    @property
    def fits(self) -> bool:
        """Whether a key has room in a signed 64-bit number."""
        return (self.num_windows - 1).bit_length() + self.tile_bits + self.word_bits <= KEY_BITS


def key_layout(shape: BlockShape, num_states: int, starts: range, num_edges: int) -> KeyLayout:
    """Return the keys of about so many edges, which start at the states `starts`."""
    first = starts.start >> shape.window_bits
    num_windows = max(((starts.stop - 1) >> shape.window_bits) - first + 1, 1)
    whole = KeyLayout(shape, first, num_windows, num_states, bucket_shift=0)
    wanted = min(MOST_BUCKETS, max(num_edges // EDGES_A_BUCKET, 1))
    shift = max(whole.window_shift - max((wanted // num_windows).bit_length() - 1, 0), 0)
    return dataclasses.replace(whole, bucket_shift=shift)


@dataclass(frozen=True)
class Pass:
    """The buckets first .. middle, whose keys stand behind the words, and middle .. last, which stand in the buffer."""

    first: int
    middle: int
    last: int


def plan_passes(ends: np.ndarray, buffer_keys: int, batch_keys: int) -> list[Pass] | None:
    """Cut the buckets in passes over the input; None if one bucket is more than there is room for.

    Parameters
    ----------
    ends
        How many edges the buckets up to each have together, 0 in front.
    buffer_keys
        How many keys there is room for beside the words.
    batch_keys
        A bucket of more keys is written in parts before its last key is read: words for all of it stay free.
    """
    passes, first, total = [], 0, int(ends[-1])
    largest = np.maximum.accumulate(np.diff(ends, append=total)[::-1])[::-1]

    def reach(begin: int, room: int) -> int:
        """Return the last bucket such that those from `begin` on have at most `room` edges."""
        return int(np.searchsorted(ends, ends[begin] + max(room, 0), side="right")) - 1

    while ends[first] < total:
        reserve = int(largest[first]) if largest[first] > batch_keys else 0
        middle = reach(first, (total - int(ends[first]) - reserve) // 2)
        last = reach(middle, buffer_keys)
        if last == first or ends[last] == ends[first]:
            return None
        passes.append(Pass(first, middle, last))
        first = last
    return passes
