"""A whole breadth-first search in one launch, on one rank: the fused form of algorithms/bfs/step.py.

What the host asks for and what it is told travel in host memory that the kernel reads and writes, so
that a search is one launch and one wait. `ORDERS`, `COSTS` and `REPORT` name its first words; behind them
stand a row of `ROW` a superstep, then the sources.
"""

from __future__ import annotations

from mgraph.backends.kernel import fused
from mgraph.backends.shared_names import Constants, ControlLayout, Names, WorkArea

ORDERS = Names("Parameter", "depth_limit source num_arcs num_sources capacity trace_rows growth alike longer parts")
# What decides between the forms of a level, in femtoseconds, behind the orders (algorithms/common/cost_model.py): a phase of its
# own, an arc offered to a queue, or to parents, one vertex found there, one of all passed over, one whose first arc a
# pull scans, and an arc that it scans further on.
COSTS = Names("Cost", "phase queueing offering settling passing opening looking")
REPORT = Names("Report", "done num_rows reached reached_arcs")
ROW = ("method", "frontier", "arcs", "nanoseconds", "levels")
LAYOUT = ControlLayout(ORDERS, COSTS, own="depth_limit source", report=REPORT, record=ROW)
METHODS = Names("Method", "push pull walk")
# What blocks count in a phase: COUNT, ARCS and LOOKED are summed over threads first. Counters rotate over three phases.
COUNTERS = Names("Counter", "count arcs looked found queued taken")
SIZES = Constants(num_phases=3)
# What a search works in. Of each queue there are two, and two bitmaps.
WORK = WorkArea(
    "Work",
    "work",
    counters=("i64", SIZES.num_phases * len(COUNTERS)),
    trace_records=("i64", lambda size: size.num_records * len(ROW)),
    bitmaps=("u32", lambda size: size.words),
    other_bitmap=("u32", lambda size: size.words),
    queue_offsets=("i64", lambda size: 4 * size.capacity),
    queue_vertices=("vertex_t", lambda size: 2 * size.capacity),
)
# A queue holds this part of the vertices; a frontier that is larger is pulled.
QUEUE_PART = 4
QUEUE_LEAST = 1024
# The counter of a queue, also of those that find no room there, is right below this: see ARC_BITS in frontiers.cuh.
MOST_QUEUED = 1 << 27
# Ranks with as many vertices are searched step by step. Below it neither the frontiers that are queued, of a quarter of
# the vertices at most, nor those left that are listed, of an eighth, are too many to count.
MOST_ROWS = 2 * MOST_QUEUED


def queue_capacity(num_positions: int, num_sources: int = 1) -> int:
    """Return how many vertices a queue holds."""
    return max(num_positions // QUEUE_PART + QUEUE_LEAST, num_sources)


def work_words(num_positions: int, capacity: int, itemsize: int, trace_rows: int) -> int:
    """Return the length of the work area in 32-bit words."""
    sizes = {"num_records": trace_rows, "words": 2 * -(-num_positions // 64), "capacity": capacity}
    return WORK.num_bytes(sizes, {"vertex_t": itemsize}) // 4


@fused(block=640, vertex_t="targets", dist_t="levels")
def search_levels(
    lo, hi, abort, indptr, targets, in_indptr, in_targets, firsts, levels, parents, work, packed, arrived, host
) -> None:
    """Find levels and parents of vertices 0 .. hi from the sources in `host`.

    `firsts` are those of the in-rows (first_targets in rows.py). `levels` and `parents` need not be initialised, nor
    `work`. With `packed`, a word a vertex, the search walks where the graph is deep: levels run ahead in every block by
    themselves, up to a goal where all meet.
    """
