"""Arguments for the kernels of generate/uniform_kernels.py."""

from __future__ import annotations

from hypothesis import strategies as st
from twins.case import Case
from twins.drawing import edges


def uniform_edges(draw: st.DrawFn) -> Case:
    n = draw(st.integers(1, 2**40))
    return edges(draw, {"num_vertices": n, "seed": draw(st.integers(0, 2**62))}, largest=n, num_edges=2**40)


def fixed_out_degree_arcs(draw: st.DrawFn) -> Case:
    n = draw(st.integers(300, 2**40))
    out_degree = draw(st.integers(1, 40))
    shape = {"num_vertices": n, "out_degree": out_degree, "seed": draw(st.integers(0, 2**62))}
    return edges(draw, shape, largest=n, num_edges=n * out_degree)
