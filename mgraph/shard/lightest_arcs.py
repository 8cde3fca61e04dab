"""The lightest arcs of every row, by class of weight, in addition to the rows; made for the first SSSP that uses them.

Delta-stepping skips arcs that are too heavy for a bucket. The lightest quarter of a row is sorted by class of weight:
its arcs that are light enough come first, and as a rule heavier ones follow. Where none follows the whole row is read.
A few hundred classes are as good as a full sort, and need two reads of the weights and one of the targets taken.
"""

from __future__ import annotations

from mgraph.backends.numba_helpers import LIGHTEST_BITS, WEIGHT_CLASSES
from mgraph.shard.lightest_arcs_kernels import take_lightest
from mgraph.shard.shard import GraphInfo, LightestArcs, Shard

# Bytes per vertex of a search and its result: memory that must remain free in addition to the lightest arcs.
SEARCH_BYTES = 80
# The width of a bucket where rows have lightest arcs, in mean weights per mean degree, and the least degree at which
# these are worth making (algorithms/sssp/near_far.py).
DELTA_LIGHTEST = 5.0
SPARSE_DEGREE = 6.0
# The largest factor by which no weight overflows a float64.
MAX_SCALE = 1e300


def require_lightest_arcs(shard: Shard) -> None:
    """Make the shard's lightest arcs, if there is memory for them."""
    rows = shard.rows
    backend = shard.backend
    if shard.lightest_arcs is not None or rows.weights is None:
        return
    num_lightest = len(rows.targets) >> LIGHTEST_BITS
    num_bytes = num_lightest * (rows.targets.itemsize + rows.weights.itemsize)
    if num_bytes + SEARCH_BYTES * shard.num_owned > backend.free_bytes():
        return
    targets = backend.xp.empty(num_lightest, rows.targets.dtype)
    weights = backend.xp.empty(num_lightest, rows.weights.dtype)
    num_rows = len(rows.indptr) - 1
    take_lightest[backend](
        0, num_rows, rows.indptr, rows.targets, rows.weights, class_scale(shard.info), targets, weights
    )
    shard.lightest_arcs = LightestArcs(targets, weights)


def wants_lightest_arcs(info: GraphInfo) -> bool:
    """Return whether they make shortest paths faster: many arcs a vertex, most heavier than a bucket."""
    delta = max(DELTA_LIGHTEST / info.mean_degree * info.mean_weight, info.min_weight)
    return info.mean_degree >= SPARSE_DEGREE and info.max_weight > delta


def class_scale(info: GraphInfo) -> float:
    """Return the factor from a weight to its class.

    It is 1 for integers of 8 bits.
    """
    heaviest = float(info.max_weight)
    if info.weight_dtype is not None and not info.weight_dtype.startswith("float"):
        return min(1.0, (WEIGHT_CLASSES - 1) / max(heaviest, 1.0))
    return min((WEIGHT_CLASSES - 1) / heaviest, MAX_SCALE) if heaviest > 0 else 0.0
