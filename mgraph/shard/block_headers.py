"""The shape of blocks, and the headers of their tiles and units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mgraph.backends.base import Backend
from mgraph.errors import UsageError
from mgraph.shard.shard import BlockShape

# Bits of an edge's end in its 32-bit word. With 15, a segment of 4-byte states takes 128 KiB, and a tile has 2^17
# starts.
MAX_SEGMENT_BITS = 15
WORD_BITS = 32
# Edges of a unit at most: as many bytes as the states of a segment, which are copied for them. In a host part of
# vertices of few arcs, half of the edges end in the segments of hubs, and their units are processed at the same time:
# on one H200 those of made-up parts of rmat31 take 132 us a sweep with 2^17 edges, 98 with 2^16, 88 with 2^15, 102 with
# 2^14.
UNIT_SIZE = 1 << 15


def choose_shape(backend: Backend, state_bytes: int) -> BlockShape:
    """Return the largest shape for states of this width on the backend."""
    return shape_of(backend.shared_bytes, backend.cache_bytes, state_bytes)


def shape_of(shared_bytes: int, cache_bytes: int, state_bytes: int) -> BlockShape:
    """Return the largest shape with segments that fit shared memory and windows that fit half of the cache.

    Measured with 4-byte states and 60 MB of cache: 2^22 starts of a window are within 3 % of the best.
    """
    segment_bits = min((shared_bytes // state_bytes).bit_length() - 1, MAX_SEGMENT_BITS)
    window_bits = (cache_bytes // 2 // state_bytes).bit_length() - 1
    return BlockShape(segment_bits, min(WORD_BITS - segment_bits, window_bits), window_bits, UNIT_SIZE)


def are_alike(built: BlockShape, shape: BlockShape) -> bool:
    """Return whether blocks of one shape may be swept as those of another.

    Units may be larger or smaller, but an edge of a unit and its end together fit 32 bits.
    """
    return (
        built.unit_size << built.segment_bits <= 1 << WORD_BITS and replace(built, unit_size=shape.unit_size) == shape
    )


class Headers:
    """Collects the headers of tiles and units window by window, in host memory, as they are small."""

    def __init__(self, shape: BlockShape, num_states: int) -> None:
        self.shape = shape
        self.tile_shift = shape.window_bits - shape.subwindow_bits
        self.num_tiles = (((num_states - 1) >> shape.segment_bits) + 1) << self.tile_shift  # of a window
        if self.num_tiles > 1 << WORD_BITS:
            raise UsageError(f"{num_states} vertices make {self.num_tiles} tiles of a window: too many for a sweep")
        # NumPy sorts 16-bit numbers by radix, five times faster than wider ones.
        self.tile_dtype = np.dtype(np.uint16 if self.num_tiles <= 1 << 16 else np.uint32)
        self.num_edges = 0
        # For the tiles of every window: first edge, first state of the sub-window, first state of the segment.
        self.windows = [(np.empty(0, np.int64),) * 3]

    def add(self, first: int, counts: np.ndarray) -> None:
        """Append the window of states from `first` with `counts` edges in its tiles.

        Split tiles at unit boundaries.
        """
        tiles = np.flatnonzero(counts)
        ends = self.num_edges + np.cumsum(counts[tiles])
        begins = ends - counts[tiles]
        unit = self.shape.unit_size
        cut = np.union1d(begins, np.arange(-(-self.num_edges // unit) * unit, ends[-1], unit))
        tiles = tiles[np.searchsorted(begins, cut, side="right") - 1]
        starts = first + ((tiles & ((1 << self.tile_shift) - 1)) << self.shape.subwindow_bits)
        self.windows.append((cut, starts, tiles >> self.tile_shift << self.shape.segment_bits))
        self.num_edges = int(ends[-1])

    def finish(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return unit_tiles, unit_segments, tile_edges and tile_starts."""
        begins, starts, segments = (np.concatenate(column) for column in zip(*self.windows, strict=True))
        # A unit ends with its window, with its segment, and at every multiple of unit_size.
        block = np.stack([starts >> self.shape.window_bits, segments, begins // self.shape.unit_size])
        differs = np.ones(len(begins), bool)
        differs[1:] = np.any(block[:, 1:] != block[:, :-1], axis=0)
        units = np.flatnonzero(differs)
        return np.append(units, len(begins)), segments[units], np.append(begins, self.num_edges), starts
