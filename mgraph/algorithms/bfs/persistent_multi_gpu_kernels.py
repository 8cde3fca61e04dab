"""A whole breadth-first search in one launch a rank: the form of algorithms/bfs/step.py for ranks that share windows.

What the host tells and is told travels in host memory that the kernel reads and writes: `FACTS` and `REPORT` name its
first words; behind them stand a row of `ROW` for each level, and the sources.
"""

from __future__ import annotations

from mgraph.backends.kernel import fused
from mgraph.backends.shared_names import Names

# `found` is written by the kernel where it finds the sources itself; they are behind the trace.
FACTS = Names(
    "Fact",
    "depth_limit found num_starts stride multiplier first num_owned num_positions num_arcs last_arc num_longer "
    "num_hubs capacity inbox beta growth first_user num_users trace_rows",
)
METHODS = Names("Method", "push pull")
REPORT = Names("Report", "done num_rows reached reached_arcs")
# Words of counters: of the queue, in turn, of a list, of runs of words, in turn, and of late offers, in turn. Of so
# many blocks of each rank it is told what they offer.
COUNTERS, MOST_BLOCKS = 7, 1024
ROW = ("method", "frontier", "arcs", "nanoseconds", "bytes")


@fused(block=768, vertex_t="targets", id_t="positions", dist_t="levels")
def search_ranks(
    lo, hi, abort, windows, window, positions, indptr, targets, in_indptr, in_targets, firsts, levels, parents, host
) -> None:
    """Find levels and parents of the vertices owned here; lo .. hi decides how many blocks that takes.

    Sources that are not `found` are user ids, and become positions: `positions` holds those of this rank's range of
    user ids, from `first_user` on (None in natural order, where they are the ids themselves). `firsts` are those of the
    in-rows (first_targets in rows.py). `levels`, `parents` and the windows need not be initialised.
    """
