"""Read the input in steps, one chunk per rank and step."""

from __future__ import annotations

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.progress import Phase
from mgraph.comm.base import Communicator
from mgraph.edges import EdgeSource
from mgraph.types import Array, vertex_dtype

# To read and count fewer edges takes less time than to give them to a thread.
MIN_PART_EDGES = 1 << 13


def steps(comm: Communicator, num_chunks: int) -> range:
    """Return the chunks of this rank, equally many on every rank.

    Numbers from `num_chunks` on are empty chunks.
    """
    return range(comm.rank, -(-num_chunks // comm.size) * comm.size, comm.size)


def begin_phase(name: str, source: EdgeSource, backend: Backend, own: range, num_chunks: int) -> Phase:
    """Begin a phase of a build that reads chunks, this rank's `own` of all."""
    edges = source.num_input_edges
    each = ("chunks", 1.0) if edges is None else ("edges", edges / num_chunks)
    backend.phase = phase = Phase(name, len(own), *each)
    return phase


def parts_of_chunk(source: EdgeSource, backend: CpuBackend, num_chunks: int) -> int:
    """Return into how many parts to divide each chunk, so that every thread reads some of its own."""
    edges = MIN_PART_EDGES * num_chunks if source.num_input_edges is None else source.num_input_edges
    return max(min(backend.threads, edges // num_chunks // MIN_PART_EDGES), 1)


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
