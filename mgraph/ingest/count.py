"""Count degrees, self-loops and bounds of weights in one pass over the input, and check every id and weight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.totals import total
from mgraph.backends.workers import Workers
from mgraph.comm.base import Communicator
from mgraph.edges import EdgeChunk, EdgeSource
from mgraph.errors import InputError
from mgraph.ingest.chunks import begin_phase, parts_of_chunk
from mgraph.ingest.plan import degrees_bytes
from mgraph.shard.count_kernels import count_alone, count_degrees
from mgraph.types import Array

INT64 = np.iinfo(np.int64)
# The least bytes of an edge of a graph, in a word of the compact layout.
MIN_EDGE_BYTES = 4


@dataclass(frozen=True)
class Totals:
    """Totals over the whole input; parallel arcs are counted separately."""

    num_arcs: int  # without self-loops: the arcs that pass 2 will place
    num_isolated: int
    num_loops: int
    min_weight: float | int
    max_weight: float | int


@dataclass
class Counts:
    """Degrees and totals, the same on every rank."""

    out_degrees: Array  # of every user id; parallel arcs are counted separately
    in_degrees: Array  # the same array object if the graph is undirected
    totals: Totals

    @property
    def num_connected(self) -> int:
        """The number of vertices with arcs, out or in."""
        return len(self.out_degrees) - self.totals.num_isolated


@dataclass
class _Tally:
    """What one thread, or a device, has counted so far."""

    num_vertices: int
    out_degrees: Array
    in_degrees: Array
    num_loops: Array
    min_weight: np.ndarray
    max_weight: np.ndarray

    @classmethod
    def of_nothing(cls, source: EdgeSource, xp: Any) -> _Tally:
        n = source.num_vertices
        floats = source.weight_dtype is not None and source.weight_dtype.kind == "f"
        lightest, heaviest = np.array([[np.inf], [-np.inf]] if floats else [[INT64.max], [INT64.min]])
        out_degrees = xp.zeros(n, np.uint32)
        in_degrees = xp.zeros(n, np.uint32) if source.directed else out_degrees
        return cls(n, out_degrees, in_degrees, xp.zeros(1, np.int64), lightest, heaviest)

    def add(self, chunk: EdgeChunk, count_edges: Callable[..., object]) -> None:
        """Check the edges of a chunk, and count them by `count_edges`."""
        if not len(chunk):
            return
        _check_ids(chunk, self.num_vertices)
        if chunk.weights is not None:
            low, high = _weight_bounds(chunk.weights)
            self.min_weight[0] = min(self.min_weight[0], low)
            self.max_weight[0] = max(self.max_weight[0], high)
        ends = chunk.sources, chunk.targets
        count_edges(0, len(chunk), *ends, self.out_degrees, self.in_degrees, self.num_loops)

    def merge(self, other: _Tally) -> None:
        """Add what another thread has counted."""
        self.out_degrees += other.out_degrees
        if self.in_degrees is not self.out_degrees:
            self.in_degrees += other.in_degrees
        self.num_loops += other.num_loops
        np.minimum(self.min_weight, other.min_weight, out=self.min_weight)
        np.maximum(self.max_weight, other.max_weight, out=self.max_weight)


def count(source: EdgeSource, backend: Backend, comm: Communicator, num_chunks: int) -> Counts:
    """Count degrees and self-loops over the whole input and check every id and weight."""
    tally = _Tally.of_nothing(source, backend.xp)
    out_degrees = tally.out_degrees
    in_degrees = tally.in_degrees
    if isinstance(backend, CpuBackend) and _has_room_for_tallies(source, backend, comm):
        _count_on_threads(source, backend, comm, num_chunks, tally)
    else:
        own = range(comm.rank, num_chunks, comm.size)
        for k in begin_phase("counting", source, backend, own, num_chunks).steps(own):
            tally.add(source.chunk(k, num_chunks, backend), count_degrees[backend])
    comm.allreduce(out_degrees, "sum")
    if source.directed:
        comm.allreduce(in_degrees, "sum")
    low = comm.allreduce(tally.min_weight, "min").item()
    high = comm.allreduce(tally.max_weight, "max").item()
    weighted = source.weight_dtype is not None and low <= high
    totals = Totals(
        total(backend, out_degrees),
        # A sink of a directed graph is not isolated: it has incoming arcs.
        total(backend, (out_degrees == 0) & (in_degrees == 0)),
        comm.sum(int(tally.num_loops[0]))[0],
        low if weighted else 0,
        high if weighted else 0,
    )
    return Counts(out_degrees, in_degrees, totals)


def _has_room_for_tallies(source: EdgeSource, backend: CpuBackend, comm: Communicator) -> bool:
    """Return whether degrees of every thread take less than the edges will, in any layout."""
    edges = (source.num_input_edges or 0) // comm.size
    return (backend.threads - 1) * degrees_bytes(source.num_vertices, source.directed) <= MIN_EDGE_BYTES * edges


def _count_on_threads(
    source: EdgeSource, backend: CpuBackend, comm: Communicator, num_chunks: int, tally: _Tally
) -> None:
    """Count this rank's chunks; each thread adds to degrees of its own, as seven additions take as long as an atomic.

    Each thread also reads its own parts of the chunks.
    """
    chunks = num_chunks * parts_of_chunk(source, backend, num_chunks)
    tallies = [tally, *(_Tally.of_nothing(source, np) for _ in range(backend.threads - 1))]
    of_thread = CpuBackend(1)
    free = tallies.copy()
    own = range(comm.rank, chunks, comm.size)
    phase = begin_phase("counting", source, backend, own, chunks)

    def add(k: int) -> None:
        mine = free.pop()
        mine.add(source.chunk(k, chunks, of_thread), count_alone)
        free.append(mine)
        phase.step()

    Workers(backend, backend.helpers).map(add, own)
    for other in tallies[1:]:
        tally.merge(other)


def _check_ids(chunk: EdgeChunk, num_vertices: int) -> None:
    """Refuse an id that is not a vertex: kernels would write out of bounds."""
    # Reading a number waits for a GPU: launch all of them before.
    extremes = [(ends.min(), ends.max()) for ends in (chunk.sources, chunk.targets)]
    for lowest, highest in ((int(low), int(high)) for low, high in extremes):
        if lowest < 0 or highest >= num_vertices:
            offender = lowest if lowest < 0 else highest
            raise InputError(f"vertex id {offender} is not in 0..{num_vertices - 1}")


def _weight_bounds(weights: Array) -> tuple[float | int, float | int]:
    """Return the lightest weight and the heaviest."""
    lowest = weights.min().item()
    highest = weights.max().item()
    # A NaN anywhere makes both of them NaN.
    if not (np.isfinite(lowest) and np.isfinite(highest)):
        raise InputError(f"edge weights must be finite, but there is {lowest if not np.isfinite(lowest) else highest}")
    return lowest, highest
