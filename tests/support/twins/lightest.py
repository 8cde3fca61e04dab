"""Arguments for the worked example of docs/kernel_pair.md."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case, Unwritten
from twins.drawing import rows


def find_lightest(draw: st.DrawFn) -> Case:
    r = draw(rows())
    args = {
        "lo": 0,
        "hi": r.num_owned,
        "indptr": r.indptr,
        "targets": r.targets,
        "weights": r.weights,
        "neighbour": Unwritten(r.num_owned, r.types.vertex),
        "num_alone": np.zeros(1, np.int64),
    }
    return Case(args)
