"""Define the rank jobs: build graphs, run algorithms, validate and copy results.

`Cluster.run` calls a job on every rank under one lease; its first argument is the Rank. Shards and results are stored
in `rank.objects`; the value that a job returns is sent to the user's process, so it is small.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.components.labels import labels_of_users
from mgraph.algorithms.predecessors.rows import find_roots
from mgraph.algorithms.run_variant import (
    compute_components,
    compute_spanning_forest,
    connected,
    find_tree,
    prepare,
    search,
)
from mgraph.algorithms.spanning_forest.exact_sum import exact_sum
from mgraph.algorithms.variant import TraversalSpec
from mgraph.backends.host_memory import FreeMemory
from mgraph.backends.totals import total
from mgraph.cluster.base import Rank
from mgraph.edges import EdgeSource
from mgraph.ingest.build import build
from mgraph.io.parts import PartEdges
from mgraph.planning.admission import refuse_check_without_room, refuse_forest_without_room
from mgraph.planning.memory import rows_in_use_bytes
from mgraph.shard.result_routing import require_result_routing
from mgraph.shard.shard import GraphInfo, Shard
from mgraph.shard.user_ids import edges_of_users, positions_of, tree_of_users
from mgraph.types import Array, unreached_of
from mgraph.validation.components import labels_check_bytes, validate_labels
from mgraph.validation.spanning_forest import forest_check_bytes, validate_forest
from mgraph.validation.traversal import Violation, validate_traversal

HASHED_AT_ONCE = 1 << 26


@dataclass
class StoredColumns:
    """Store one rank's part of a result: a value for each user id or edge."""

    first: int
    columns: dict[str, Array]


@dataclass
class StoredForest(StoredColumns):
    """Store one rank's part of a forest; edges are numbered over all ranks."""

    maximum: bool


@dataclass
class StoredTraversal(StoredColumns):
    """Store one rank's part of a traversal, by user id and by owned vertex."""

    spec: TraversalSpec
    traversal: Traversal


def shard_of(rank: Rank, graph: str) -> Shard:
    """Return this rank's shard.

    Every job that may derive more data from it begins with this.
    """
    shard: Shard = rank.objects[graph]
    shard.begin_call(rank.comm)
    return shard


def free_bytes(rank: Rank) -> int:
    """Return the bytes that this rank can still allocate."""
    return rank.backend.free_bytes()


def free_memory(rank: Rank) -> FreeMemory:
    """Return the bytes that this rank can still allocate, and their limit."""
    return rank.backend.free_memory()


def build_graph(
    rank: Rank, source: EdgeSource, key: str, order: str, num_chunks: int | None, layout: str
) -> tuple[GraphInfo, dict]:
    """Build this rank's shard and store it as `key`."""
    backend = rank.backend
    comm = rank.comm
    started = time.perf_counter()
    in_use_bytes = partial(rows_in_use_bytes, limits=backend.limits, peer_memory=comm.may_reach)
    with backend.high_water() as peak_bytes:
        shard = build(
            source, backend, comm, order=order, num_chunks=num_chunks, layout=layout, in_use_bytes=in_use_bytes
        )
        backend.synchronize()
    rank.objects[key] = shard
    seconds = time.perf_counter() - started
    return shard.info, {"seconds": seconds, "bytes": shard.nbytes, "peak_bytes": peak_bytes()}


def build_graph_of_parts(rank: Rank, part: PartEdges, *args: Any) -> tuple[GraphInfo, dict]:
    """Build a shard from edges of which each rank has received its part."""
    return build_graph(rank, part, *args)


def traverse(rank: Rank, graph: str, keys: list[str], specs: list[TraversalSpec]) -> list[dict[str, Any]]:
    """Run each traversal; store the results as `keys` and return this rank's stats."""
    shard = shard_of(rank, graph)
    comm = rank.comm
    parts = []
    for key, spec in zip(keys, specs, strict=True):
        trace = Trace(rank.backend, comm)
        with trace.phase("prepare"):
            variant = prepare(shard, comm, spec)
            if comm.size > 1:
                require_result_routing(shard, comm)
        found = search(variant, shard, comm, spec, trace)
        assert found.sources is not None, "a search returns them"
        stats = store_traversal(rank, shard, key, spec, found.sources, found, trace)
        parts.append({**stats, "variant": variant.name})
        # Free the search's arrays before the next search; the stored result holds its own.
        del found
    return parts


