"""How edges are cut into blocks, and where tiles and units of them begin."""

from __future__ import annotations

import numpy as np

from mgraph.backends.base import Backend
from mgraph.errors import UsageError
from mgraph.shard.shard import BlockShape

# The end's share of 32 bits. With 15, 4-byte states of a segment take 128 KiB, and a tile has 2^17 starts.
MOST_SEGMENT_BITS = 15
WORD_BITS = 32
# Large beside a segment (1 MiB of edges to 128 KiB of state), small beside a rank's edges.
UNIT_SIZE = 1 << 17


def choose_shape(backend: Backend, state_bytes: int) -> BlockShape:
    """Return the shape for states of this width: the widest segments and windows that their memories hold."""
    return shape_of(backend.shared_bytes, backend.cache_bytes, state_bytes)


def shape_of(shared_bytes: int, cache_bytes: int, state_bytes: int) -> BlockShape:
    """Return the shape for a fast memory and a cache of these sizes.

    A window may take half of the cache. Measured at 4 bytes on 60 MB of cache: 2^22 starts, within 3 % of
    the best.
    """
    segment_bits = min((shared_bytes // state_bytes).bit_length() - 1, MOST_SEGMENT_BITS)
    window_bits = (cache_bytes // 2 // state_bytes).bit_length() - 1
    return BlockShape(segment_bits, min(WORD_BITS - segment_bits, window_bits), window_bits, UNIT_SIZE)


class Headers:
    """Collects where tiles and units begin; small, so kept on the host."""

    def __init__(self, shape: BlockShape, num_states: int) -> None:
        self.shape = shape
        self.tile_shift = shape.window_bits - shape.subwindow_bits
        self.num_tiles = (((num_states - 1) >> shape.segment_bits) + 1) << self.tile_shift  # of a window
        if self.num_tiles > 1 << WORD_BITS:
            raise UsageError(f"{num_states} vertices make {self.num_tiles} tiles of a window: too many for a sweep")
        # NumPy sorts 16-bit numbers by radix, five times faster than wider ones.
        self.tile_dtype = np.dtype(np.uint16 if self.num_tiles <= 1 << 16 else np.uint32)
        self.num_edges = 0
        # Of every window: where its tiles begin, where they start, and where their segments do.
        self.windows = [(np.empty(0, np.int64),) * 3]

    def add(self, first: int, counts: np.ndarray) -> None:
        """Take the next window, whose tiles have `counts` edges; cut tiles where a unit may have to end."""
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
        # A unit ends with its window and segment, and at every multiple of the most edges it may have.
        block = np.stack([starts >> self.shape.window_bits, segments, begins // self.shape.unit_size])
        differs = np.ones(len(begins), bool)
        differs[1:] = np.any(block[:, 1:] != block[:, :-1], axis=0)
        units = np.flatnonzero(differs)
        return np.append(units, len(begins)), segments[units], np.append(begins, self.num_edges), starts
