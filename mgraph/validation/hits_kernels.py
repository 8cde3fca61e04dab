"""Pass hub scores along all arcs once, and authority scores against them."""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add


@kernel(lanes=32, vertex_t="targets", weight_t="weights")
def exchange_scores(lo, hi, indptr, targets, weights, share, hubs, authorities, along, against):
    """Add to along[target] the hub score of each row, and to against[row] the authority scores of its targets.

    Each times `share`, and times the weight of the arc if there are any; in units of 2^-60 and rounded down. `hubs` and
    `against` are by row.
    """
    for row in range(lo, hi):
        got = np.int64(0)
        for arc in range(indptr[row], indptr[row + 1]):
            part = share if weights is None else np.float64(weights[arc]) * share
            atomic_add(along, targets[arc], np.int64(hubs[row] * part * 2.0**60))
            got += np.int64(authorities[targets[arc]] * part * 2.0**60)
        against[row] = got
