"""Build the graph of some vertices of a graph."""

from __future__ import annotations

from mgraph.cluster.base import Rank
from mgraph.ingest.build import build
from mgraph.ingest.from_rows import induced_edges
from mgraph.rank_jobs.build import store_shard
from mgraph.shard.shard import GraphInfo, Shard


def build_subgraph(rank: Rank, graph: str, key: str, mask: tuple[str, str], name: str) -> tuple[GraphInfo, dict]:
    """Build this rank's shard of the graph of the vertices where a mask is true, and store it as `key`."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    kept = rank.objects[mask[0]].columns[mask[1]]

    def make() -> Shard:
        edges, labels = induced_edges(shard, rank.comm, kept, name)
        built = build(edges, rank.backend, rank.comm, order=shard.info.order)
        built.labels = labels
        return built

    return store_shard(rank, key, make)
