"""Arguments for the kernel of generate/ssca2_kernels.py."""

from __future__ import annotations

from hypothesis import strategies as st
from twins.case import Case
from twins.drawing import edges


def ssca2_edges(draw: st.DrawFn) -> Case:
    """Work items are vertices, each with `slots` slots."""
    scale = draw(st.integers(1, 33))
    max_clique = draw(st.integers(1, 20))
    shape = {"scale": scale, "seed": draw(st.integers(0, 2**62)), "max_clique": max_clique}
    shape |= {"window": draw(st.sampled_from([64, 1024])), "scramble": draw(st.integers(0, 1))}
    slots = max_clique // 2 + 1
    return edges(draw, shape, largest=2**scale, num_edges=2**scale, may_miss=True, slots=slots)
