"""Edge blocks of which the first are on the device, the rest in host memory: the layout `host`.

The blocks are in order of their windows, so that in degree order the first have the edges between hubs: these stay on
the device. All others are in *host parts*, which sweeps stream through two buffers of the device, each edge once for
both of its directions. A sweep skips a part if its edges can change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.host_link import Staging
from mgraph.shard.shard import Blocks, BlockShape, EdgeBlocks
from mgraph.types import Array

# Bytes of a host part: about a millisecond on the link, a hundred times what it takes to launch its sweep.
PART_BYTES = 48 << 20
# A rank has at least this many parts, if it has as many units: the two buffers are small compared with the blocks.
MIN_PARTS = 64
# Arrays within a part begin at multiples of this many bytes, as device memory does.
ALIGNMENT = 256
# Bytes of the headers of a tile and of a unit, and of what a part has beside its units.
TILE_BYTES = 16
UNIT_BYTES = 16
PADDING = 8 * ALIGNMENT


@dataclass(frozen=True)
class HostPart:
    """A run of units of one window, in host memory: the arrays of its blocks side by side.

    Attributes
    ----------
    memory
        The bytes of all arrays.
    arrays
        Offset, length and dtype of each: those of Blocks.edges, then any weights.
    starts, ends
        The segments in which edges start and end.
    """

    memory: np.ndarray
    arrays: tuple[tuple[int, int, np.dtype], ...]
    starts: slice
    ends: slice
    num_edges: int

    def blocks_in(self, memory: Array, shape: BlockShape) -> Blocks:
        """Return the blocks in a copy of the bytes of this part."""
        views = [memory[at : at + n * dtype.itemsize].view(dtype) for at, n, dtype in self.arrays]
        tiles, segments, edges, starts, words, *weights = views
        return Blocks(shape, tiles, segments, edges, starts, words, weights[0] if weights else None, self.starts)


@dataclass
class HostBlocks(EdgeBlocks):
    """Blocks on the device, and parts in host memory that follow them."""

    shape: BlockShape
    resident: Blocks
    parts: list[HostPart]
    staging: Staging

    def __post_init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._starts, self._ends = (
            np.array([(span.start, span.stop) for span in spans], np.int64).reshape(-1, 2)
            for spans in ([part.starts for part in self.parts], [part.ends for part in self.parts])
        )

    @property
    def num_edges(self) -> int:
        return self.resident.num_edges + sum(part.num_edges for part in self.parts)

    @property
    def nbytes(self) -> int:
        return self.resident.nbytes + self.staging.nbytes

    @property
    def host_bytes(self) -> int:
        return sum(part.memory.nbytes for part in self.parts)

    @property
    def counts(self) -> dict[str, int]:
        return dict(self._counts)

    @property
    def part_ranges(self) -> tuple[np.ndarray, np.ndarray]:
        return self._starts, self._ends

    def on_device(self, chosen: np.ndarray | None = None) -> Iterator[Blocks]:
        parts = self.parts if chosen is None else [self.parts[k] for k in np.flatnonzero(chosen)]
        self._counts = {
            "edges": self.resident.num_edges + sum(part.num_edges for part in parts),
            "link_bytes": sum(part.memory.nbytes for part in parts),
            "host_parts": len(parts),
            "skipped_parts": len(self.parts) - len(parts),
        }
        if self.resident.num_units:
            yield self.resident
        for part, memory in zip(parts, self.staging.stream(part.memory for part in parts), strict=True):
            yield part.blocks_in(memory, self.shape)


def part_bytes(num_bytes: int, edge_bytes: int, shape: BlockShape) -> int:
    """Return the most bytes of a host part of a rank with this many bytes of blocks, `edge_bytes` of an edge.

    A part has one unit at least, in which every edge may have a tile of its own.
    """
    unit = shape.unit_size * (edge_bytes + TILE_BYTES) + UNIT_BYTES
    return max(min(PART_BYTES, num_bytes // MIN_PARTS), unit) + PADDING


def to_host_parts(backend: Backend, blocks: Blocks, most: int) -> Iterator[HostPart]:
    """Copy blocks into host memory, in parts of at most `most` bytes, each within one window."""
    unit_tiles, unit_segments, tile_edges, tile_starts = (backend.to_host(array) for array in blocks.edges[:4])
    unit_edges = tile_edges[unit_tiles]
    edge_bytes = 4 + (0 if blocks.weights is None else blocks.weights.itemsize)
    ends = edge_bytes * unit_edges + TILE_BYTES * unit_tiles + UNIT_BYTES * np.arange(len(unit_tiles))
    windows = tile_starts[unit_tiles[:-1]] >> blocks.shape.window_bits
    window_ends = np.append(np.flatnonzero(windows[1:] != windows[:-1]) + 1, len(windows))
    first = 0
    while first < len(windows):
        reach = int(np.searchsorted(ends, ends[first] + most - PADDING, side="right")) - 1
        window_end = int(window_ends[np.searchsorted(window_ends, first, side="right")])
        last = min(max(reach, first + 1), window_end)
        tiles = slice(int(unit_tiles[first]), int(unit_tiles[last]))
        edges = slice(int(unit_edges[first]), int(unit_edges[last]))
        arrays = [
            unit_tiles[first : last + 1] - unit_tiles[first],
            unit_segments[first:last],
            tile_edges[tiles.start : tiles.stop + 1] - tile_edges[tiles.start],
            tile_starts[tiles],
            blocks.words[edges],
            *([] if blocks.weights is None else [blocks.weights[edges]]),
        ]
        starts = (int(tile_starts[tiles].min()), int(tile_starts[tiles].max()) + (1 << blocks.shape.subwindow_bits))
        targets = (int(unit_segments[first:last].min()), int(unit_segments[first:last].max()) + 1)
        memory, places = _side_by_side(backend, arrays)
        spans = _segments(blocks.shape, *starts), _segments(blocks.shape, *targets)
        yield HostPart(memory, places, *spans, edges.stop - edges.start)
        first = last


def _segments(shape: BlockShape, first: int, last: int) -> slice:
    """Return the segments of the states first .. last."""
    return slice(first >> shape.segment_bits, ((last - 1) >> shape.segment_bits) + 1)


def _side_by_side(backend: Backend, arrays: list[Array]) -> tuple[np.ndarray, tuple[tuple[int, int, np.dtype], ...]]:
    """Return the bytes of arrays of the host and of the device in one array of the host, and where each is."""
    places = []
    end = 0
    for array in arrays:
        places.append((end, len(array), array.dtype))
        end += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    memory = backend.link.pinned_bytes(end)
    for array, (at, count, dtype) in zip(arrays, places, strict=True):
        backend.link.copy_to_host(array, memory[at : at + count * dtype.itemsize].view(dtype))
    return memory, tuple(places)
