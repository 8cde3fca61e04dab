"""Arguments for the kernel of algorithms/common/swept_states_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case, Unwritten
from twins.drawing import TYPES, seeds, widths

from mgraph.types import unreached_of


def find_extremes(draw: st.DrawFn) -> Case:
    """Draw segments of less and more states than a warp, in which none, some or all states have changed."""
    dtype = draw(widths(np.dtype(np.uint8), *(one.dist for one in TYPES)))
    random = np.random.default_rng(draw(seeds))
    bits = draw(st.sampled_from([3, 6]))
    num_segments = draw(st.integers(1, 5))
    count = num_segments << bits
    states = np.where(random.random(count) < 0.3, unreached_of(dtype), random.integers(0, 9, count)).astype(dtype)
    unchanged = np.repeat(random.choice([0, 0.9, 1], num_segments), 1 << bits)
    before = np.where(random.random(count) < unchanged, states, unreached_of(dtype)).astype(dtype)
    args = {
        "lo": 0,
        "hi": num_segments,
        "segment_bits": bits,
        "states": states,
        "before": before,
        "lowest": np.full(num_segments, unreached_of(dtype), dtype),
        # The byte of an unreached state is one of unwritten memory.
        "highest": np.zeros(num_segments, dtype) if dtype.itemsize == 1 else Unwritten(num_segments, dtype),
    }
    return Case(args)
