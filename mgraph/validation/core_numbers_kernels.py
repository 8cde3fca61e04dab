"""Count arcs to vertices of no smaller core number, and take away those to removed vertices of the same one.

Vertices are states, and rows begin at state `base`. `numbers` has the core number of every state, `excess` how many
arcs more than that number each owned vertex has left.
"""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add


@kernel(lanes=32, vertex_t="targets", id_t="numbers")
def count_at_least(lo, hi, base, indptr, targets, numbers, counts):
    """Add to counts[row] the arcs of each row to vertices of no smaller number."""
    for row in range(lo, hi):
        number = numbers[base + row]
        count = 0
        for i in range(indptr[row], indptr[row + 1]):
            count += numbers[targets[i]] >= number
        counts[row] += count


@kernel(lanes=32, vertex_t="targets", id_t="numbers")
def lose_equals(lo, hi, frontier, base, indptr, targets, numbers, losses, touched, counters):
    """Count, for each vertex, arcs to it from vertices of its own number in the frontier; list it once.

    counters[0] is the length of `touched`.
    """
    for k in range(lo, hi):
        v = frontier[k]
        for i in range(indptr[v - base], indptr[v - base + 1]):
            u = targets[i]
            if numbers[u] == numbers[v] and atomic_add(losses, u, 1) == 0:
                touched[atomic_add(counters, 0, 1)] = u


@kernel(vertex_t="states")
def release(lo, hi, states, counts, base, excess, released, counters):
    """Take arcs from owned vertices; list those that have no excess any more."""
    for i in range(lo, hi):
        count = np.int64(counts[i])
        old = atomic_add(excess, states[i] - base, -count)
        if 0 < old <= count:
            released[atomic_add(counters, 0, 1)] = states[i]
