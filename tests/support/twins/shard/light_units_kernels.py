"""Arguments for the kernel of shard/light_units_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case, Unwritten
from twins.drawing import seeds, some, widths


def place_light_first(draw: st.DrawFn) -> Case:
    random = np.random.default_rng(draw(seeds))
    dtype = draw(widths(np.dtype(np.float32), np.dtype(np.uint8)))
    lengths = random.integers(0, 40, draw(st.integers(1, 8)))
    count = int(lengths.sum())
    is_light = some(random, count)
    return Case({
        "lo": 0,
        "hi": count,
        "unit_edges": np.concatenate([[0], np.cumsum(lengths)]),
        "num_units": len(lengths),
        "light_before": np.concatenate([[0], np.cumsum(is_light)]).astype(np.int32),
        "words": random.integers(0, 2**32, count, np.uint32),
        "weights": random.integers(0, 9, count).astype(dtype),
        "sorted_words": Unwritten(count, np.uint32),
        "sorted_weights": Unwritten(count, dtype),
    })  # fmt: skip
