"""SSCA#2 graphs: cliques of random size, joined by edges that become less probable with distance.

Cliques are consecutive vertices in windows of `window` vertices, each with its own stream of sizes, so that
the clique of a vertex depends on its window alone. Each vertex has `slots` slots for edges: half of the largest
clique (to the next members around the clique, so that every pair has one edge), and a last one for an edge out
of the clique, to a distance of 2^l .. 2^(l+1) with probability 2^-(l+1).
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import kernel
from mgraph.generate.hashing import (
    GOLDEN,
    edge_weight,
    mix,
    multiply_high,
    permutation_key,
    scrambled,
    weight_key,
)

SIZES = np.uint64(49)
JOINS = np.uint64(50)


@kernel(lanes=32, vertex_t="sources", weight_t="weights")
def ssca2_edges(lo, hi, first, scale, seed, max_clique, window, scramble, max_weight, none, sources, targets, weights):
    """Write the slots of the vertices lo..hi.

    The source of a missing edge is `none`.
    """
    seed = np.uint64(seed)
    bits = np.uint64(scale)
    max_weight = np.uint64(max_weight)
    size_stream = mix(seed + SIZES)
    join_stream = mix(seed + JOINS)
    weights_key = weight_key(seed)
    k0 = permutation_key(seed, np.uint64(0))
    k1 = permutation_key(seed, np.uint64(1))
    k2 = permutation_key(seed, np.uint64(2))
    k3 = permutation_key(seed, np.uint64(3))
    n = 1 << scale
    slots = max_clique // 2 + 1
    for v in range(lo, hi):
        # Draw the sizes of the window's cliques in order, until one contains v.
        end = v // window * window
        last = min(end + window, n)
        state = size_stream ^ mix(np.uint64(v // window))
        start = end
        while end <= v:
            start = end
            end = min(start + 1 + np.int64(multiply_high(mix(state), np.uint64(max_clique))), last)
            state += GOLDEN
        size = end - start
        for slot in range(slots):
            j = (v - first) * slots + slot
            if slot < slots - 1:
                # Members 1 .. size / 2 further around the clique; of an opposite pair one end has the edge.
                step = slot + 1
                u = start + (v - start + step) % size
                missing = 2 * step > size or (2 * step == size and v - start >= step)
            else:
                word = mix(join_stream ^ mix(np.uint64(v)))
                octave = 0
                while octave < scale and (word >> np.uint64(octave)) & np.uint64(1) == 0:
                    octave += 1
                far = np.int64(1) << octave
                far += np.int64(multiply_high(mix(word), np.uint64(far)))
                u = (v + far) % n
                missing = far >= n or (start <= u and u < end)
            if missing:
                sources[j] = none
                continue
            a = np.uint64(v)
            b = np.uint64(u)
            if scramble:
                a = scrambled(a, bits, k0, k1, k2, k3)
                b = scrambled(b, bits, k0, k1, k2, k3)
            sources[j] = a
            targets[j] = b
            if weights is not None:
                weights[j] = edge_weight(weights_key, min(a, b), max(a, b), max_weight)
