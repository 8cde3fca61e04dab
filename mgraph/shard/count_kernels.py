"""Count degrees and values: pass 1 of a build."""

from __future__ import annotations

from mgraph.backends.kernel import inline, kernel
from mgraph.backends.numba_atomics import atomic_add


@kernel(id_t="sources")
def count_degrees(lo, hi, sources, targets, out_degrees, in_degrees, num_loops):
    """Add every edge to the degrees of both its ends, or to the self-loops.

    `out_degrees` and `in_degrees` are the same array if the graph is undirected.
    """
    loops = 0
    for i in range(lo, hi):
        u = sources[i]
        v = targets[i]
        if u == v:
            loops += 1
        else:
            atomic_add(out_degrees, u, 1)
            atomic_add(in_degrees, v, 1)
    atomic_add(num_loops, 0, loops)


@inline
def count_alone(lo, hi, sources, targets, out_degrees, in_degrees, num_loops):
    """Add every edge to degrees that no other thread writes."""
    for i in range(lo, hi):
        u = sources[i]
        v = targets[i]
        if u == v:
            num_loops[0] += 1
        else:
            out_degrees[u] += 1
            in_degrees[v] += 1


@kernel(vertex_t="values")
def count_values(lo, hi, values, counts):
    """Count how often each value occurs."""
    for i in range(lo, hi):
        atomic_add(counts, values[i], 1)
