"""Read a shard of the layouts compact and host: its blocks as they are, or built again from the edges in them.

A store has the blocks of both layouts alike: those in host memory after those on the device. Blocks depend on the
number of ranks and on the device. Where both are those of the save, they are copied. Else their edges are read as an
edge source, and sorted into other blocks as in a build, which reads them a few times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.host_link import NUM_BUFFERS
from mgraph.comm.base import Communicator
from mgraph.edges import EdgeChunk
from mgraph.errors import WouldNotFit
from mgraph.ingest.build import layout_of_blocks
from mgraph.ingest.compact import build_compact
from mgraph.ingest.count import Totals
from mgraph.ingest.host import build_host, plan_of_edges
from mgraph.ingest.host_plan import HostPlan, InUse
from mgraph.ingest.plan import default_chunks, state_bytes
from mgraph.ingest.survey import Survey
from mgraph.partition import Partition, chunk_range
from mgraph.shard.block_headers import are_alike, choose_shape
from mgraph.shard.host_blocks import HostBlocks, HostPart, to_host_parts
from mgraph.shard.shard import Blocks, BlockShape, Shard
from mgraph.store.files import Extent, extents_of, host_backend, read_array
from mgraph.store.manifest import StoredGraph
from mgraph.store.vertex_tables import load_lengths, load_tables, partition_of, require_memory, tables_bytes
from mgraph.types import vertex_dtype

# Edges of a run of units that is in host memory twice, while it is cut into parts.
EDGES_AT_ONCE = 1 << 26
HEADERS = ("unit_tiles", "unit_segments", "tile_edges", "tile_starts")


def load_blocks(
    store: StoredGraph, backend: Backend, comm: Communicator, layout: str, in_use_bytes: Callable[[Survey, str], InUse]
) -> Shard:
    """Read this rank's blocks, or build them, in the layout compact or host; every rank calls it."""
    info = store.info
    partition = partition_of(store, comm.size)
    require_memory(store, tables_bytes(store, partition), backend, comm)
    tables = load_tables(store, partition, backend, comm)
    survey = survey_of(store, partition)
    chunks = default_chunks(info.num_edges, backend.limits, comm.size, "compact")
    if layout == "auto" and info.layout == "compact":
        layout = layout_of_blocks(survey, backend, comm, chunks, in_use_bytes) or "compact"
    layout = store.held_in(layout)
    in_use = in_use_bytes(survey, layout)
    width = state_bytes(store.weight_dtype, info.num_vertices, info.max_weight)
    shape = choose_shape(backend, width)
    stored = store.parts[comm.rank].shape if comm.size == len(store.parts) else None
    is_alike = stored is not None and are_alike(stored, shape)
    if comm.sum(int(is_alike))[0] == comm.size:
        assert stored is not None
        shard = Shard(backend, info, partition, comm.rank, None, None, None)
        units = _StoredUnits(store, comm.rank, stored, backend)
        if layout == "compact":
            require_memory(store, units.nbytes + 8 * partition.num_owned(0), backend, comm)
            shard.blocks[width] = units.read(0, units.count, backend)
        else:
            fullest = max(part.arrays["words"].count for part in store.parts)
            # The plan of a build: a load takes less. Units divided for shortest paths have some more tiles.
            plan, error = plan_of_edges(survey, backend, comm, chunks, fullest, in_use)
            if error:
                raise WouldNotFit(error)
            shard.blocks[width] = _read_host_blocks(units, plan, backend, comm)
        shard.stored_degrees = load_lengths(store, partition, backend, comm).astype(np.uint32, copy=False)
    elif layout == "compact":
        shard = build_compact(survey, backend, comm, chunks)
    else:
        shard = build_host(survey, backend, comm, chunks, in_use)
    shard.info = replace(info, layout=layout)
    shard.user_of_local, shard.position_of_user = tables
    return shard


def survey_of(store: StoredGraph, partition: Partition) -> Survey:
    """Return what pass 1 of a build finds; the vertices of a build from stored edges are the positions."""
    info = store.info
    totals = Totals(info.num_arcs, info.num_isolated, 0, info.min_weight, info.max_weight)
    return Survey(StoredEdges(store), totals, info.order, partition, None, None, store.weight_dtype)


class _StoredUnits:
    """The units of one part of a store, which are read in runs.

    Attributes
    ----------
    edges
        The first edge of each unit, and the number of edges.
    """

    def __init__(self, store: StoredGraph, part: int, shape: BlockShape, backend: Backend) -> None:
        self.store = store
        self.part = part
        self.shape = shape
        self.unit_tiles, self.unit_segments, self.tile_edges, self.tile_starts = headers_of(store, part, backend)
        self.edges = self.tile_edges[self.unit_tiles]
        self.count = len(self.unit_segments)

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        names = (*HEADERS, "words", "weights")
        arrays = self.store.parts[self.part].arrays
        return sum(arrays[name].count * self.store.dtypes[name].itemsize for name in names if name in arrays)

    def read(self, first: int, last: int, into: Backend) -> Blocks:
        """Return the blocks of the units first .. last, in memory of a backend."""
        tiles = slice(int(self.unit_tiles[first]), int(self.unit_tiles[last]))
        edges = Extent(self.part, int(self.edges[first]), int(self.edges[last]))
        return Blocks(
            self.shape,
            into.to_device(self.unit_tiles[first : last + 1] - tiles.start),
            into.to_device(self.unit_segments[first:last]),
            into.to_device(self.tile_edges[tiles.start : tiles.stop + 1] - edges.begin),
            into.to_device(self.tile_starts[tiles]),
            read_array(self.store, "words", [edges], into),
            read_array(self.store, "weights", [edges], into) if "weights" in self.store.dtypes else None,
        )


def _read_host_blocks(units: _StoredUnits, plan: HostPlan, backend: Backend, comm: Communicator) -> HostBlocks:
    """Read the first units into memory of the device, and the others into parts in host memory."""
    # A plan counts the tables of a build as taken; a load holds the rank's own part of them alone.
    free = backend.free_bytes() - (plan.compact.tables - plan.compact.own_tables)
    first = int(np.searchsorted(units.edges, plan.resident_edges(free), side="right")) - 1
    resident = units.read(0, first, backend)
    host = host_backend(backend, comm)
    parts: list[HostPart] = []
    while first < units.count:
        last = int(np.searchsorted(units.edges, units.edges[first] + EDGES_AT_ONCE, side="right")) - 1
        last = max(last, first + 1)
        parts += to_host_parts(backend, units.read(first, last, host), plan.staging // NUM_BUFFERS)
        first = last
    largest = max((part.memory.nbytes for part in parts), default=0)
    return HostBlocks(units.shape, resident, parts, backend.link.staging(largest))


def headers_of(store: StoredGraph, part: int, backend: Backend) -> list[np.ndarray]:
    """Return the headers of a part's blocks, in host memory."""
    arrays = store.parts[part].arrays
    read = (read_array(store, name, [Extent(part, 0, arrays[name].count)], backend) for name in HEADERS)
    return [backend.to_host(array) for array in read]


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
            self.headers[part] = headers_of(self.store, part, backend)
        return self.headers[part]
