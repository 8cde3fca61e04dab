"""Shortest paths in one launch: near and far, round after round, with no host in between."""

from __future__ import annotations

from mgraph.kernels.pair import fused

# As in the CUDA file: arcs that an entry of a queue stands for; what the host asks for, at the head of `counters`,
# and what decides behind that, in femtoseconds (algorithms/costs.py); what it is told, and the log behind it.
PART = 128
ORDERS = ("CUTOFF", "DELTA", "NUM_SOURCES", "HUBS", "PULLS", "SCALE", "LONG_ROWS")
COSTS = ("splitting", "scanning", "pushing", "pulling")
SOURCES = 368
REPORT = ("DONE", "NUM_LINES", "BEGAN")
LINE, LINES = 4, 1 << 14
# Of a long row.
TAGS = 8
KINDS = ("push", "split", "scan", "heavy", "pull")

# Shared memory of a block for the distances of hubs: with what else it takes, no more than any device has.
HUB_BYTES = 40 << 10


def queue_entries(num_rows: int, num_arcs: int, *, by_weight: bool) -> int:
    """Return how many vertices the queues hold: pieces of long rows and near, both twice, and what waits."""
    return 8 * (num_arcs // PART) + (2 if by_weight else 4) * num_rows


def work_bytes(num_rows: int, num_arcs: int, vertex_bytes: int, *, by_weight: bool) -> int:
    """Return what a launch takes beside the distances: bitmaps, queues, tags of long rows' pieces, the log."""
    bits = 4 * (2 if by_weight else 3) * -(-num_rows // 32)
    queues = vertex_bytes * queue_entries(num_rows, num_arcs, by_weight=by_weight)
    return bits + queues + 4 * TAGS * (num_arcs // PART) + 8 * LINE * LINES


@fused(
    block=512,
    shared_bytes=lambda dist, **_: min(HUB_BYTES, dist.nbytes),
    vertex_t="targets",
    weight_t="weights",
    dist_t="dist",
)
def find_distances(lo, hi, abort, indptr, targets, weights, dist, bits, queues, tags, counters, log, report) -> None:
    """Find all distances, the vertices lo..hi being all there are: one rank, lo is 0.

    `counters` begin with ORDERS, the first two as distances and SCALE as a float64, and COSTS; are zero from there up
    to SOURCES; and end with the sources. The rest is memory that the kernel is the first to write: three bitmaps in
    `bits`, `queue_entries` in `queues`, eight a long row in `tags`, the `log`; and REPORT and the log on the host.
    """


@fused(
    block=512,
    shared_bytes=lambda dist, **_: min(HUB_BYTES, dist.nbytes),
    vertex_t="targets",
    weight_t="weights",
    dist_t="dist",
)
def find_distances_by_weight(
    lo, hi, abort, indptr, targets, weights, dist, bits, queues, tags, counters, log, report
) -> None:
    """Find them over rows by weight, whose classes SCALE makes; PULLS says whether arcs lead both ways."""
