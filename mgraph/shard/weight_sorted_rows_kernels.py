"""Sort rows by class of weight, light arcs first, by a stable counting sort with 256 classes."""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_helpers import WEIGHT_CLASSES, class_of


@kernel(lanes=32, block=1024, vertex_t="targets", weight_t="weights")
def sort_rows(lo, hi, indptr, targets, weights, scale, out_targets, out_weights):
    """Copy the rows lo..hi with their arcs sorted by class.

    The class of a weight is weight * scale, see class_of.
    """
    places = np.empty(WEIGHT_CLASSES + 1, np.int64)
    for row in range(lo, hi):
        begin = indptr[row]
        end = indptr[row + 1]
        if end - begin <= 32:
            # A short row is sorted by insertion.
            for i in range(begin, end):
                weight = weights[i]
                target = targets[i]
                arc_class = class_of(weight, scale)
                place = i
                while place > begin and class_of(out_weights[place - 1], scale) > arc_class:
                    out_weights[place], out_targets[place] = out_weights[place - 1], out_targets[place - 1]
                    place -= 1
                out_weights[place] = weight
                out_targets[place] = target
            continue
        places[:] = 0
        for i in range(begin, end):
            places[class_of(weights[i], scale) + 1] += 1
        places[0] = begin
        for c in range(WEIGHT_CLASSES):
            places[c + 1] += places[c]
        for i in range(begin, end):
            arc_class = class_of(weights[i], scale)
            out_targets[places[arc_class]] = targets[i]
            out_weights[places[arc_class]] = weights[i]
            places[arc_class] += 1
