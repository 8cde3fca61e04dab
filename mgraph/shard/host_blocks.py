"""Edge blocks of which the first are on the device, the rest in host memory: the layout `host`.

The blocks are in order of their windows, so that in degree order the first have the edges between hubs: these stay on
the device. All others are in *host parts*, which sweeps stream through buffers of the device, each edge once for
both of its directions. The blocks on the device are divided into parts too, which are never moved. A sweep skips a part
if its edges can change nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.host_link import Staging
from mgraph.shard.shard import Blocks, BlockShape, EdgeBlocks
from mgraph.shard.unit_runs import UnitRun, run_of_units
from mgraph.types import Array

# Bytes of a host part: about a millisecond on the link, and units for all thread blocks of a GPU.
PART_BYTES = 48 << 20
# A rank has at least this many parts, if it has as many units: the buffers are small compared with the blocks.
MIN_PARTS = 64
# The blocks on the device are divided into about this many parts, of small graphs into fewer: launches for a part of
# less than 2^24 edges take as long as its sweep (rmat26 on one H200: 68 ms for sweeps of 65 parts, 49 for 20).
PARTS_ON_DEVICE = 64
MIN_PARTS_ON_DEVICE = 16
EDGES_OF_PART = 1 << 24
# Arrays within a part begin at multiples of this many bytes, as device memory does.
ALIGNMENT = 256
# Bytes of the headers of a tile and of a unit, and of what a part has beside its units.
TILE_BYTES = 16
UNIT_BYTES = 16
PADDING = 8 * ALIGNMENT
# Arrays of a part without weights: those of Blocks.edges.
NUM_ARRAYS = 5
# The starts of a part of at most this many tiles are read from its edges; others are in any of its sub-windows.
MAX_TILES_READ = 4


@dataclass(frozen=True)
class Part:
    """A run of units of one window, and the states in which their edges start and end."""

    units: UnitRun
    starts: slice
    ends: slice

    @property
    def num_edges(self) -> int:
        return self.units.num_edges


@dataclass(frozen=True)
class HostPart(Part):
    """A part in host memory: the arrays of its blocks side by side.

    Attributes
    ----------
    memory
        The bytes of all arrays.
    arrays
        Offset, length and dtype of each: those of Blocks.edges, then any weights.
    """

    memory: np.ndarray
    arrays: tuple[tuple[int, int, np.dtype], ...]

    def bytes(self, *, weighted: bool) -> np.ndarray:
        """Return the bytes of all arrays, which end with any weights, or of those before."""
        return self.memory if weighted or len(self.arrays) == NUM_ARRAYS else self.memory[: self.arrays[-1][0]]

    def blocks_in(self, memory: Array, shape: BlockShape) -> Blocks:
        """Return the blocks in a copy of the bytes of this part."""
        views = [memory[at : at + n * dtype.itemsize].view(dtype) for at, n, dtype in self.arrays if at < len(memory)]
        tiles, segments, edges, starts, words, *weights = views
        return Blocks(shape, tiles, segments, edges, starts, words, weights[0] if weights else None)


@dataclass
class HostBlocks(EdgeBlocks):
    """Blocks on the device, and parts in host memory that follow them."""

    shape: BlockShape
    resident: Blocks
    parts: list[HostPart]
    staging: Staging

    def __post_init__(self) -> None:
        self._counts: dict[str, int] = {}

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

    def on_device(self, *, weighted: bool = True) -> Iterator[Blocks]:
        # The first copy begins while the caller processes the blocks on the device.
        parts = self.stream(range(len(self.parts)), weighted=weighted)
        if self.resident.num_units:
            yield self.resident
        yield from parts
        self._counts["edges"] += self.resident.num_edges

    def in_place(self) -> Iterator[Blocks]:
        yield self.resident
        for part in self.parts:
            yield part.blocks_in(part.memory, self.shape)

    def stream(self, chosen: Iterable[int], *, weighted: bool) -> Iterator[Blocks]:
        """Return host parts as blocks on the device, each valid until the next iteration; perhaps without weights.

        The first copy may begin at once.
        """
        parts = [self.parts[k] for k in chosen]
        streamed = [part.bytes(weighted=weighted) for part in parts]
        self._counts = {
            "edges": sum(part.num_edges for part in parts),
            "link_bytes": sum(memory.nbytes for memory in streamed),
            "host_parts": len(parts),
            "skipped_parts": len(self.parts) - len(parts),
        }
        copies = zip(parts, self.staging.stream(streamed), strict=True)
        return (part.blocks_in(memory, self.shape) for part, memory in copies)


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
    for first, last in _cut(ends, windows, most - PADDING):
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
        starts = _starts(blocks, tile_starts[tiles], tile_edges[tiles.start : tiles.stop + 1])
        memory, places = _side_by_side(backend, arrays)
        units = run_of_units(unit_edges[first : last + 1], 0, last - first)
        yield HostPart(units, starts, _ends(blocks, unit_segments[first:last]), memory, places)


def parts_on_device(backend: Backend, blocks: Blocks) -> list[Part]:
    """Divide blocks on the device into parts, each within one window; of each tile nothing is copied to the host."""
    unit_edges = backend.to_host(blocks.tile_edges[blocks.unit_tiles])
    windows = backend.to_host(blocks.tile_starts[blocks.unit_tiles[:-1]]) >> blocks.shape.window_bits
    unit_tiles, unit_segments = map(backend.to_host, blocks.edges[:2])
    num_parts = min(max(blocks.num_edges // EDGES_OF_PART, MIN_PARTS_ON_DEVICE), PARTS_ON_DEVICE)
    parts = []
    for first, last in _cut(unit_edges, windows, -(-blocks.num_edges // num_parts)):
        starts = _starts_of_tiles(blocks, blocks.tile_starts[int(unit_tiles[first]) : int(unit_tiles[last])])
        ends = _ends(blocks, unit_segments[first:last])
        parts.append(Part(run_of_units(unit_edges, first, last), starts, ends))
    return parts


def _cut(ends: np.ndarray, windows: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Yield runs of units of one window, each of one unit or of at most this much; `ends` are sums over the units."""
    first = 0
    while first < len(windows):
        reach = int(np.searchsorted(ends, ends[first] + most, side="right")) - 1
        window_end = int(np.searchsorted(windows, windows[first], side="right"))
        last = min(max(reach, first + 1), window_end)
        yield first, last
        first = last


def _ends(blocks: Blocks, unit_segments: np.ndarray) -> slice:
    """Return the states in which the edges of units end."""
    return slice(int(unit_segments.min()), int(unit_segments.max()) + (1 << blocks.shape.segment_bits))


def _starts(blocks: Blocks, tile_starts: np.ndarray, tile_edges: np.ndarray) -> slice:
    """Return the states in which the edges of tiles start, read from the edges if tiles are few."""
    if len(tile_starts) > MAX_TILES_READ:
        return _starts_of_tiles(blocks, tile_starts)
    words = [blocks.words[first:last] for first, last in itertools.pairwise(tile_edges.tolist())]
    bits = blocks.shape.segment_bits
    first = min(int(start) + (int(own.min()) >> bits) for start, own in zip(tile_starts, words, strict=True))
    last = max(int(start) + (int(own.max()) >> bits) for start, own in zip(tile_starts, words, strict=True))
    return slice(first, last + 1)


def _starts_of_tiles(blocks: Blocks, tile_starts: Array) -> slice:
    """Return the states in which edges of tiles may start."""
    return slice(int(tile_starts.min()), int(tile_starts.max()) + (1 << blocks.shape.subwindow_bits))


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
