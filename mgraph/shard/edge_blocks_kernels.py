"""List the edges of rows, each undirected edge once: the input of blocks for sweeps."""

from __future__ import annotations

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_helpers import position_of, row_of_arc


@kernel(vertex_t="targets")
def count_lower(lo, hi, indptr, targets, first, stride, multiplier, counts):
    """Count the arcs of every row that lead to a smaller position, by binary search: they are first in the row.

    Row u has position u * multiplier + first.
    """
    for u in range(lo, hi):
        own = u * multiplier + first
        below = indptr[u]
        above = indptr[u + 1]
        while below < above:
            middle = (below + above) >> 1
            if position_of(targets[middle], stride, multiplier) < own:
                below = middle + 1
            else:
                above = middle
        counts[u] = below - indptr[u]


@kernel(vertex_t="targets", weight_t="weights")
def list_ends(lo, hi, offsets, num_rows, indptr, targets, weights, base, begin, out_sources, out_targets, out_weights):
    """Write both ends of every edge as state indices, and its weight.

    Work items are edges: those of row u, with the state index base + u, are offsets[u] .. offsets[u + 1], the first
    arcs of the row. Edge `begin` is written to index 0.
    """
    row = row_of_arc(offsets, num_rows, lo)
    for edge in range(lo, hi):
        while offsets[row + 1] <= edge:
            row += 1
        arc = indptr[row] + edge - offsets[row]
        out_sources[edge - begin] = base + row
        out_targets[edge - begin] = targets[arc]
        if weights is not None:
            out_weights[edge - begin] = weights[arc]
