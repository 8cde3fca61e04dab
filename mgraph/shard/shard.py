"""One rank's part of a graph: rows, blocks, and tables between user ids and positions."""

from __future__ import annotations

import functools
import inspect
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import numpy as np

from mgraph.backends.base import Backend
from mgraph.comm.base import Communicator
from mgraph.labels.table import LabelTable
from mgraph.partition import Partition
from mgraph.types import Array

# Layouts with rows; the others have edge blocks alone.
ROW_LAYOUTS = ("rows", "split")
# Graphs with at most this many arcs per vertex may be deep: road maps and meshes have up to 6.
DEEP_DEGREE = 8

P = ParamSpec("P")
T = TypeVar("T")


@dataclass
class Rows:
    """Adjacency lists of the owned vertices (CSR), sorted by target position.

    `targets` are state indices. Vertex `local` has the arcs indptr[local] .. indptr[local + 1].
    """

    indptr: Array
    targets: Array
    weights: Array | None
    host_arcs: int = 0  # of the layout split: number of leading arcs that are in host memory
    first_neighbors: Array | None = None  # the first target of every row, contiguous; made on first use
    num_degree_at_most_one: int = 0  # number of trailing rows with at most one target; valid with `first_neighbors`

    @property
    def nbytes(self) -> int:
        """The bytes of device memory."""
        parts = (self.indptr, self.targets, self.weights, self.first_neighbors)
        return sum(part.nbytes for part in parts if part is not None) - self.host_bytes

    @property
    def host_share(self) -> float:
        """The share of the arcs that is in host memory."""
        return self.host_arcs / max(len(self.targets), 1)

    @property
    def host_bytes(self) -> int:
        """The bytes of host memory, in addition to the device's."""
        return self.host_arcs * sum(part.itemsize for part in (self.targets, self.weights) if part is not None)


@dataclass(frozen=True)
class LightestArcs:
    """The lightest arcs of every row again, by class of weight; of split rows the first `host_arcs` in host memory.

    Those of vertex `local` begin at indptr[local] >> LIGHTEST_BITS.
    """

    targets: Array
    weights: Array
    host_arcs: int = 0

    @property
    def nbytes(self) -> int:
        """The bytes of device memory."""
        return self.targets.nbytes + self.weights.nbytes - self.host_bytes

    @property
    def host_bytes(self) -> int:
        """The bytes of host memory, in addition to the device's."""
        return self.host_arcs * (self.targets.itemsize + self.weights.itemsize)


@dataclass(frozen=True)
class BlockShape:
    """Sizes of edge blocks, as bits of state indices."""

    segment_bits: int  # range of ends: their states fit the shared memory of a thread block
    subwindow_bits: int  # range of starts of a tile: start and end of an edge together fit 32 bits
    window_bits: int  # range of starts of a block: their states fit the L2 cache
    unit_size: int  # the most edges of a unit, which a thread block or a warp processes

    def padded(self, num_states: int) -> int:
        """Return the length of a state array, rounded up to whole segments."""
        length = 1 << self.segment_bits
        return -(-num_states // length) * length


class EdgeBlocks(ABC):
    """A rank's edges in blocks, wherever they are stored: on the device, or some of them in host memory."""

    shape: BlockShape

    @property
    @abstractmethod
    def num_edges(self) -> int:
        """The number of edges."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """The bytes of device memory."""

    @property
    def host_bytes(self) -> int:
        """The bytes of host memory, in addition to the device's."""
        return 0

    @abstractmethod
    def on_device(self, *, weighted: bool = True) -> Iterator[Blocks]:
        """Yield all edges as blocks on the device, each valid until the next iteration.

        Those that are in host memory perhaps without weights, if none are wanted.
        """

    @abstractmethod
    def in_place(self) -> Iterator[Blocks]:
        """Yield all edges as blocks where they are: in memory of the device, or of the host."""

    @property
    @abstractmethod
    def counts(self) -> dict[str, int]:
        """What the last iteration read: edges, and of those in host memory bytes and parts."""


class UnitGroup(NamedTuple):
    """Units with edges of similar weights: see light_units.py."""

    units: Array | None  # whether each unit is of the group; None if all are
    least_weight: float | int  # a lower bound


@dataclass
class Blocks(EdgeBlocks):
    """Edges sorted by window, segment and sub-window, both ends of each packed into 32 bits.

    Where units are divided into light and heavy ones, sub-windows rise within a unit.

    Edge e of tile t and unit u starts at `tile_starts[t] + (words[e] >> segment_bits)` and ends at
    `unit_segments[u] + (words[e] & mask)`. A tile has one sub-window and one segment; a unit is a run of
    tiles with one window and one segment: unit_tiles[u] .. unit_tiles[u + 1], edges
    tile_edges[t] .. tile_edges[t + 1].
    """

    shape: BlockShape
    unit_tiles: Array
    unit_segments: Array
    tile_edges: Array
    tile_starts: Array
    words: Array
    weights: Array | None
    groups: list[UnitGroup] = field(default_factory=list)  # made for shortest paths; light units first

    @property
    def num_units(self) -> int:
        return len(self.unit_segments)

    @property
    def num_edges(self) -> int:
        return len(self.words)

    @property
    def edges(self) -> tuple[Array, ...]:
        """The arrays that every sweep reads, in the order of the kernels' parameters."""
        return self.unit_tiles, self.unit_segments, self.tile_edges, self.tile_starts, self.words

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in (*self.edges, self.weights) if a is not None)

    def on_device(self, *, weighted: bool = True) -> Iterator[Blocks]:
        yield self

    def in_place(self) -> Iterator[Blocks]:
        yield self

    @property
    def counts(self) -> dict[str, int]:
        return {"edges": self.num_edges}


