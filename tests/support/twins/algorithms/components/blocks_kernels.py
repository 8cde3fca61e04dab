"""Arguments for the kernel of algorithms/components/blocks_kernels.py."""

from __future__ import annotations

from hypothesis import strategies as st
from twins.algorithms.components.kernels import _forest, _with_roots
from twins.case import Case
from twins.drawing import vertex_types
from twins.sweeps import SEGMENT_BITS, units


def link_edges(draw: st.DrawFn) -> Case:
    random, half, args = units(draw, num_segments=3)
    multiplier = draw(st.integers(1, 3))
    # Of a multiple of the ranks, so that every state has a position.
    stride = -(-2 * half // multiplier)
    args |= {"segment_bits": SEGMENT_BITS, "stride": stride, "multiplier": multiplier}
    return Case({**args, "parents": _forest(random, stride * multiplier, draw(vertex_types))}, _with_roots)
