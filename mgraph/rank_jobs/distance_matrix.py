"""Find the distances from many sources to some vertices or all, as a matrix of which each rank stores some rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.distance_matrix.searches import Searches, own_targets
from mgraph.algorithms.run_variant import find_tree, prepare, search, with_arcs
from mgraph.algorithms.variant import TraversalSpec, Variant, require_variant
from mgraph.algorithms.variants import DISTANCE_MATRIX
from mgraph.backends.progress import Phase
from mgraph.cluster.base import Rank
from mgraph.comm.base import Communicator
from mgraph.partition import chunk_range
from mgraph.rank_jobs.results import StoredColumns
from mgraph.rank_jobs.traversal import counted_searches, refuse_overflow
from mgraph.shard.result_routing import require_result_routing
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import gather_users, positions_of, translate_results, user_dtype
from mgraph.types import Array, unreached_of
from mgraph.validation.traversal import Offenders, Violation, count_offenders, may_overflow, validate_traversal


@dataclass(frozen=True)
class MatrixSpec:
    """The request for a matrix; the same on every rank.

    Attributes
    ----------
    sources, targets
        The user ids of rows and columns; the columns are all vertices without targets.
    weighted, dtype, limit
        As of `Searches`.
    """

    sources: tuple[int, ...]
    targets: tuple[int, ...] | None
    weighted: bool
    dtype: np.dtype
    limit: float | int | None = None

    def width(self, num_vertices: int) -> int:
        """Return the number of columns."""
        return num_vertices if self.targets is None else len(self.targets)

    @property
    def missing(self) -> float | int:
        """What the matrix has where a target is not reached."""
        return float("inf") if self.dtype.kind == "f" else -1


class Cycled:
    """The sources, or the targets, of this rank's pairs: vertices, each `repeats` times, over and over; made when read.

    Attributes
    ----------
    vertices
        Some user ids, or the number of all.
    first
        The number of this rank's first pair.
    """

    def __init__(self, vertices: np.ndarray | int, repeats: int, first: int, length: int) -> None:
        self._vertices = vertices
        self._repeats = repeats
        self._first = first
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: slice) -> np.ndarray:
        begin, end, _ = index.indices(self._length)
        places = np.arange(self._first + begin, self._first + end) // self._repeats
        if isinstance(self._vertices, int):
            return places % self._vertices
        return self._vertices[places % len(self._vertices)]


def find_distances(
    rank: Rank, shard: Shard, searches: Searches, trace: Trace, doing: str
) -> tuple[Variant, Iterator[Array]]:
    """Return the variant, and what yields rows of distances: a column for each own target, or own vertex.

    Rows are valid until the next ones are found.
    """
    comm = rank.comm
    variant = require_variant(DISTANCE_MATRIX, shard, comm, searches.dtype, by_hops=not searches.weighted)

    def found() -> Iterator[Array]:
        rank.backend.phase = phase = Phase(doing, len(searches.sources), "searches", 1 / rank.size)
        for batch in variant.loop(shard, comm, searches, trace):
            yield batch
            phase.advance(len(batch))

    return variant, found()


def store_matrix(rank: Rank, graph: str, key: str, spec: MatrixSpec) -> dict[str, Any]:
    """Store this rank's rows of a matrix as `key`; return this rank's stats."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    comm = rank.comm
    trace = Trace(rank.backend, comm, shows=False)
    lo, hi = chunk_range(len(spec.sources), rank.index, rank.size)
    width = spec.width(shard.info.num_vertices)
    with trace.phase("prepare"):
        searches, sources, targets = _searches_of(shard, comm, spec)
        variant, found = find_distances(rank, shard, searches, trace, "distances")
        if comm.size > 1:
            require_result_routing(shard, comm)
    own = rank.backend.full((hi - lo) * width, spec.missing, user_dtype(spec.dtype)).reshape(hi - lo, width)
    with trace.phase("search"):
        if searches.targets is None:
            rows = _rows_of_all(rank, shard, spec, found)
        else:
            rows = _rows_of_targets(rank, shard, searches, targets, spec, found)
        for source, row in zip(sources.tolist(), rows, strict=True):
            if lo <= source < hi:
                own[source - lo] = rank.backend.to_device(row)
    for row in range(hi - lo):
        # A source without arcs reaches itself, and no search begins there.
        source = spec.sources[lo + row]
        for column in [source] if spec.targets is None else np.flatnonzero(np.array(spec.targets) == source).tolist():
            own[row, column] = 0
    first = lo * width
    ends = {
        "source": Cycled(np.array(spec.sources, np.int64), width, first, (hi - lo) * width),
        "target": Cycled(width if spec.targets is None else np.array(spec.targets), 1, first, (hi - lo) * width),
    }
    rank.objects[key] = StoredColumns(first, {"distance": own.reshape(-1), **ends}, labels=shard.labels)
    return {
        **trace.stats(),
        "variant": variant.name,
    }


