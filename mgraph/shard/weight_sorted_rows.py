"""Rows with the light arcs of each first, beside the rows by target; built when shortest paths want them.

The paper on spanning forests sorts every vertex's list by weight once for a graph; here it is for shortest
paths: most arcs are heavier than what a bucket has room for, and need not be looked at while they are. A few
hundred classes of weights do as well as a full order, and cost one reading and one writing of the rows.
"""

from __future__ import annotations

from mgraph.backends.numba_helpers import WEIGHT_CLASSES
from mgraph.shard.shard import GraphInfo, Rows, Shard
from mgraph.shard.weight_sorted_rows_kernels import sort_rows

# Of a vertex, for a search and its answer: what must be free beside the rows.
SEARCH_BYTES = 80
# The width of a bucket over rows by weight, in mean weights per mean degree, and the least degree at which they pay
# (algorithms/sssp/near_far.py).
DELTA_BY_WEIGHT, SPARSE_DEGREE = 5.0, 6.0
# The largest factor: no weight times it is beyond the floats.
MOST_SCALE = 1e300


def require_rows_by_weight(shard: Shard) -> None:
    """Give the shard rows by weight, unless there is no room for them."""
    rows, run = shard.rows, shard.backend
    if shard.by_weight is not None or rows.weights is None:
        return
    if rows.targets.nbytes + rows.weights.nbytes + SEARCH_BYTES * shard.num_owned > run.free_bytes():
        return
    targets, weights = run.xp.empty_like(rows.targets), run.xp.empty_like(rows.weights)
    num_rows = len(rows.indptr) - 1
    sort_rows[run](0, num_rows, rows.indptr, rows.targets, rows.weights, class_scale(shard.info), targets, weights)
    shard.by_weight = Rows(rows.indptr, targets, weights)


def wants_rows_by_weight(info: GraphInfo) -> bool:
    """Return whether rows by weight make shortest paths faster: many arcs a vertex, most heavier than a bucket."""
    delta = max(DELTA_BY_WEIGHT / info.mean_degree * info.mean_weight, info.min_weight)
    return info.mean_degree >= SPARSE_DEGREE and info.max_weight > delta


def class_scale(info: GraphInfo) -> float:
    """Return the factor that makes classes of the graph's weights: 1 for integers of 8 bits."""
    most = float(info.max_weight)
    if info.weight_dtype is not None and not info.weight_dtype.startswith("float"):
        return min(1.0, (WEIGHT_CLASSES - 1) / max(most, 1.0))
    return min((WEIGHT_CLASSES - 1) / most, MOST_SCALE) if most > 0 else 0.0
