"""Shortest paths in one launch: near and far, round after round, with no host in between."""

from __future__ import annotations

from mgraph.kernels.pair import fused

# As in the CUDA file: arcs that an entry of a queue stands for, places in `counters`, and the log behind them.
PART = 256
ROUNDS, BEGAN, HUBS, LOG = 16, 17, 18, 272
LINE, LINES = 4, 1 << 14
KINDS = ("push", "split", "scan")

# Shared memory of a block for the distances of hubs: with what else it takes, no more than any device has.
HUB_BYTES = 40 << 10


@fused(
    block=512,
    shared_bytes=lambda dist, **_: min(HUB_BYTES, dist.nbytes),
    vertex_t="targets",
    weight_t="weights",
    dist_t="dist",
)
def find_distances(
    lo, hi, abort, indptr, targets, weights, sources, bounds, dist, bits, near, parts, far, counters
) -> None:
    """Find all distances from `sources`, the vertices lo..hi being all there are: one rank, lo is 0.

    `bounds` are the cutoff, delta and three of the kernel's own, `counters` zeros but for the number of
    sources at ROUNDS, and of vertices of which a block keeps the distance at HUBS. The rest is memory that
    the kernel is the first to write: three bitmaps in `bits`; two queues of near, each an entry a vertex and
    one more for every PART arcs, and behind them two of those more alone; two queues of far.
    """
