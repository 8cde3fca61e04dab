"""Refuse work that cannot fit before it begins.

A build reads its whole input before its exact size is known, which may take minutes. A graph that cannot fit in any
case is refused before that.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from mgraph.algorithms.variant import Conditions, GraphSizes, Variant, select
from mgraph.backends.host_memory import FreeMemory
from mgraph.comm.base import Communicator
from mgraph.edges import EdgeSizes, EdgeSource, EdgeTable
from mgraph.errors import WouldNotFit
from mgraph.formatting import readable_bytes
from mgraph.generate.grid import Grid
from mgraph.generate.rmat import Rmat
from mgraph.generate.ssca2 import Ssca2
from mgraph.generate.uniform import FixedOutDegree, Uniform
from mgraph.ingest.memory_check import limit_suffix, min_free_bytes
from mgraph.ingest.plan import degrees_bytes
from mgraph.planning.expected_sizes import as_planned
from mgraph.planning.memory import MAX_PLANNED, expected_edges, plan_graph
from mgraph.planning.parts import BUILT
from mgraph.shard.shard import Shard

# Smaller builds are not checked here: their own check follows soon enough.
ASKED_BYTES = 1 << 26
# The least share of the input that is not self-loops: of generated graphs, of generated and sampled ones, and of all
# others. With fewer than MIN_VERTICES all edges may be self-loops.
GENERATED = 0.95
SAMPLED = 0.8
OTHER = 0.5
MIN_VERTICES = 1 << 10
# The share of the planned bytes that a build of generated edges needs in any case.
PLANNED = 0.9
MAX_MEMORY = 1 << 62
# A build needs less than this many times `least_bytes`.
MAX_BUILT = 8


def refuse_what_cannot_fit(
    source: EdgeSizes | EdgeTable,
    num_ranks: int,
    backend: str,
    layout: str,
    free_of_ranks: Callable[[], list[FreeMemory]],
    num_chunks: int | None = None,
) -> None:
    """Raise WouldNotFit, with the plan's advice, if the graph cannot fit on these ranks in any case.

    In as many chunks as it chooses, a build of generated edges of a known number takes what is planned, but for a few
    per cent.
    """
    source = as_planned(source)
    least = least_bytes(source, num_ranks, layout)
    if least < ASKED_BYTES:
        return
    free = min(free_of_ranks(), key=lambda free: free.num_bytes)
    # The build itself refuses degrees that do not fit before it reads anything.
    if MAX_BUILT * least <= free.num_bytes or degrees_bytes(source.num_vertices, source.directed) > free.num_bytes:
        return
    plan = plan_graph(source, num_ranks, backend, free, layout)
    if _is_generated(source) and source.num_input_edges is not None and num_chunks is None:
        # Rows are built with row buckets where these fit, else without: the smaller of the two plans is the least.
        unlimited = plan_graph(source, num_ranks, backend, MAX_MEMORY, layout)
        least = max(least, int(PLANNED * min(plan.parts[BUILT], unlimited.parts[BUILT])))
    if least > free.num_bytes and not plan.fits:
        raise WouldNotFit(plan.advice())


def refuse_searches_without_room(
    source: EdgeSource,
    num_ranks: int,
    backend: str,
    layout: str,
    algorithms: Iterable[str],
    free_of_ranks: Callable[[], list[FreeMemory]],
) -> None:
    """Raise WouldNotFit, with the plan's advice, if a generated graph and a search that will run on it cannot fit."""
    if least_bytes(source, num_ranks, layout) < ASKED_BYTES:
        return
    free = min(free_of_ranks(), key=lambda free: free.num_bytes)
    plan = plan_graph(source, num_ranks, backend, free, layout)
    searches = max(plan.parts[f"while {algorithm} runs"] for algorithm in algorithms)
    if not plan.fits and PLANNED * (plan.parts["graph"] + searches) > free.num_bytes:
        raise WouldNotFit(plan.advice())


def least_bytes(source: EdgeSizes, num_ranks: int, layout: str) -> int:
    """Return a lower bound of the bytes of a graph's edges on the fullest rank, parallel edges included."""
    if source.num_vertices < MIN_VERTICES:
        return 0
    dtype = source.weight_dtype
    # Integer weights are stored in the smallest dtype that holds them.
    weight = 0 if dtype is None else dtype.itemsize if dtype.kind == "f" else 1
    ends = 1 if source.directed or layout != "rows" else 2
    return ends * _least_edges(source) // num_ranks * (4 + weight)


def _least_edges(source: EdgeSizes) -> int:
    """Return a lower bound of the number of edges that are not self-loops, without reading all of them."""
    part = OTHER if not _is_generated(source) else SAMPLED if source.num_input_edges is None else GENERATED
    return int(part * expected_edges(source))


def _is_generated(source: EdgeSizes) -> bool:
    return isinstance(source, (Rmat, Uniform, FixedOutDegree, Grid, Ssca2))


def refuse_without_room(
    what: str, rows: Sequence[Variant], shard: Shard, comm: Communicator, copied_bytes: int = 0
) -> None:
    """Raise WouldNotFit on every rank if the variant that would run does not fit in addition to the graph on one.

    `copied_bytes` of every arc are copied beside what the variant takes.
    """
    info = shard.info
    weights = None if info.weight_dtype is None else np.dtype(info.weight_dtype), info.max_weight
    variant = select(rows, Conditions.of(shard, comm))

    def needed(num_ranks: int) -> int:
        partition = dataclasses.replace(shard.partition, num_ranks=num_ranks)
        copied = copied_bytes * -(-info.num_arcs // num_ranks)
        return copied + variant.bytes(GraphSizes(info.num_vertices, info.num_edges, info.directed, partition, *weights))

    if needed(comm.size) < shard.backend.limits.tried_bytes:
        return
    free = min_free_bytes(shard.backend, comm)
    if needed(comm.size) <= free:
        return
    graph = int(comm.allreduce(np.array([shard.nbytes], np.int64), "max")[0])
    fitting = (r for r in range(comm.size, MAX_PLANNED) if graph * comm.size // r + needed(r) <= free + graph)
    enough = next(fitting, None)
    raise WouldNotFit(
        f"{what} takes {readable_bytes(needed(comm.size))} in addition to the graph on each rank, and "
        f"{readable_bytes(free)} is free: use {f'{enough} ranks with as much' if enough else 'ranks with more memory'}"
        f", or fewer edges{limit_suffix(shard.backend, comm)}"
    )


def refuse_check_without_room(what: str, needed: int, shard: Shard, comm: Communicator) -> None:
    """Raise WouldNotFit on every rank if validating a result does not fit in addition to the graph on one."""
    if needed < shard.backend.limits.tried_bytes:
        return
    free = min_free_bytes(shard.backend, comm)
    if needed > free:
        raise WouldNotFit(
            f"to validate {what} takes {readable_bytes(needed)} in addition to the graph on each rank, and "
            f"{readable_bytes(free)} is free: use more ranks, or ranks with more memory"
            + limit_suffix(shard.backend, comm)
        )
