"""The input as the ranks read it: in step, a chunk each, and what is for others sent to them."""

from __future__ import annotations

import numpy as np

from mgraph.backends.base import Backend
from mgraph.comm.base import Communicator
from mgraph.edges import EdgeSource
from mgraph.shard.rows_kernels import bucket_arcs
from mgraph.types import Array, vertex_dtype


def steps(comm: Communicator, num_chunks: int) -> range:
    """Return the numbers of the chunks that this rank reads; as many on every rank, so that some may be no chunk."""
    return range(comm.rank, -(-num_chunks // comm.size) * comm.size, comm.size)


def read_chunk(
    source: EdgeSource, backend: Backend, k: int, num_chunks: int, stored: np.dtype | None
) -> tuple[Array, Array, Array | None]:
    """Return a chunk's user ids and its weights in the dtype `stored`, empty where there is no such chunk."""
    xp = backend.xp
    if k >= num_chunks:
        nothing = xp.empty(0, vertex_dtype(source.num_vertices))
        return nothing, nothing, None if stored is None else xp.empty(0, stored)
    chunk = source.chunk(k, num_chunks, backend)
    w = chunk.weights
    if w is not None and stored is not None:
        w = w.astype(stored, copy=False)
        if stored.kind == "f":
            w = w + stored.type(0)  # -0.0 becomes 0.0: float minima compare bits
    return chunk.sources, chunk.targets, w


def route(
    backend: Backend, comm: Communicator, owners: Array, rows: Array, targets: Array, weights: Array | None
) -> tuple[Array, Array, Array | None]:
    """Send every arc to its owner and return those that came."""
    xp, size = backend.xp, comm.size
    ends = np.cumsum([int(xp.count_nonzero(owners == r)) for r in range(size)])
    cursors = backend.to_device(np.concatenate([[0], ends[:-1]]))
    columns = [rows, targets] if weights is None else [rows, targets, weights]
    bucketed = [xp.empty_like(column) for column in columns]
    bucket_arcs[backend](
        0, len(owners), owners, rows, targets, weights, cursors, *bucketed, *([None] if weights is None else [])
    )
    came = [xp.concatenate(comm.alltoallv(xp.split(column, ends[:-1].tolist()))) for column in bucketed]
    return came[0], came[1], came[2] if weights is not None else None
