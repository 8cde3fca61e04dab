"""Turn every arc of a graph round."""

from __future__ import annotations

import dataclasses

import numpy as np

from mgraph.cluster.base import Rank
from mgraph.rank_jobs.build import store_shard
from mgraph.shard.in_rows import require_in_rows
from mgraph.shard.shard import GraphInfo, Shard, degrees


def reverse_graph(rank: Rank, graph: str, key: str) -> tuple[GraphInfo, dict]:
    """Store a shard with the in-rows of a graph as its rows, and with its rows as in-rows.

    Both shards share them, and the vertex order: that counts arcs out and in.
    """
    shard: Shard = rank.objects[graph].for_call(rank.comm)

    def make() -> Shard:
        require_in_rows(shard, rank.comm)
        rows = shard.incoming
        own = degrees(rows)
        longest = rank.comm.allreduce(np.array([int(own.max()) if len(own) else 0], np.int64), "max")
        turned = Shard(
            shard.backend,
            dataclasses.replace(shard.info, max_degree=int(longest[0])),
            shard.partition,
            shard.rank,
            rows,
            shard.user_of_local,
            shard.position_of_user,
            labels=shard.labels,
        ).for_call(rank.comm)
        turned.in_rows = shard.rows if shard.info.directed else None
        return turned

    return store_shard(rank, key, make)
