"""Time the generator of a Graph500 run, and count the edges of its searches."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from mgraph.cluster.base import Rank
from mgraph.edges import EdgeChunk, EdgeSource
from mgraph.ingest.plan import default_chunks
from mgraph.rank_jobs.traversal import StoredTraversal
from mgraph.types import Array


def generate(rank: Rank, source: EdgeSource) -> float:
    """Generate this rank's part of the edges without storing them; return the seconds."""
    started = time.perf_counter()
    for _ in _own_chunks(rank, source):
        pass
    rank.backend.synchronize()
    return time.perf_counter() - started


def make_columns(rank: Rank, key: str) -> float:
    """Make those columns that a search wants at once and one CPU rank makes when they are read; return the seconds."""
    result: StoredTraversal = rank.objects[key]
    started = time.perf_counter()
    for name in result.spec.at_once:
        _ = result.columns[name]
    return time.perf_counter() - started


def smallest_reached(rank: Rank, key: str) -> int:
    """Return the smallest reached user id of this rank, else the largest int64."""
    reached = _reached(rank.objects[key])
    first = int(reached.argmax()) if len(reached) else 0
    return rank.objects[key].first + first if len(reached) and reached[first] else np.iinfo(np.int64).max


def count_input_edges(rank: Rank, key: str, graph: str, source: EdgeSource) -> int:
    """Return the number of reached input edges among those that this rank generates."""
    stride = rank.objects[graph].user_stride
    own = _reached(rank.objects[key])
    part = rank.backend.xp.zeros(stride, np.uint8)
    part[: len(own)] = own
    reached = rank.comm.allgather(part, rank.backend.xp.empty(stride * rank.size, np.uint8))
    # Both ends of an edge are in one component: it suffices to test its source.
    return sum(int(reached[chunk.sources].sum(dtype=np.int64)) for chunk in _own_chunks(rank, source))


def _reached(result: StoredTraversal) -> Array:
    columns = result.columns
    return columns["predecessors"] >= 0 if "predecessors" in columns else columns["distances"] >= 0


def _own_chunks(rank: Rank, source: EdgeSource) -> Iterator[EdgeChunk]:
    chunks = default_chunks(source.num_input_edges, rank.backend.limits, rank.size)
    return (source.chunk(k, chunks, rank.backend) for k in range(rank.index, chunks, rank.size))
