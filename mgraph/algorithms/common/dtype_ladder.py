"""Integer distances in 16 or 32 bits, where those that occur fit, though longer paths could be.

A path may be as long as all vertices times the largest weight, and hardly any is: with fewer bits a search loads,
stores and sends less. Distances above `farthest()` count as unreached. If a distance is so near to that bound that an
arc may exceed it, the search is repeated in the next wider dtype, which later searches of the graph then begin with.
Multi-GPU searches try 16 bits first, since bytes over the links limit them. The trace includes a search that is
repeated.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.common.traversal import Traversal
from mgraph.algorithms.variant import GraphSizes
from mgraph.backends.totals import count_between
from mgraph.comm.base import Communicator
from mgraph.shard.lightest_arcs import SPARSE_DEGREE
from mgraph.shard.shard import GraphInfo, Shard
from mgraph.types import unreached_of

NARROW = tuple(np.dtype(name) for name in ("uint16", "uint32"))
# A dtype that a path of so few arcs could exceed is not tried.
MIN_ARCS = 64


def dtypes_to_try(dtype: np.dtype, heaviest: float | int, degree: float, *, has_peer_buffers: bool) -> list[np.dtype]:
    """Return the smaller dtypes worth trying before `dtype`, the smallest first.

    `degree` is the mean one of vertices that have arcs: on meshes and road maps paths have too many arcs for 16 bits.
    """
    if dtype.kind == "f":
        return []
    may = NARROW if has_peer_buffers and degree >= SPARSE_DEGREE else NARROW[1:]
    return [d for d in may if d.itemsize < dtype.itemsize and heaviest * MIN_ARCS < farthest(d, heaviest)]


def first_dtypes(shard: Shard, dtype: np.dtype, *, has_peer_buffers: bool) -> list[np.dtype]:
    """Return the smaller dtypes to try that no search of this graph has exceeded."""
    info = shard.info
    tried = dtypes_to_try(dtype, info.max_weight, info.mean_degree, has_peer_buffers=has_peer_buffers)
    return [narrow for narrow in tried if narrow.itemsize > shard.overflowed_itemsize]


def searched_bytes(sizes: GraphSizes, *, has_peer_buffers: bool) -> int:
    """Return the bytes of a distance in a search by frontiers, unless paths are too long for that."""
    dtype = sizes.weight_dtype
    if dtype is None or dtype.kind == "f":
        return sizes.state
    degree = sizes.row_arcs * sizes.partition.num_ranks / max(sizes.partition.num_positions, 1)
    tried = dtypes_to_try(np.dtype(f"i{sizes.state}"), sizes.heaviest, degree, has_peer_buffers=has_peer_buffers)
    return tried[0].itemsize if tried else sizes.state


def farthest(dtype: np.dtype, heaviest: float | int) -> int:
    """Return the largest distance from which any arc still leads below `unreached_of(dtype)`."""
    return int(unreached_of(dtype)) - 1 - int(heaviest)


def end_of(info: GraphInfo, dtype: np.dtype) -> int | None:
    """Return the cutoff of a search that has none but the end of its dtype; floats have no such end."""
    return None if dtype.kind == "f" else farthest(dtype, info.max_weight)


def nearest_beyond(info: GraphInfo, dtype: np.dtype) -> float | int:
    """Return the smallest distance from which an arc may exceed this dtype."""
    if dtype not in NARROW:
        return unreached_of(dtype)
    return max(0, farthest(dtype, info.max_weight) - int(info.max_weight))


def is_whole(shard: Shard, comm: Communicator, found: Traversal, cutoff: float | int | None) -> bool:
    """Return whether a search in a smaller dtype found all distances within the cutoff."""
    info = shard.info
    backend = shard.backend
    num_beyond = found.num_beyond
    distances = found.distances
    if cutoff is not None and cutoff <= farthest(distances.dtype, info.max_weight):
        return True
    if num_beyond is None:
        of_rank = backend.xp.zeros(1, np.int64)
        bounds = nearest_beyond(info, distances.dtype), unreached_of(distances.dtype)
        count_between[backend](0, len(distances), distances, *bounds, of_rank)
        (num_beyond,) = comm.sum(int(of_rank[0]))
    return num_beyond == 0
