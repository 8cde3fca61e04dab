"""Relax the arcs of delta_stepping.py by all cores of a CPU rank, with candidates instead of atomics.

What a candidate is, and who lowers a vertex, is in hybrid_wide_kernels.py.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.sssp.hybrid_wide_kernels import (
    ARCS,
    LOWER_AHEAD,
    NEAR,
    NUM_COUNTERS,
    PAGE,
    PAGES,
    RESERVED,
    ROW_ARCS,
    STAGED,
    STOPPED,
    Arcs,
    Candidates,
    TakenRows,
    list_candidates,
    lower_parts,
)
from mgraph.backends.cpu import CpuBackend
from mgraph.errors import CommAborted
from mgraph.shard.lightest_arcs import class_scale
from mgraph.shard.narrow_indptr import narrow_indptr
from mgraph.shard.shard import Shard

# A frontier of fewer vertices is relaxed by one core.
MIN_SHARED = 256
# Fewer vertices are shared among the cores too where whole rows are read and have at least this many arcs: hubs.
MIN_SHARED_ARCS = 1 << 14
# The vertices of a frontier that a core takes at once, at most.
MAX_CHUNK = 256
# Chunks, and parts of the vertices, for each core: as some have more arcs than others.
CHUNKS_PER_CORE = 8
PARTS_PER_CORE = 2
# More would make each core write to more places than its caches hold lines for.
MAX_PARTS = 64
# Candidates of a round at most; more arcs of a frontier are relaxed in several.
MAX_CANDIDATES = 1 << 20
# A memory plan is the same on every host.
PLANNED_CORES = 64
WORD = np.dtype(np.int64)


class PartwiseRelaxation:
    """Relaxes arcs by all cores, each for its own parts of the vertices.

    A vertex of near is queued until its row is taken.
    """

    def __init__(self, shard: Shard, dist: np.ndarray) -> None:
        backend = shard.backend
        rows = shard.rows
        lightest = shard.lightest_arcs
        assert isinstance(backend, CpuBackend), "the variant applies to no other"
        assert rows.weights is not None and lightest is not None, "the caller has made them"
        vertex = shard.partition.dtype
        self.cores = backend
        self.dist = dist
        self.arcs = Arcs(
            narrow_indptr(shard), rows.targets, rows.weights, lightest.targets, lightest.weights,
            class_scale(shard.info),
        )  # fmt: skip
        self.num_parts = parts_of(backend.threads)
        capacity = capacity_of(len(rows.targets), backend.threads)
        shapes = candidate_shapes(capacity, backend.threads, vertex, dist.dtype)
        pages, ends, distances = backend.empty_arrays(*shapes)
        self.candidates = Candidates(pages, ends, distances, capacity)
        shape = backend.threads, MAX_CHUNK
        self.taken = TakenRows(
            np.zeros((backend.threads, 2), np.int64), np.empty(shape, np.int64), np.empty(shape, np.int64),
            np.empty(shape, np.bool_), np.empty(shape, dist.dtype),
        )  # fmt: skip
        self.queued = np.zeros(len(dist), np.uint8)
        self.counters = np.zeros(NUM_COUNTERS, np.int64)
        self.unread_lowest = np.empty(1, dist.dtype)

    def set_queued(self, near: np.ndarray) -> None:
        self.queued[:] = 0
        self.queued[near] = 1

    def relax_light(
        self, near: np.ndarray, bounds: np.ndarray, marked: np.ndarray, found: np.ndarray
    ) -> tuple[int, int, int]:
        limits = bounds[1], min(bounds[1], bounds[2])
        self._relax(near, limits, found, 0, self.unread_lowest, only_light=True)
        return int(self.counters[NEAR]), int(self.counters[ARCS]), int(self.counters[ROW_ARCS])

    def relax_rows(
        self,
        bucket: np.ndarray,
        bounds: np.ndarray,
        marked: np.ndarray,
        near: np.ndarray,
        num_near: int,
        found: np.ndarray,
        lowest: np.ndarray,
    ) -> tuple[int, int]:
        self.set_queued(near[:num_near])
        self._relax(bucket, (bounds[1], bounds[2]), near, num_near, lowest, only_light=False)
        return int(self.counters[NEAR]), int(self.counters[ARCS])

    def _num_arcs(self, frontier: np.ndarray) -> int:
        """Return the number of arcs of a frontier."""
        indptr = self.arcs.indptr
        return int((indptr[frontier + 1] - indptr[frontier]).sum())

    def _relax(
        self,
        frontier: np.ndarray,
        limits: tuple,
        near: np.ndarray,
        num_near: int,
        lowest: np.ndarray,
        *,
        only_light: bool,
    ) -> None:
        """Relax the arcs of a frontier; append to near what this lowers below the first limit, the bound."""
        cores = self.cores
        counters = self.counters
        counters[:] = 0
        counters[NEAR] = num_near
        is_shared = len(frontier) >= MIN_SHARED or (not only_light and self._num_arcs(frontier) >= MIN_SHARED_ARCS)
        # 0: shared, however few the work items.
        light = 0 if is_shared else 1
        chunk = min(max(len(frontier) // (cores.threads * CHUNKS_PER_CORE), 1), MAX_CHUNK)
        self.taken.spans[:] = 0
        counters[STOPPED] = 1
        while counters[STOPPED]:
            if cores.stopped is not None:
                raise CommAborted(cores.stopped)
            counters[[PAGES, RESERVED, STOPPED]] = 0
            cores.run_ranges(
                list_candidates, cores.threads, frontier, chunk, self.taken, self.arcs, only_light, limits, self.dist,
                self.queued, self.num_parts, self.candidates, counters, light=light,
            )  # fmt: skip
            cores.run_ranges(
                lower_parts, self.num_parts, counters[PAGES], self.candidates, limits[0], self.dist, self.queued,
                near, lowest, counters, light=light,
            )  # fmt: skip


def parts_of(threads: int) -> int:
    """Return the number of parts of the vertices: a power of two."""
    return min(1 << (PARTS_PER_CORE * threads - 1).bit_length(), MAX_PARTS)


def capacity_of(num_arcs: int, threads: int) -> int:
    """Return how many candidates there may be in a round: with room for each core to begin, none waits for another."""
    return max(min(num_arcs, MAX_CANDIDATES), threads * STAGED)


def candidate_shapes(capacity: int, threads: int, vertex: np.dtype, dist: np.dtype) -> tuple[tuple[int, np.dtype], ...]:
    """Return lengths and dtypes of pages, and of their ends and distances: one page of each part and core is open."""
    num_pages = capacity // PAGE + parts_of(threads) * threads
    return (num_pages, WORD), (num_pages * PAGE + int(LOWER_AHEAD), vertex), (num_pages * PAGE, dist)


def candidate_bytes(num_arcs: int, vertex: int, state: int) -> int:
    """Return the bytes of candidates on a host of PLANNED_CORES."""
    capacity = capacity_of(num_arcs, PLANNED_CORES)
    shapes = candidate_shapes(capacity, PLANNED_CORES, np.dtype(f"u{vertex}"), np.dtype(f"u{state}"))
    return sum(length * dtype.itemsize for length, dtype in shapes)
