"""Arguments for the kernels of validation/spanning_forest_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.algorithms.spanning_forest.kernels import any_weights, positions, sort_rows
from twins.case import Case, Unwritten
from twins.drawing import rows


def find_claimed(draw: st.DrawFn) -> Case:
    r = draw(rows())
    sort_rows(r)
    n = draw(st.integers(0, 100))
    asked = {"rows": r.random.integers(0, r.num_owned, n), "positions": r.random.integers(0, r.num_states, n)}
    # Some of them are arcs.
    for i in np.flatnonzero(r.random.random(n) < 0.5):
        row = r.targets[r.indptr[asked["rows"][i]] : r.indptr[asked["rows"][i] + 1]]
        if len(row):
            asked["positions"][i] = positions(r)[r.random.choice(row)]
    shape = {"indptr": r.indptr, "targets": r.targets, "stride": r.stride, "multiplier": r.multiplier}
    return Case({"lo": 0, "hi": n, **asked, **shape, "arcs": Unwritten(n, np.int64)})


def check_outside(draw: st.DrawFn) -> Case:
    r = draw(rows())
    weights = any_weights(draw, r)
    # Three rounds, each with fewer trees; the nodes of the last level are their own parents.
    sizes = [r.num_states, draw(st.integers(2, 30)), draw(st.integers(1, 5)), draw(st.integers(1, 2))]
    starts = np.cumsum([0, *sizes])
    above = [start + r.random.integers(0, n, m) for start, n, m in zip(starts[1:], sizes[1:], sizes, strict=False)]
    last = np.arange(starts[-2], starts[-1])
    heaviest = r.random.integers(-3, 3, starts[-1]).astype(np.int64 if weights.itemsize == 8 else np.int32)
    args = {"lo": 0, "hi": r.num_owned, "indptr": r.indptr, "targets": r.targets, "weights": weights, "base": r.base}
    args |= {"above": np.concatenate([*above, last]).astype(r.types.vertex), "heaviest": heaviest}
    return Case(args | {name: np.zeros(r.num_owned, np.uint8) for name in ("crosses", "lighter")})
