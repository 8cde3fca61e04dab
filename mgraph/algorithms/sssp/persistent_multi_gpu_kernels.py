"""Find shortest paths in one launch per rank, on ranks that share peer buffers.

The loop of delta_stepping.py, in peer memory. The control block is host memory that the kernel reads and writes: the
launch parameters, REPORT, a `RECORD` for each round, and sources and targets, of which
bfs/persistent_multi_gpu_kernels.py says more.
"""

from __future__ import annotations

from mgraph.algorithms.bfs.persistent_kernels import MAX_QUEUED
from mgraph.backends.kernel import persistent
from mgraph.backends.shared_names import Constants, ControlLayout, Names, Offsets, WorkArea

# `cutoff`, `delta` and `beyond` are distances; in the end distances from `beyond` on are counted. `found` is written by
# the kernel where it translates the sources itself; they follow the trace. `target`, at whose bucket the search ends,
# is a state index, or -1; of several it is the first, and all `num_targets` follow the sources. `scale`, a float64,
# makes the weight classes by which lightest arcs are sorted. `summary` and `distances` are the byte offsets of the
# marks' summary and of the distances in a peer buffer.
LAUNCH_PARAMETERS = Names(
    "Parameter",
    "cutoff delta found target beyond stride multiplier num_positions num_owned num_sources num_targets num_arcs "
    "capacity long_rows has_heavy can_pull scale summary distances first_user num_users trace_records",
)
REPORT = Names("Report", "done num_records num_beyond has_all_distances")
# Counters of the queue and of its parts, double-buffered.
COUNTERS = Offsets(queue_counters=2, part_counters=2)
# Rows of more arcs are pulled by all warps; vertices that have them may be queued in addition to all others.
SIZES = Constants(num_counters=COUNTERS.total, all_warps_row=256)
ALL_WARPS_ROW = SIZES.all_warps_row
RECORD = ("method", "frontier", "arcs", "nanoseconds", "bytes")
LAYOUT = ControlLayout(LAUNCH_PARAMETERS, own="cutoff delta found target", report=REPORT, record=RECORD)
METHODS = Names("Method", "push scan heavy pull")
# The kernel's `work`: a queue entry is the offset of its arcs in the queue, its first arc, and its vertex.
WORK = WorkArea(
    "SsspWork",
    "work",
    counters=("i64", COUNTERS.total),
    trace_records=("i64", lambda size: size.record_capacity * len(RECORD)),
    queue_offsets=("i64", lambda size: size.capacity),
    queue_first=("i64", lambda size: size.capacity),
    queue_vertices=("vertex_t", lambda size: size.capacity),
)
# Ranks with as many vertices are searched by the step variant: all of them may be in the queue.
MAX_ROWS = MAX_QUEUED


@persistent(block=768, vertex_t="targets", weight_t="weights", dist_t="dist", id_t="positions")
def find_distances_on_ranks(
    lo, hi, abort, peer_buffers, buffer, positions, indptr, targets, weights, lightest_targets, lightest_weights, dist,
    work, control,
) -> None:  # fmt: skip
    """Find distances of the owned vertices; lo .. hi decides the number of thread blocks.

    A rank without lightest arcs, None, reads whole rows. `dist` and `work`, the work area for counters, trace and a
    queue, need not be initialized, nor the peer buffers behind their headers.
    """
