"""Decode edge blocks, and check the order of their edges."""

from __future__ import annotations

import itertools

import numpy as np


def edges_of(blocks, to_host=np.asarray):
    """Return (start, end, weight) of every edge, decoded as in the docstring of Blocks."""
    shape = blocks.shape
    unit_tiles, segments, tile_edges, starts, words = (to_host(a).astype(np.int64) for a in blocks.edges)
    weights = [1] * len(words) if blocks.weights is None else to_host(blocks.weights).tolist()
    low = (1 << shape.segment_bits) - 1
    edges = []
    for unit, segment in enumerate(segments):
        for tile in range(unit_tiles[unit], unit_tiles[unit + 1]):
            for e in range(tile_edges[tile], tile_edges[tile + 1]):
                edges.append(
                    (int(starts[tile] + (words[e] >> shape.segment_bits)), int(segment + (words[e] & low)), weights[e])
                )
    return edges


def check_order(blocks):
    """Check the sizes of tiles and units, and the order of edges, on which sweeps and their speed depend."""
    shape = blocks.shape
    unit_tiles, segments, tile_edges, starts, _ = blocks.edges
    assert unit_tiles[0] == tile_edges[0] == 0
    assert unit_tiles[-1] == len(starts)
    assert tile_edges[-1] == blocks.num_edges
    assert (np.diff(unit_tiles) > 0).all()
    assert (np.diff(tile_edges) > 0).all()
    assert (np.diff(tile_edges[unit_tiles]) <= shape.unit_size).all()
    assert (segments % (1 << shape.segment_bits) == 0).all()
    assert (starts % (1 << shape.subwindow_bits) == 0).all()
    tile_segments = np.repeat(segments, np.diff(unit_tiles))
    for first, last in itertools.pairwise(unit_tiles):
        assert len(set((starts[first:last] >> shape.window_bits).tolist())) == 1
    of_edge = np.repeat(np.arange(len(starts)), np.diff(tile_edges))
    keys = [
        (starts[t] >> shape.window_bits, tile_segments[t], starts[t], u)
        for t, (u, _, _) in zip(of_edge, edges_of(blocks), strict=True)
    ]
    assert keys == sorted(keys)
