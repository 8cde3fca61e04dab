"""What is refused before it begins, since there is no room for it."""

from __future__ import annotations

import dataclasses

import numpy as np

from mgraph.build.plan import bytes_of
from mgraph.build.room import least_free, what_limits
from mgraph.comm.base import Communicator
from mgraph.errors import WouldNotFit
from mgraph.memory import MOST_PLANNED, forest_bytes
from mgraph.readable import readable_bytes
from mgraph.shard import Shard


def refuse_forest_without_room(shard: Shard, comm: Communicator) -> None:
    """Raise on every rank if any has no room for a spanning forest beside the graph; say what would fit."""
    info = shard.info
    weight = bytes_of(None if info.weight_dtype is None else np.dtype(info.weight_dtype))

    def needed(num_ranks: int) -> int:
        partition = dataclasses.replace(shard.partition, num_ranks=num_ranks)
        return forest_bytes(partition, info.num_vertices, -(-info.num_edges // num_ranks), weight)

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
