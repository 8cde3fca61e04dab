"""Weight-sorted rows, light arcs first, in addition to those sorted by target; built for the first SSSP that uses them.

Delta-stepping skips the arcs that are heavier than the current bucket's bound: in a weight-sorted row they are its
end. A few hundred classes of weights are as good as a full sort, and need one read and one write of the rows.
"""

from __future__ import annotations

from mgraph.backends.numba_helpers import WEIGHT_CLASSES
from mgraph.shard.shard import GraphInfo, Rows, Shard
from mgraph.shard.weight_sorted_rows_kernels import sort_rows

# Bytes per vertex of a search and its result: memory that must remain free in addition to the rows.
SEARCH_BYTES = 80
# The width of a bucket over weight-sorted rows, in mean weights per mean degree, and the least degree at which these
# rows are worth building (algorithms/sssp/near_far.py).
DELTA_WEIGHT_SORTED = 5.0
SPARSE_DEGREE = 6.0
# The largest factor by which no weight overflows a float64.
MAX_SCALE = 1e300


def require_weight_sorted_rows(shard: Shard) -> None:
    """Build the shard's weight-sorted rows, if there is memory for them."""
    rows = shard.rows
    backend = shard.backend
    if shard.weight_sorted_rows is not None or rows.weights is None:
        return
    if rows.targets.nbytes + rows.weights.nbytes + SEARCH_BYTES * shard.num_owned > backend.free_bytes():
        return
    targets = backend.xp.empty_like(rows.targets)
    weights = backend.xp.empty_like(rows.weights)
    num_rows = len(rows.indptr) - 1
    sort_rows[backend](0, num_rows, rows.indptr, rows.targets, rows.weights, class_scale(shard.info), targets, weights)
    shard.weight_sorted_rows = Rows(rows.indptr, targets, weights)


def wants_weight_sorted_rows(info: GraphInfo) -> bool:
    """Return whether rows by weight make shortest paths faster: many arcs a vertex, most heavier than a bucket."""
    delta = max(DELTA_WEIGHT_SORTED / info.mean_degree * info.mean_weight, info.min_weight)
    return info.mean_degree >= SPARSE_DEGREE and info.max_weight > delta


def class_scale(info: GraphInfo) -> float:
    """Return the factor from a weight to its class.

    It is 1 for integers of 8 bits.
    """
    heaviest = float(info.max_weight)
    if info.weight_dtype is not None and not info.weight_dtype.startswith("float"):
        return min(1.0, (WEIGHT_CLASSES - 1) / max(heaviest, 1.0))
    return min((WEIGHT_CLASSES - 1) / heaviest, MAX_SCALE) if heaviest > 0 else 0.0