@dataclass
class ResultRouting:
    """Routing table for results: which values each rank sends to which rank, and where a rank finds those it serves.

    The values from one rank to another are in order of user ids. Each part begins at a multiple of PART_ALIGNMENT, on
    both sides; what is between two parts is never read.
    """

    order: Array  # the owned vertices in the order in which their values are sent; 0 between two parts
    recv_bits: Array  # for every rank a bitmap over this rank's range of user ids: of the vertices that it owns
    recv_before: Array  # for each word of it the index of its first value among those received
    counts: np.ndarray  # counts[r, s]: the number of values from rank r to rank s
    max_received: int  # for how many values the rank that receives most needs room
    users: Array | None = None  # the user id of every state; stored only with rows, which are much larger

    @property
    def nbytes(self) -> int:
        parts = (self.order, self.recv_bits, self.recv_before, self.users)
        return sum(part.nbytes for part in parts if part is not None)


@dataclass(frozen=True)
class GraphInfo:
    """Facts of the whole graph, the same on every rank; returned to the client."""

    num_vertices: int
    num_edges: int  # undirected edges, or directed arcs, without self-loops and parallel edges
    num_arcs: int  # entries of all rows
    directed: bool
    order: str  # degree or natural
    weight_dtype: str | None
    max_weight: float | int
    min_weight: float | int
    sum_weights: float  # over the arcs, for the mean
    max_degree: int
    num_isolated: int  # vertices without arcs
    num_loops: int  # dropped
    num_parallel: int  # dropped
    layout: str = "rows"  # or split; or blocks alone: compact on the device, host with some of them in host memory
    labels: str = ""  # the kind of the labels that were mapped to ids: integer or string
    missing_label: int = -1  # the integer that is no vertex's label

    @property
    def has_rows(self) -> bool:
        """Whether the layout has rows; if not, it has blocks alone."""
        return self.layout in ROW_LAYOUTS

    @property
    def mean_degree(self) -> float:
        """The mean out-degree of the vertices with arcs, at least 1."""
        return max(self.num_arcs / max(self.num_vertices - self.num_isolated, 1), 1.0)

    @property
    def for_any_ranks(self) -> GraphInfo:
        """These facts, but for those that depend on the ranks: the layout by a choice, the sum by its order."""
        return replace(self, layout="", sum_weights=0.0)

    @property
    def mean_weight(self) -> float:
        """Of the arcs; 0 without weights."""
        return self.sum_weights / max(self.num_arcs, 1)


