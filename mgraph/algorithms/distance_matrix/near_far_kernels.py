"""Relax the arcs of pairs of a source and a vertex, as mgraph/algorithms/sssp/near_far_kernels.py those of vertices.

A rank's pairs follow one another source by source: where owner * stride + local is the state index of a vertex, that of
its pair with a source is (owner * num_sources + source) * stride + local. All sources have the same rows. Other kernels
take pairs as they take vertices.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_min
from mgraph.backends.numba_helpers import BUFFER, flush, hold, row_of_arc, set_bit


@kernel(vertex_t="targets", weight_t="weights", dist_t="dist")
def relax_pairs(
    lo, hi, frontier, num_frontier, offsets, begins, targets, weights, shape, bounds, dist, marked, found, counters
):  # fmt: skip
    """Lower the distance of every arc's target from the source of its pair, otherwise as relax_frontier.

    `shape` holds the number of sources and the stride.
    """
    buffer = np.empty(BUFFER, targets.dtype)
    length = 0
    cutoff = bounds[2]
    num_sources = shape[0]
    stride = shape[1]
    k = row_of_arc(offsets, num_frontier, lo)
    arc = lo
    while arc < hi:
        pair = np.int64(frontier[k])
        source = pair // stride % num_sources
        pair_dist = dist[pair]
        begin = begins[k] - offsets[k]
        end = min(offsets[k + 1], hi)
        for i in range(arc, end):
            v = np.int64(targets[begin + i])
            reached = v + (v // stride * (num_sources - 1) + source) * stride
            through = dist.dtype.type(pair_dist + dist.dtype.type(weights[begin + i]))
            if through >= dist[reached] or through > cutoff:
                continue
            if through < atomic_min(dist, reached, through) and set_bit(marked, reached):
                length = hold(buffer, length, reached, found, counters)
        arc = end
        k += 1
    flush(buffer, length, found, counters)
