"""Visit components arc by arc, and count the arcs between them that are not visited yet.

Vertices are states. `names` has for every state the state of its label, which names its component.
"""

from __future__ import annotations

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add
from mgraph.backends.numba_helpers import set_bit, test_bit


@kernel(lanes=32, vertex_t="targets")
def visit_rows(lo, hi, frontier, base, indptr, targets, names, noted, counts, found, touched, counters):
    """List, once each, targets with the name of their source; count the other arcs by the name of their target.

    Without `counts` there is none. Names that are counted for the first time are listed in `touched`. `counters` are
    the lengths of both lists, of `found` first. Rows begin at state `base`.
    """
    for k in range(lo, hi):
        u = frontier[k]
        for i in range(indptr[u - base], indptr[u - base + 1]):
            v = targets[i]
            if names[v] == names[u]:
                if not test_bit(noted, v) and set_bit(noted, v):
                    found[atomic_add(counters, 0, 1)] = v
            elif counts is not None and atomic_add(counts, names[v], 1) == 0:
                touched[atomic_add(counters, 1, 1)] = names[v]


@kernel(vertex_t="touched")
def release_names(lo, hi, touched, counts, pending, released, counters):
    """Subtract counts from what is pending; list the names with nothing left."""
    for i in range(lo, hi):
        if atomic_add(pending, touched[i], -counts[i]) == counts[i]:
            released[atomic_add(counters, 0, 1)] = touched[i]


@kernel(vertex_t="states")
def enter_states(lo, hi, states, base, num_owned, visited, frontier, counters):
    """Mark states as visited; list those that are owned and were not before."""
    for i in range(lo, hi):
        v = states[i]
        if set_bit(visited, v) and v >= base and v < base + num_owned:
            frontier[atomic_add(counters, 0, 1)] = v
