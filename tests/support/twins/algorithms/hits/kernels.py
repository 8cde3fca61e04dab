"""Arguments for the kernel of algorithms/hits/kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case, Unwritten
from twins.drawing import seeds, some

from mgraph.algorithms.hits.mutual_iteration import WHOLE


def scale_scores(draw: st.DrawFn) -> Case:
    """Draw sums of which one may be as large as all scores, and factors beyond 1 and below."""
    n = draw(st.integers(1, 300))
    random = np.random.default_rng(draw(seeds))
    received = random.integers(0, WHOLE, n) * some(random, n, 0.8)
    args = {"lo": 0, "hi": n, "received": received}
    args |= {"factor": WHOLE / max(sum(received.tolist()), 1), "share": draw(st.sampled_from([1.0, 1 / 3, 2.0**900]))}
    args |= {"scores": random.integers(0, WHOLE // n, n), "given": Unwritten(n, np.float64)}
    return Case({**args, "counters": np.zeros(1, np.int64)})
