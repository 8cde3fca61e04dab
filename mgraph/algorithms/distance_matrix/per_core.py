"""Search from many sources on one CPU rank, a core for each, with work arrays that are used again.

    every core, for one source after another:
        find the distances, by buckets or by a queue of levels (per_core_kernels.py)
        write those to the targets into the source's row, and reset what was found

Searches side by side have no barriers, and what one core works on is in its cache.
"""

from __future__ import annotations

from collections.abc import Iterator

from mgraph.algorithms.bfs.step import DEEP_DEGREE
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.distance_matrix.per_core_kernels import SLOTS, search_levels, search_sources
from mgraph.algorithms.distance_matrix.searches import Searches, states_of
from mgraph.algorithms.sssp.near_far import typical_weight
from mgraph.algorithms.sssp.radix_queue import queue_bytes, queue_capacity
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.backends.cpu import SERIAL_ITEMS, CpuBackend
from mgraph.comm.base import Communicator
from mgraph.errors import CommAborted
from mgraph.shard.narrow_indptr import NARROW_BYTES, narrow_indptr
from mgraph.shard.shard import Shard
from mgraph.types import Array

# Bytes of the rows that are found before they are handed on.
ROWS_BYTES = 1 << 26
# Arcs that a core scans before an abort is noticed, unless one search scans more: a second at most.
STEP_ARCS = 1 << 24
# One search is work enough for a thread.
LIGHT_SEARCH = 1 / SERIAL_ITEMS


def search_by_cores(shard: Shard, comm: Communicator, searches: Searches, trace: Trace) -> Iterator[Array]:
    """Yield the distances from some sources after others: a row for each, a column for each target or vertex."""
    backend = shard.backend
    assert isinstance(backend, CpuBackend), "the variant applies to no other"
    rows = shard.rows
    indptr = narrow_indptr(shard)
    n = shard.num_owned
    starts = states_of(shard, searches.sources)
    has_columns = searches.targets is not None
    until = states_of(shard, searches.targets or [])
    width = len(until) if has_columns else n
    limit = searches.dtype.type(searches.farthest)
    if searches.weighted:
        delta = typical_weight(shard, comm)
        inverse = 1 / delta if delta > 0 else 0.0
        min_degree = 1 if shard.info.directed else 2
        way = (rows.weights, min_degree, queue_capacity(n), inverse)
    by_bytes = ROWS_BYTES // max(1, width * searches.dtype.itemsize)
    by_arcs = backend.threads * STEP_ARCS // max(1, shard.info.num_arcs)
    at_once = max(backend.threads, min(len(starts), by_bytes, by_arcs))
    for first in range(0, len(starts), at_once):
        if backend.stopped is not None:
            raise CommAborted(backend.stopped)
        batch = starts[first : first + at_once]
        found = backend.empty(len(batch) * width, searches.dtype).reshape(len(batch), width)
        if searches.weighted:
            weights, min_degree, capacity, inverse = way
            backend.run_ranges(
                search_sources, len(batch), indptr, rows.targets, weights, batch, until, has_columns, min_degree,
                capacity, inverse, limit, found, light=LIGHT_SEARCH,
            )  # fmt: skip
        else:
            backend.run_ranges(
                search_levels, len(batch), indptr, rows.targets, batch, until, has_columns, limit, found,
                light=LIGHT_SEARCH,
            )  # fmt: skip
        trace.superstep(method="cores", frontier=len(batch), arcs=len(batch) * shard.info.num_arcs)
        yield found


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of what two cores work on, of narrow starts, and of the rows that are handed on together.

    A search that is begun anew has a second queue, and predecessors.
    """
    of_queue = queue_bytes(queue_capacity(sizes.owned), sizes.state, sizes.vertex)
    of_core = of_queue + (sizes.state + 2 * sizes.vertex) * sizes.owned + 8 * SLOTS
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
