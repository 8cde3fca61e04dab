"""Divide the units of blocks into light and heavy ones, for the first shortest paths over them.

Most distances are found over light edges alone: an eighth of all, read often, and the heavy ones seldom. The edges of
every unit are put in order where they are, light ones first, and the heavy ones become a unit of their own: sweeps for
anything else read the same blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

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
# precede it, and as much scratch.
EDGE_BYTES = 10
# A tile may be divided in two, and is held three times at most: before, in pieces, and joined.
TILE_BYTES = 16


class _Units(NamedTuple):
    """The headers of a run of units, by lengths."""

    tiles: Array
    segments: Array
    edges_of_tiles: Array
    starts_of_tiles: Array
    is_light: Array


def require_light_units(shard: Shard, blocks: Blocks) -> bool:
    """Divide units into light and heavy ones, unless memory is short; return whether they are divided."""
    if blocks.groups:
        return True
    backend = shard.backend
    whole = [whole_group(shard, blocks)]
    if blocks.weights is None or not blocks.num_edges:
        blocks.groups = whole
        return True
    beside = (4 + blocks.weights.itemsize + EDGE_BYTES) * min(BATCH_EDGES, blocks.num_edges)
    if beside + 5 * TILE_BYTES * len(blocks.tile_starts) > backend.free_bytes():
        return False
    heaviest_light = _quantile(backend, blocks.weights)
    is_light = _divide_units(backend, blocks, heaviest_light)
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
    pieces: list[_Units] = []
    done = 0
    try:
        for first, last in _batches(backend, blocks, unit_tiles):
            pieces.append(_divide_batch(backend, blocks, unit_tiles, slice(first, last), heaviest_light))
            done = last
    finally:
        # Also after a failure the headers are those of the edges as they are.
        pieces.append(_as_they_are(backend, blocks, done))
        tiles, segments, edges, starts, light = (backend.xp.concatenate(column) for column in zip(*pieces, strict=True))
        del pieces
        blocks.unit_tiles = _bounds(backend, tiles)
        blocks.unit_segments = segments
        blocks.tile_edges = _bounds(backend, edges)
        blocks.tile_starts = starts
    backend.release()
    return light


def _batches(backend: Backend, blocks: Blocks, unit_tiles: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield runs of units of few edges."""
    ends = backend.to_host(blocks.tile_edges[blocks.unit_tiles])
    first = 0
    while first < len(ends) - 1:
        last = max(int(np.searchsorted(ends, ends[first] + BATCH_EDGES, side="right")) - 1, first + 1)
        yield first, last
        first = last


def _divide_batch(
    backend: Backend, blocks: Blocks, unit_tiles: np.ndarray, units: slice, heaviest_light: float | int
) -> _Units:
    """Put the light edges of each unit of a run first; return the units that they make."""
    xp = backend.xp
    assert blocks.weights is not None, "only edges with weights are divided"
    tiles = slice(int(unit_tiles[units.start]), int(unit_tiles[units.stop]))
    of_unit = unit_tiles[units.start : units.stop + 1] - tiles.start
    tile_edges = blocks.tile_edges[tiles.start : tiles.stop + 1]
    edges = slice(int(tile_edges[0]), int(tile_edges[-1]))
    tile_edges = tile_edges - edges.start
    words = blocks.words[edges]
    weights = blocks.weights[edges]
    light_before = xp.zeros(len(weights) + 1, np.int32)
    xp.cumsum(weights <= heaviest_light, dtype=np.int32, out=light_before[1:])
    light_tiles = (light_before[tile_edges[1:]] - light_before[tile_edges[:-1]]).astype(np.int64)
    # Of a unit with tiles a .. c, the light part of tile t is at a + t, the heavy part at c + t.
    num_units = len(of_unit) - 1
    num_tiles = len(tile_edges) - 1
    bounds = backend.to_device(of_unit)
    unit = xp.repeat(xp.arange(num_units), np.diff(of_unit).tolist())
    lengths, starts, part_of = (xp.empty(2 * num_tiles, np.int64) for _ in range(3))
    for first, length, part in (
        (bounds[:-1], light_tiles, 0),
        (bounds[1:], tile_edges[1:] - tile_edges[:-1] - light_tiles, 1),
    ):
        places = first[unit] + xp.arange(num_tiles)
        lengths[places] = length
        starts[places] = blocks.tile_starts[tiles]
        part_of[places] = 2 * unit + part
    kept = xp.flatnonzero(lengths)
    num_kept = xp.bincount(part_of[kept], minlength=2 * num_units)
    parts = xp.flatnonzero(num_kept)
    divided = _Units(
        num_kept[parts],
        blocks.unit_segments[units][parts >> 1],
        lengths[kept],
        starts[kept],
        ((parts & 1) == 0).astype(np.uint8),
    )
    # Last: nothing fails between this and the change of the headers.
    place_light_first[backend](
        0, len(weights), tile_edges[bounds], num_units, light_before, words.copy(), weights.copy(), words, weights
    )
    return divided


def _as_they_are(backend: Backend, blocks: Blocks, first: int) -> _Units:
    """Return the units from one on as they are, as heavy ones."""
    tiles = slice(int(blocks.unit_tiles[first]), None)
    return _Units(
        backend.xp.diff(blocks.unit_tiles[first:]),
        blocks.unit_segments[first:],
        backend.xp.diff(blocks.tile_edges[tiles]),
        blocks.tile_starts[tiles],
        backend.xp.zeros(blocks.num_units - first, np.uint8),
    )


def _bounds(backend: Backend, lengths: Array) -> Array:
    """Return where runs of these lengths begin, and the end."""
    bounds = backend.xp.zeros(len(lengths) + 1, np.int64)
    backend.xp.cumsum(lengths, out=bounds[1:])
    return bounds
