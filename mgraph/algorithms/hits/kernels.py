"""Scale what has arrived at vertices to scores."""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add


@kernel()
def scale_scores(lo, hi, received, factor, share, scores, given, counters):
    """Make the score of each vertex of what it has received, times `factor` and rounded down; it gives `share` of that.

    counters[0] is how much scores have changed in all.
    """
    changed = np.int64(0)
    for i in range(lo, hi):
        score = np.int64(np.float64(received[i]) * factor)
        changed += abs(score - scores[i])
        scores[i] = score
        given[i] = np.float64(score) * share
    atomic_add(counters, 0, changed)
