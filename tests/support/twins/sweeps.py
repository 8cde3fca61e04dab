"""Draw edge blocks for the kernels of both sweeps.

The states after one sweep depend on the order in which edges are relaxed, so twins could differ. Edges drawn here
start in states that no edge writes and end in states that no edge reads, so that every order gives the same states.
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