@dataclass
class Shard:
    """One rank's part of a graph, and the tables between user ids and positions.

    User ids are divided into equal ranges of `user_stride`: rank r serves the results of user ids from
    r * user_stride on. In natural order a position is a user id, a rank serves the vertices that it owns, and both
    tables are None.
    """

    backend: Backend
    info: GraphInfo
    partition: Partition
    rank: int
    stored_rows: Rows | None  # None in the layouts compact and host, which have blocks and degrees
    user_of_local: Array | None  # the user id of each owned vertex
    position_of_user: Array | None  # for the user ids of this rank's range; values from num_positions on are isolated
    stored_degrees: Array | None = None  # of a shard without rows
    labels: LabelTable | None = None  # of a range of user ids; None if users call their vertices 0 .. n - 1
    # Derived data, built on first use, and dropped by for_call(), except for the blocks of a shard without rows.
    in_rows: Rows | None = None  # of a directed graph
    blocks: dict[int, EdgeBlocks] = field(default_factory=dict)  # by bytes of a state
    lightest_arcs: LightestArcs | None = None
    result_routing: ResultRouting | None = None  # of several ranks in degree order
    overflowed_itemsize: int = 0  # bytes of the widest distance dtype that a search has overflowed
    exceeds_uint8_levels: bool = False  # a search has exceeded the levels that uint8 holds
    # By algorithm, whether the CPU beside one GPU searches this graph sooner, if known; until it is certain, the time
    # that a trial of the GPU took for each level or unit of distance, in ns, and after how many arcs of wide levels the
    # CPU gives up (gpu_or_host.py). Kept by for_call().
    faster_on_host: dict[str, bool] = field(default_factory=dict)
    trial_ns_per_distance: dict[str, float] = field(default_factory=dict)
    max_wide_arcs: dict[str, int] = field(default_factory=dict)
    kept: dict[tuple, Any] = field(default_factory=dict, repr=False, compare=False)  # of functions cached_on_shard
    made_over: weakref.ref[Communicator] | None = None  # the communicator by which the derived data was built

    def for_call(self, comm: Communicator) -> Shard:
        """Return this shard without derived data that another communicator has built.

        Every job that may derive data begins with this. After a failed call the ranks have a new communicator. Some
        ranks may have finished building derived data and others not, which would make them disagree on the next
        collective: so all ranks drop it.
        """
        if self.made_over is not None and self.made_over() is comm:
            return self
        self.made_over = weakref.ref(comm)
        self.in_rows = self.lightest_arcs = self.result_routing = None
        self.overflowed_itemsize = 0
        self.exceeds_uint8_levels = False
        self.kept.clear()
        if self.has_rows:
            self.blocks.clear()
        return self

    @cached_property
    def num_owned(self) -> int:
        """The number of vertices that this rank owns."""
        return self.partition.num_owned(self.rank)

    @cached_property
    def user_stride(self) -> int:
        """The number of user ids that a rank serves results of."""
        if not self.partition.cyclic:
            return self.partition.stride
        return -(-self.info.num_vertices // self.partition.num_ranks)

    @cached_property
    def user_range(self) -> tuple[int, int]:
        """The range of user ids that this rank serves results of."""
        lo = min(self.rank * self.user_stride, self.info.num_vertices)
        return lo, min(lo + self.user_stride, self.info.num_vertices)

    @property
    def has_rows(self) -> bool:
        """Whether the shard has rows; if not, it has only blocks, for sweeps."""
        return self.stored_rows is not None

    @property
    def rows(self) -> Rows:
        """The rows; a shard of blocks alone has none."""
        assert self.stored_rows is not None, "this layout has no rows"
        return self.stored_rows

    @property
    def degrees(self) -> Array:
        """The out-degree of each owned vertex."""
        return degrees(self.rows) if self.has_rows else self.stored_degrees

    @property
    def incoming(self) -> Rows:
        """The in-rows: the rows themselves if the graph is undirected."""
        if not self.info.directed:
            return self.rows
        assert self.in_rows is not None, "require_in_rows() has not been called"
        return self.in_rows

    @property
    def nbytes(self) -> int:
        tables = (self.user_of_local, self.position_of_user, self.stored_degrees)
        derived = (self.in_rows, self.lightest_arcs, self.result_routing)
        parts = [self.stored_rows, *derived, *self.blocks.values(), *tables]
        return sum(part.nbytes for part in parts if part is not None)

    @property
    def host_bytes(self) -> int:
        """The bytes of rows and blocks in host memory."""
        parts = (self.stored_rows, self.in_rows, self.lightest_arcs, *self.blocks.values())
        return sum(part.host_bytes for part in parts if part is not None)


def cached_on_shard(
    function: Callable[Concatenate[Shard, P], T],
) -> Callable[Concatenate[Shard, P], T]:
    """Cache the results of a function of a shard on the shard, by the other arguments, which are hashable.

    A communicator, which is the second argument, is not part of the key: a failed one would stay referenced, with its
    peer buffers.
    """
    takes_comm = "comm" in inspect.signature(function).parameters

    @functools.wraps(function)
    def cached(shard: Shard, *args: P.args, **options: P.kwargs) -> T:
        # In one look-up: before a launch on a GPU, every microsecond counts.
        key = (function, *(args[1:] if takes_comm else args), *options.items())
        try:
            found: T = shard.kept[key]
        except KeyError:
            pass
        else:
            return found
        found = shard.kept[key] = function(shard, *args, **options)
        return found

    return cached


def long_rows(shard: Shard, length: int) -> int:
    """Return an upper bound of the number of leading rows that include all of more than `length` arcs."""
    info = shard.info
    if info.max_degree <= length:
        return 0
    if info.order == "natural":
        return shard.num_owned
    # Rows are sorted by falling degree, in plus out, parallel arcs included, which bounds the length of the row.
    ends = (info.num_arcs + 2 * (info.num_parallel + info.num_loops)) * (2 if info.directed else 1)
    return min(shard.num_owned, ends // (length + 1) // shard.partition.num_ranks + 1)


def degrees(rows: Rows) -> Array:
    """Return the length of every row."""
    return rows.indptr[1:] - rows.indptr[:-1]
