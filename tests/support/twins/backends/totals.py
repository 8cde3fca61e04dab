"""Arguments for the kernels of backends/totals.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case
from twins.drawing import seeds


def add_up(draw: st.DrawFn) -> Case:
    random = np.random.default_rng(draw(seeds))
    m = draw(st.integers(1, 400))
    dtype = draw(st.sampled_from([np.dtype(np.uint8), np.dtype(np.uint32), np.dtype(np.int64)]))
    values = random.integers(0, 256, m).astype(dtype)
    return Case({"lo": 0, "hi": m, "values": values, "total": np.array([draw(st.integers(-9, 9))])})


def count_between(draw: st.DrawFn) -> Case:
    given = add_up(draw).args
    above, below = sorted(draw(st.tuples(st.integers(-1, 256), st.integers(-1, 256))))
    given |= {"above": above, "below": below, "count": given.pop("total")}
    return Case(given)