def _searches_of(shard: Shard, comm: Communicator, spec: MatrixSpec) -> tuple[Searches, np.ndarray, np.ndarray]:
    """Return the searches of a request, and which of its sources and of its targets have arcs."""
    positions, sources, users = positions_with_arcs(shard, comm, spec.sources)
    facts = spec.weighted, spec.dtype, spec.limit
    if spec.targets is None or _may_be_beyond(shard, spec):
        return Searches(positions, *facts, None, users), sources, np.empty(0, np.int64)
    ends, targets, target_users = positions_with_arcs(shard, comm, spec.targets)
    return Searches(positions, *facts, ends, users, target_users), sources, targets


def positions_with_arcs(
    shard: Shard, comm: Communicator, users: Sequence[int]
) -> tuple[list[int], np.ndarray, list[int]]:
    """Return of those vertices that have arcs the positions, which of the given they are, and the user ids."""
    positions = np.array(positions_of(shard, comm, users), np.int64)
    (which,) = np.nonzero(positions < shard.partition.num_positions)
    return positions[which].tolist(), which, np.array(users, np.int64)[which].tolist()


def _may_be_beyond(shard: Shard, spec: MatrixSpec) -> bool:
    """Return whether a path may be longer than all floats: then every search is a whole one, which shows it."""
    return spec.weighted and spec.limit is None and may_overflow(shard.info, spec.dtype)


def _rows_of_targets(
    rank: Rank, shard: Shard, searches: Searches, targets: np.ndarray, spec: MatrixSpec, found: Iterator[Array]
) -> Iterator[np.ndarray]:
    """Yield the row of each search, as every rank has it; `targets` are the columns that the searches find."""
    assert searches.targets is not None, "the others have all vertices"
    assert spec.targets is not None
    comm = rank.comm
    own, _ = own_targets(shard.partition, comm.rank, searches.targets)
    for batch in found:
        distances = rank.backend.to_host(batch)
        rows = np.full((len(distances), len(spec.targets)), spec.missing, user_dtype(spec.dtype))
        is_reached = distances != unreached_of(distances.dtype)
        rows[:, targets[own]] = np.where(is_reached, distances, rows.dtype.type(spec.missing))
        if comm.size > 1:
            # One rank has the distance, all others what is missing.
            rows = comm.allreduce(rows.reshape(-1), "min" if rows.dtype.kind == "f" else "max").reshape(rows.shape)
        yield from rows


def _rows_of_all(rank: Rank, shard: Shard, spec: MatrixSpec, found: Iterator[Array]) -> Iterator[Array]:
    """Yield the row of each search by user id, or those of its targets, as every rank has it."""
    for batch in found:
        for distances in batch:
            if spec.weighted:
                refuse_overflow(shard, rank.comm, spec.dtype, spec.limit, distances)
            (of_range,) = translate_results(shard, rank.comm, distances, None)
            row = gather_users(shard, rank.comm, of_range)[: shard.info.num_vertices]
            yield row if spec.targets is None else rank.backend.to_host(row)[list(spec.targets)]


def check_matrix(rank: Rank, key: str, graph: str, spec: MatrixSpec) -> list[Violation]:
    """Check each row by a search from its source that is itself checked by rules; every rank returns the same."""
    shard: Shard = rank.objects[graph].for_call(rank.comm)
    comm = rank.comm
    stored: StoredColumns = rank.objects[key]
    lo, hi = chunk_range(len(spec.sources), rank.index, rank.size)
    own = rank.backend.to_host(stored.columns["distance"]).reshape(hi - lo, spec.width(shard.info.num_vertices))
    wrong = Offenders(1, "the distance of a pair differs from that of a search by its source alone")
    for i, source in enumerate(counted_searches(rank, "validating", spec.sources)):
        trace = Trace(rank.backend, comm, shows=False)
        algorithm = "sssp" if spec.weighted else "bfs"
        alone = TraversalSpec(algorithm, "auto", (source,), spec.dtype, spec.limit)
        found = search(prepare(shard, comm, alone), shard, comm, alone, trace)
        starts = with_arcs(shard, positions_of(shard, comm, [source]))
        parents = found.predecessors
        if parents is None:
            parents = find_tree(shard, comm, starts, found.distances, found.all_distances)
        violations = validate_traversal(
            shard, comm, starts, found.distances, parents, weighted=spec.weighted, limit=spec.limit
        )
        if violations:
            return violations
        (of_range,) = translate_results(shard, comm, found.distances, None)
        row = rank.backend.to_host(gather_users(shard, comm, of_range)).copy()
        row[source] = 0
        ends = np.arange(shard.info.num_vertices) if spec.targets is None else np.array(spec.targets)
        if lo <= i < hi:
            wrong.add(ends[own[i - lo] != row[ends]])
    return count_offenders(comm, [wrong])
