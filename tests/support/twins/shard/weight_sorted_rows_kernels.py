"""Arguments for the kernels of shard/weight_sorted_rows_kernels.py."""

from __future__ import annotations

from hypothesis import strategies as st
from twins.case import Case, Unwritten
from twins.drawing import rows


def sort_rows(draw: st.DrawFn) -> Case:
    """Rows of several classes; some have so many arcs that a whole block sorts them."""
    r = draw(rows())
    if draw(st.booleans()):
        r = r.lengthened(5000)
    num_arcs = len(r.targets)
    args = {
        "lo": 0,
        "hi": r.num_owned,
        "indptr": r.indptr,
        "targets": r.targets,
        "weights": r.random.integers(0, 100, num_arcs).astype(r.types.weight),
        "scale": draw(st.sampled_from([1.0, 0.1, 100.0, 0.0])),
        "out_targets": Unwritten(num_arcs, r.types.vertex),
        "out_weights": Unwritten(num_arcs, r.types.weight),
    }
    return Case(args)
