"""Arguments for the kernel of validation/traversal_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case
from twins.drawing import rows, some, types
from twins.sweeps import SEGMENT_BITS, units

from mgraph.types import unreached_of


def check_arcs(draw: st.DrawFn) -> Case:
    r = draw(rows())
    args = {
        "lo": 0,
        "hi": r.num_owned,
        "first": r.base,
        "indptr": r.indptr,
        "targets": r.targets,
        "weights": r.weights if draw(st.booleans()) else None,
        "parent": r.random.integers(0, r.num_states, r.num_states).astype(r.types.vertex),
        "dist": r.distances(),
        "bound": np.array([draw(st.integers(0, 6))], r.types.dist),
        "is_explained": np.zeros(r.num_states, np.uint8),
        "is_shorter": np.zeros(r.num_states, np.uint8),
    }
    return Case(args)


def check_edges(draw: st.DrawFn) -> Case:
    kinds = draw(types)
    random, half, args = units(draw, num_segments=3)
    dist = random.integers(0, 5, 2 * half).astype(kinds.dist)
    dist[some(random, len(dist), 0.2)] = unreached_of(kinds.dist)
    weights = random.integers(0, 3, len(args["words"])).astype(kinds.weight)
    args |= {
        "weights": weights if draw(st.booleans()) else None,
        "shape": np.array([SEGMENT_BITS, draw(st.integers(0, 1))]),
        "parent": random.integers(0, 2 * half, 2 * half).astype(kinds.vertex),
        "dist": dist,
        "bound": np.array([draw(st.integers(0, 6))], kinds.dist),
        "is_explained": np.zeros(2 * half, np.uint8),
        "is_shorter": np.zeros(2 * half, np.uint8),
    }
    return Case(args)
