"""Arguments for the kernels of shard/lightest_arcs_kernels.py."""

from __future__ import annotations

from hypothesis import strategies as st
from twins.case import Case, Unwritten
from twins.drawing import rows

from mgraph.backends.numba_helpers import LIGHTEST_BITS


def take_lightest(draw: st.DrawFn) -> Case:
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
        "lightest_targets": Unwritten(num_arcs >> LIGHTEST_BITS, r.types.vertex),
        "lightest_weights": Unwritten(num_arcs >> LIGHTEST_BITS, r.types.weight),
    }
    return Case(args)
