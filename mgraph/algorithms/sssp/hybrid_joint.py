"""Settle buckets of sparse graphs by all cores of a CPU rank in one compiled loop (hybrid_joint_kernels.py).

It takes over from one core where many vertices wait, and gives back where few do. What it needs of a graph: distances
and vertices of 32 bits, which fit one word, and weights of at least 1.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.sssp import hybrid_joint_kernels as kernels
from mgraph.algorithms.sssp.hybrid_joint_kernels import Lists
from mgraph.backends.all_cores import num_near_cores, on_all_cores
from mgraph.backends.cpu import CpuBackend
from mgraph.errors import CommAborted
from mgraph.shard.narrow_indptr import narrow_indptr
from mgraph.shard.shard import GraphInfo, Shard

# One core goes on while no more vertices wait, and from where fewer do.
MAX_SERIAL = 128
FEW = 16
# Where few wait again, one core goes on for this many times as many vertices as before.
GROWTH = 8
# More gain nothing (grids and trees of 2^20 vertices on 16 cores of a Xeon), and on smaller graphs lose much.
MAX_CORES = 8
# The width of the first bucket, in those of one core: buckets end in barriers.
WIDER = 4
# Capacity of the far lists: together a fourth of the vertices, and at least MIN_LISTED entries each.
LISTED_SHARE = 4
MIN_LISTED = 256
# The arcs after which each core pauses, so that an abort is noticed, and a bucket without end.
STEP_ARCS = 1 << 20
UNLIMITED = int(np.iinfo(np.int64).max)
STATE = np.dtype(np.uint32)
WORD = np.dtype(np.uint64)
# Bytes a vertex, of words and of entries: far has a fourth of one for each vertex, near at most twice as many.
JOINT_BYTES = 8 + 2 + 4
# Graphs of fewer vertices end before all cores have begun.
MIN_VERTICES = 1 << 16


def may_join(info: GraphInfo, backend: CpuBackend, dist: np.dtype, vertex: np.dtype) -> bool:
    """Return whether all cores can search this graph in one loop."""
    return (
        backend.threads > 1 and info.num_vertices >= MIN_VERTICES and dist == vertex == STATE and info.min_weight >= 1
    )


class JointSearch:
    """The distances and predecessors of a search, and what all cores share."""

    def __init__(
        self, shard: Shard, backend: CpuBackend, dist: np.ndarray, parents: np.ndarray, cutoff: float | int
    ) -> None:
        self.shard = shard
        self.backend = backend
        self.dist = dist
        self.parents = parents
        self.farthest = min(int(cutoff), int(kernels.VERTEX_MASK) - 1)
        # One core goes on while no more vertices wait.
        self.max_serial = MAX_SERIAL
        # Once all cores have searched: vertices that are reached, and their arcs.
        self.found: np.ndarray | None = None

    def settle(self, waiting: np.ndarray, width: int, trace: Trace) -> np.ndarray | None:
        """Settle buckets until few vertices wait, or one core is better; return those that wait, None for none."""
        backend = self.backend
        num_cores = num_near_cores(backend, MAX_CORES)
        if num_cores == 1:
            self.max_serial = UNLIMITED
            return waiting
        words = backend.empty(len(self.dist), WORD)
        backend.run_ranges(kernels.write_words, len(words), self.dist, self.parents, words)
        lists = new_lists(backend, len(words), len(waiting), num_cores)
        kernels.begin_joint(waiting, words, num_cores, lists)
        bounds = np.zeros(kernels.NUM_BOUNDS, np.int64)
        bounds[kernels.WIDTH] = WIDER * width
        reason = kernels.PAUSED
        while reason == kernels.PAUSED:
            if backend.stopped is not None:
                raise CommAborted(backend.stopped)
            reason = self._settle(num_cores, lists, bounds, words)
        self.found = np.zeros(2, np.int64)
        indptr = narrow_indptr(self.shard)
        backend.run_ranges(kernels.read_words, len(words), words, indptr, self.dist, self.parents, self.found)
        trace.superstep("joint", len(waiting), int(lists.states[:, kernels.SCANNED].sum()))
        if reason == kernels.ENDED:
            return None
        if reason == kernels.NARROW:
            self.max_serial *= GROWTH
            return kernels.waiting_in(lists)
        self.max_serial = UNLIMITED
        reached = self.dist < np.uint32(kernels.VERTEX_MASK)
        return np.flatnonzero(reached & (self.dist >= bounds[kernels.START])).astype(STATE)

    def _settle(self, num_cores: int, lists: Lists, bounds: np.ndarray, words: np.ndarray) -> int:
        """Run the loop on every core once; return why it ended."""
        rows = self.shard.rows
        indptr = narrow_indptr(self.shard)
        pause = int(lists.states[:, kernels.SCANNED].max()) + STEP_ARCS
        limits = self.farthest, pause, FEW
        reasons: list[int] = []

        def settle(core: int, barrier: np.ndarray) -> None:
            reasons.append(
                kernels.settle_jointly(
                    core, num_cores, barrier, lists, bounds, limits, indptr, rows.targets, rows.weights, words
                )
            )

        on_all_cores(self.backend, num_cores, settle)
        assert len(reasons) == num_cores and len(set(reasons)) == 1, "all cores decide the same"
        return reasons[0]


def new_lists(backend: CpuBackend, num_vertices: int, num_waiting: int, num_cores: int) -> Lists:
    """Return empty lists, with room in far for all vertices that wait, and in near for all of far."""
    listed = max(num_vertices // LISTED_SHARE // num_cores**2, MIN_LISTED, num_waiting)
    near_length = 1 << (num_cores * listed).bit_length()
    near, far = backend.empty_arrays((num_cores * near_length, WORD), (num_cores**2 * listed, WORD))
    return Lists(
        near.reshape(num_cores, near_length),
        far.reshape(num_cores, num_cores, listed),
        np.zeros((num_cores, kernels.NUM_WORDS), np.int64),
        np.zeros((num_cores, kernels.NUM_WORDS), np.int64),
    )
