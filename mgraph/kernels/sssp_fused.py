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
# Pieces of rows that may be queued, for every PART arcs: four in a round, of two rounds.
PIECES = 8
KINDS = ("push", "split", "scan", "heavy", "pull")

# Shared memory of a block for the distances of hubs: with what else it takes, no more than any device has.
HUB_BYTES = 40 << 10


def work_lengths(num_rows: int, num_arcs: int, *, by_weight: bool) -> tuple[int, int, int, int]:
    """Return the lengths of `bits`, `queues`, `tags` and `log`.

    Of near there are two bitmaps and two queues; what waits has a bitmap and two queues where it is queued.
    """
    waits, pieces = not by_weight, PIECES * (num_arcs // PART)
    return (2 + waits) * -(-num_rows // 32), (2 + 2 * waits) * num_rows + pieces, pieces, LINE * LINES


def work_bytes(num_rows: int, num_arcs: int, vertex_bytes: int, *, by_weight: bool) -> int:
    """Return what a launch takes beside the distances."""
    bits, queues, tags, log = work_lengths(num_rows, num_arcs, by_weight=by_weight)
    return 4 * bits + vertex_bytes * queues + 4 * tags + 8 * log


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
    to SOURCES; and end with the sources. The rest is memory that the kernel is the first to write: `bits`, `queues`,
    `tags`, which say of pieces of rows where they begin, and the `log`, of `work_lengths`; and REPORT and the log on
    the host.
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
