"""Count degrees, loops and bounds of weights in one pass over the input, and check every id and weight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.totals import total
from mgraph.comm.base import Communicator
from mgraph.edges import EdgeChunk, EdgeSource
from mgraph.errors import InputError
from mgraph.shard.count_kernels import count_degrees
from mgraph.types import Array

INT64 = np.iinfo(np.int64)


@dataclass(frozen=True)
class Totals:
    """Totals over the whole input; parallel arcs are counted separately."""

    num_arcs: int  # without loops: the arcs that pass 2 will place
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


def count(source: EdgeSource, backend: Backend, comm: Communicator, num_chunks: int) -> Counts:
    """Count degrees and loops over the whole input and check every id and weight."""
    xp = backend.xp
    n = source.num_vertices
    out_degrees = xp.zeros(n, np.uint32)
    in_degrees = xp.zeros(n, np.uint32) if source.directed else out_degrees
    num_loops = xp.zeros(1, np.int64)
    floats = source.weight_dtype is not None and source.weight_dtype.kind == "f"
    lightest, heaviest = np.array([[np.inf], [-np.inf]] if floats else [[INT64.max], [INT64.min]])
    for k in range(comm.rank, num_chunks, comm.size):
        chunk = source.chunk(k, num_chunks, backend)
        if len(chunk):
            _check_ids(chunk, n)
            if chunk.weights is not None:
                low, high = _weight_bounds(chunk.weights)
                lightest[0] = min(lightest[0], low)
                heaviest[0] = max(heaviest[0], high)
        count_degrees[backend](0, len(chunk), chunk.sources, chunk.targets, out_degrees, in_degrees, num_loops)
    comm.allreduce(out_degrees, "sum")
    if source.directed:
        comm.allreduce(in_degrees, "sum")
    low = comm.allreduce(lightest, "min").item()
    high = comm.allreduce(heaviest, "max").item()
    weighted = source.weight_dtype is not None and low <= high
    totals = Totals(
        total(backend, out_degrees),
        # A sink of a directed graph is not isolated: it has incoming arcs.
        total(backend, (out_degrees == 0) & (in_degrees == 0)),
        comm.sum(int(num_loops[0]))[0],
        low if weighted else 0,
        high if weighted else 0,
    )
    return Counts(out_degrees, in_degrees, totals)


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
