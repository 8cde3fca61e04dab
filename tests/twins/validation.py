"""Arguments for the kernel of validation.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case
from twins.drawing import rows


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
