"""Arguments for the kernel of algorithms/bfs/sweep_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Arrays, Case
from twins.drawing import widths
from twins.sweeps import SEGMENT_BITS, units


def sweep_levels(draw: st.DrawFn) -> Case:
    """Lower all levels to one value, so that the order of the edges has no effect."""
    dtype = draw(widths(np.dtype(np.uint8), np.dtype(np.int32)))
    random, half, args = units(draw, num_segments=3)
    level = draw(st.integers(0, 2))
    # Often without improvements: a sweep that counted one by mistake would never be the last.
    values = [level, level + 1] if draw(st.booleans()) else [0, 1, 2, np.iinfo(dtype).max]
    levels = random.choice(np.array(values), 2 * half).astype(dtype)
    args |= {"segment_bits": SEGMENT_BITS, "both_ways": draw(st.integers(0, 1)), "level": level}
    args |= {"before": levels, "levels": levels, "counters": np.zeros(1, np.int64)}
    return Case(args, _without_repeats)


def _without_repeats(result: Arrays) -> Arrays:
    """Keep of the counter whether a level fell: several threads may count one improvement."""
    return {**result, "counters": result["counters"] > 0}
