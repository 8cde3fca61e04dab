"""Shortest paths by frontiers on ranks whose kernels reach each other's memory, one launch a rank.

The loop of sssp_by_weight.py runs inside kernels/sssp_peers.cu, or that of sssp.py where no arc counts as heavy, and
nobody asks the host in between. Every rank relaxes its arcs in a copy of all distances and marks what fell; the owners
read what is marked from the others' copies. Before a pull they write there what is settled, before the last one all
that is reached, and then what falls. The ranks meet twice a round, and once where the bound is raised. The fixed point
is unique, and so are distances.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.narrow import nearest_beyond
from mgraph.algorithms.orders import Orders, wait_for_search, word_of
from mgraph.algorithms.sssp import SPARSE_DEGREE, default_delta, wants_rows_by_weight
from mgraph.algorithms.traversal import TRACE_ROWS, Trace, Traversal
from mgraph.build.by_weight import class_scale
from mgraph.comm.base import Communicator
from mgraph.comm.peers import HEAD_BYTES, require_windows
from mgraph.kernels.backend import GIVEN_WINDOWS, Fresh, FusingBackend
from mgraph.kernels.sssp_peers import METHODS, ROW, find_distances_on_ranks
from mgraph.partition import Partition
from mgraph.shard import Shard, once_a_shard
from mgraph.types import smallest_of, unreached_of

# What a warp tells others of neighbours begins where a line of memory does (else rmat28 on four H200 takes 5 % longer).
MEMORY_LINE = 128
# How many orders are a search's own: the first of them.
OWN_ORDERS = 2
# Rounds cost less than where the host starts them: buckets are narrower by this, except on graphs of low degree.
# Buckets twice as wide take a tenth to a quarter longer at rmat26 and 27 on two H200, at rmat26 and 28 on four.
NARROWER = 8


def require_sssp_windows(shard: Shard, comm: Communicator, dtype: np.dtype) -> bool:
    """Open what sssp_peers() needs, once for all graphs of a size; return whether the ranks reach each other."""
    if not isinstance(shard.backend, FusingBackend):
        return False
    windows = require_windows(comm, shard.backend, window_bytes(shard.partition, dtype.itemsize))
    if windows is not None:
        windows.layout = "sssp"
    return windows is not None


def sssp_peers(
    shard: Shard,
    comm: Communicator,
    sources: list[int],
    trace: Trace,
    dtype: np.dtype,
    cutoff: float | int | None = None,
    delta: float | int | None = None,
) -> Traversal:
    """Find distances in `dtype` from `sources`, which are positions; predecessors are found afterwards."""
    run, windows = shard.backend, comm.windows
    assert isinstance(run, FusingBackend) and windows is not None, "require_sssp_windows() comes first"
    starts = sorted({int(shard.partition.state(p)) for p in sources})
    has_light = shard.by_weight is not None
    search = _search_from_one(shard, dtype, has_light) if len(starts) == 1 else _Search(shard, dtype, len(starts))
    width = search.delta_word if delta is None else word_of(delta, dtype)
    search.orders.give((search.top_word if cutoff is None else word_of(cutoff, dtype), width), starts)
    dist, _ = search.launch(*windows.given)
    num_beyond, is_everywhere = wait_for_search(comm, search.orders, trace, METHODS)
    _, first, last = _parts(shard.partition, dtype.itemsize)
    everywhere = windows.own[first:last].view(dtype) if is_everywhere else None
    return Traversal(dist, None, num_beyond=num_beyond, everywhere=everywhere)


class _Search:
    """What searches of a shard from so many sources have in common: all but where they start and end, and the windows.

    `launch` takes what windows give, searches, and returns distances; what it worked in comes behind them.
    """

    def __init__(self, shard: Shard, dtype: np.dtype, num_sources: int) -> None:
        run, partition, info = shard.backend, shard.partition, shard.info
        assert isinstance(run, FusingBackend), "who calls has asked"
        # A rank without room for rows by weight relaxes whole ones, in the turns of the others.
        heavies = wants_rows_by_weight(info)
        by_weight = shard.by_weight if heavies else None
        rows, scale = (shard.rows, np.inf) if by_weight is None else (by_weight, class_scale(info))
        self.top_word, self.delta_word = (
            word_of(distance, dtype) for distance in (unreached_of(dtype), narrow_delta(shard, dtype))
        )
        lines, copy, _ = _parts(partition, dtype.itemsize)
        shared = (
            word_of(nearest_beyond(info, dtype), dtype), partition.stride, shard.num_owned, num_sources, info.num_arcs,
            heavies, not info.directed, HEAD_BYTES + lines, HEAD_BYTES + copy, TRACE_ROWS,
        )  # fmt: skip
        self.orders = Orders(run, OWN_ORDERS, shared, (0, 0, 0, 0), (TRACE_ROWS, len(ROW)), num_sources)
        self.launch = run.prepared(
            find_distances_on_ranks, 0, partition.stride, *GIVEN_WINDOWS,
            rows.indptr, rows.targets, rows.weights, scale,
            Fresh(shard.num_owned, dtype), Fresh(work_words(partition), np.dtype(np.uint32)), self.orders.words,
        )  # fmt: skip


@once_a_shard
def _search_from_one(shard: Shard, dtype: np.dtype, has_light: bool) -> _Search:
    """Return it; there may be room for rows by weight later only."""
    return _Search(shard, dtype, 1)


def narrow_delta(shard: Shard, dtype: np.dtype) -> float | int:
    """Return the width of a bucket for this graph's weights and degrees."""
    info, wide = shard.info, default_delta(shard, dtype)
    if info.num_arcs < SPARSE_DEGREE * (info.num_vertices - info.num_isolated):
        return wide
    return max(wide / NARROWER if dtype.kind == "f" else int(wide) // NARROWER, smallest_of(dtype))


def window_bytes(partition: Partition, itemsize: int) -> int:
    """Return how long a rank's window is behind its head: its parts, and three distances of buckets."""
    return _parts(partition, itemsize)[-1] + 3 * itemsize


def _parts(partition: Partition, itemsize: int) -> tuple[int, int, int]:
    """Return where bits of words, behind bits of states, and then distances begin in a window, and end; in bytes."""
    words = partition.num_states // 32
    lines = 4 * words
    copy = -(-(lines + 4 * -(-words // 32)) // MEMORY_LINE) * MEMORY_LINE
    return lines, copy, copy + partition.num_states * itemsize


def work_words(partition: Partition) -> int:
    """Return how many 32-bit words a rank's search works in: counters, trace, a queue with what its entries have."""
    return 4 + 2 * TRACE_ROWS * len(ROW) + partition.stride * (4 + partition.dtype.itemsize // 4)
