"""Arguments for the kernel of validation/pagerank_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case
from twins.drawing import TYPES, rows, widths


def spread_scores(draw: st.DrawFn) -> Case:
    """Draw weights that are small integers: their sums are exact in any order."""
    r = draw(rows(widths(TYPES[0], TYPES[2])))
    args = {"lo": 0, "hi": r.num_owned, "indptr": r.indptr, "targets": r.targets}
    args |= {"weights": r.weights if draw(st.booleans()) else None}
    args |= {"scores": r.random.random(r.num_owned) / r.num_owned}
    return Case({**args, "received": np.zeros(r.num_states, np.int64)})
