"""Search breadth first or for shortest paths; store, follow and check the result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.predecessors.rows import find_roots
from mgraph.algorithms.run_variant import find_tree, prepare, search, translated_at_once, with_arcs
from mgraph.algorithms.variant import TraversalSpec
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.progress import Phase
from mgraph.backends.totals import total
from mgraph.cluster.base import Rank
from mgraph.comm.base import Communicator
from mgraph.errors import InputError
from mgraph.io.output_tables import Values
from mgraph.planning.admission import refuse_check_without_room
from mgraph.rank_jobs.checkpoints import kept_in
from mgraph.rank_jobs.results import MadeColumns, StoredColumns, labels_of_ids
from mgraph.shard.graph_order import owned_distances, owned_predecessors, owned_users
from mgraph.shard.result_routing import require_result_routing
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import positions_of, translate_results, translate_when_read
from mgraph.types import Array, unreached_of
from mgraph.validation.traversal import (
    Violation,
    has_overflow,
    may_overflow,
    traversal_check_bytes,
    validate_traversal,
)

Search = TypeVar("Search")


@dataclass
class StoredTraversal(StoredColumns):
    """One rank's part of a traversal, by user id and by owned vertex.

    Attributes
    ----------
    columns
        Those that are in the order of user ids, which may be none yet.
    owned_predecessors
        The predecessors of owned vertices as user ids, if the result was to stay in the graph's own order.
    """

    columns: MadeColumns
    spec: TraversalSpec
    traversal: Traversal
    num_users: int
    owned_predecessors: Array | None = None

    @property
    def num_rows(self) -> int:
        return self.num_users


def traverse(
    rank: Rank, graph: str, keys: list[str], specs: list[TraversalSpec], *, is_one_of_many: bool = False
) -> list[dict[str, Any]]:
    """Run each traversal; store the results as `keys` and return this rank's stats.

    A traversal that is one of many, here or of the caller, is counted and does not show its own phases.
    """
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    comm = rank.comm
    shows = len(specs) == 1 and not is_one_of_many
    parts = []
    for key, spec in zip(keys, counted_searches(rank, specs[0].algorithm, specs), strict=True):
        trace = Trace(rank.backend, comm, shows)
        with _kept(spec, trace, shard):
            with trace.phase("prepare"):
                prepared = prepare(shard, comm, spec)
                if comm.size > 1:
                    require_result_routing(shard, comm)
            found = search(prepared, shard, comm, spec, trace)
            trace.move_seconds("traverse", "checkpoint", trace.checkpoints.seconds)
            assert found.sources is not None, "a search returns them"
            refuse_overflow(shard, comm, spec.dtype, spec.limit, found.distances)
            stats = store_traversal(rank, shard, key, spec, found.sources, found, trace)
        parts.append({**stats, "variant": found.variant})
        # Free the search's arrays before the next search; the stored result holds its own.
        del found
    return parts


def _kept(spec: TraversalSpec, trace: Trace, shard: Shard) -> AbstractContextManager[None]:
    if spec.checkpoint is None:
        return nullcontext()  # a generator would add frames to the short way of a usual call
    request = {"sources": sorted(spec.sources), "limit": spec.limit, "dtype": spec.dtype.name}
    return kept_in(spec.checkpoint, trace, shard, spec.dtype.itemsize, spec.algorithm, **request)


def counted_searches(rank: Rank, algorithm: str, searches: Sequence[Search]) -> Iterable[Search]:
    """Yield the searches; if several, show their count as progress."""
    if len(searches) == 1:
        return searches
    rank.backend.phase = phase = Phase(algorithm, len(searches), "searches", 1 / rank.size)
    return phase.steps(searches)


def refuse_overflow(
    shard: Shard, comm: Communicator, dtype: np.dtype, limit: float | int | None, distances: Array
) -> None:
    """Raise InputError if a float distance overflowed.

    With a cutoff such a vertex is unreached. Scans all arcs, only if the weights allow an overflow.
    """
    if limit is None and may_overflow(shard.info, dtype) and has_overflow(shard, comm, distances):
        wider = ", make them float64" if dtype.itemsize == 4 else ""
        raise InputError(
            f"some shortest paths are longer than the largest {dtype}, {np.finfo(dtype).max:.4g}: "
            f"scale the weights down{wider} or give a cutoff"
        )


def store_traversal(
    rank: Rank,
    shard: Shard,
    key: str,
    spec: TraversalSpec,
    sources: list[int],
    traversal: Traversal,
    trace: Trace,
) -> dict[str, Any]:
    """Store a traversal by user id, with predecessors if requested.

    The result is stored as `key`, what is wanted at once in user ids; return this rank's stats.
    """
    comm = rank.comm
    # With several sources the nearest one is the end of each vertex's chain of predecessors.
    if (spec.predecessors or len(spec.sources) > 1) and traversal.predecessors is None:
        with trace.phase("predecessors"):
            traversal.predecessors = find_tree(shard, comm, sources, traversal.distances, traversal.all_distances)
    # The next search overwrites them: they are in its peer buffer.
    traversal.all_distances = None
    lo, hi = shard.user_range
    result = StoredTraversal(lo, MadeColumns(), spec, traversal, hi - lo, labels=shard.labels)
    with trace.phase("translate"):
        # An isolated source has no state; it reaches itself.
        num_isolated = _translate(shard, rank, result, _isolated(shard, spec.sources, sources))
    rank.objects[key] = result
    num_reached, reached_arcs = _count_reached(shard, traversal)
    return {
        **trace.stats(),
        "reached": num_reached + num_isolated,
        "reached_arcs": reached_arcs,
    }


def _count_reached(shard: Shard, traversal: Traversal) -> tuple[int, int]:
    """Return the number of reached vertices of this rank, and of their arcs."""
    if traversal.num_reached is not None and traversal.reached_arcs is not None:
        return traversal.num_reached, traversal.reached_arcs
    reached = traversal.distances != unreached_of(traversal.distances.dtype)
    return total(shard.backend, reached), total(shard.backend, shard.degrees * reached)


def _translate(shard: Shard, rank: Rank, result: StoredTraversal, isolated: list[int]) -> int:
    """Translate to user ids what the request wants at once, isolated sources included.

    Return how many of these this rank stores.
    """
    spec = result.spec
    traversal = result.traversal
    own = _served(shard, isolated)
    if not spec.in_graph_order:
        _fill_columns(shard, rank, result, spec.at_once, own)
    elif spec.predecessors:
        (result.owned_predecessors,) = traversal.in_user_ids or translated_at_once(
            spec, shard, rank.comm, traversal.distances, traversal.predecessors
        )
    traversal.in_user_ids = None
    return len(own)


def _isolated(shard: Shard, users: Sequence[int], positions: list[int]) -> list[int]:
    """Return those of the user ids whose vertices have no arcs."""
    return [user for user, p in zip(users, positions, strict=True) if p >= shard.partition.num_positions]


def _served(shard: Shard, users: list[int]) -> list[int]:
    """Return those of the user ids whose results this rank stores."""
    lo, hi = shard.user_range
    return [user for user in users if lo <= user < hi]


def _fill_columns(
    shard: Shard, rank: Rank, result: StoredTraversal, names: Sequence[str], own_isolated: list[int]
) -> None:
    """Put the distances or predecessors, and the nearest sources of several, in the order of user ids."""
    comm = rank.comm
    columns = result.columns
    traversal = result.traversal
    predecessors = traversal.predecessors if result.spec.predecessors else None
    if comm.size == 1 and isinstance(shard.backend, CpuBackend):
        columns.made_by = translate_when_read(
            shard, traversal.distances, predecessors, traversal.reached, traversal.words
        )
    else:
        distances = traversal.distances if "distances" in names else None
        predecessors = predecessors if "predecessors" in names else None
        tree = traversal.in_user_ids or translate_results(shard, comm, distances, predecessors)
        columns |= zip(names, tree, strict=True)
    if len(result.spec.sources) > 1:
        roots = find_roots(shard, comm, traversal.predecessors)
        (columns["nearest_source"],) = translate_results(shard, comm, None, roots)
    traversal.reached = None
    first = result.first
    for source in own_isolated:
        for name in ("distances", "predecessors", "nearest_source"):
            if name in columns:
                columns[name][source - first] = 0 if name == "distances" else source


def put_in_user_order(rank: Rank, key: str, graph: str) -> None:
    """Put those columns of a traversal in the order of user ids that are not in it."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    result: StoredTraversal = rank.objects[key]
    wanted = ("distances", "predecessors") if result.spec.predecessors else ("distances",)
    # By the request alone, as on every rank: a call that failed may have made columns on some.
    missing = [name for name in wanted if name not in result.spec.at_once]
    sources = result.spec.sources
    positions = positions_of(shard, rank.comm, sources)
    _fill_columns(shard, rank, result, missing, _served(shard, _isolated(shard, sources, positions)))


