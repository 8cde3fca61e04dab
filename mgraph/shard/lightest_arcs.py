"""The lightest arcs of every row, by class of weight, in addition to the rows; made for the first SSSP that uses them.

Delta-stepping skips arcs that are too heavy for a bucket. The lightest quarter of a row is sorted by class of weight:
its arcs that are light enough come first, and as a rule heavier ones follow. Where none follows the whole row is read.
A few hundred classes are as good as a full sort, and need two reads of the weights and one of the targets taken.

Of rows in the layout `split` the first may be in host memory, as the rows themselves: a search that reads the light
arcs over the link is still many times faster than one that reads all arcs.
"""

from __future__ import annotations

import itertools

import numpy as np

from mgraph.backends.numba_helpers import LIGHTEST_BITS, WEIGHT_CLASSES
from mgraph.shard.lightest_arcs_kernels import take_lightest
from mgraph.shard.shard import GraphInfo, LightestArcs, Shard
from mgraph.shard.split_rows import split_arrays
from mgraph.types import Array

# Memory that must remain free in addition to the lightest arcs: bytes of a search by vertex with arcs, and of its
# result by user id.
SEARCH_BYTES = 64
RESULT_BYTES = 16
# For host memory the lightest of about this many arcs, or of one row, are made on the device at once.
ARCS_AT_ONCE = 1 << 27
# The width of a bucket where rows have lightest arcs, in mean weights per mean degree, and the least degree at which
# these are worth making (algorithms/sssp/near_far.py).
DELTA_LIGHTEST = 5.0
SPARSE_DEGREE = 6.0
# The largest factor by which no weight overflows a float64.
MAX_SCALE = 1e300


def require_lightest_arcs(shard: Shard, host_bytes: int = 0) -> None:
    """Make the shard's lightest arcs, if they fit the device, or the device and `host_bytes` of host memory."""
    rows = shard.rows
    if shard.lightest_arcs is not None or rows.weights is None:
        return
    num_lightest = len(rows.targets) >> LIGHTEST_BITS
    arc_bytes = rows.targets.itemsize + rows.weights.itemsize
    (lo, hi) = shard.user_range
    free = shard.backend.free_bytes() - SEARCH_BYTES * shard.num_owned - RESULT_BYTES * (hi - lo)
    if num_lightest * arc_bytes <= max(free, 0):
        shard.lightest_arcs = LightestArcs(*_taken(shard, 0, len(rows.indptr) - 1))
        return
    free -= arc_bytes * min(ARCS_AT_ONCE >> LIGHTEST_BITS, num_lightest)
    share = max(free, 0) / (num_lightest * arc_bytes)
    if (1 - share) * num_lightest * arc_bytes <= host_bytes:
        shard.lightest_arcs = _split(shard, num_lightest, share)


def _taken(shard: Shard, first: int, last: int) -> tuple[Array, Array]:
    """Return the lightest arcs of some rows, in memory of the device."""
    backend = shard.backend
    rows = shard.rows
    assert rows.weights is not None, "lightest arcs are by weight"
    begin, end = backend.to_host(rows.indptr[backend.to_device(np.array([first, last]))]).tolist()
    # The arcs in front of the first row that share its group of 1 << LIGHTEST_BITS belong to no row here.
    begin = begin >> LIGHTEST_BITS << LIGHTEST_BITS
    offsets = rows.indptr[first : last + 1]
    arcs = offsets - begin if begin else offsets, rows.targets[begin:end], rows.weights[begin:end]
    count = (end - begin) >> LIGHTEST_BITS
    taken = backend.xp.empty(count, rows.targets.dtype), backend.xp.empty(count, rows.weights.dtype)
    take_lightest[backend](0, last - first, *arcs, class_scale(shard.info), *taken)
    return taken


def _split(shard: Shard, num_lightest: int, device_share: float) -> LightestArcs:
    """Return the lightest arcs in split memory: made on the device for a range of rows at a time, then copied."""
    backend = shard.backend
    rows = shard.rows
    assert rows.weights is not None, "lightest arcs are by weight"
    targets, weights, host_arcs = split_arrays(
        backend, num_lightest, rows.targets.dtype, rows.weights.dtype, device_share
    )
    bounds = backend.to_device(np.arange(0, len(rows.targets) + ARCS_AT_ONCE, ARCS_AT_ONCE))
    cuts = np.unique(backend.to_host(backend.xp.searchsorted(rows.indptr[:-1], bounds)))
    begins = backend.to_host(rows.indptr[backend.to_device(cuts)]) >> LIGHTEST_BITS
    for (first, last), begin in zip(itertools.pairwise(cuts.tolist()), begins.tolist(), strict=False):
        some = _taken(shard, first, last)
        for whole, part in zip((targets, weights), some, strict=True):
            whole[begin : begin + len(part)] = part
        del some, part
        backend.release()
    return LightestArcs(targets, weights, host_arcs)


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
