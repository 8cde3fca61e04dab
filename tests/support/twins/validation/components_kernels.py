"""Arguments for the kernels of validation/components_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case
from twins.drawing import TYPES, DrawnRows, rows, widths

unweighted = rows(widths(TYPES[0], TYPES[2]))


def _arcs(r: DrawnRows) -> dict:
    return {"lo": 0, "hi": r.num_owned, "first": r.base, "indptr": r.indptr, "targets": r.targets}


def mark_torn(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    labels = r.random.integers(0, draw(st.sampled_from([1, 2, 50])), r.num_states).astype(r.types.vertex)
    # With one label and one exception, few rows have a mismatch.
    labels[0] = 0 if labels.any() else 7
    return Case({**_arcs(r), "labels": labels, "is_mismatch": np.zeros(r.num_owned, np.uint8)})


def hook_roots(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    roots = r.random.integers(0, draw(st.integers(1, r.num_states)), r.num_states).astype(r.types.vertex)
    lower = np.arange(r.num_states).astype(r.types.vertex)
    return Case({**_arcs(r), "roots": roots, "lower": lower, "counters": np.zeros(1, np.int64)})
