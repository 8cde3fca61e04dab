"""Integer distances in 32 bits where those that occur fit, though longer paths could be.

A path may be as long as all vertices times the largest weight, and hardly any is: in 32 bits a search looks up, keeps
and sends half as much. What lies beyond `farthest()` counts as not reached there. If a distance came so near to that
that an arc may lead beyond, the search is repeated in 64 bits, in which the graph is searched from then on.
"""

from __future__ import annotations

import numpy as np

from mgraph.comm.base import Communicator
from mgraph.kernels.totals import count_between
from mgraph.shard import GraphInfo, Shard
from mgraph.types import Array, unreached_of

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


def is_whole(shard: Shard, comm: Communicator, distances: Array, cutoff: float | int | None) -> bool:
    """Return whether a search in 32 bits lost nothing that is within the cutoff; the same on every rank."""
    heaviest = int(shard.info.max_weight)
    most, run = farthest(heaviest), shard.backend
    if cutoff is not None and cutoff <= most:
        return True
    near_it = run.xp.zeros(1, np.int64)
    count_between[run](0, len(distances), distances, most - heaviest, unreached_of(NARROW), near_it)
    return not comm.any(bool(near_it[0]))
