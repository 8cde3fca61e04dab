"""Compare distances from many sources, as a variant finds them on some ranks, with the oracle's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import oracles
from naive_shard import build_shards
from on_ranks import run_on_ranks
from zoo import GraphCase

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.distance_matrix.searches import Searches, own_targets
from mgraph.api.traversal import state_dtype
from mgraph.types import LEVEL, unreached_of


def check_rows(
    loop,
    case: GraphCase,
    sources: Sequence[int],
    targets: Sequence[int] | None = None,
    *,
    weighted: bool = True,
    limit: float | int | None = None,
    num_ranks: int = 1,
    **built: Any,
) -> list[dict]:
    """Compare every row with the oracle's; return the supersteps. `built` are order and backend of the shards."""
    shards = build_shards(case, num_ranks, **built)
    partition = shards[0].partition
    positions = oracles.positions(case, built.get("order", "degree"))
    have_arcs = positions < partition.num_positions
    sources = [user for user in sources if have_arcs[user]]
    columns = np.flatnonzero(have_arcs) if targets is None else np.array([u for u in targets if have_arcs[u]], int)
    dtype = state_dtype(shards[0].info) if weighted else LEVEL
    searches = Searches(
        positions[sources].tolist(), weighted, dtype, limit, None if targets is None else positions[columns].tolist()
    )

    def program(shard, comm):
        trace = Trace(shard.backend, comm)
        batches = [shard.backend.to_host(batch).copy() for batch in loop(shard, comm, searches, trace)]
        return batches, trace.supersteps

    of_ranks = run_on_ranks(program, shards)
    for rank, (batches, _) in enumerate(of_ranks):
        found = np.concatenate(batches) if batches else np.empty((0, partition.num_owned(rank)), dtype)
        if targets is None:
            # The columns are the owned vertices in the order of the graph.
            own = columns[np.argsort(positions[columns])]
            own = own[partition.position(rank * partition.stride + np.arange(partition.num_owned(rank)))]
        else:
            own = columns[own_targets(partition, rank, searches.targets)[0]]
        assert found.dtype == dtype
        assert len(found) == len(sources)
        for row, source in zip(found, sources, strict=True):
            wanted = (oracles.sssp if weighted else oracles.bfs)(case, [source], limit)[own]
            missing = np.isinf(wanted) if wanted.dtype.kind == "f" else wanted < 0
            np.testing.assert_array_equal(np.where(missing, dtype.type(unreached_of(dtype)), wanted).astype(dtype), row)
    return of_ranks[0][1]
