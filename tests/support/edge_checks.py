"""Helpers for tests of generators and readers: whole inputs, canonical edges, and mkgraph's files."""

from __future__ import annotations

import dataclasses
import hashlib
import struct

import numpy as np

from mgraph.backends.cpu import CpuBackend
from mgraph.comm.threads import open_threads
from mgraph.edges import EdgeChunk, EdgeSource, EdgeTable, is_table
from mgraph.ingest.read import read_table
from mgraph.io.formats import read_source
from mgraph.io.memory import edges_table, id_options
from mgraph.types import vertex_dtype

BACKEND = CpuBackend(2)
CHUNK_COUNTS = (1, 3, 7, 64)


def read_edges(path, **options) -> EdgeSource:
    """Return the edges of a file as one rank has read them, with ids as they are."""
    return as_source(read_source(path, **options))


def edges_source(sources, targets, weights=None, **how) -> EdgeSource:
    """Return edges in memory as one rank has read them."""
    return as_source(edges_table(sources, targets, weights, how=id_options(**how)))


def as_source(edges: EdgeSource | EdgeTable) -> EdgeSource:
    """Return a source itself, and of a table the edges as one rank has read them, with ids as they are."""
    if not is_table(edges):
        return edges
    return read_table(dataclasses.replace(edges, labels=False), BACKEND, open_threads(1)[0])[0]


def whole(source: EdgeSource | EdgeTable, num_chunks: int = 1) -> EdgeChunk:
    """Return all edges of a source, made in `num_chunks` parts, or of a table."""
    source = as_source(source)
    chunks = [source.chunk(k, num_chunks, BACKEND) for k in range(num_chunks)]
    for chunk in chunks:
        assert chunk.sources.dtype == chunk.targets.dtype == vertex_dtype(source.num_vertices)
        assert (None if chunk.weights is None else chunk.weights.dtype) == source.weight_dtype
    weights = None if source.weight_dtype is None else np.concatenate([chunk.weights for chunk in chunks])
    return EdgeChunk(
        np.concatenate([chunk.sources for chunk in chunks]),
        np.concatenate([chunk.targets for chunk in chunks]),
        weights,
    )


def as_rows(chunk: EdgeChunk) -> list[tuple]:
    """Return the edges as tuples, sorted."""
    columns = [chunk.sources, chunk.targets] + ([] if chunk.weights is None else [chunk.weights])
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def assert_chunks_agree(source: EdgeSource | EdgeTable) -> None:
    """Assert that the chunks together are the same edges in the same order for any number of chunks."""
    source = as_source(source)
    first, *others = (whole(source, num_chunks) for num_chunks in CHUNK_COUNTS)
    for other in others:
        np.testing.assert_array_equal(first.sources, other.sources)
        np.testing.assert_array_equal(first.targets, other.targets)
        if first.weights is not None:
            np.testing.assert_array_equal(first.weights, other.weights)
    if source.num_input_edges is not None:
        assert len(first) == source.num_input_edges


def mkgraph_bytes(source: EdgeSource) -> bytes:
    """Return mkgraph's file: both directions, no loops, no parallel edges, sorted, weights as float32."""
    edges = whole(source, 3)
    n = source.num_vertices
    u = edges.sources.astype(np.int64)
    v = edges.targets.astype(np.int64)
    keys, first = np.unique(np.concatenate((u * n + v, v * n + u)), return_index=True)
    weights = np.concatenate((edges.weights, edges.weights))[first]
    sources = keys // n
    targets = keys % n
    keep = sources != targets
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(sources[keep], minlength=n), out=offsets[1:])
    header = struct.pack("<8sQQII", b"MGCSR001", n, int(keep.sum()), 1, 0)
    parts = offsets.astype("<u8"), targets[keep].astype("<u4"), weights[keep].astype("<f4")
    return header + b"".join(part.tobytes() for part in parts)


def checksum(data: bytes) -> str:
    """Return the first 16 hexadecimal digits of the sha256."""
    return hashlib.sha256(data).hexdigest()[:16]
