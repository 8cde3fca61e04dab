"""Arguments for the kernels of validation/spanning_forest_blocks_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case
from twins.drawing import types
from twins.sweeps import SEGMENT_BITS, units

from mgraph.partition import Partition


def find_claimed_edges(draw: st.DrawFn) -> Case:
    """Draw names of which some are edges; parallel edges have one weight, since any of them may write the key."""
    kinds = draw(types)
    random, half, args = units(draw, num_segments=3)
    multiplier = draw(st.integers(1, 3))
    partition = Partition(2 * half // multiplier * multiplier, multiplier, multiplier > 1)
    claimed = np.unique(random.integers(0, 2 * half, (80, 2)) @ np.array([1 << 32, 1]))
    words = args["words"].astype(np.int64)
    of_tile = np.repeat(np.arange(len(args["tile_starts"])), np.diff(args["tile_edges"]))
    of_unit = np.repeat(np.arange(len(args["unit_segments"])), np.diff(args["unit_tiles"]))
    starts = args["tile_starts"][of_tile] + (words >> SEGMENT_BITS)
    ends = args["unit_segments"][of_unit[of_tile]] + (words & ((1 << SEGMENT_BITS) - 1))
    states = np.stack([starts, ends])
    low, high = np.sort(partition.position(states), axis=0)
    names = low << 32 | high
    some = random.random(len(names)) < 0.3
    claimed = np.unique(np.concatenate([claimed, names[some]]))
    args |= {
        "weights": (names % 7).astype(kinds.weight),
        "bounds": np.array(
            [SEGMENT_BITS, partition.stride, partition.multiplier, draw(st.integers(0, 1)), len(claimed)]
        ),
        "positions": np.zeros(1, kinds.vertex),
        "claimed": claimed,
        "is_there": np.zeros(len(claimed), np.uint8),
        "keys": np.zeros(len(claimed), np.int64),
    }
    return Case(args)


def check_outside_edges(draw: st.DrawFn) -> Case:
    kinds = draw(types)
    random, half, args = units(draw, num_segments=3)
    # Three rounds, each with fewer trees; the nodes of the last level are their own parents.
    sizes = [2 * half, draw(st.integers(2, 30)), draw(st.integers(1, 5)), draw(st.integers(1, 2))]
    starts = np.cumsum([0, *sizes])
    above = [start + random.integers(0, n, m) for start, n, m in zip(starts[1:], sizes[1:], sizes, strict=False)]
    last = np.arange(starts[-2], starts[-1])
    args |= {
        "weights": random.integers(0, 3, len(args["words"])).astype(kinds.weight),
        "bounds": np.array([SEGMENT_BITS, draw(st.integers(0, 1))]),
        "above": np.concatenate([*above, last]).astype(kinds.vertex),
        "heaviest": random.integers(-3, 3, starts[-1]).astype(draw(st.sampled_from([np.int32, np.int64]))),
        "crosses": np.zeros(2 * half, np.uint8),
        "lighter": np.zeros(2 * half, np.uint8),
    }
    return Case(args)
