"""Link the ends of edges in blocks: see kernels.py for why any thread may link at any time."""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.components.kernels import link
from mgraph.backends.kernel import kernel
from mgraph.backends.numba_helpers import position_of


@kernel(lanes=1024, block=1024, vertex_t="parents")
def link_edges(
    lo, hi, unit_tiles, unit_segments, tile_edges, tile_starts, words, segment_bits, stride, multiplier, parents
):  # fmt: skip
    """Link both ends of every edge; work items are units (see Blocks)."""
    mask = (1 << segment_bits) - 1
    for unit in range(lo, hi):
        segment = unit_segments[unit]
        for tile in range(unit_tiles[unit], unit_tiles[unit + 1]):
            start = tile_starts[tile]
            for e in range(tile_edges[tile], tile_edges[tile + 1]):
                u = position_of(np.int64(start + (words[e] >> segment_bits)), stride, multiplier)
                v = position_of(np.int64(segment + (words[e] & mask)), stride, multiplier)
                if parents[u] != parents[v]:
                    link(parents, u, v)
