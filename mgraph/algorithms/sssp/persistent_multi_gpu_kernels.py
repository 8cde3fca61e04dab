"""Shortest paths in one launch a rank: the form of algorithms/sssp/delta_stepping.py for ranks that share windows.

What the host tells and is told travels in host memory that the kernel reads and writes: `FACTS` and `REPORT` name its
first words; behind them stand a row of `ROW` for each round, and the sources, of which bfs_peers.py says more.
"""

from __future__ import annotations

from mgraph.algorithms.bfs.persistent_kernels import MOST_QUEUED
from mgraph.backends.kernel import fused
from mgraph.backends.shared_names import ControlLayout, Names

# `cutoff`, `delta` and `beyond` are distances; from `beyond` on they are counted in the end. `found` is written by the
# kernel where it finds the sources itself; they are behind the trace. `lines` and `copy` say how many bytes behind its
# beginning the bits of words and the distances of a window are.
FACTS = Names(
    "Fact",
    "cutoff delta found beyond stride multiplier num_positions num_owned num_starts num_arcs capacity long_rows "
    "heavies pulls lines copy first_user num_users trace_rows",
)
REPORT = Names("Report", "done num_rows num_beyond everywhere")
# Words of counters.
COUNTERS = 4
# Rows of more arcs are pulled by all warps; vertices that have them may be queued beside all others.
LONG_ROW = 256
ROW = ("method", "frontier", "arcs", "nanoseconds", "bytes")
LAYOUT = ControlLayout(FACTS, own="cutoff delta found", report=REPORT, record=ROW)
METHODS = Names("Method", "push scan heavy pull")
# Ranks with as many vertices are searched step by step: all of them may be in the queue.
MOST_ROWS = MOST_QUEUED


@fused(block=768, vertex_t="targets", weight_t="weights", dist_t="dist", id_t="positions")
def find_distances_on_ranks(
    lo, hi, abort, windows, window, positions, indptr, targets, weights, scale, dist, work, host
) -> None:
    """Find distances of the vertices owned here; lo .. hi decides how many blocks that takes.

    `scale` makes classes of the weights, over which rows are in order; rows in
    any other are relaxed whole where it is infinite. `dist` and `work`, which is for counters, rows and a queue,
    need not be initialised, nor what stands in the windows behind their heads.
    """
