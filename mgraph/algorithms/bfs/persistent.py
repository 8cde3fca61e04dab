"""Breadth-first search by frontiers on one rank, in one launch.

The loop of step.py runs inside persistent_kernels.cu, without the host. Each level is done in the way that costs least
on the device at hand (common/cost_model.py). On a sparse graph, while frontiers stay narrow, it uses chunked expansion:
each block expands its part of the frontier over many levels between two grid barriers. When few vertices are unreached
they are listed, and later levels scan the list only: with all blocks or, if it is very short, with one.

Where the levels are many and narrow, the CPU would be faster. If that is unknown, the first search stops after 254
(bytes) or TRIAL_LEVELS levels, and its time decides (common/gpu_or_host.py).

Levels of a persistent search, on one GPU or on several, are bytes first, except on graphs of few arcs a vertex: a
quarter as many bytes are written, and sent to other ranks. Levels that bytes do not hold are searched again in full
width, with which later searches of the graph then begin. The trace includes a search that is repeated.

The position of one source is found by a launch before the search, for which the host does not wait: that would take
longer than the search of a small graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

import numpy as np

from mgraph.algorithms.bfs import persistent_kernels as kernel
from mgraph.algorithms.bfs.persistent_kernels import (
    COSTS,
    LAUNCH_PARAMETERS,
    LAYOUT,
    MAX_QUEUED,
    METHODS,
    RECORD,
    queue_capacity,
    search_levels,
    work_words,
)
from mgraph.algorithms.bfs.step import GROWTH
from mgraph.algorithms.common.control_block import ControlBlock
from mgraph.algorithms.common.cost_model import bfs_costs
from mgraph.algorithms.common.gpu_or_host import try_gpu
from mgraph.algorithms.common.traversal import TRACE_RECORDS, Trace, Traversal, watched_and_listed
from mgraph.algorithms.derived import DEVICE_RATES, FIRST_NEIGHBORS, IN_ROWS
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.backends.base import Allocated, PersistentBackend
from mgraph.backends.rates_file import require_rates
from mgraph.comm.base import Communicator
from mgraph.errors import CommAborted
from mgraph.shard.in_rows import require_first_neighbors
from mgraph.shard.shard import DEEP_DEGREE, Shard, cached_on_shard
from mgraph.shard.user_ids import positions_finder, positions_of
from mgraph.types import LEVEL, NARROW_LEVEL, Array, unreached_of

# The word of the control block that has the source.
SOURCE = LAUNCH_PARAMETERS.index("source")
# A search that reaches this level may be incomplete.
MAX_UINT8_LEVELS = int(unreached_of(NARROW_LEVEL)) - 1
assert MAX_UINT8_LEVELS < TRACE_RECORDS, "every level that fits a byte has a trace record of its own"
# Levels in full width of a search that finds out whether a graph is deep: about a millisecond on the GPU.
TRIAL_LEVELS = 1 << 10
# Degrees are uniform where the largest is at most this many times the mean.
UNIFORM_DEGREE_RATIO = 4


def bfs_persistent(
    shard: Shard,
    comm: Communicator,
    users: Sequence[int],
    trace: Trace,
    depth_limit: int | None = None,
    translate: Callable[[Shard, Communicator, Array, Array], list[Array]] | None = None,
    until: Sequence[int] = (),
) -> Traversal | None:
    """Find the levels and parents that step.py finds, from user ids.

    Return None where it turns out that the host is faster. `translate` launches the translation of both into user ids
    before the host waits for the search. With positions `until`, only up to the level of the farthest, or a little
    farther.
    """
    # Not by isinstance: before a launch, every microsecond counts.
    backend = cast(PersistentBackend, shard.backend)
    target, targets = watched_and_listed(until) if until else (-1, ())
    is_usual = len(users) == 1 and not targets
    positions = [] if is_usual or not users else positions_of(shard, comm, users)
    starts = sorted({position for position in positions if position < shard.partition.num_positions})
    source = users[0] if is_usual else starts[0] if starts else 0
    for dtype, limit in _attempts(shard, depth_limit, shard.exceeds_uint8_levels, shard.faster_on_host.get("bfs")):
        search = _search_from_one(shard, dtype) if is_usual else _Search(shard, len(starts), len(targets), dtype)
        search.control.give(
            [*starts, *targets], depth_limit=-1 if limit is None else limit, source=source, target=target
        )
        if is_usual:
            search.find_source()
        trace.begin_phase()
        levels, parents, *_ = search.launch()
        wait = backend.marked()
        try:
            in_user_ids = None if translate is None else translate(shard, comm, levels, parents)
        finally:
            wait()
        done, num_records, reached, reached_arcs = search.control.report()
        if is_usual:
            positions = [int(search.control.on_host[SOURCE])]
        if not done:
            backend.arrived[:] = 0
            raise CommAborted("the search was aborted at a grid barrier")
        trace.end_phase()
        records = search.control.records(num_records)
        trace.add_persistent(partial(_steps, records))
        # In bytes each level has a record of its own.
        num_levels = int(_facts_of(records, "levels").sum()) if dtype == LEVEL and limit != depth_limit else num_records
        if limit is None or limit == depth_limit or num_levels < limit:
            if dtype == LEVEL and limit is None and shard.faster_on_host.get("bfs") is False:
                try_gpu(shard, "bfs", *_times(records), reached, int(_facts_of(records, "levels").sum()))
            return Traversal(levels, parents, reached, reached_arcs, in_user_ids, sources=positions)
        shard.exceeds_uint8_levels |= dtype == NARROW_LEVEL
        is_trial = shard.faster_on_host.get("bfs") is None
        if is_trial and try_gpu(shard, "bfs", *_times(records), reached, num_levels):
            return None  # from now on another variant applies
        # Freed before the next search allocates its own.
        del levels, parents, in_user_ids
    raise AssertionError("levels of 32 bits are never too narrow")


@cached_on_shard
def _attempts(
    shard: Shard, depth_limit: int | None, exceeds_uint8_levels: bool, faster_on_host: bool | None
) -> list[tuple[np.dtype, int | None]]:
    """Return the searches to make until one has all levels, each with its dtype and depth limit.

    All but the last may be too short. The first of a graph is, if it may be deep and it is unknown (None) whether the
    CPU is faster: its time shows it.
    """
    attempts = level_dtypes(shard, depth_limit, exceeds_uint8_levels)
    if depth_limit is None and len(attempts) == 1 and faster_on_host is None:
        attempts.insert(0, (LEVEL, TRIAL_LEVELS))
    return attempts


def level_dtypes(
    shard: Shard, depth_limit: int | None, exceeds_uint8_levels: bool
) -> list[tuple[np.dtype, int | None]]:
    """Return the dtypes in which to search for levels, in order, each with its depth limit.

    Without a limit bytes are not tried again, once a search of the graph exceeded them.
    """
    limit = MAX_UINT8_LEVELS if depth_limit is None else min(depth_limit, MAX_UINT8_LEVELS)
    in_bytes = not may_exceed_uint8_levels(shard) and (limit == depth_limit or not exceeds_uint8_levels)
    return [(NARROW_LEVEL, limit)] * in_bytes + [(LEVEL, depth_limit)]


def may_exceed_uint8_levels(shard: Shard) -> bool:
    """Return whether so few arcs per vertex allow searches of many levels."""
    return shard.info.num_arcs <= DEEP_DEGREE * shard.partition.num_positions


class _Search:
    """The prepared launch for searches of a shard with given numbers of sources and of listed targets.

    `launch` returns levels, parents and work arrays that are dead once the search has ended. Before it, `find_source`
    replaces the user id of one source by its position in the control block.
    """

    def __init__(self, shard: Shard, num_sources: int, num_targets: int, dtype: np.dtype) -> None:
        backend = shard.backend
        rows = shard.rows
        incoming = shard.incoming
        num = shard.num_owned
        assert isinstance(backend, PersistentBackend), "the caller checks this"
        vertex = rows.targets.dtype
        num_arcs = shard.info.num_arcs
        capacity = queue_capacity(num, num_sources)
        # Arcs of a frontier that were not counted are counted when the whole frontier is queued.
        uniform_degree = num < MAX_QUEUED and shard.info.max_degree * num <= UNIFORM_DEGREE_RATIO * num_arcs
        first_neighbors = require_first_neighbors(shard)  # also counts trailing rows of at most one arc
        # From this vertex on all rows have one arc, where that is known.
        degree_one_from = (
            num - incoming.num_degree_at_most_one if shard.info.order == "degree" and not shard.info.directed else num
        )
        parts, *costs = bfs_costs(require_rates(backend), num, vertex.itemsize, rows.host_share)
        shared = {
            "num_arcs": num_arcs,
            "num_sources": num_sources,
            "num_targets": num_targets,
            "capacity": capacity,
            "trace_records": TRACE_RECORDS,
            "growth": GROWTH,
            "uniform_degree": uniform_degree,
            "degree_one_from": degree_one_from,
            "parts": parts,
            **dict(zip(COSTS, costs, strict=True)),
        }
        # Where there are no vertices nothing is launched.
        empty = {"done": num == 0, "num_records": 0, "reached": 0, "reached_arcs": 0}
        # One source, with one target at most, is a launch parameter.
        num_listed = num_sources + num_targets if num_sources > 1 or num_targets else 0
        self.control = ControlBlock(backend, LAYOUT, shared, empty, TRACE_RECORDS, num_listed)
        self.find_source = positions_finder(shard, self.control.words[SOURCE : SOURCE + 1])
        work = Allocated(work_words(num, capacity, vertex.itemsize, TRACE_RECORDS), np.dtype(np.uint32))
        # Chunked expansion needs 8 bytes a vertex. It writes one trace record for many levels, and levels in bytes are
        # counted by records: so only with full-width levels.
        is_deep = dtype == LEVEL and may_exceed_uint8_levels(shard)
        self.launch = backend.prepared(
            search_levels, 0, num, backend.abort_word,
            rows.indptr, rows.targets, incoming.indptr, incoming.targets, first_neighbors,
            Allocated(num, dtype), Allocated(num, vertex), work,
            Allocated(num, np.dtype(np.int64)) if is_deep else None, backend.arrived, self.control.words,
        )  # fmt: skip


@cached_on_shard
def _search_from_one(shard: Shard, dtype: np.dtype) -> _Search:
    return _Search(shard, 1, 0, dtype)


def _facts_of(log: bytes, fact: str) -> np.ndarray:
    """Return a fact of each trace record."""
    return np.frombuffer(log, np.int64).reshape(-1, len(RECORD))[:, RECORD.index(fact)]


def _times(log: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Return the nanoseconds and the frontier of each trace record."""
    return _facts_of(log, "nanoseconds"), _facts_of(log, "frontier")


