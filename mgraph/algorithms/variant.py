"""A variant of an algorithm, and the conditions under which it is chosen. The table of all is variants.py.

A rank and the memory plan choose among the same variants: a rank states its own conditions by `Conditions.of`, the plan
those of ranks that need not exist by `Conditions.planned`. The loop, what it requires and its bytes stay in one file,
so that the plan cannot disagree with what runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mgraph.algorithms.common.checkpoints import CheckpointFolder
from mgraph.backends.base import Limits, PersistentBackend
from mgraph.backends.cpu import CpuBackend
from mgraph.comm.base import Communicator
from mgraph.comm.peer_memory import MAX_RANKS
from mgraph.errors import UsageError
from mgraph.ingest.plan import bytes_of, state_bytes
from mgraph.partition import Partition
from mgraph.shard.lightest_arcs import SPARSE_DEGREE, wants_lightest_arcs
from mgraph.shard.shard import ROW_LAYOUTS, GraphInfo, Shard
from mgraph.types import vertex_dtype

# What a caller may ask for in addition to the short name of a variant: any variant, any but the sweep, the sweep.
METHODS = ("auto", "frontier", "sweep")
# Short names of the variants that read edge blocks; of a graph at most one of them applies where all are allowed.
SWEEPS = ("streamed", "sweep")
# Where a shard lists the structures that some rank could not make.
_FAILED = ("needs that cannot be made",)


@dataclass(frozen=True)
class TraversalSpec:
    """The request for one traversal; the same on every rank."""

    algorithm: str  # bfs or sssp
    method: str  # auto, frontier, sweep or the short name of a variant
    sources: tuple[int, ...]  # user ids
    dtype: np.dtype  # of the state
    limit: float | int | None = None  # depth_limit or cutoff
    predecessors: bool = True
    # The sources as the user names them, if the graph has labels.
    labels: tuple[str | int, ...] = field(default=(), compare=False)
    # The search may end once these user ids are settled: vertices farther than all of them may then be unreached.
    targets: tuple[int, ...] = field(default=(), kw_only=True)
    # Whether the result stays in the graph's own order, with predecessors as user ids; if not, whether distances are
    # put in the order of user ids at once, as predecessors are. What is not in that order is put there when it is read.
    in_graph_order: bool = field(default=False, kw_only=True)
    distances_at_once: bool = field(default=True, kw_only=True)
    checkpoint: CheckpointFolder | None = field(default=None, kw_only=True)

    @property
    def at_once(self) -> tuple[str, ...]:
        """The columns that are put in the order of user ids at once."""
        if self.in_graph_order:
            return ()
        return ("distances",) * self.distances_at_once + ("predecessors",) * self.predecessors


@dataclass(frozen=True)
class GraphSizes:
    """Sizes of a graph on its fullest rank, counted or expected, from which memory is planned."""

    num_vertices: int
    num_edges: int  # of the whole input
    directed: bool
    partition: Partition
    weight_dtype: np.dtype | None
    heaviest: float  # an upper bound of the weights

    @property
    def edges(self) -> int:
        """Edges of a rank."""
        return -(-self.num_edges // self.partition.num_ranks)

    @property
    def row_arcs(self) -> int:
        """Entries of a rank's rows."""
        return self.edges * (1 if self.directed else 2)

    @property
    def owned(self) -> int:
        """Vertices of a rank."""
        return self.partition.num_owned(0)

    @property
    def users(self) -> int:
        """User ids that a rank serves."""
        return -(-self.num_vertices // self.partition.num_ranks)

    @property
    def id_bytes(self) -> int:
        """Bytes of a user id."""
        return vertex_dtype(self.num_vertices).itemsize

    @property
    def states(self) -> int:
        """Length of an array of all states."""
        return self.partition.num_states

    @property
    def vertex(self) -> int:
        """Bytes of a position."""
        return self.partition.dtype.itemsize

    @property
    def weight(self) -> int:
        """Bytes of a weight; 0 without weights."""
        return bytes_of(self.weight_dtype)

    @property
    def state(self) -> int:
        """Bytes of a distance."""
        return state_bytes(self.weight_dtype, self.num_vertices, self.heaviest)


@dataclass(frozen=True)
class Conditions:
    """What decides which variant runs; equal on every rank."""

    method: str  # of METHODS, or the short name of a variant
    layout: str  # rows or split, or of blocks alone: compact or host
    num_ranks: int
    stride: int  # vertices of a rank, at most
    has_persistent_kernels: bool
    has_peer_memory: bool  # of GPUs: assumed where ranks may have it, until peer buffers cannot be opened
    directed: bool
    arcs_per_vertex: float
    has_heavy_arcs: bool  # weights beyond the width of a bucket, so that sorting rows by weight pays
    failed: frozenset[str] = frozenset()  # needs that some rank could not make
    faster_on_host: frozenset[str] = frozenset()  # algorithms that the CPU beside one GPU runs sooner
    has_equal_weights: bool = False  # all weights, so that edges are ordered by their ends
    threads: int = 1  # of a CPU rank that has the graph alone; others may have different numbers
    num_arcs: int = 0  # of the whole graph
    by_hops: bool = False  # weights do not count: distances of many sources are numbers of arcs, all arcs pass alike

    @property
    def has_rows(self) -> bool:
        """Whether the layout has rows; if not, it has blocks alone."""
        return self.layout in ROW_LAYOUTS

    @property
    def is_one_cpu(self) -> bool:
        """Whether a graph's rows are on one CPU rank."""
        return self.has_rows and self.num_ranks == 1 and not self.has_persistent_kernels

    @classmethod
    def of(cls, shard: Shard, comm: Communicator, method: str = "auto") -> Conditions:
        """Return the conditions of a shard on its ranks."""
        of_graph = cls.of_graph(
            shard.info,
            shard.partition,
            method,
            has_persistent_kernels=isinstance(shard.backend, PersistentBackend),
            has_peer_memory=comm.may_have_peer_memory,
        )
        return replace(
            of_graph,
            failed=frozenset(shard.kept.get(_FAILED, ())),
            faster_on_host=frozenset(name for name, is_faster in shard.faster_on_host.items() if is_faster),
            threads=_threads_of_one(shard),
        )

    @classmethod
    def of_graph(
        cls,
        info: GraphInfo,
        partition: Partition,
        method: str,
        *,
        has_persistent_kernels: bool,
        has_peer_memory: bool,
    ) -> Conditions:
        """Return the conditions of a graph that is built, without those that only its ranks know."""
        return cls(
            method,
            info.layout,
            partition.num_ranks,
            partition.stride,
            has_persistent_kernels,
            has_persistent_kernels and has_peer_memory and 1 < partition.num_ranks <= MAX_RANKS,
            info.directed,
            info.num_arcs / max(partition.num_positions, 1),
            wants_lightest_arcs(info),
            # Zeros of floats may have two signs, which have an order.
            has_equal_weights=info.min_weight == info.max_weight != 0,
            num_arcs=info.num_arcs,
        )

    @classmethod
    def at_best(cls, method: str, layout: str, num_ranks: int, *, has_persistent_kernels: bool) -> Conditions:
        """Return the conditions known before a graph is built, with all others taken to allow every variant."""
        shares = has_persistent_kernels and 1 < num_ranks <= MAX_RANKS
        return cls(method, layout, num_ranks, 0, has_persistent_kernels, shares, False, float("inf"), True)

    @classmethod
    def planned(
        cls, sizes: GraphSizes, limits: Limits, layout: str = "rows", *, peer_memory: bool = True
    ) -> Conditions:
        """Return the conditions of ranks that need not exist, for `method="auto"`.

        Parameters
        ----------
        peer_memory
            Whether the GPUs of several ranks are taken to have access to each other's memory.
        """
        partition = sizes.partition
        degree = sizes.row_arcs * partition.num_ranks / max(partition.num_positions, 1)
        return cls(
            "auto",
            layout,
            partition.num_ranks,
            partition.stride,
            limits.has_persistent_kernels,
            limits.has_persistent_kernels and peer_memory and 1 < partition.num_ranks <= MAX_RANKS,
            sizes.directed,
            degree,
            sizes.weight > 0 and degree >= SPARSE_DEGREE,
            num_arcs=sizes.row_arcs * partition.num_ranks,
        )


def _threads_of_one(shard: Shard) -> int:
    backend = shard.backend
    return backend.threads if isinstance(backend, CpuBackend) and shard.partition.num_ranks == 1 else 1


@dataclass(frozen=True, eq=False)
class Derived:
    """A structure that is made of a shard before a search, once for a graph.

    `make(shard, comm, dtype)` is collective and returns whether every rank has it. It may return False only where all
    ranks do: then the next variant is tried.
    """

    name: str
    make: Callable[[Shard, Communicator, np.dtype], bool]
    bytes: Callable[[GraphSizes], int] = lambda sizes: 0


@dataclass(frozen=True, eq=False)
class Variant:
    """One loop of an algorithm: when it runs, what it needs, what it takes.

    Attributes
    ----------
    name
        The algorithm and the short name, as in `bfs.persistent`: `method="persistent"` requests it, stats report it.
    when
        The condition in words, continuing "runs".
    needs
        Structures without which it cannot run, in the order in which they are made.
    wants
        Structures that make it faster, made where a rank has room for them.
    bytes
        What it allocates in addition to the graph and these structures, on the fullest rank.
    loop
        A traversal's: loop(shard, comm, sources, trace, limit), with the dtype before the limit for sssp. It
        returns None where it has found out that another variant now applies.
    takes_user_ids
        Whether the sources are user ids, which the loop looks up; else positions of vertices that have arcs.
    takes_translate
        Whether `loop` takes `translate`, which launches the translation to user ids right after the search.
    keeps_checkpoints
        Whether `loop` gives its state to `trace.checkpoints`, and goes on from the state that is found there.
    takes_until
        Whether `loop` takes `until`, positions of vertices with arcs, and ends once all of them are settled.
    """

    name: str
    when: str
    applies: Callable[[Conditions], bool]
    bytes: Callable[[GraphSizes], int]
    loop: Callable[..., Any]
    needs: tuple[Derived, ...] = ()
    wants: tuple[Derived, ...] = ()
    takes_user_ids: bool = False
    takes_translate: bool = False
    takes_until: bool = False
    keeps_checkpoints: bool = False

    @property
    def short_name(self) -> str:
        """The name without the algorithm."""
        return self.name.partition(".")[2]

    @property
    def has_peer_buffers(self) -> bool:
        """Whether ranks exchange through each other's memory."""
        return any(need.name == "peer_buffers" for need in self.needs)

    def is_asked_for(self, method: str) -> bool:
        """Return whether a method leaves this variant open."""
        if method == "frontier":
            return self.short_name not in SWEEPS
        if method == "sweep":
            return self.short_name in SWEEPS
        return method in ("auto", self.short_name)


def select(variants: Sequence[Variant], conditions: Conditions) -> Variant:
    """Return the first variant that applies; raise UsageError where the method leaves none."""
    asked = [variant for variant in variants if variant.is_asked_for(conditions.method)]
    for variant in asked:
        if variant.applies(conditions) and conditions.failed.isdisjoint(need.name for need in variant.needs):
            return variant
    reasons = "; ".join(f"{variant.name} runs {variant.when}" for variant in asked)
    failed = f" (could not be made here: {', '.join(sorted(conditions.failed))})" if conditions.failed else ""
    raise UsageError(f"method {conditions.method!r} does not apply here{failed}: {reasons}; method='auto' chooses")


def require_variant(
    variants: Sequence[Variant],
    shard: Shard,
    comm: Communicator,
    dtype: np.dtype,
    method: str = "auto",
    *,
    by_hops: bool = False,
) -> Variant:
    """Select a variant and make what it needs; collective, and the same variant on every rank.

    A need that cannot be made is remembered on the shard, and the next variant is tried.
    """
    while True:
        variant = select(variants, replace(Conditions.of(shard, comm, method), by_hops=by_hops))
        failed = next((need.name for need in variant.needs if not need.make(shard, comm, dtype)), None)
        if failed is None:
            return variant
        shard.kept.setdefault(_FAILED, set()).add(failed)
