"""Road-like grids: each vertex has an edge to the right and one down, of which a random share is missing."""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import kernel
from mgraph.generate.hashing import edge_weight, mix, weight_key

GRID = np.uint64(33)


@kernel(vertex_t="sources", weight_t="weights")
def grid_edges(lo, hi, first, rows, columns, seed, drop, max_weight, none, sources, targets, weights):
    """Write the edges lo..hi (2 v to the right of v, 2 v + 1 down); the source of a missing edge is `none`."""
    seed = np.uint64(seed)
    threshold = np.uint64(drop)
    max_weight = np.uint64(max_weight)
    stream = mix(seed + GRID)
    weights_key = weight_key(seed)
    for i in range(lo, hi):
        v = i >> 1
        j = i - first
        at_border = v // columns + 1 >= rows if i & 1 else v % columns + 1 >= columns
        if at_border or mix(stream ^ mix(np.uint64(i))) < threshold:
            sources[j] = none
            continue
        u = v + columns if i & 1 else v + 1
        sources[j] = v
        targets[j] = u
        if weights is not None:
            weights[j] = edge_weight(weights_key, np.uint64(v), np.uint64(u), max_weight)