def _steps(log: bytes) -> list[dict]:
    """Return the trace records as dictionaries."""
    return [
        {"method": METHODS[m], "frontier": f, "arcs": a, "microseconds": ns / 1000, "bytes": 0, "levels": num_levels}
        for m, f, a, ns, num_levels in np.frombuffer(log, np.int64).reshape(-1, len(RECORD)).tolist()
    ]


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of levels in 8 and in 32 bits, parents, first neighbors, queues and chunked expansion."""
    deep = sizes.row_arcs <= DEEP_DEGREE * sizes.owned
    work = 4 * work_words(sizes.owned, queue_capacity(sizes.owned), sizes.vertex, TRACE_RECORDS)
    return (1 + 4 + 2 * sizes.vertex + (8 if deep else 0)) * sizes.owned + work


VARIANT = Variant(
    "bfs.persistent",
    when=(
        f"on one GPU, fewer than 2^{kernel.MAX_ROWS.bit_length() - 1} vertices with arcs and "
        f"2^{kernel.MAX_ARCS.bit_length() - 1} arcs, in one launch"
    ),
    applies=lambda conditions: (
        conditions.has_rows
        and conditions.has_persistent_kernels
        and conditions.num_ranks == 1
        and conditions.stride < kernel.MAX_ROWS
        and conditions.num_arcs < kernel.MAX_ARCS
    ),
    needs=(DEVICE_RATES, IN_ROWS, FIRST_NEIGHBORS),
    bytes=_bytes,
    loop=bfs_persistent,
    takes_user_ids=True,
    takes_translate=True,
    takes_until=True,
)
