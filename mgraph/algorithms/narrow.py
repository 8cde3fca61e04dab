"""Integer distances in 32 bits where those that occur fit, though longer paths could be.

A path may be as long as all vertices times the largest weight, and hardly any is: in 32 bits a search looks up, keeps
and sends half as much. What lies beyond `farthest()` counts as not reached there. If a distance came so near to that
that an arc may lead beyond, the search is repeated in 64 bits, in which the graph is searched from then on.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.traversal import Traversal
from mgraph.comm.base import Communicator
from mgraph.kernels.totals import count_between
from mgraph.shard import GraphInfo, Shard
from mgraph.types import unreached_of

NARROW = np.dtype(np.uint32)
# Where a path of so few arcs could be too long for 32 bits, nobody tries.
FEWEST_ARCS = 256


def may_be_narrow(dtype: np.dtype, heaviest: float | int) -> bool:
    """Return whether distances that may take `dtype` are worth a search in 32 bits."""
    return dtype.kind != "f" and dtype.itemsize > NARROW.itemsize and heaviest * FEWEST_ARCS < farthest(heaviest)


def first_dtype(shard: Shard, dtype: np.dtype) -> np.dtype:
    """Return what a search by frontiers holds distances in at first that may take `dtype`."""
    return NARROW if may_be_narrow(dtype, shard.info.max_weight) and not shard.has_long_paths else dtype


def farthest(heaviest: float | int) -> int:
    """Return the largest distance from which every arc ends below what is not reached, in 32 bits."""
    return int(unreached_of(NARROW)) - 1 - int(heaviest)


def narrow_cutoff(info: GraphInfo, cutoff: float | int | None) -> int:
    """Return the cutoff of a search in 32 bits."""
    most = farthest(info.max_weight)
    return most if cutoff is None else min(int(cutoff), most)


def nearest_beyond(info: GraphInfo, dtype: np.dtype) -> float | int:
    """Return the distance from which an arc may lead beyond, in a search in this dtype."""
    return max(0, farthest(info.max_weight) - int(info.max_weight)) if dtype == NARROW else unreached_of(dtype)


def is_whole(shard: Shard, comm: Communicator, found: Traversal, cutoff: float | int | None) -> bool:
    """Return whether a search in 32 bits lost nothing that is within the cutoff; the same on every rank."""
    info, run, num_beyond = shard.info, shard.backend, found.num_beyond
    if cutoff is not None and cutoff <= farthest(info.max_weight):
        return True
    if num_beyond is None:
        of_rank, distances = run.xp.zeros(1, np.int64), found.distances
        bounds = nearest_beyond(info, NARROW), unreached_of(NARROW)
        count_between[run](0, len(distances), distances, *bounds, of_rank)
        (num_beyond,) = comm.sum(int(of_rank[0]))
    return num_beyond == 0
