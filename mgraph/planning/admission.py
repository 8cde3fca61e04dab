"""What is refused before it begins, since there is no room for it.

A build counts its input before it knows what it takes, and that may be minutes: what cannot fit whatever is counted is
refused before.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from mgraph.algorithms.variant import GraphSizes, Setting, select
from mgraph.algorithms.variants import SPANNING_FOREST
from mgraph.backends.host_memory import FreeMemory
from mgraph.comm.base import Communicator
from mgraph.errors import WouldNotFit
from mgraph.formatting import readable_bytes
from mgraph.generate.grid import Grid
from mgraph.generate.rmat import Rmat
from mgraph.generate.ssca2 import Ssca2
from mgraph.generate.uniform import FixedOutDegree, Uniform
from mgraph.ingest.memory_check import least_free, what_limits
from mgraph.ingest.plan import degrees_bytes
from mgraph.planning.memory import MOST_PLANNED, expected_edges, plan_graph
from mgraph.shard.shard import Shard
from mgraph.types import EdgeSource

# A build that takes less is not checked first: its own check comes soon enough.
ASKED_BYTES = 1 << 26
# The least part of the input that is no loop: of what is generated, which has few; of what is generated and sampled;
# and of what others made. With fewer vertices than these it may all be loops.
GENERATED, SAMPLED, OTHER = 0.95, 0.8, 0.5
FEWEST_VERTICES = 1 << 10


def refuse_what_cannot_fit(
    source: EdgeSource, num_ranks: int, backend: str, layout: str, free_of_ranks: Callable[[], list[FreeMemory]]
) -> None:
    """Raise WouldNotFit, as the plan says it, if the graph cannot be built on these ranks whatever is counted."""
    least = least_bytes(source, num_ranks, layout)
    if least < ASKED_BYTES:
        return
    free = min(free_of_ranks(), key=lambda free: free.num_bytes)
    # Degrees without room are refused before anything is counted, too, and no plan is made of them.
    if least <= free.num_bytes or degrees_bytes(source.num_vertices, source.directed) > free.num_bytes:
        return
    plan = plan_graph(source, num_ranks, backend, free, layout)
    if not plan.fits:
        raise WouldNotFit(plan.advice())


def least_bytes(source: EdgeSource, num_ranks: int, layout: str) -> int:
    """Return what the edges of a graph take at least on the fullest rank, parallel ones included as in the build."""
    if source.num_vertices < FEWEST_VERTICES:
        return 0
    dtype = source.weight_dtype
    # Integers are stored in the smallest width that holds them.
    weight = 0 if dtype is None else dtype.itemsize if dtype.kind == "f" else 1
    ends = 1 if source.directed or layout != "rows" else 2
    return ends * _least_edges(source) // num_ranks * (4 + weight)


def _least_edges(source: EdgeSource) -> int:
    """Return how many edges are no loops at least, as far as that can be known without reading all of them."""
    is_generated = isinstance(source, (Rmat, Uniform, FixedOutDegree, Grid, Ssca2))
    part = OTHER if not is_generated else SAMPLED if source.num_input_edges is None else GENERATED
    return int(part * expected_edges(source))


def refuse_forest_without_room(shard: Shard, comm: Communicator) -> None:
    """Raise on every rank if any has no room for a spanning forest beside the graph; say what would fit."""
    info = shard.info
    weights = np.dtype(info.weight_dtype), info.max_weight
    forest = select(SPANNING_FOREST, Setting.of(shard, comm))

    def needed(num_ranks: int) -> int:
        partition = dataclasses.replace(shard.partition, num_ranks=num_ranks)
        return forest.bytes(GraphSizes(info.num_vertices, info.num_edges, info.directed, partition, *weights))

    if needed(comm.size) < shard.backend.limits.tried_bytes:
        return
    free = least_free(shard.backend, comm)
    if needed(comm.size) <= free:
        return
    graph = int(comm.allreduce(np.array([shard.nbytes], np.int64), "max")[0])
    fitting = (r for r in range(comm.size, MOST_PLANNED) if graph * comm.size // r + needed(r) <= free + graph)
    enough = next(fitting, None)
    raise WouldNotFit(
        f"a spanning forest takes {readable_bytes(needed(comm.size))} beside the graph on each rank, and "
        f"{readable_bytes(free)} is free: use {f'{enough} ranks with as much' if enough else 'ranks with more memory'}"
        f", or fewer edges{what_limits(shard.backend, comm)}"
    )


def refuse_check_without_room(what: str, needed: int, shard: Shard, comm: Communicator) -> None:
    """Raise on every rank if any has no room to validate an answer beside the graph."""
    if needed < shard.backend.limits.tried_bytes:
        return
    free = least_free(shard.backend, comm)
    if needed > free:
        raise WouldNotFit(
            f"to validate {what} takes {readable_bytes(needed)} beside the graph on each rank, and "
            f"{readable_bytes(free)} is free: use more ranks, or ranks with more memory"
            + what_limits(shard.backend, comm)
        )