def store_in_graph_order(rank: Rank, key: str, graph: str, ordered: str) -> int:
    """Store a traversal's values of this rank's vertices in their order, as `ordered`; return their number."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    result: StoredTraversal = rank.objects[key]
    traversal = result.traversal
    vertices = owned_users(shard)
    columns = {"vertices": vertices, "distances": owned_distances(shard, traversal.distances)}
    if result.spec.predecessors:
        parents = result.owned_predecessors
        columns["predecessors"] = (
            owned_predecessors(shard, rank.comm, traversal.predecessors) if parents is None else parents
        )
    first = sum(map(shard.partition.num_owned, range(rank.index)))
    rank.objects[ordered] = StoredColumns(first, columns, labels=result.labels, vertices=vertices)
    return shard.num_owned


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


def vertex_of_most_arcs(rank: Rank, graph: str) -> int:
    """Return the user id of the vertex with the most arcs out, of several the smallest."""
    shard: Shard = rank.objects[graph]
    degrees = shard.degrees
    own = np.array([int(degrees.max()) if len(degrees) else -1], np.int64)
    (most,) = rank.comm.allreduce(own.copy(), "max")
    user = np.iinfo(np.int64).max
    if own[0] == most:
        (found,) = (degrees == most).nonzero()
        users = shard.user_of_local
        user = int(found.min()) + shard.partition.offset(rank.index) if users is None else int(users[found].min())
    return int(rank.comm.allreduce(np.array([user], np.int64), "min")[0])


def follow(rank: Rank, key: str, target: int) -> Values:
    """Return the path from a source to the target, over all ranks' predecessors, as labels if there are any."""
    result: StoredTraversal = rank.objects[key]
    first = result.first
    values = result.columns["predecessors"]
    path: list[int] = []
    vertex = target
    while vertex >= 0 and (not path or vertex != path[-1]):
        path.append(vertex)
        own = int(values[vertex - first]) if 0 <= vertex - first < len(values) else -1
        vertex = int(rank.comm.allreduce(np.array([own], np.int64), "max")[0])
    ids = np.array(path[::-1] if vertex >= 0 else [], np.int64)
    return labels_of_ids(rank, result.labels, ids)


def check_traversal(rank: Rank, key: str, graph: str) -> list[Violation]:
    """Check a traversal by rules; every rank returns the same violations."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    result = rank.objects[key]
    if shard.info.layout in ("split", "host"):
        # The device is full but for what searches need.
        refuse_check_without_room("a search", traversal_check_bytes(shard.partition), shard, rank.comm)
    sources = positions_of(shard, rank.comm, result.spec.sources)
    return validate_traversal(
        shard,
        rank.comm,
        with_arcs(shard, sources),
        result.traversal.distances,
        result.traversal.predecessors,
        weighted=result.spec.algorithm == "sssp",
        limit=result.spec.limit,
    )
