"""Shortest paths in one launch: near and far, round after round, with no host in between."""

from __future__ import annotations

from mgraph.backends.kernel import fused
from mgraph.backends.shared_names import Names, Offsets

# As in the CUDA file: arcs that an entry of a queue stands for; words of a line of the log, and its lines.
PART = 128
LINE, LINES = 4, 1 << 14
# What the host asks for, at the head of `counters`, the first two as distances and `scale` as a float64. Behind that,
# in femtoseconds (algorithms/common/cost_model.py), what decides between the forms of a round: to look up a vertex of the far
# queue, to pass over one of all, and to push or to pull an arc of what was left. REPORT comes before the log.
ORDERS = Names("Order", "cutoff delta num_sources hubs pulls scale long_rows")
COSTS = Names("Cost", "splitting scanning pushing pulling")
REPORT = Names("Report", "done num_lines began")
# The counters are cache lines apart, since some are waited at while others are counted up. Three are used in rotation:
# one is read, one is written, one is cleared.
APART = 16
THREE = 3 * APART
COUNTERS = Offsets(
    asked=APART, arrived=APART, lowest=THREE, far=THREE, near=THREE, pieces=THREE, arcs=THREE, rows=THREE,
    vertices=THREE, sources=0,
)  # fmt: skip
# Pieces of rows that may be queued, for every PART arcs: four in a round, of two rounds.
PIECES = 8
# What a line of the log is about: entries relaxed, far split by a new bound, all distances scanned, the same and the
# heavy arcs of what is settled relaxed, or those pulled that may lead from there.
KINDS = Names("Kind", "push split scan heavy pull")

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

    `counters` begin with ORDERS and COSTS; are zero from there up to the sources, with which they end. The rest is
    memory that the kernel is the first to write: `bits`, `queues`, `tags`, which say of pieces of rows where they
    begin, and the `log`, of `work_lengths`; and REPORT and the log on the host.
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
