"""Arguments for the kernel of algorithms/spanning_forest/blocks_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case, Unwritten, queues
from twins.drawing import types
from twins.sweeps import SEGMENT_BITS, units

from mgraph.algorithms.spanning_forest.kernels import TOP


def list_block_edges(draw: st.DrawFn) -> Case:
    """Draw few weights and few trees, so that many edges are dropped, with ties at the bound."""
    kinds = draw(types)
    random, half, args = units(draw, num_segments=3)
    num_edges = len(args["words"])
    multiplier = draw(st.integers(1, 3))
    stride = -(-2 * half // multiplier)
    key = int(random.integers(0, 4))
    bits = np.array([key], kinds.weight)
    if kinds.weight.kind == "f":
        key = int(bits.view(f"i{kinds.weight.itemsize}")[0])
    inverted = draw(st.integers(0, 1))
    bound = draw(st.sampled_from([(TOP, TOP), (~key if inverted else key, int(random.integers(0, half)) << 32)]))
    args |= {
        "weights": random.integers(0, 4, num_edges).astype(kinds.weight),
        "bounds": np.array([SEGMENT_BITS, stride, multiplier, inverted, *bound]),
        "labels": random.integers(0, draw(st.sampled_from([1, 3])), stride * multiplier).astype(kinds.vertex),
        "counters": np.zeros(1, np.int64),
        "names": Unwritten(num_edges, np.int64),
        "keys": Unwritten(num_edges, np.int64),
    }
    return Case(args, queues(counters_0=("names", "keys")))