def store_traversal(
    rank: Rank,
    shard: Shard,
    key: str,
    spec: TraversalSpec,
    sources: list[int],
    traversal: Traversal,
    trace: Trace,
) -> dict[str, Any]:
    """Add predecessors if requested.

    Store the result by user id as `key` and return this rank's stats.
    """
    comm = rank.comm
    # With several sources the nearest one is the end of each vertex's chain of predecessors.
    if (spec.predecessors or len(spec.sources) > 1) and traversal.predecessors is None:
        with trace.phase("predecessors"):
            traversal.predecessors = find_tree(shard, comm, sources, traversal.distances, traversal.everywhere)
    # The next search overwrites them: they are in its peer buffer.
    traversal.everywhere = None
    result = StoredTraversal(shard.user_range[0], {}, spec, traversal)
    with trace.phase("translate"):
        # An isolated source has no state; it reaches itself.
        isolated = [s for s, p in zip(spec.sources, sources, strict=True) if p >= shard.partition.num_positions]
        num_isolated = _translate(shard, rank, result, isolated)
    rank.objects[key] = result
    num_reached, reached_arcs = _count_reached(shard, traversal)
    return {
        "seconds": trace.seconds,
        "supersteps": trace.supersteps,
        "bytes_sent": trace.bytes_sent,
        "form": trace.form,
        "reached": num_reached + num_isolated,
        "reached_arcs": reached_arcs,
    }


def label_components(rank: Rank, graph: str, key: str) -> dict[str, Any]:
    """Find the components; store their labels as `key` and return this rank's stats."""
    shard = shard_of(rank, graph)
    trace = Trace(rank.backend, rank.comm)
    variant, roots = compute_components(shard, rank.comm, trace)
    with trace.phase("translate"):
        labels = labels_of_users(shard, rank.comm, roots)
    lo, hi = shard.user_range
    rank.objects[key] = StoredColumns(lo, {"labels": labels})
    return {
        "seconds": trace.seconds,
        "supersteps": trace.supersteps,
        "bytes_sent": trace.bytes_sent,
        "variant": variant,
        "components": total(rank.backend, labels == rank.backend.xp.arange(lo, hi)),
    }


def span(rank: Rank, graph: str, key: str, maximum: bool) -> dict[str, Any]:
    """Find a spanning forest; store its edges as `key` and return this rank's stats."""
    shard = shard_of(rank, graph)
    refuse_forest_without_room(shard, rank.comm)
    comm = rank.comm
    trace = Trace(rank.backend, rank.comm)
    variant, arcs = compute_spanning_forest(shard, comm, trace, maximum)
    with trace.phase("translate"):
        first, columns = edges_of_users(shard, comm, arcs)
    rank.objects[key] = StoredForest(first, columns, maximum)
    return {
        "seconds": trace.seconds,
        "supersteps": trace.supersteps,
        "bytes_sent": trace.bytes_sent,
        "variant": variant,
        "edges": len(arcs),
        "total": exact_sum(rank.backend.xp, columns["weights"]),
    }


def _count_reached(shard: Shard, traversal: Traversal) -> tuple[int, int]:
    """Return the number of reached vertices of this rank, and of their arcs."""
    if traversal.num_reached is not None and traversal.reached_arcs is not None:
        return traversal.num_reached, traversal.reached_arcs
    reached = traversal.distances != unreached_of(traversal.distances.dtype)
    return total(shard.backend, reached), total(shard.backend, shard.degrees * reached)


def _translate(shard: Shard, rank: Rank, result: StoredTraversal, isolated: list[int]) -> int:
    """Translate the result to user ids, isolated sources included.

    Return how many of these this rank stores.
    """
    comm = rank.comm
    columns = result.columns
    traversal = result.traversal
    predecessors = traversal.predecessors if result.spec.predecessors else None
    tree = traversal.in_user_ids or tree_of_users(shard, comm, traversal.distances, predecessors)
    columns |= zip(("distances", "predecessors"), tree, strict=False)
    if len(result.spec.sources) > 1:
        roots = find_roots(shard, comm, traversal.predecessors)
        (columns["nearest_source"],) = tree_of_users(shard, comm, None, roots)
    lo, hi = shard.user_range
    own = [source for source in isolated if lo <= source < hi]
    for source in own:
        columns["distances"][source - lo] = 0
        for name in ("predecessors", "nearest_source"):
            if name in columns:
                columns[name][source - lo] = source
    return len(own)


def shard_bytes(rank: Rank, graph: str) -> int:
    """Return the bytes of this rank's shard, derived data included."""
    return rank.objects[graph].nbytes


