"""Divide the units of blocks into light and heavy ones, for the first shortest paths over them.

Most distances are found over light edges alone: an eighth of all, read often, and the heavy ones seldom. In every unit
the light edges are moved to the front, and the heavy ones become a unit of their own. All other sweeps read the same
blocks. After a failure some units are divided and others not, and the blocks are valid.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np

from mgraph.backends.base import Backend
from mgraph.shard.light_units_kernels import place_light_first
from mgraph.shard.shard import Blocks, Shard, UnitGroup
from mgraph.types import Array

# Light edges are this share of all, or more where many weights are equal. Over an eighth, sweeps of RMAT and uniform
# graphs read fewest edges in all (a quarter: 1.2 times as many).
LIGHT_SHARE = 1 / 8
SAMPLE = 1 << 20
# Edges that are sorted at once, at least one unit.
BATCH_EDGES = 1 << 24
# Temporary bytes of an edge of a batch, beside a copy of its word and weight: whether it is light, how many light ones
# precede it, and as much scratch. Of a tile of a batch.
EDGE_BYTES = 10
BATCH_TILE_BYTES = 160
# Bytes of the headers of a tile.
TILE_BYTES = 16


def require_light_units(shard: Shard, blocks: Blocks) -> bool:
    """Divide units into light and heavy ones, unless memory is short; return whether they are divided."""
    if blocks.groups:
        return True
    backend = shard.backend
    whole = [whole_group(shard, blocks)]
    if blocks.weights is None or not blocks.num_edges:
        blocks.groups = whole
        return True
    batch = min(BATCH_EDGES, blocks.num_edges)
    num_tiles = len(blocks.tile_starts)
    beside = (4 + blocks.weights.itemsize + EDGE_BYTES) * batch + BATCH_TILE_BYTES * min(batch, num_tiles)
    if beside + 2 * TILE_BYTES * num_tiles > backend.free_bytes():
        return False
    heaviest_light = _quantile(backend, blocks.weights)
    try:
        is_light = _divide_units(backend, blocks, heaviest_light)
    except MemoryError:
        return False
    if bool(is_light.all()):
        blocks.groups = whole
    else:
        heavy = (1 - is_light).astype(np.uint8)
        blocks.groups = [UnitGroup(is_light, shard.info.min_weight), UnitGroup(heavy, heaviest_light)]
    return True


def groups_of(shard: Shard, blocks: Blocks) -> list[UnitGroup]:
    """Return the groups of units, light ones first: one group where they are not divided."""
    return blocks.groups or [whole_group(shard, blocks)]


def whole_group(shard: Shard, blocks: Blocks) -> UnitGroup:
    """Return all units as one group."""
    return UnitGroup(None, 1 if blocks.weights is None else shard.info.min_weight)


def _quantile(backend: Backend, weights: Array) -> float | int:
    """Return the heaviest weight of a light edge, from a sample."""
    sample = np.sort(backend.to_host(weights[:: -(-len(weights) // SAMPLE)]))
    return sample[int(LIGHT_SHARE * (len(sample) - 1))].item()


def _divide_units(backend: Backend, blocks: Blocks, heaviest_light: float | int) -> Array:
    """Divide all units; return which of the new ones are light."""
    unit_tiles = backend.to_host(blocks.unit_tiles)
    headers = _Headers(backend, blocks)
    done = 0
    try:
        for first, last in _batches(backend, blocks, unit_tiles):
            _divide_batch(backend, blocks, unit_tiles, slice(first, last), heaviest_light, headers)
            done = last
    finally:
        # Also after a failure the headers are those of the edges as they are; nothing is allocated for that.
        headers.keep_from(blocks, done, int(unit_tiles[done]))
        headers.replace(blocks)
    is_light = headers.is_light[: headers.num_units]
    del headers
    with contextlib.suppress(MemoryError):
        for name in ("unit_tiles", "unit_segments", "tile_edges", "tile_starts"):
            setattr(blocks, name, getattr(blocks, name).copy())
    backend.release()
    return is_light


class _Headers:
    """The headers of divided units, in memory for twice as many."""

    def __init__(self, backend: Backend, blocks: Blocks) -> None:
        xp = backend.xp
        self.xp = xp
        self.num_units = 0
        self.num_tiles = 0
        num_units = 2 * blocks.num_units
        num_tiles = 2 * len(blocks.tile_starts)
        self.unit_tiles = xp.zeros(num_units + 1, np.int64)
        self.unit_segments = xp.empty(num_units, np.int64)
        self.is_light = xp.zeros(num_units, np.uint8)
        self.tile_edges = xp.zeros(num_tiles + 1, np.int64)
        self.tile_starts = xp.empty(num_tiles, np.int64)

    def write(self, tiles: Array, segments: Array, is_light: Array, edges: Array, starts: Array) -> tuple[int, int]:
        """Write units with these numbers of tiles, and tiles with these numbers of edges; return the new numbers."""
        units = slice(self.num_units, self.num_units + len(tiles))
        self.unit_segments[units] = segments
        self.is_light[units] = is_light
        places = slice(self.num_tiles, self.num_tiles + len(edges))
        self.tile_starts[places] = starts
        for bounds, at, lengths in (
            (self.unit_tiles, self.num_units, tiles),
            (self.tile_edges, self.num_tiles, edges),
        ):
            ends = bounds[at + 1 : at + 1 + len(lengths)]
            self.xp.cumsum(lengths, out=ends)
            ends += bounds[at]
        return units.stop, places.stop

    def keep_from(self, blocks: Blocks, first: int, first_tile: int) -> None:
        """Append the units from one on as they are, as heavy ones."""
        num_units = blocks.num_units - first
        num_tiles = len(blocks.tile_starts) - first_tile
        bounds = self.unit_tiles[self.num_units : self.num_units + num_units + 1]
        bounds[:] = blocks.unit_tiles[first:]
        bounds += self.num_tiles - first_tile
        self.unit_segments[self.num_units : self.num_units + num_units] = blocks.unit_segments[first:]
        self.tile_edges[self.num_tiles : self.num_tiles + num_tiles + 1] = blocks.tile_edges[first_tile:]
        self.tile_starts[self.num_tiles : self.num_tiles + num_tiles] = blocks.tile_starts[first_tile:]
        self.num_units += num_units
        self.num_tiles += num_tiles

    def replace(self, blocks: Blocks) -> None:
        """Make these the headers of the blocks."""
        blocks.unit_tiles = self.unit_tiles[: self.num_units + 1]
        blocks.unit_segments = self.unit_segments[: self.num_units]
        blocks.tile_edges = self.tile_edges[: self.num_tiles + 1]
        blocks.tile_starts = self.tile_starts[: self.num_tiles]


def _batches(backend: Backend, blocks: Blocks, unit_tiles: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield runs of units of few edges."""
    ends = backend.to_host(blocks.tile_edges[blocks.unit_tiles])
    first = 0
    while first < len(ends) - 1:
        last = max(int(np.searchsorted(ends, ends[first] + BATCH_EDGES, side="right")) - 1, first + 1)
        yield first, last
        first = last


