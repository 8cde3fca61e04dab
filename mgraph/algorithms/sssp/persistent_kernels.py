"""Find shortest paths in one launch: near/far rounds with no host in between."""

from __future__ import annotations

from mgraph.backends.kernel import persistent
from mgraph.backends.shared_names import Constants, Names, Offsets

# Arcs of a queue entry: longer rows are queued in pieces, so that no warp finishes long after the others. Words of a
# log record, and records at most: the last one adds up all further rounds. A counter has a cache line, since some are
# polled while others are added to; those of three lines are triple-buffered: one is read, one written, one cleared.
SIZES = Constants(piece_arcs=128, record_words=4, max_records=1 << 14, counter_stride=16, triple=3 * 16)
PIECE_ARCS = SIZES.piece_arcs
RECORD_WORDS = SIZES.record_words
MAX_RECORDS = SIZES.max_records
COUNTER_STRIDE = SIZES.counter_stride
TRIPLE = SIZES.triple
# Launch parameters, at the head of `counters`: the first two are distances, `scale` is a float64; `target` is -1 if
# there is none, of several the first, and then all `num_targets` follow the sources (0: it is the only one);
# the search ends with the bucket in which it has `max_rounds` rounds. COSTS follow, in femtoseconds
# (algorithms/common/cost_model.py), by which each round is done one way or the other: to look up a vertex of the far
# queue, to scan one of all, and to push or to pull an arc of a bucket's remainder. REPORT precedes the log on the host;
# all distances below `settled` are settled at the end.
LAUNCH_PARAMETERS = Names(
    "Parameter", "cutoff delta num_sources target num_targets max_rounds hubs pulls scale long_rows"
)
COSTS = Names("Cost", "splitting scanning pushing pulling")
REPORT = Names("Report", "done num_records started settled")
COUNTERS = Offsets(
    parameters=COUNTER_STRIDE, arrived=COUNTER_STRIDE, lowest=TRIPLE, far=TRIPLE, near=TRIPLE, pieces=TRIPLE,
    arcs=TRIPLE, rows=TRIPLE, vertices=TRIPLE, sources=0,
)  # fmt: skip
# Pieces of rows that may be queued, for every PIECE_ARCS arcs: four in a round, of two rounds.
MAX_PIECES = 8
# What a record of the log is about: vertices of near relaxed, the far queue split by a new bound, all distances
# scanned, the same and the remainders of the settled bucket pushed, or pulled by the unsettled vertices.
KINDS = Names("Kind", "push split scan heavy pull")

# Shared memory of a block for the distances of hubs: with the rest of its shared memory, no more than any device has.
HUB_BYTES = 40 << 10


def work_lengths(num_rows: int, num_arcs: int, *, has_far_queue: bool) -> tuple[int, int, int]:
    """Return the lengths of `words`, `queues` and `log`.

    Near has two bitmaps and two queues; far has a bitmap and two queues where it is queued. A piece has a tag.
    """
    pieces = MAX_PIECES * (num_arcs // PIECE_ARCS)
    words = (2 + has_far_queue) * -(-num_rows // 32) + pieces
    queues = (2 + 2 * has_far_queue) * num_rows + pieces
    return words, queues, RECORD_WORDS * MAX_RECORDS


def work_bytes(num_rows: int, num_arcs: int, vertex_bytes: int, *, has_far_queue: bool) -> int:
    """Return the bytes of a launch's work area, without the distances."""
    words, queues, log = work_lengths(num_rows, num_arcs, has_far_queue=has_far_queue)
    return 4 * words + vertex_bytes * queues + 8 * log


@persistent(
    block=512,
    shared_bytes=lambda dist, **_: min(HUB_BYTES, dist.nbytes),
    vertex_t="targets",
    weight_t="weights",
    dist_t="dist",
)
def find_distances(lo, hi, abort, indptr, targets, weights, dist, words, queues, counters, log, report) -> None:
    """Find all distances, or those up to the target's bucket or the last round; lo .. hi are all vertices.

    `counters` begin with the launch parameters and COSTS, are zero from there up to the sources, and end with these and
    the targets, if they are several.
    The kernel is the first to write the rest: `words`, bitmaps and tags, which say where in its row a piece begins,
    `queues` and the `log`, of `work_lengths`; and REPORT and the log on the host.
    """


@persistent(
    block=512,
    shared_bytes=lambda dist, **_: min(HUB_BYTES, dist.nbytes),
    vertex_t="targets",
    weight_t="weights",
    dist_t="dist",
)
def find_distances_by_weight(
    lo, hi, abort, indptr, targets, weights, lightest_targets, lightest_weights, dist, words, queues, counters, log,
    report,
) -> None:  # fmt: skip
    """Find all distances over rows with their lightest arcs.

    SCALE makes weight classes; PULLS says whether arcs lead both ways.
    """
