"""Take the lightest arcs of every row by class of weight, by a stable counting sort with 256 classes."""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_helpers import LIGHTEST_BITS, WEIGHT_CLASSES, class_of


@kernel(lanes=32, block=1024, vertex_t="targets", weight_t="weights")
def take_lightest(lo, hi, indptr, targets, weights, scale, lightest_targets, lightest_weights):
    """Copy the lightest arcs of rows lo..hi, sorted by class, those of one class in their order.

    Those of a row begin at indptr[row] >> LIGHTEST_BITS. The class of a weight is weight * scale, see class_of.
    """
    places = np.empty(WEIGHT_CLASSES + 1, np.int64)
    for row in range(lo, hi):
        begin = indptr[row]
        end = indptr[row + 1]
        first = begin >> LIGHTEST_BITS
        last = end >> LIGHTEST_BITS
        if first == last:
            continue
        places[:] = 0
        for i in range(begin, end):
            places[class_of(weights[i], scale) + 1] += 1
        places[0] = first
        for c in range(WEIGHT_CLASSES):
            places[c + 1] += places[c]
        for i in range(begin, end):
            arc_class = class_of(weights[i], scale)
            place = places[arc_class]
            places[arc_class] = place + 1
            if place < last:
                lightest_targets[place] = targets[i]
                lightest_weights[place] = weights[i]
