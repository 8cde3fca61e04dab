"""Pass scores along all arcs once."""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add


@kernel(lanes=32, vertex_t="targets", weight_t="weights")
def spread_scores(lo, hi, indptr, targets, weights, scores, received):
    """Add to received[target] what each arc brings of its row's score, in units of 2^-60 and rounded down.

    That is an equal part or, with `weights`, one in proportion to the arc's. Nothing goes along weights of 0.
    """
    for row in range(lo, hi):
        begin = indptr[row]
        end = indptr[row + 1]
        total = np.float64(end - begin)
        if weights is not None:
            total = np.float64(0)
            for arc in range(begin, end):
                total += np.float64(weights[arc])
        if total > 0:
            for arc in range(begin, end):
                part = scores[row] / total if weights is None else scores[row] * (np.float64(weights[arc]) / total)
                atomic_add(received, targets[arc], np.int64(part * 2.0**60))
