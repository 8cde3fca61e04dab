"""RMAT graphs: each edge descends `scale` levels of quadrants of the adjacency matrix (Graph500's a .57, b c .19)."""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import kernel
from mgraph.generate.hashing import GOLDEN, LOW_32, U32, edge_weight, mix, permutation_key, scrambled, weight_key

# Cumulative probabilities of the quadrants, times 2^32: a, a + b, a + b + c.
A = np.uint64(int(0.57 * 2**32))
AB = np.uint64(int((0.57 + 0.19) * 2**32))
ABC = np.uint64(int((0.57 + 0.19 + 0.19) * 2**32))


@kernel(vertex_t="sources", weight_t="weights")
def rmat_edges(lo, hi, first, scale, seed, scramble, max_weight, sources, targets, weights):
    """Write the edges lo..hi; edge `first` is written to index 0."""
    seed = np.uint64(seed)
    bits = np.uint64(scale)
    max_weight = np.uint64(max_weight)
    stream = mix(seed)
    weights_key = weight_key(seed)
    one = np.uint64(1)
    k0 = permutation_key(seed, np.uint64(0))
    k1 = permutation_key(seed, np.uint64(1))
    k2 = permutation_key(seed, np.uint64(2))
    k3 = permutation_key(seed, np.uint64(3))
    for i in range(lo, hi):
        state = stream ^ mix(np.uint64(i))
        a = b = word = np.uint64(0)
        for level in range(scale):
            # One 64-bit random number is used for two levels.
            if level & 1 == 0:
                word = mix(state)
                state += GOLDEN
                x = word & LOW_32
            else:
                x = word >> U32
            down = np.uint64(x >= AB)
            a = a << one | down
            b = b << one | (np.uint64(x >= A) ^ down ^ np.uint64(x >= ABC))
        if scramble:
            a = scrambled(a, bits, k0, k1, k2, k3)
            b = scrambled(b, bits, k0, k1, k2, k3)
        sources[i - first] = a
        targets[i - first] = b
        if weights is not None:
            weights[i - first] = edge_weight(weights_key, min(a, b), max(a, b), max_weight)
