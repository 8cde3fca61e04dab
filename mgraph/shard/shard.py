"""The part of a graph that one rank holds: rows, blocks, order, partition."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Concatenate, ParamSpec, TypeVar

from mgraph.backends.base import Backend
from mgraph.comm.base import Communicator
from mgraph.partition import Partition
from mgraph.types import Array

P = ParamSpec("P")
T = TypeVar("T")


@dataclass
class Rows:
    """Adjacency by owned vertex (CSR), each row sorted by target position, or by class of weight before that.

    `targets` are state indices. Vertex `local` has arcs indptr[local] .. indptr[local + 1].
    """

    indptr: Array
    targets: Array
    weights: Array | None
    firsts: Array | None = None  # the first target of every row, side by side; made when a method wants them
    singles: int = 0  # so many of the last rows have one target at most; known with `firsts`

    @property
    def nbytes(self) -> int:
        parts = (self.indptr, self.targets, self.weights, self.firsts)
        return sum(part.nbytes for part in parts if part is not None)


@dataclass(frozen=True)
class BlockShape:
    """How edges are cut into blocks; bits are of state indices."""

    segment_bits: int  # ends of a block: their state fits the fast memory of a block of threads
    subwindow_bits: int  # starts of a tile: with the end's bits a start packs into 32
    window_bits: int  # starts of a block: their state fits the cache that all blocks of threads share
    unit_size: int  # the most edges that a block of threads takes at once


@dataclass
class Blocks:
    """Edges in the segment-sorted form, both ends of each in 32 bits.

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

    @property
    def num_units(self) -> int:
        return len(self.unit_segments)

    @property
    def num_edges(self) -> int:
        return len(self.words)

    @property
    def edges(self) -> tuple[Array, ...]:
        """The arrays that every sweep reads, in the order in which it takes them."""
        return self.unit_tiles, self.unit_segments, self.tile_edges, self.tile_starts, self.words

    def padded(self, num_states: int) -> int:
        """Return the length of a state array that ends where a segment does."""
        length = 1 << self.shape.segment_bits
        return -(-num_states // length) * length

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in (*self.edges, self.weights) if a is not None)


@dataclass
class Homes:
    """Which owned vertices' answers go to which rank, whose range their user ids are in, and whose come from where.

    What goes to a rank goes in order of vertices, and what comes stands in order of ranks: bits tell which, and with
    the place of every word's first, where.
    """

    going: Array  # bits of the owned vertices, `stride` for every rank
    before_going: Array
    coming: Array  # bits of all states
    before_coming: Array
    num_going: list[int]  # to every rank
    num_coming: list[int]
    users: Array | None = None  # the user id of every state, beside rows, which are much larger

    @property
    def nbytes(self) -> int:
        parts = (self.going, self.before_going, self.coming, self.before_coming, self.users)
        return sum(part.nbytes for part in parts if part is not None)


@dataclass(frozen=True)
class GraphInfo:
    """What every rank knows of the whole graph; travels to the client."""

    num_vertices: int
    num_edges: int  # undirected edges, or directed arcs, after loops and parallel edges are gone
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
    layout: str = "rows"  # or compact: blocks alone

    @property
    def mean_degree(self) -> float:
        """Of the vertices that have arcs."""
        return max(self.num_arcs / max(self.num_vertices - self.num_isolated, 1), 1.0)

    @property
    def mean_weight(self) -> float:
        """Of the arcs; 0 without weights."""
        return self.sum_weights / max(self.num_arcs, 1)


