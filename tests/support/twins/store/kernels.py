"""Arguments for the kernels of store/kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case, Unwritten
from twins.drawing import seeds, vertex_types, weight_types


def move_arcs(draw: st.DrawFn) -> Case:
    """Move the rows of a piece to places in any other order."""
    random = np.random.default_rng(draw(seeds))
    weight = draw(weight_types)
    num_rows = draw(st.integers(1, 40))
    lengths = random.integers(0, 5, num_rows)
    lengths[random.random(num_rows) < 0.1] = 70
    m = int(lengths.sum())
    order = random.permutation(num_rows)
    places = np.empty(num_rows, np.int64)
    places[order] = np.cumsum(lengths[order]) - lengths[order]
    begins = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    targets = random.integers(0, 1000, m).astype(draw(vertex_types))
    return Case(
        {
            "lo": 0,
            "hi": m,
            "begins": begins,
            "num_rows": num_rows,
            "shifts": places - begins[:-1],
            "targets": targets,
            "weights": None if weight is None else random.integers(0, 9, m).astype(weight),
            "out_targets": Unwritten(m, targets.dtype),
            "out_weights": None if weight is None else Unwritten(m, weight),
        }
    )
