"""Look up the edges of a forest, and compare every edge of the graph with the forest's path between its ends.

The tree of Boruvka's rounds on a forest has the vertices as leaves and the trees of each round as inner nodes;
`above` is a node's parent, the tree that it joined in its round, and `heaviest` the key of the edge by which it
joined. The heaviest edge on the forest's path between two vertices is as heavy as the heaviest on the tree's paths
from both to their lowest common ancestor (King, 1997), which are as long as there were rounds.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.spanning_forest.kernels import TOP
from mgraph.backends.kernel import kernel
from mgraph.backends.numba_helpers import position_of, weight_sort_key


@kernel(vertex_t="targets")
def find_claimed(lo, hi, rows, positions, indptr, targets, stride, multiplier, arcs):
    """Find the arc from rows[i] to positions[i] by binary search, TOP if there is none."""
    for i in range(lo, hi):
        first = indptr[rows[i]]
        end = indptr[rows[i] + 1]
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
    """Mark the rows with an arc to another tree, and those with an arc lighter than the path between its ends."""
    lowest = np.iinfo(np.int64).min
    for row in range(lo, hi):
        for i in range(indptr[row], indptr[row + 1]):
            u = np.int64(base + row)
            v = np.int64(targets[i])
            path_max = np.int64(lowest)
            while u != v and (above[u] != u or above[v] != v):
                path_max = max(path_max, heaviest[u], heaviest[v])
                u = above[u]
                v = above[v]
            if u != v:
                crosses[row] = 1
            elif weight_sort_key(weights[i]) < path_max:
                lighter[row] = 1
