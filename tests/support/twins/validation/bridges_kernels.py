"""Arguments for the kernel of validation/bridges_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.algorithms.bridges.kernels import forest_and_edges
from twins.case import Case


def add_words(draw: st.DrawFn) -> Case:
    _, levels, parents, edges = forest_and_edges(draw)
    args = {"lo": 0, "hi": len(edges), "near": edges[:, 0].copy(), "far": edges[:, 1].copy()}
    return Case({**args, "parents": parents, "words": np.zeros(len(levels), np.int64)})
