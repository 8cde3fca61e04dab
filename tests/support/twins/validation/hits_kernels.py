"""Arguments for the kernel of validation/hits_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case, Unwritten
from twins.drawing import TYPES, rows, widths


def exchange_scores(draw: st.DrawFn) -> Case:
    r = draw(rows(widths(TYPES[0], TYPES[2])))
    weights = r.weights if draw(st.booleans()) else None
    share = 1 / (4.0 * max(float(r.weights.max(initial=1)), 1.0))
    args = {"lo": 0, "hi": r.num_owned, "indptr": r.indptr, "targets": r.targets, "weights": weights, "share": share}
    args |= {"hubs": r.random.random(r.num_owned) / r.num_owned}
    args |= {"authorities": r.random.random(r.num_states) / r.num_states}
    return Case({**args, "along": np.zeros(r.num_states, np.int64), "against": Unwritten(r.num_owned, np.int64)})