def _divide_batch(
    backend: Backend,
    blocks: Blocks,
    unit_tiles: np.ndarray,
    units: slice,
    heaviest_light: float | int,
    headers: _Headers,
) -> None:
    """Put the light edges of each unit of a run first, and write the headers of what they make."""
    xp = backend.xp
    assert blocks.weights is not None, "only edges with weights are divided"
    tiles = slice(int(unit_tiles[units.start]), int(unit_tiles[units.stop]))
    bounds = blocks.unit_tiles[units.start : units.stop + 1] - tiles.start
    tile_edges = blocks.tile_edges[tiles.start : tiles.stop + 1]
    edges = slice(int(tile_edges[0]), int(tile_edges[-1]))
    tile_edges = tile_edges - edges.start
    words = blocks.words[edges]
    weights = blocks.weights[edges]
    light_before = xp.zeros(len(weights) + 1, np.int32)
    xp.cumsum(weights <= heaviest_light, dtype=np.int32, out=light_before[1:])
    light = (light_before[tile_edges[1:]] - light_before[tile_edges[:-1]]).astype(np.int64)
    heavy = tile_edges[1:] - tile_edges[:-1] - light
    # Of a unit with tiles a .. c, the light part of tile t is at a + t, the heavy part at c + t.
    num_units = len(bounds) - 1
    tile = xp.arange(len(light))
    unit = xp.searchsorted(bounds[1:], tile, side="right")
    lengths, starts, part_of = (xp.empty(2 * len(tile), np.int64) for _ in range(3))
    for part, first, length in ((0, bounds[:-1], light), (1, bounds[1:], heavy)):
        places = first[unit] + tile
        lengths[places] = length
        starts[places] = blocks.tile_starts[tiles]
        part_of[places] = 2 * unit + part
    kept = xp.flatnonzero(lengths)
    num_kept = xp.bincount(part_of[kept], minlength=2 * num_units)
    parts = xp.flatnonzero(num_kept)
    segments = blocks.unit_segments[units][parts >> 1]
    written = headers.write(num_kept[parts], segments, (parts & 1) == 0, lengths[kept], starts[kept])
    sorted_words = xp.empty_like(words)
    sorted_weights = xp.empty_like(weights)
    place_light_first[backend](
        0, len(weights), tile_edges[bounds], num_units, light_before, words, weights, sorted_words, sorted_weights
    )
    backend.synchronize()
    # A launch may end early, with an exception. From here on nothing fails.
    words[:] = sorted_words
    weights[:] = sorted_weights
    headers.num_units, headers.num_tiles = written