@dataclass
class Shard:
    """One rank's part of a graph, and the tables between user ids and positions.

    User ids are cut in equal ranges of `user_stride`: rank r hands out users r * user_stride and up. In
    natural order a position is a user id, the ranges are those of the owners, and both tables are None.
    """

    backend: Backend
    info: GraphInfo
    partition: Partition
    rank: int
    stored_rows: Rows | None  # None in the compact layout, which has blocks and degrees
    user_of_local: Array | None  # the user id of each owned vertex
    position_of_user: Array | None  # for the user ids of this rank's range; from num_positions on it is none
    stored_degrees: Array | None = None  # of the compact layout
    # What is made on demand, and forgotten by begin_call(), but for the blocks of the compact layout.
    in_rows: Rows | None = None  # of a directed graph, built when a method wants them
    blocks: dict[int, Blocks] = field(default_factory=dict)  # by bytes of a state, built when a method wants them
    by_weight: Rows | None = None  # the rows, light arcs first, with the same indptr; built for shortest paths
    homes: Homes | None = None  # of several ranks in degree order, built for the first search or forest
    outgrown_bytes: int = 0  # of the widest distances to whose end a search has come
    is_deep: bool = False  # a search has come to the last level that bytes hold
    kept: dict[tuple, Any] = field(default_factory=dict, repr=False, compare=False)  # what is worked out once_a_shard
    made_over: weakref.ref[Communicator] | None = None  # which the ranks had when they made all that

    def begin_call(self, comm: Communicator) -> None:
        """Begin a call in which the ranks have this communicator.

        Behind one that failed it is another. Of what that was making some ranks may have their part and others not,
        and would wait for each other: all forget what was made on demand.
        """
        if self.made_over is not None and self.made_over() is comm:
            return
        self.made_over = weakref.ref(comm)
        self.in_rows = self.by_weight = self.homes = None
        self.outgrown_bytes, self.is_deep = 0, False
        self.kept.clear()
        if not self.is_compact:
            self.blocks.clear()

    @cached_property
    def num_owned(self) -> int:
        """How many vertices this rank owns."""
        return self.partition.num_owned(self.rank)

    @cached_property
    def user_stride(self) -> int:
        """How many user ids a rank hands out answers of."""
        if not self.partition.cyclic:
            return self.partition.stride
        return -(-self.info.num_vertices // self.partition.num_ranks)

    @cached_property
    def user_range(self) -> tuple[int, int]:
        """The user ids whose answers this rank hands out."""
        lo = min(self.rank * self.user_stride, self.info.num_vertices)
        return lo, min(lo + self.user_stride, self.info.num_vertices)

    @property
    def is_compact(self) -> bool:
        """Whether there are blocks alone, for sweeps."""
        return self.stored_rows is None

    @property
    def rows(self) -> Rows:
        """The rows; a compact shard has none."""
        assert self.stored_rows is not None, "the compact layout has no rows"
        return self.stored_rows

    @property
    def degrees(self) -> Array:
        """How many arcs leave each owned vertex."""
        return self.stored_degrees if self.is_compact else degrees(self.rows)

    @property
    def incoming(self) -> Rows:
        """Rows by target: the rows themselves where the graph is undirected."""
        if not self.info.directed:
            return self.rows
        assert self.in_rows is not None, "in-rows are built by the method that wants them"
        return self.in_rows

    @property
    def nbytes(self) -> int:
        tables = (self.user_of_local, self.position_of_user, self.stored_degrees)
        parts = (self.stored_rows, self.in_rows, self.homes, *self.blocks.values(), *tables)
        if self.by_weight is not None:
            parts = (*parts, self.by_weight.targets, self.by_weight.weights)
        return sum(part.nbytes for part in parts if part is not None)


def once_a_shard(
    work_out: Callable[Concatenate[Shard, P], T],
) -> Callable[Concatenate[Shard, P], T]:
    """Keep what a function of a shard, and of what can be a key, returns, as long as there is that shard.

    A communicator is no part of the key: one that has failed would stay, with its windows.
    """

    @functools.wraps(work_out)
    def kept(shard: Shard, *args: P.args, **options: P.kwargs) -> T:
        key = (work_out, *[arg for arg in args if not isinstance(arg, Communicator)], *options.items())
        if key not in shard.kept:
            shard.kept[key] = work_out(shard, *args, **options)
        return shard.kept[key]

    return kept


def long_rows(shard: Shard, length: int) -> int:
    """Return how many rows from the first on hold all those of more than `length` arcs, or are a few too many."""
    info = shard.info
    if info.max_degree <= length:
        return 0
    if info.order == "natural":
        return shard.num_owned
    # Those of higher degree come first; a row has no more arcs than its vertex has ends of any.
    ends = (info.num_arcs + 2 * (info.num_parallel + info.num_loops)) * (2 if info.directed else 1)
    return min(shard.num_owned, ends // (length + 1) // shard.partition.num_ranks + 1)


def degrees(rows: Rows) -> Array:
    """Return the length of every row."""
    return rows.indptr[1:] - rows.indptr[:-1]
