"""Count the arcs of tiles, and place them there: see arc_bins.py.

A tile is a bin of targets, and in it a segment of sources; its number is bin * num_segments + segment.
"""

from __future__ import annotations

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add
from mgraph.backends.numba_helpers import row_of_arc
from mgraph.backends.shared_names import Constants

# Slots of a stripe: a tile has whole stripes.
STRIPE = 32
# The end of a slot without an arc.
NO_END = (1 << 16) - 1
SLOTS = Constants(stripe=STRIPE)


@kernel(vertex_t="targets")
def count_tile_arcs(lo, hi, indptr, num_rows, targets, segment_bits, bin_bits, num_segments, counts):
    """Add 1 to the count of each arc's tile; work items are arcs of in-rows."""
    row = row_of_arc(indptr, num_rows, lo)
    for arc in range(lo, hi):
        while indptr[row + 1] <= arc:
            row += 1
        atomic_add(counts, (row >> bin_bits) * num_segments + (targets[arc] >> segment_bits), 1)


@kernel(vertex_t="targets")
def place_in_tiles(
    lo, hi, indptr, num_rows, targets, segment_bits, bin_bits, num_segments, first_stripes, placed, starts, ends
):
    """Write both ends of each arc to a slot of its tile, relative to its segment and its bin.

    A tile begins at its first stripe; `placed`, zeros at first, counts its arcs. Their order is free.
    """
    row = row_of_arc(indptr, num_rows, lo)
    for arc in range(lo, hi):
        while indptr[row + 1] <= arc:
            row += 1
        tile = (row >> bin_bits) * num_segments + (targets[arc] >> segment_bits)
        slot = STRIPE * first_stripes[tile] + atomic_add(placed, tile, 1)
        starts[slot] = targets[arc] & ((1 << segment_bits) - 1)
        ends[slot] = row & ((1 << bin_bits) - 1)


@kernel()
def list_stripes(lo, hi, listed, num_tiles, first_stripes, stripes):
    """List the stripes of tiles, tile after tile; those of the i-th tile are listed from listed[i] on."""
    tile = row_of_arc(listed, num_tiles, lo)
    for i in range(lo, hi):
        while listed[tile + 1] <= i:
            tile += 1
        stripes[i] = first_stripes[tile] + (i - listed[tile])
