"""Look at every arc: which ends have different labels, and which trees could hang under a smaller one."""

from __future__ import annotations

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add, atomic_min


@kernel(lanes=32, vertex_t="targets", id_t="labels")
def mark_torn(lo, hi, first, indptr, targets, labels, is_torn):
    """Mark the rows with an arc to a vertex of another label.

    `first` is the state index of row 0; `labels` cover every state.
    """
    for row in range(lo, hi):
        for i in range(indptr[row], indptr[row + 1]):
            if labels[targets[i]] != labels[first + row]:
                is_torn[row] = 1


@kernel(lanes=32, vertex_t="targets")
def hook_roots(lo, hi, first, indptr, targets, roots, lower, counters):
    """Lower the larger root of every arc between two trees to the smaller; counters[0] counts such arcs.

    `roots` is what `lower` was when the launch began.
    """
    torn = 0
    for row in range(lo, hi):
        for i in range(indptr[row], indptr[row + 1]):
            a, b = roots[first + row], roots[targets[i]]
            if a != b:
                torn += 1
                # The entry only falls: a value that is small enough when it is read stays so.
                if lower[max(a, b)] > min(a, b):
                    atomic_min(lower, max(a, b), min(a, b))
    atomic_add(counters, 0, torn)
