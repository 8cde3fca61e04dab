"""Build a graph on the ranks, and report their memory."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from mgraph.backends.host_memory import FreeMemory
from mgraph.cluster.base import Rank
from mgraph.edges import EdgeSource, EdgeTable, is_table
from mgraph.ingest.build import build
from mgraph.ingest.host_plan import memory_of_host
from mgraph.ingest.read import read_table
from mgraph.io.parts import received
from mgraph.planning.parts import in_use_bytes
from mgraph.shard.shard import GraphInfo, Shard
from mgraph.store.load import load_shard, require_as_saved
from mgraph.store.manifest import StoredGraph


def free_bytes(rank: Rank) -> int:
    """Return the bytes that this rank can still allocate."""
    return rank.backend.free_bytes()


def free_memory(rank: Rank) -> FreeMemory:
    """Return the bytes that this rank can still allocate, their limit, and those of its host."""
    on_host = memory_of_host(rank.backend, rank.comm).num_bytes
    return dataclasses.replace(rank.backend.free_memory(), host_bytes=on_host)


def build_graph(
    rank: Rank, source: EdgeSource | EdgeTable | StoredGraph, key: str, order: str, num_chunks: int | None, layout: str
) -> tuple[GraphInfo, dict]:
    """Build this rank's shard, or load that of a saved graph, and store it as `key`."""
    backend = rank.backend
    comm = rank.comm
    in_use = partial(in_use_bytes, limits=backend.limits, peer_memory=comm.may_have_peer_memory)

    def make() -> Shard:
        if isinstance(source, StoredGraph):
            require_as_saved(source, order, num_chunks, layout)
            return load_shard(source, backend, comm, layout, in_use)
        edges, labels = read_table(source, backend, comm) if is_table(source) else (source, None)
        shard = build(edges, backend, comm, order=order, num_chunks=num_chunks, layout=layout, in_use_bytes=in_use)
        shard.labels = labels
        return shard

    try:
        info, stats = store_shard(rank, key, make)
    except BaseException:
        # Its decompressed copies would stay open as long as anything refers to the error.
        getattr(source, "release", lambda: None)()
        raise
    return info, stats | {"loaded": isinstance(source, StoredGraph)}


def store_shard(rank: Rank, key: str, make: Callable[[], Shard]) -> tuple[GraphInfo, dict]:
    """Store the shard that `make` returns as `key`; return the facts of its graph, and what it cost."""
    started = time.perf_counter()
    with rank.backend.high_water() as peak_bytes:
        shard = make()
        rank.backend.synchronize()
    known = shard.labels
    if known is not None:
        shard.info = dataclasses.replace(shard.info, labels=known.kind, missing_label=known.missing)
    rank.objects[key] = shard
    stats = {
        "seconds": time.perf_counter() - started,
        "bytes": shard.nbytes,
        "host_bytes": shard.host_bytes,
        "label_bytes": 0 if known is None else known.nbytes,
        "peak_bytes": peak_bytes(),
        "loaded": False,
    }
    return shard.info, stats


def build_graph_of_parts(rank: Rank, part: Any, *args: Any) -> tuple[GraphInfo, dict]:
    """Build a shard from edges of which each rank has received its part."""
    return build_graph(rank, received(part), *args)


def shard_bytes(rank: Rank, graph: str) -> int:
    """Return the bytes of this rank's shard, derived data included."""
    return rank.objects[graph].nbytes
