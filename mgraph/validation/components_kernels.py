"""Scan every arc: mark label mismatches between its ends, or link the larger of two roots to the smaller."""

from __future__ import annotations

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add, atomic_min


@kernel(lanes=32, vertex_t="targets", id_t="labels")
def mark_torn(lo, hi, first, indptr, targets, labels, is_mismatch):
    """Mark the rows with an arc to a vertex of another label.

    `first` is the state index of row 0; `labels` is by state index.
    """
    for row in range(lo, hi):
        for i in range(indptr[row], indptr[row + 1]):
            if labels[targets[i]] != labels[first + row]:
                is_mismatch[row] = 1


@kernel(lanes=32, vertex_t="targets")
def hook_roots(lo, hi, first, indptr, targets, roots, lower, counters):
    """Link the larger root to the smaller for every arc between two trees.

    The number of such arcs is added to counters[0]. `roots` is a copy of `lower` from before the launch.
    """
    num_arcs = 0
    for row in range(lo, hi):
        for i in range(indptr[row], indptr[row + 1]):
            a = roots[first + row]
            b = roots[targets[i]]
            if a != b:
                num_arcs += 1
                # Race: an entry only falls, so that a plain read that finds it small enough remains valid.
                if lower[max(a, b)] > min(a, b):
                    atomic_min(lower, max(a, b), min(a, b))
    atomic_add(counters, 0, num_arcs)
