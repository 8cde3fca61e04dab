"""Arguments for the kernels of algorithms/sssp/sweep_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case
from twins.drawing import Types, types
from twins.sweeps import SEGMENT_BITS, listed_units, marks, units

from mgraph.types import unreached_of


def _relaxed(draw: st.DrawFn, *, unit_weights: bool) -> tuple[np.random.Generator, Types, dict]:
    """Draw starts nearer than any end, so that one sweep gives every end its minimum, in any order.

    Where edges go against their direction, starts are all unreached and ends do not change.
    """
    kinds = draw(types)
    random, half, args = units(draw, num_segments=3)
    against = draw(st.booleans())
    top = unreached_of(kinds.dist)
    # So that no end is so near as to lower the start of another of its edges, which all count 1 without weights.
    near = random.integers(0, 2 if unit_weights else 4, half).astype(kinds.dist)
    far = np.where(random.random(half) < 0.5, top, random.integers(4, 9, half)).astype(kinds.dist)
    weights = random.integers(4, 9, len(args["words"])).astype(kinds.weight)
    args |= {
        "weights": None if unit_weights else weights,
        "segment_bits": SEGMENT_BITS,
        "both_ways": 1 if against else draw(st.integers(0, 1)),
        "dist": np.concatenate([far, near] if against else [near, far]),
    }
    return random, kinds, args


def sweep_distances(draw: st.DrawFn) -> Case:
    random, kinds, args = _relaxed(draw, unit_weights=draw(st.booleans()))
    dist = args.pop("dist")
    grain_bits = draw(st.integers(3, SEGMENT_BITS))
    args |= {
        "shape": np.array([args.pop("both_ways"), grain_bits]),
        "limit": np.array([draw(st.sampled_from([6, unreached_of(kinds.dist)]))], kinds.dist),
        "before": dist,
        "dist": dist,
        "lowered": random.integers(0, 2, -(-len(dist) >> grain_bits)).astype(np.uint8),
    }
    return Case(args)


sweep_distances_by_warp = sweep_distances


def sweep_active(draw: st.DrawFn) -> Case:
    random, _, args = _relaxed(draw, unit_weights=draw(st.booleans()))
    dist = args.pop("dist")
    lowered = np.zeros(len(dist) >> 5, np.uint32)
    return Case(listed_units(random, args) | {"marks": marks(random, len(dist)), "dist": dist, "lowered": lowered})
