"""A whole breadth-first search in one launch a rank: the persistent multi-GPU variant of algorithms/bfs/step.py.

Its control block is in host memory that the kernel reads and writes: `LAUNCH_PARAMETERS`, `REPORT`, a `RECORD`
for each level, then the sources and targets.
"""

from __future__ import annotations

from mgraph.algorithms.bfs.persistent_kernels import MAX_QUEUED
from mgraph.backends.kernel import persistent
from mgraph.backends.shared_names import Constants, ControlLayout, Names, Offsets, WorkArea

# `found` is written by the kernel once it has translated the sources itself. `target` is a state index, -1 without
# targets; the search ends when all targets have levels. A single target is `target`, with `num_targets` 0; of several
# it is the first, and all follow the sources in the list.
LAUNCH_PARAMETERS = Names(
    "Parameter",
    "depth_limit found target num_sources num_targets stride multiplier first num_owned num_positions num_arcs "
    "last_arc degree_one_from num_hubs capacity inbox beta growth first_user num_users trace_records",
)
METHODS = Names("Method", "push pull")
REPORT = Names("Report", "done num_records reached reached_arcs")
RECORD = ("method", "frontier", "arcs", "nanoseconds", "bytes")
LAYOUT = ControlLayout(LAUNCH_PARAMETERS, own="depth_limit found target", report=REPORT, record=RECORD)
# Of the queue and of deferred candidates there are two counters, for alternating levels, and of runs of words.
COUNTERS = Offsets(queue_counters=2, list_counter=1, run_counters=2, deferred_counters=2)
# With this many vertices on a rank levels are searched step by step. Below, queued frontiers, at most a quarter of the
# vertices, stay below MAX_QUEUED.
MAX_ROWS = 2 * MAX_QUEUED
# At most this many blocks of a rank send candidates.
SIZES = Constants(num_buffers=8, max_blocks=1024, num_counters=COUNTERS.total)
# A rank's peer buffer after its head. Other ranks write into the first parts, up to `candidate_counts`: two copies of
# the bitmap of reached states; candidates from each rank; for each rank how many blocks send candidates, above the
# capacity of each, and how many each sent.
WORK = WorkArea(
    "PeerBuffer",
    "in + HEAD_BYTES",
    "u8* in",
    reached=("u32", lambda size: 2 * size.words * size.num_ranks),
    inboxes=("Candidate", lambda size: size.num_ranks * size.inbox),
    deferred_candidates=("Candidate", lambda size: size.inbox * size.num_ranks // 2),
    candidate_counts=("i64", SIZES.num_buffers * (1 + SIZES.max_blocks)),
    counters=("i64", COUNTERS.total),
    trace_records=("i64", lambda size: size.record_capacity * len(RECORD)),
    queue_offsets=("i64", lambda size: size.capacity),
    queue_first=("i64", lambda size: size.capacity),
    queue_vertices=("vertex_t", lambda size: size.capacity),
)


@persistent(block=768, vertex_t="targets", id_t="positions", dist_t="levels")
def search_ranks(
    lo,
    hi,
    abort,
    peer_buffers,
    buffer,
    positions,
    indptr,
    targets,
    in_indptr,
    in_targets,
    first_neighbors,
    levels,
    parents,
    control,
) -> None:
    """Find levels and parents of owned vertices; lo .. hi decides the number of blocks.

    Sources that are not `found` are user ids, and are translated: `positions` holds those of this rank's range of user
    ids, from `first_user` on (None in natural order, where they are the ids themselves). `first_neighbors` are those of
    the in-rows (first_targets in shard/rows_kernels.py). `levels`, `parents` and the peer buffers need not be
    initialized.
    """
