"""Pass 2 of a build: bucket arcs by owner, place them in rows, pack keys to sort rows; first neighbors of rows."""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add, atomic_min
from mgraph.backends.numba_helpers import row_of_arc

# Arcs for which a CPU thread finds slots before it writes them.
ARCS_AT_ONCE = 512


@kernel(id_t="ids", vertex_t="table")
def look_up(lo, hi, ids, table, out):
    """Gather table[ids]; array indexing would first convert every id to 64 bits."""
    for i in range(lo, hi):
        out[i] = table[ids[i]]


@kernel(id_t="owners", vertex_t="rows", weight_t="weights")
def bucket_arcs(lo, hi, owners, rows, targets, weights, cursors, out_rows, out_targets, out_weights):
    """Append every arc to its owner's bucket.

    `cursors` are initially the starts of the buckets.
    """
    for i in range(lo, hi):
        slot = atomic_add(cursors, owners[i], 1)
        out_rows[slot] = rows[i]
        out_targets[slot] = targets[i]
        if weights is not None:
            out_weights[slot] = weights[i]


@kernel(vertex_t="rows", weight_t="weights")
def place_arcs(lo, hi, rows, targets, weights, cursors, out_targets, out_weights):
    """Write every arc to the next free slot of its row.

    `cursors` are initially the starts of the rows.
    """
    # A CPU's atomic waits for all stores before it: one after every arc takes twice as long.
    slots = np.empty(ARCS_AT_ONCE, np.int64)
    for first in range(lo, hi, ARCS_AT_ONCE):
        last = min(first + ARCS_AT_ONCE, hi)
        for i in range(first, last):
            slots[i - first] = atomic_add(cursors, rows[i], 1)
        for i in range(first, last):
            out_targets[slots[i - first]] = targets[i]
            if weights is not None:
                out_weights[slots[i - first]] = weights[i]


@kernel(lanes=32, vertex_t="targets")
def pack_keys(lo, hi, indptr, targets, shift, first_row, keys):
    """Pack row and target of each arc into one sort key.

    The first arc of `first_row` is written to index 0.
    """
    base = indptr[first_row]
    for row in range(lo, hi):
        for i in range(indptr[row], indptr[row + 1]):
            keys[i - base] = ((row - first_row) << shift) | targets[i]


@kernel(weight_t="weights")
def lightest_of_runs(lo, hi, starts, order, weights, out_weights):
    """Write the lightest weight of each run of parallel arcs.

    Run j is order[starts[j]:starts[j + 1]].
    """
    for j in range(lo, hi):
        lightest = weights[order[starts[j]]]
        for i in range(starts[j] + 1, starts[j + 1]):
            lightest = min(lightest, weights[order[i]])
        out_weights[j] = lightest


@kernel(vertex_t="positions")
def unpack_rows(lo, hi, indptr, num_rows, first, multiplier, begin, positions):
    """Write the position of every arc's source, u * multiplier + first for row u.

    `begin` is written to index 0.
    """
    row = row_of_arc(indptr, num_rows, lo)
    for arc in range(lo, hi):
        while indptr[row + 1] <= arc:
            row += 1
        positions[arc - begin] = row * multiplier + first


@kernel(vertex_t="targets")
def first_targets(lo, hi, indptr, targets, num_rows, base, first_neighbors, num_degree_at_most_one):
    """Write the first target of every row, its own vertex for an empty row.

    `num_degree_at_most_one`, initially `num_rows`, is lowered to the number of trailing rows with at most one target.
    """
    for u in range(lo, hi):
        first_neighbors[u] = targets[indptr[u]] if indptr[u] < indptr[u + 1] else base + u
        if indptr[u + 1] - indptr[u] > 1:
            atomic_min(num_degree_at_most_one, 0, num_rows - 1 - u)
