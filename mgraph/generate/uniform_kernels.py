"""Random graphs with uniform ends of edges, or with a fixed out-degree and uniform targets."""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import kernel
from mgraph.generate.hashing import GOLDEN, edge_weight, mix, multiply_high, weight_key

UNIFORM = np.uint64(17)
FIXED_OUT_DEGREE = np.uint64(18)


@kernel(vertex_t="sources", weight_t="weights")
def uniform_edges(lo, hi, first, num_vertices, seed, max_weight, sources, targets, weights):
    """Write the edges lo..hi; edge `first` is written to index 0."""
    seed = np.uint64(seed)
    n = np.uint64(num_vertices)
    max_weight = np.uint64(max_weight)
    stream = mix(seed + UNIFORM)
    weights_key = weight_key(seed)
    for i in range(lo, hi):
        state = stream ^ mix(np.uint64(i))
        a = multiply_high(mix(state), n)
        b = multiply_high(mix(state + GOLDEN), n)
        sources[i - first] = a
        targets[i - first] = b
        if weights is not None:
            weights[i - first] = edge_weight(weights_key, min(a, b), max(a, b), max_weight)


@kernel(vertex_t="sources", weight_t="weights")
def fixed_out_degree_arcs(lo, hi, first, num_vertices, out_degree, seed, max_weight, sources, targets, weights):
    """Write the arcs lo..hi, of which vertex v has v * out_degree .. (v + 1) * out_degree; `first` is at index 0."""
    seed = np.uint64(seed)
    n = np.uint64(num_vertices)
    max_weight = np.uint64(max_weight)
    stream = mix(seed + FIXED_OUT_DEGREE)
    weights_key = weight_key(seed)
    for i in range(lo, hi):
        a = np.uint64(i // out_degree)
        b = multiply_high(mix(stream ^ mix(np.uint64(i))), n)
        sources[i - first] = a
        targets[i - first] = b
        if weights is not None:
            weights[i - first] = edge_weight(weights_key, a, b, max_weight)
