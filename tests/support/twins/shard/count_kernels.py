"""Arguments for the kernels of shard/count_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case
from twins.drawing import seeds, vertex_types


def count_degrees(draw: st.DrawFn) -> Case:
    random = np.random.default_rng(draw(seeds))
    dtype = draw(vertex_types)
    n = draw(st.integers(1, 40))
    m = draw(st.integers(1, 400))
    args = {
        "lo": 0,
        "hi": m,
        "sources": random.integers(0, n, m).astype(dtype),
        "targets": random.integers(0, n, m).astype(dtype),
        "out_degrees": np.zeros(n, np.uint32),
        "in_degrees": np.zeros(n, np.uint32),
        "num_loops": np.zeros(1, np.int64),
    }
    return Case(args)


def count_values(draw: st.DrawFn) -> Case:
    random = np.random.default_rng(draw(seeds))
    dtype = draw(vertex_types)
    n = draw(st.integers(1, 40))
    m = draw(st.integers(1, 400))
    values = random.integers(0, n, m).astype(dtype)
    return Case({"lo": 0, "hi": m, "values": values, "counts": np.zeros(n, np.int64)})
