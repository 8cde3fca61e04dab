"""Move arcs between rows: to the parts that other ranks receive, and from what they sent to the own rows."""

from __future__ import annotations

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_helpers import row_of_arc


@kernel(vertex_t="targets", weight_t="weights")
def move_arcs(lo, hi, begins, num_rows, shifts, targets, weights, out_targets, out_weights):
    """Move every arc of row u, of the arcs begins[u] .. begins[u + 1], by shifts[u]."""
    row = row_of_arc(begins, num_rows, lo)
    for arc in range(lo, hi):
        while begins[row + 1] <= arc:
            row += 1
        out_targets[arc + shifts[row]] = targets[arc]
        if weights is not None:
            out_weights[arc + shifts[row]] = weights[arc]
