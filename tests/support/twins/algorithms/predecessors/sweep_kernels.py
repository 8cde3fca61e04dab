"""Arguments for the kernels of algorithms/predecessors/sweep_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case
from twins.drawing import some, types
from twins.sweeps import SEGMENT_BITS, listed_units, marks, units

from mgraph.types import none_of, unreached_of


def _shared(draw: st.DrawFn) -> tuple[np.random.Generator, dict, np.ndarray]:
    """Draw small distances and weights, so that many are ties and many weights are zero."""
    kinds = draw(types)
    random, half, args = units(draw, num_segments=3)
    dist = random.integers(0, 5, 2 * half).astype(kinds.dist)
    dist[some(random, len(dist), 0.2)] = unreached_of(kinds.dist)
    weights = random.integers(0, 3, len(args["words"])).astype(kinds.weight)
    multiplier = draw(st.integers(1, 3))
    args |= {
        "weights": weights if draw(st.booleans()) else None,
        "shape": np.array([SEGMENT_BITS, draw(st.integers(0, 1)), 2 * half // multiplier, multiplier]),
        "dist": dist,
    }
    return random, args, np.full(2 * half, none_of(kinds.vertex), kinds.vertex)


def sweep_nearer(draw: st.DrawFn) -> Case:
    _, args, parents = _shared(draw)
    rest = {name: args.pop(name) for name in ("shape", "dist")}
    return Case({**args, "segment_bits": SEGMENT_BITS, **rest, "parents": parents})


sweep_nearer_by_warp = sweep_nearer


def sweep_equal(draw: st.DrawFn) -> Case:
    random, args, parents = _shared(draw)
    return Case({**args, "hops": some(random, len(parents)).astype(np.uint8), "parents": parents})


def sweep_marked(draw: st.DrawFn) -> Case:
    random, args, parents = _shared(draw)
    args = listed_units(random, args)
    shape = args.pop("shape")
    dist = args.pop("dist")
    args |= {"segment_bits": SEGMENT_BITS, "shape": shape, "marks": marks(random, len(dist)), "dist": dist}
    return Case({**args, "parents": parents})
