"""Look up the edges of a forest, and look at every edge outside of it once.

A forest's tree of rounds has the vertices as leaves, and as inner nodes the trees that Boruvka's rounds
make of them; `above` is the node that a node became part of in its round, `heaviest` the weight of the
edge that it took. The heaviest edge on the path between two vertices weighs as much as the heaviest on the
ways from both up to where these meet (King, 1997), which are as long as there were rounds.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.spanning_forest.kernels import TOP
from mgraph.backends.kernel import kernel
from mgraph.backends.numba_helpers import order_of, position_of


@kernel(vertex_t="targets")
def find_claimed(lo, hi, rows, positions, indptr, targets, stride, multiplier, arcs):
    """Find the arc of each row that leads to a position, TOP where there is none."""
    for i in range(lo, hi):
        first, end = indptr[rows[i]], indptr[rows[i] + 1]
        last = end
        while first < last:
            middle = (first + last) >> 1
            if position_of(np.int64(targets[middle]), stride, multiplier) < positions[i]:
                first = middle + 1
            else:
                last = middle
        found = first < end and position_of(np.int64(targets[first]), stride, multiplier) == positions[i]
        arcs[i] = first if found else TOP


@kernel(lanes=32, vertex_t="targets", weight_t="weights", id_t="above", out_t="heaviest")
def check_outside(lo, hi, indptr, targets, weights, base, above, heaviest, crosses, lighter):
    """Mark the rows with an arc to another tree, and those with one lighter than the path that it closes."""
    least = np.iinfo(np.int64).min
    for row in range(lo, hi):
        for i in range(indptr[row], indptr[row + 1]):
            u, v, most = np.int64(base + row), np.int64(targets[i]), np.int64(least)
            while u != v and (above[u] != u or above[v] != v):
                most = max(most, heaviest[u], heaviest[v])
                u, v = above[u], above[v]
            if u != v:
                crosses[row] = 1
            elif order_of(weights[i]) < most:
                lighter[row] = 1
