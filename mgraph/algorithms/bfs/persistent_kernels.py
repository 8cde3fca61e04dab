"""A whole breadth-first search in one launch, on one rank: the persistent variant of algorithms/bfs/step.py.

Its control block is in host memory that the kernel reads and writes, so that a search is one launch and one wait:
`LAUNCH_PARAMETERS` and `COSTS`, `REPORT`, a `RECORD` for each superstep, then the sources and targets, where one of
these are several.
"""

from __future__ import annotations

from mgraph.backends.kernel import persistent
from mgraph.backends.shared_names import Constants, ControlLayout, Names, WorkArea

# `depth_limit` is -1 without a limit, `target` -1 without targets. The search ends when all targets have levels. One
# target is `target` alone, and `num_targets` is 0; of several it is the first, and all follow the sources in the list.
# `capacity` is that of a queue; a search pulls only if the frontier's arcs have become `growth` times as many. In rows
# from `degree_one_from` on there is one arc. With `uniform_degree` no row is much longer than the mean, so that arcs
# need not be counted. `parts`: into how many parts of the parents a push is divided.
LAUNCH_PARAMETERS = Names(
    "Parameter",
    "depth_limit source target num_arcs num_sources num_targets capacity trace_records growth uniform_degree "
    "degree_one_from parts",
)
# Costs by which the way to do a level is chosen, in femtoseconds (algorithms/common/cost_model.py): a phase, an arc
# pushed to a queue, an arc proposed to parents, a vertex found so, a vertex passed over, a vertex of which a pull
# scans the first arc, and a further arc of it.
COSTS = Names("Cost", "phase queueing proposing settling passing opening scanning")
REPORT = Names("Report", "done num_records reached reached_arcs")
RECORD = ("method", "frontier", "arcs", "nanoseconds", "levels")
LAYOUT = ControlLayout(LAUNCH_PARAMETERS, COSTS, own="depth_limit source target", report=REPORT, record=RECORD)
METHODS = Names("Method", "push pull chunked")
# What blocks count in a phase: COUNT, ARCS and SCANNED are summed over threads first. Counters rotate over three
# phases.
COUNTERS = Names("Counter", "count arcs scanned found queued taken")
SIZES = Constants(num_phases=3)
# The work area of a search: two queues and two bitmaps, of which one is read and one is written.
WORK = WorkArea(
    "Work",
    "work",
    counters=("i64", SIZES.num_phases * len(COUNTERS)),
    trace_records=("i64", lambda size: size.record_capacity * len(RECORD)),
    bitmaps=("u32", lambda size: size.words),
    other_bitmap=("u32", lambda size: size.words),
    queue_offsets=("i64", lambda size: 4 * size.capacity),
    queue_vertices=("vertex_t", lambda size: 2 * size.capacity),
)
# A queue holds 1 / QUEUE_PART of the vertices, and fewer than MAX_QUEUED; a larger frontier is pulled.
QUEUE_PART = 4
MIN_QUEUE = 1024
# A queue's counter, which also counts vertices over capacity, is exact below this many vertices and arcs: see ARC_BITS
# in frontiers.cuh.
MAX_QUEUED = 1 << 27
MAX_ARCS = 1 << 36
# Of a graph on several ranks, for each of them: no rank has twice its share.
MAX_ARCS_A_RANK = MAX_ARCS // 2
# A graph of this many vertices is searched step by step. Below, listed vertices, at most an eighth, stay below
# MAX_QUEUED.
MAX_ROWS = 8 * MAX_QUEUED


def queue_capacity(num_positions: int, num_sources: int = 1) -> int:
    """Return the capacity of a queue, in vertices."""
    return max(min(num_positions // QUEUE_PART + MIN_QUEUE, MAX_QUEUED - 1), num_sources)


def work_words(num_positions: int, capacity: int, itemsize: int, trace_records: int) -> int:
    """Return the length of the work area in 32-bit words."""
    sizes = {"record_capacity": trace_records, "words": 2 * -(-num_positions // 64), "capacity": capacity}
    return WORK.num_bytes(sizes, {"vertex_t": itemsize}) // 4


@persistent(block=640, vertex_t="targets", dist_t="levels")
def search_levels(
    lo,
    hi,
    abort,
    indptr,
    targets,
    in_indptr,
    in_targets,
    first_neighbors,
    levels,
    parents,
    work,
    packed,
    arrived,
    control,
) -> None:
    """Find levels and parents of vertices 0 .. hi from the sources in `control`.

    `first_neighbors` are those of the in-rows (first_targets in shard/rows_kernels.py). `levels`, `parents` and
    `work` need not be initialized. With `packed`, a word per vertex, narrow frontiers are expanded in chunks: each
    block runs over many levels independently, up to a common goal.
    """