def have_arcs(rank: Rank, graph: str, users: list[int]) -> list[bool]:
    """Return for each of a few user ids whether it has arcs out."""
    shard: Shard = rank.objects[graph]
    partition = shard.partition
    degrees = shard.degrees
    lengths = []
    for position in positions_of(shard, rank.comm, users):
        own = position < partition.num_positions and partition.owner(position) == rank.index
        lengths.append(int(degrees[partition.local(position)]) if own else 0)
    return (rank.comm.allreduce(np.array(lengths, np.int64), "max") > 0).tolist()


def fetch(rank: Rank, key: str, column: str, lo: int, hi: int) -> np.ndarray:
    """Return this rank's values of a column for user ids or edges lo..hi."""
    result: StoredColumns = rank.objects[key]
    first = result.first
    values = result.columns[column]
    return rank.backend.to_host(values[max(lo - first, 0) : max(hi - first, 0)])


def count_values(rank: Rank, key: str) -> int:
    """Return the number of values of each column on this rank."""
    result: StoredColumns = rank.objects[key]
    return len(next(iter(result.columns.values())))


def take(rank: Rank, key: str, column: str) -> np.ndarray:
    """Return a copy of this rank's part of a column.

    It remains valid after the result is closed.
    """
    return np.array(rank.backend.to_host(rank.objects[key].columns[column]))


def digest(rank: Rank, key: str, column: str) -> int:
    """Return the sum of hashes of (vertex, value) in this rank's column."""
    result: StoredColumns = rank.objects[key]
    values = result.columns[column]
    xp = rank.backend.xp
    hashes = 0
    # In pieces: the hashes of a whole column would need several times its memory.
    for lo in range(0, len(values), HASHED_AT_ONCE):
        part = values[lo : lo + HASHED_AT_ONCE]
        bits = part.view(f"u{part.dtype.itemsize}").astype(np.uint64)
        # Constants of splitmix64: odd, so that multiplication is a bijection; the shifts mix high bits into low ones.
        vertices = xp.arange(result.first + lo, result.first + lo + len(part), dtype=np.uint64)
        mixed = (vertices * np.uint64(0x9E3779B97F4A7C15)) ^ bits
        for factor in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):
            mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(factor)
        hashes += int((mixed ^ (mixed >> np.uint64(32))).sum(dtype=np.uint64))
    return hashes % 2**64


def follow(rank: Rank, key: str, target: int) -> list[int]:
    """Return the path from a source to the target, over all ranks' predecessors."""
    result: StoredTraversal = rank.objects[key]
    first = result.first
    values = result.columns["predecessors"]
    path: list[int] = []
    vertex = target
    while vertex >= 0 and (not path or vertex != path[-1]):
        path.append(vertex)
        own = int(values[vertex - first]) if 0 <= vertex - first < len(values) else -1
        vertex = int(rank.comm.allreduce(np.array([own], np.int64), "max")[0])
    return path[::-1] if vertex >= 0 else []


def check(rank: Rank, key: str, graph: str) -> list[Violation]:
    """Check a traversal by rules; every rank returns the same violations."""
    shard = shard_of(rank, graph)
    result = rank.objects[key]
    sources = positions_of(shard, rank.comm, result.spec.sources)
    return validate_traversal(
        shard,
        rank.comm,
        connected(shard, sources),
        result.traversal.distances,
        result.traversal.predecessors,
        weighted=result.spec.algorithm == "sssp",
        limit=result.spec.limit,
    )


def check_labels(rank: Rank, key: str, graph: str) -> list[Violation]:
    """Check the labels of components by rules; every rank returns the same violations."""
    shard = shard_of(rank, graph)
    labels = rank.objects[key].columns["labels"]
    needed = labels_check_bytes(shard.partition, shard.info.num_vertices)
    refuse_check_without_room("components", needed, shard, rank.comm)
    return validate_labels(shard, rank.comm, labels)


def check_forest(rank: Rank, key: str, graph: str) -> list[Violation]:
    """Check a spanning forest by rules; every rank returns the same violations."""
    shard = shard_of(rank, graph)
    forest = rank.objects[key]
    info = shard.info
    weight = np.dtype(shard.info.weight_dtype).itemsize
    needed = forest_check_bytes(shard.partition, info.num_vertices, -(-info.num_edges // rank.size), weight)
    refuse_check_without_room("a spanning forest", needed, shard, rank.comm)
    return validate_forest(shard, rank.comm, forest.columns, forest.maximum)
