"""The worked example of docs/kernel_pair.md: the lightest arc of every vertex."""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add


@kernel(lanes=32, vertex_t="targets", weight_t="weights")
def find_lightest(lo, hi, indptr, targets, weights, neighbour, num_alone):
    """Find each vertex's neighbour over its lightest arc, the first of equals; count those without arcs.

    Vertex v has arcs indptr[v] .. indptr[v + 1].
    """
    for v in range(lo, hi):
        best = indptr[v]
        if best == indptr[v + 1]:
            neighbour[v] = np.iinfo(neighbour.dtype).max
            atomic_add(num_alone, 0, 1)
            continue
        for i in range(indptr[v] + 1, indptr[v + 1]):
            if weights[i] < weights[best]:
                best = i
        neighbour[v] = targets[best]
