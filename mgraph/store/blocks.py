"""Read a shard of the compact layout: its blocks as they are, or built again from the edges in them.

Blocks depend on the number of ranks and on the device. Where both are those of the save, they are copied. Else their
edges are read as an edge source, and sorted into other blocks as in a build, which reads them a few times.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mgraph.backends.base import Backend
from mgraph.comm.base import Communicator
from mgraph.edges import EdgeChunk
from mgraph.ingest.compact import build_compact
from mgraph.ingest.count import Totals
from mgraph.ingest.plan import default_chunks, state_bytes
from mgraph.ingest.survey import Survey
from mgraph.partition import chunk_range
from mgraph.shard.block_headers import choose_shape
from mgraph.shard.shard import Blocks, Shard
from mgraph.store.files import Extent, extents_of, read_array
from mgraph.store.manifest import StoredGraph
from mgraph.store.vertex_tables import load_lengths, load_tables, partition_of, require_memory, tables_bytes
from mgraph.types import vertex_dtype

HEADERS = ("unit_tiles", "unit_segments", "tile_edges", "tile_starts")


def load_blocks(store: StoredGraph, backend: Backend, comm: Communicator) -> Shard:
    """Read this rank's blocks, or build them; every rank calls it."""
    info = store.info
    partition = partition_of(store, comm.size)
    require_memory(store, tables_bytes(store, partition), backend, comm)
    tables = load_tables(store, partition, backend, comm)
    width = state_bytes(store.weight_dtype, info.num_vertices, info.max_weight)
    shape = choose_shape(backend, width)
    same = comm.size == len(store.parts) and store.parts[comm.rank].shape == shape
    if comm.sum(int(same))[0] < comm.size:
        shard = _built(store, backend, comm)
        shard.info = info
        shard.user_of_local, shard.position_of_user = tables
        return shard
    arrays = [*HEADERS, "words", *(["weights"] if info.weight_dtype else [])]
    own = store.parts[comm.rank].arrays
    sizes = [own[name].count * store.dtypes[name].itemsize for name in arrays]
    require_memory(store, sum(sizes) + 8 * partition.num_owned(0), backend, comm)
    read = {name: read_array(store, name, [Extent(comm.rank, 0, own[name].count)], backend) for name in arrays}
    shard = Shard(backend, info, partition, comm.rank, None, *tables)
    shard.stored_degrees = load_lengths(store, partition, backend, comm).astype(np.uint32, copy=False)
    shard.blocks[width] = Blocks(shape, weights=read.pop("weights", None), **read)
    return shard


def _built(store: StoredGraph, backend: Backend, comm: Communicator) -> Shard:
    """Build blocks from the edges of the stored ones; the vertices of the build are the positions."""
    info = store.info
    totals = Totals(info.num_arcs, info.num_isolated, 0, info.min_weight, info.max_weight)
    edges = StoredEdges(store)
    survey = Survey(edges, totals, info.order, partition_of(store, comm.size), None, None, store.weight_dtype)
    chunks = default_chunks(info.num_edges, backend.limits, comm.size, "compact")
    return build_compact(survey, backend, comm, chunks)


@dataclass(frozen=True, eq=False)
class StoredEdges:
    """The edges of stored blocks as an edge source, with positions as user ids."""

    store: StoredGraph
    headers: dict[int, list[np.ndarray]] = field(default_factory=dict)  # of the part that was read last

    @property
    def name(self) -> str:
        return self.store.name

    @property
    def num_vertices(self) -> int:
        return self.store.num_vertices

    @property
    def directed(self) -> bool:
        return self.store.directed

    @property
    def weight_dtype(self) -> np.dtype | None:
        return self.store.weight_dtype

    @property
    def num_input_edges(self) -> int:
        return self.store.num_input_edges

    def chunk(self, k: int, num_chunks: int, backend: Backend) -> EdgeChunk:
        store = self.store
        lo, hi = chunk_range(self.num_input_edges, k, num_chunks)
        extents = extents_of(store, "words", lo, hi)
        ends = [self._ends_of(extent, backend) for extent in extents]
        none = np.empty(0, vertex_dtype(self.num_vertices))
        sources, targets = (np.concatenate([none, *(pair[i] for pair in ends)]) for i in range(2))
        weights = read_array(store, "weights", extents, backend) if self.weight_dtype is not None else None
        return EdgeChunk(backend.to_device(sources), backend.to_device(targets), weights)

    def _ends_of(self, extent: Extent, backend: Backend) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions of both ends of a run of edges of one part."""
        part, begin, end = extent
        unit_tiles, unit_segments, tile_edges, tile_starts = self._headers_of(part, backend)
        shape = self.store.parts[part].shape
        assert shape is not None, "parts of blocks have a shape"
        words = backend.to_host(read_array(self.store, "words", [extent], backend))
        first = np.searchsorted(tile_edges, begin, side="right") - 1
        last = np.searchsorted(tile_edges, end, side="left")
        lengths = np.diff(np.clip(tile_edges[first : last + 1], begin, end))
        units = np.searchsorted(unit_tiles, np.arange(first, last), side="right") - 1
        starts = np.repeat(tile_starts[first:last].astype(np.int64), lengths) + (words >> shape.segment_bits)
        ends = np.repeat(unit_segments[units].astype(np.int64), lengths) + (words & ((1 << shape.segment_bits) - 1))
        ids = vertex_dtype(self.num_vertices)
        partition = self.store.partition
        return partition.position(starts).astype(ids), partition.position(ends).astype(ids)

    def _headers_of(self, part: int, backend: Backend) -> list[np.ndarray]:
        if part not in self.headers:
            self.headers.clear()
            arrays = self.store.parts[part].arrays
            extents = [[Extent(part, 0, arrays[name].count)] for name in HEADERS]
            read = (read_array(self.store, *given, backend) for given in zip(HEADERS, extents, strict=True))
            self.headers[part] = [backend.to_host(array) for array in read]
        return self.headers[part]
