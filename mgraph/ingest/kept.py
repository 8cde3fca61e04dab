"""The edges that a rank has read, kept for the passes of the build.

On a GPU they are kept in its memory if they take a small part of it; else in host memory up to a budget, and beyond it
in a file.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.host_memory import host_memory
from mgraph.comm.base import Communicator
from mgraph.edges import EdgeChunk
from mgraph.io.array_spool import ArraySpool, StoredArray
from mgraph.partition import chunk_range
from mgraph.types import Array, vertex_dtype

# The share of the free host memory that kept edges may take; the build needs several times as much.
BUDGET_SHARE = 4
# Kept edges are moved to a GPU, for both passes at once, if they take at most this share of its free memory: rows then
# fit in addition to them, as they take less than twice as much.
DEVICE_SHARE = 8

KeptColumn = Array | StoredArray


@dataclass(frozen=True)
class KeptPiece:
    """The edges of one piece: ids less the base in their narrowest dtype, or codes of labels."""

    sources: KeptColumn
    targets: KeptColumn
    weights: KeptColumn | None

    def __len__(self) -> int:
        return len(self.sources)


class Keeper:
    """Keeps columns on `device`; if it is None in memory up to a budget, beyond it in an unnamed temporary file.

    Several threads may use it.
    """

    def __init__(self, budget: int, origin: str, device: Backend | None = None) -> None:
        self._budget = budget
        self.device = device
        self._lock = threading.Lock()
        self._spool = ArraySpool(origin)

    def keep(self, array: Array) -> KeptColumn:
        """Return the array, or its copy on the device or in the file."""
        if self.device is not None:
            # Threads that read are not those of the backend.
            self.device.enter_thread()
            return self.device.to_device(array) if isinstance(array, np.ndarray) else array
        return self.keep_on_host(array)

    def keep_on_host(self, array: Array) -> KeptColumn:
        """Return the array, which the host still needs, or its copy in the file."""
        if not isinstance(array, np.ndarray):
            return array
        with self._lock:
            fits = array.nbytes <= self._budget
            self._budget -= array.nbytes if fits else 0
        return array if fits else self._spool.store(array)

    def replace(self, column: KeptColumn, array: Array) -> KeptColumn:
        """Keep an array in place of a column."""
        if isinstance(column, np.ndarray):
            with self._lock:
                self._budget += column.nbytes
        return self.keep(array)


def device_of(backend: Backend, comm: Communicator, num_edges: int, edge_bytes: int) -> Backend | None:
    """Return the backend if its memory, which is not the host's, has room for the edges that a rank keeps."""
    if backend.xp is np or num_edges * edge_bytes // comm.size > backend.free_bytes() // DEVICE_SHARE:
        return None
    return backend


def memory_budget(backend: Backend, comm: Communicator) -> int:
    """Return the bytes of host memory that this rank's kept edges may take."""
    free = backend.free_bytes() if backend.xp is np else host_memory().num_bytes // comm.size
    return max(free, 0) // BUDGET_SHARE


@dataclass(frozen=True, eq=False)
class KeptEdges:
    """The pieces that this rank has read, as the edge source of its build.

    Of all chunks a rank has those k with k mod num_ranks == rank.
    """

    name: str
    directed: bool
    num_vertices: int
    weight_dtype: np.dtype | None
    num_input_edges: int  # of all ranks
    pieces: Sequence[KeptPiece]
    rank: int
    num_ranks: int

    def chunk(self, k: int, num_chunks: int, backend: Backend) -> EdgeChunk:
        assert k % self.num_ranks == self.rank, "a rank has only the pieces that it has read"
        # Chunk k is number k // num_ranks of the chunks of this rank.
        own_chunks = -(-(num_chunks - self.rank) // self.num_ranks)
        ends = np.cumsum([0, *map(len, self.pieces)])
        lo, hi = chunk_range(int(ends[-1]), k // self.num_ranks, own_chunks)
        first = int(np.searchsorted(ends, lo, "right")) - 1
        last = int(np.searchsorted(ends, hi, "left"))
        parts = [
            (self.pieces[i], slice(max(lo - int(ends[i]), 0), min(hi - int(ends[i]), len(self.pieces[i]))))
            for i in range(first, last)
        ]

        def column(of: Callable[[KeptPiece], KeptColumn], dtype: np.dtype) -> Array:
            arrays = [backend.to_device(of(piece)[part]).astype(dtype, copy=False) for piece, part in parts]
            return arrays[0] if len(arrays) == 1 else backend.xp.concatenate([backend.xp.empty(0, dtype), *arrays])

        ids = vertex_dtype(self.num_vertices)
        weights = None if self.weight_dtype is None else column(lambda piece: piece.weights, self.weight_dtype)
        return EdgeChunk(column(lambda piece: piece.sources, ids), column(lambda piece: piece.targets, ids), weights)
