"""Kernels of the mask-based search and of Moore's queues. On the CPU one core does many layers in one call."""

from __future__ import annotations

from mgraph.backends.kernel import inline, kernel, persistent
from mgraph.backends.numba_atomics import atomic_add, atomic_compare_and_swap, atomic_min

BLOCK = 256


@kernel()
def relax_masked(lo, hi, vertices, edges, cost, mask, updating):
    """Relax the edges of every vertex in the mask; take it out of the mask."""
    for u in range(lo, hi):
        if mask[u]:
            mask[u] = 0
            for e in range(vertices[2 * u + 1], vertices[2 * u + 1] + vertices[2 * u]):
                atomic_min(updating, edges[2 * e], cost[u] + edges[2 * e + 1])


@kernel()
def commit_updates(lo, hi, cost, updating, mask, is_changed):
    """Take smaller costs over, and put their vertices into the mask."""
    for v in range(lo, hi):
        if cost[v] > updating[v]:
            cost[v] = updating[v]
            mask[v] = 1
            is_changed[0] = 1
        updating[v] = cost[v]


@kernel(block=BLOCK)
def relax_layer(lo, hi, vertices, edges, layer, next_layer, dist, stamp, next, next_count):
    """Relax the edges of a layer's vertices; a vertex that improves is put into the next layer once."""
    for i in range(lo, hi):
        u = layer[i]
        for e in range(vertices[2 * u + 1], vertices[2 * u + 1] + vertices[2 * u]):
            v = edges[2 * e]
            shorter = dist[u] + edges[2 * e + 1]
            if shorter < dist[v] and shorter < atomic_min(dist, v, shorter):
                seen = stamp[v]
                # Others write the same: one thread alone finds the old value.
                if seen != next_layer and atomic_compare_and_swap(stamp, v, seen, next_layer) == seen:
                    next[atomic_add(next_count, 0, 1)] = v


@persistent(block=BLOCK)
def relax_layers(lo, hi, vertices, edges, least, most, capacity, abort, arrived, dist, stamp, queues, words):
    """Process layers while each has at least `least` and fewer than `most` vertices."""


@inline
def relax_layers_on_core(vertices, edges, most, capacity, dist, stamp, queues, words):
    """Process layers of fewer than `most` vertices; the same words as `relax_layers`."""
    layer = words[0]
    count = words[1 + layer % 3]
    while 0 < count < most:
        found = 0
        for i in range(count):
            u = queues[(layer & 1) * capacity + i]
            for e in range(vertices[2 * u + 1], vertices[2 * u + 1] + vertices[2 * u]):
                v = edges[2 * e]
                shorter = dist[u] + edges[2 * e + 1]
                if shorter < dist[v]:
                    dist[v] = shorter
                    if stamp[v] != layer + 1:
                        stamp[v] = layer + 1
                        queues[(~layer & 1) * capacity + found] = v
                        found += 1
        layer += 1
        count = found
    words[0] = layer
    words[1 + layer % 3] = count
    words[1 + (layer + 1) % 3] = 0
