"""Search from many sources on one CPU rank, a core for each, with work arrays that are used again.

    every core, for one source after another:
        find the distances, near before far or by a queue of levels (per_core_kernels.py)
        write those to the targets into the source's row, and reset what was found

Searches side by side have no barriers, and what one core works on is in its cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.distance_matrix.per_core_kernels import search_levels, search_sources
from mgraph.algorithms.distance_matrix.searches import Searches, states_of
from mgraph.algorithms.sssp import hybrid_near_kernels as near_kernels
from mgraph.algorithms.sssp.hybrid import (
    BYTE,
    MAX_WASTED,
    NOTHING_WRITTEN,
    UNLIMITED,
    first_width,
    min_degree,
    near_shapes,
)
from mgraph.algorithms.sssp.radix_queue import queue_bytes, queue_capacity, queue_shapes
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.recycled import restore_later
from mgraph.comm.base import Communicator
from mgraph.errors import CommAborted
from mgraph.shard.narrow_indptr import NARROW_BYTES, narrow_indptr
from mgraph.shard.shard import DEEP_DEGREE, Shard
from mgraph.shard.user_ids import SMALL_SHARE
from mgraph.types import Array, unreached_of

# Bytes of the rows that are found before they are handed on.
ROWS_BYTES = 1 << 26
# Arcs that a core scans before an abort is noticed, unless one search scans more: a second at most.
STEP_ARCS = 1 << 24
# One search is work enough for a thread: all take part, however few there are.
LIGHT_SEARCH = 0
# Writes the distances from some starts into rows.
Search = Callable[[Array, Array], None]


def search_by_cores(shard: Shard, comm: Communicator, searches: Searches, trace: Trace) -> Iterator[Array]:
    """Yield the distances from some sources after others: a row for each, a column for each target or vertex."""
    backend = shard.backend
    assert isinstance(backend, CpuBackend), "the variant applies to no other"
    starts = states_of(shard, searches.sources)
    width = shard.num_owned if searches.targets is None else len(searches.targets)
    by_bytes = ROWS_BYTES // max(1, width * searches.dtype.itemsize)
    by_arcs = backend.threads * STEP_ARCS // max(1, shard.info.num_arcs)
    at_once = max(backend.threads, min(len(starts), by_bytes, by_arcs))
    made = _by_weights(backend, shard, comm, searches) if searches.weighted else _by_hops(backend, shard, searches)
    with made as search:
        for first in range(0, len(starts), at_once):
            if backend.stopped is not None:
                raise CommAborted(backend.stopped)
            batch = starts[first : first + at_once]
            found = backend.empty(len(batch) * width, searches.dtype).reshape(len(batch), width)
            search(batch, found)
            trace.superstep(method="cores", frontier=len(batch), arcs=len(batch) * shard.info.num_arcs)
            yield found


@contextmanager
def _by_weights(backend: CpuBackend, shard: Shard, comm: Communicator, searches: Searches) -> Iterator[Search]:
    """Yield a search of shortest paths, and keep its work arrays, which are reset after each source."""
    n = shard.num_owned
    dtype = searches.dtype
    vertex = shard.partition.dtype
    cores = min(backend.threads, len(searches.sources))
    has_columns = searches.targets is not None
    shapes = near_shapes(n, vertex, 1 + n // SMALL_SHARE)
    lists = backend.empty_arrays(*[(cores * length, kind) for length, kind in shapes])
    # Fresh memory has no pages before it is written, which few searches do.
    queues = tuple([np.empty((cores, length), kind) for length, kind in queue_shapes(queue_capacity(n), dtype, vertex)])
    where = backend.filled(cores * n, BYTE, near_kernels.NOWHERE)
    dist = backend.filled(cores * n * has_columns, dtype, unreached_of(dtype))
    lengths = *[length for length, _ in shapes], n, n * has_columns
    work = tuple([array.reshape(cores, k) for array, k in zip((*lists, where, dist), lengths, strict=True)])
    rows = shard.rows
    graph = narrow_indptr(shard), rows.targets, rows.weights
    until = states_of(shard, searches.targets or [])
    parameters = np.zeros(near_kernels.NUM_WORDS, np.int64)
    parameters[[near_kernels.WAITING_LIMIT, near_kernels.PAUSE_LIMIT]] = UNLIMITED
    # As much as a whole search may be wasted before the queue takes over, which takes several times as long.
    parameters[near_kernels.WASTE_LIMIT] = MAX_WASTED + 2 * shard.info.num_arcs
    parameters[near_kernels.MIN_WAITING_DEGREE] = min_degree(shard)
    width, limit = map(dtype.type, (first_width(shard, comm, dtype), searches.farthest))

    def search(starts: Array, found: Array) -> None:
        num_taken = np.zeros(1, np.int64)
        backend.run_ranges(
            search_sources, cores, num_taken, *graph, starts, until, parameters, width, limit, work, queues, found,
            light=LIGHT_SEARCH,
        )  # fmt: skip

    yield search
    restore_later(where, NOTHING_WRITTEN)
    restore_later(dist, NOTHING_WRITTEN)


@contextmanager
def _by_hops(backend: CpuBackend, shard: Shard, searches: Searches) -> Iterator[Search]:
    """Yield a search of hops."""
    graph = narrow_indptr(shard), shard.rows.targets
    until = states_of(shard, searches.targets or [])
    has_columns = searches.targets is not None
    limit = searches.dtype.type(searches.farthest)

    def search(starts: Array, found: Array) -> None:
        backend.run_ranges(
            search_levels, len(starts), *graph, starts, until, has_columns, limit, found, light=LIGHT_SEARCH
        )

    yield search


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of what two cores work on, of narrow starts, and of the rows that are handed on together.

    A search that was wasteful has a queue too.
    """
    of_vertex = sizes.state + 1 + 3 * sizes.vertex
    of_core = (
        of_vertex * sizes.owned
        + sizes.vertex * sizes.owned // SMALL_SHARE
        + queue_bytes(queue_capacity(sizes.owned), sizes.state, sizes.vertex)
    )
    return 2 * of_core + NARROW_BYTES * sizes.owned + ROWS_BYTES


VARIANT = Variant(
    "distance_matrix.per_core",
    when=f"on one CPU rank, a core for each source; by hops on graphs of at most {DEEP_DEGREE} arcs a vertex",
    applies=lambda conditions: (
        conditions.is_one_cpu and (not conditions.by_hops or conditions.arcs_per_vertex <= DEEP_DEGREE)
    ),
    bytes=_bytes,
    loop=search_by_cores,
)
