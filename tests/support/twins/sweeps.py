"""Draw edge blocks for the kernels of sweeps, marks of states, and flags of their ranges.

The states after one sweep depend on the order in which edges are relaxed, so twins could differ. Edges drawn here
start in states that no edge writes and end in states that no edge reads, so that every order gives the same states.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.drawing import seeds, some

SEGMENT_BITS = 5
# Of a tile, for each unit: with few edges a unit is small (tiles.cuh).
TILE_EDGES = 2, 70
# Windows of several words, and of one.
WINDOW_BITS = st.sampled_from([5, 6])


def units(draw: st.DrawFn, num_segments: int) -> tuple[np.random.Generator, int, dict]:
    """Return arrays of units, each of a few tiles: starts in the lower half of the states, ends in the upper."""
    random = np.random.default_rng(draw(seeds))
    half = num_segments << SEGMENT_BITS
    num_units = draw(st.integers(1, 6))
    tiles = random.integers(1, 4, num_units)
    edges = random.integers(0, np.repeat(random.choice(TILE_EDGES, num_units), tiles))
    num_edges = int(edges.sum())
    segments = half + (random.integers(0, num_segments, num_units) << SEGMENT_BITS)
    # In rising order within a unit.
    starts = random.integers(0, half // 2, len(edges))
    starts = starts[np.lexsort([starts, np.repeat(np.arange(num_units), tiles)])]
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


def flagged_units(draw: st.DrawFn) -> tuple[np.random.Generator, int, dict, dict]:
    """Return the number of states, arrays of units, and a shape with flags of its ranges."""
    random, half, args = units(draw, num_segments=3)
    num_states = 2 * half
    window_bits = draw(WINDOW_BITS)
    multiplier = draw(st.integers(1, 3))
    shape = [draw(st.integers(0, 1)), num_states // multiplier, multiplier, SEGMENT_BITS, window_bits]
    flags = {
        name: some(random, 2 * ((num_states >> bits) + 1), 0.7).astype(np.uint8)
        for name, bits in (("segments", SEGMENT_BITS), ("windows", window_bits))
    }
    return random, num_states, args, {"shape": np.array(shape), **flags}


def listed_units(random: np.random.Generator, args: dict) -> dict:
    """Return the arguments of a kernel of which the work items are places in a list of units."""
    listed = np.flatnonzero(some(random, args["hi"], 0.7))
    return {"lo": 0, "hi": len(listed), "units": listed, **{k: v for k, v in args.items() if k not in ("lo", "hi")}}


def marks(random: np.random.Generator, num_states: int) -> np.ndarray:
    """Return two bits of every state, in 64 for 32 states: active ones above, open ones below."""
    active, is_open = (random.integers(0, 2**32, num_states >> 5, np.uint64) for _ in range(2))
    return active << np.uint64(32) | is_open
