"""Read the input in steps, one chunk per rank and step, and route arcs to the ranks that own them."""

from __future__ import annotations

import numpy as np

from mgraph.backends.base import Backend
from mgraph.comm.base import Communicator
from mgraph.edges import EdgeSource
from mgraph.shard.rows_kernels import bucket_arcs
from mgraph.types import Array, vertex_dtype


def steps(comm: Communicator, num_chunks: int) -> range:
    """Return the chunks of this rank, equally many on every rank.

    Numbers from `num_chunks` on are empty chunks.
    """
    return range(comm.rank, -(-num_chunks // comm.size) * comm.size, comm.size)


def read_chunk(
    source: EdgeSource, backend: Backend, k: int, num_chunks: int, stored: np.dtype | None
) -> tuple[Array, Array, Array | None]:
    """Return a chunk's user ids, and its weights in the dtype `stored`.

    They are empty if k >= num_chunks.
    """
    xp = backend.xp
    if k >= num_chunks:
        no_ids = xp.empty(0, vertex_dtype(source.num_vertices))
        return no_ids, no_ids, None if stored is None else xp.empty(0, stored)
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
    """Send every arc to its owner; return the arcs received."""
    xp, size = backend.xp, comm.size
    ends = np.cumsum([int(xp.count_nonzero(owners == r)) for r in range(size)])
    cursors = backend.to_device(np.concatenate([[0], ends[:-1]]))
    columns = [rows, targets] if weights is None else [rows, targets, weights]
    bucketed = [xp.empty_like(column) for column in columns]
    bucket_arcs[backend](
        0, len(owners), owners, rows, targets, weights, cursors, *bucketed, *([None] if weights is None else [])
    )
    received = [xp.concatenate(comm.alltoallv(xp.split(column, ends[:-1].tolist()))) for column in bucketed]
    return received[0], received[1], received[2] if weights is not None else None
