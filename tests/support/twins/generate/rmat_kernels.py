"""Arguments for the kernel of generate/rmat_kernels.py."""

from __future__ import annotations

from hypothesis import strategies as st
from twins.case import Case
from twins.drawing import edges


def rmat_edges(draw: st.DrawFn) -> Case:
    scale = draw(st.integers(0, 40))
    shape = {"scale": scale, "seed": draw(st.integers(0, 2**62)), "scramble": draw(st.integers(0, 1))}
    return edges(draw, shape, largest=2**scale, num_edges=2**40)
