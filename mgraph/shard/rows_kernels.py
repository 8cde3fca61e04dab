"""Pass 2 of the build: arcs to their owners, into their rows, and each row in order; then the first of every row."""

from __future__ import annotations

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add, atomic_min
from mgraph.backends.numba_helpers import row_of_arc


@kernel(id_t="ids", vertex_t="table")
def look_up(lo, hi, ids, table, out):
    """Translate ids through a table; indexing would first widen every id to 64 bits."""
    for i in range(lo, hi):
        out[i] = table[ids[i]]


@kernel(id_t="owners", vertex_t="rows", weight_t="weights")
def bucket_arcs(lo, hi, owners, rows, targets, weights, cursors, out_rows, out_targets, out_weights):
    """Put every arc behind the others of the same owner; `cursors` start where each owner's bucket does."""
    for i in range(lo, hi):
        slot = atomic_add(cursors, owners[i], 1)
        out_rows[slot] = rows[i]
        out_targets[slot] = targets[i]
        if weights is not None:
            out_weights[slot] = weights[i]


@kernel(vertex_t="rows", weight_t="weights")
def place_arcs(lo, hi, rows, targets, weights, cursors, out_targets, out_weights):
    """Put every arc into the next free slot of its row; `cursors` start where each row does."""
    for i in range(lo, hi):
        slot = atomic_add(cursors, rows[i], 1)
        out_targets[slot] = targets[i]
        if weights is not None:
            out_weights[slot] = weights[i]


@kernel(lanes=32, vertex_t="targets")
def pack_keys(lo, hi, indptr, targets, shift, first_row, keys):
    """Make one sortable number of each arc: row, then target; `keys` starts at the first row."""
    base = indptr[first_row]
    for row in range(lo, hi):
        for i in range(indptr[row], indptr[row + 1]):
            keys[i - base] = ((row - first_row) << shift) | targets[i]


@kernel(weight_t="weights")
def lightest_of_runs(lo, hi, starts, order, weights, out_weights):
    """Find the lightest of each run of parallel arcs; run j is order[starts[j]:starts[j + 1]]."""
    for j in range(lo, hi):
        lightest = weights[order[starts[j]]]
        for i in range(starts[j] + 1, starts[j + 1]):
            lightest = min(lightest, weights[order[i]])
        out_weights[j] = lightest


@kernel(vertex_t="positions")
def unpack_rows(lo, hi, indptr, num_rows, first, multiplier, begin, positions):
    """Write the position of every arc's source; row u has position u * multiplier + first."""
    row = row_of_arc(indptr, num_rows, lo)
    for arc in range(lo, hi):
        while indptr[row + 1] <= arc:
            row += 1
        positions[arc - begin] = row * multiplier + first


@kernel(vertex_t="targets")
def first_targets(lo, hi, indptr, targets, num_rows, base, firsts, singles):
    """Put the first target of every row side by side; an empty row has its own vertex.

    `singles` falls to how many of the last rows have one target at most; it starts at `num_rows`.
    """
    for u in range(lo, hi):
        firsts[u] = targets[indptr[u]] if indptr[u] < indptr[u + 1] else base + u
        if indptr[u + 1] - indptr[u] > 1:
            atomic_min(singles, 0, num_rows - 1 - u)
