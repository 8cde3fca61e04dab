"""Edges in the segment-sorted form, as both sweeps take them.

What a sweep leaves depends on the order of its edges, so that twins may differ after one. Both must leave
what is right: nothing rises, nothing falls below what the edges can give, and in the end both stand at the
same fixed point. So edges here lead from states that do not change to states that nothing is read from.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.drawing import seeds

SEGMENT_BITS = 5
TILE_EDGES = 70


def units(draw: st.DrawFn, num_segments: int) -> tuple[np.random.Generator, int, dict]:
    """Return arrays of units, each of a few tiles: starts in the lower half of the states, ends in the upper."""
    random = np.random.default_rng(draw(seeds))
    half = num_segments << SEGMENT_BITS
    num_units = draw(st.integers(1, 6))
    tiles = random.integers(1, 4, num_units)
    edges = random.integers(0, TILE_EDGES, int(tiles.sum()))
    num_edges = int(edges.sum())
    segments = half + (random.integers(0, num_segments, num_units) << SEGMENT_BITS)
    starts = random.integers(0, half // 2, len(edges))
    words = random.integers(0, half // 2, num_edges) << SEGMENT_BITS | random.integers(0, 1 << SEGMENT_BITS, num_edges)
    args = {
        "lo": 0,
        "hi": num_units,
        "unit_tiles": np.concatenate([[0], np.cumsum(tiles)]),
        "unit_segments": segments,
        "tile_edges": np.concatenate([[0], np.cumsum(edges)]),
        "tile_starts": starts,
        "words": words.astype(np.uint32),
    }
    return random, half, args
