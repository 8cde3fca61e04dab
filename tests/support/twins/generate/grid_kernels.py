"""Arguments for the kernel of generate/grid_kernels.py."""

from __future__ import annotations

from hypothesis import strategies as st
from twins.case import Case
from twins.drawing import edges


def grid_edges(draw: st.DrawFn) -> Case:
    num_rows = draw(st.integers(1, 2**20))
    columns = draw(st.integers(1, 2**20))
    shape = {"rows": num_rows, "columns": columns, "seed": draw(st.integers(0, 2**62))}
    shape["drop"] = draw(st.sampled_from([0, 2**62, 2**63 - 1]))
    n = num_rows * columns
    return edges(draw, shape, largest=n, num_edges=2 * n, may_miss=True)
