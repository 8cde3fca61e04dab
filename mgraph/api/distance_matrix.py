"""Implement distance_matrix: distances between many sources and many targets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mgraph.api.columns import Column, dask_array_of, values_between
from mgraph.api.graph import Graph, Stored, as_vertices, require_graph
from mgraph.api.labels import Vertices
from mgraph.api.results import Costs, Result, costs_of_ranks
from mgraph.api.tables_on_ranks import TableOnRanks, cuts_of_rows
from mgraph.api.traversal import PATHS_NEED_WEIGHTS, as_cutoff, as_depth_limit, state_dtype
from mgraph.errors import UsageError
from mgraph.formatting import readable_seconds
from mgraph.io.checks import as_flag
from mgraph.rank_jobs.distance_matrix import MatrixSpec, check_matrix, store_matrix
from mgraph.rank_jobs.table_rows import ResultRows
from mgraph.shard.user_ids import user_dtype
from mgraph.types import LEVEL
from mgraph.validation.traversal import Violation

if TYPE_CHECKING:
    import dask.array

ENDS = ("source", "target")


class DistanceMatrix(Result):
    """Hold the distances from some vertices to others: a row for each source, on the ranks until it is read.

    A target that is not reached is at distance -1, or infinity for floats. As a table (`to_pandas`, `to_parquet`,
    `write`, `to_dask_dataframe`) it has a row for each pair: source, target, distance.

    Attributes
    ----------
    sources, targets
        The vertices of rows and columns; targets are None for all vertices, in the order of their ids or labels.
    shape, dtype
        Those of the matrix.
    stats
        What it cost. Phases: prepare; search, all else included.
    """

    def __init__(self, stored: Stored, spec: MatrixSpec, names: tuple[Sequence, Sequence | None], stats: Costs) -> None:
        super().__init__(stored)
        self._spec = spec
        self.sources, self.targets = names
        self.stats = stats
        self.shape = len(spec.sources), self.graph.num_vertices if spec.targets is None else len(spec.targets)
        self.dtype = user_dtype(spec.dtype)

    @cached_property
    def distances(self) -> Column:
        """The distances of all pairs, row by row."""
        return Column(self._stored, "distance", self.dtype, rows=(self.shape[0] * self.shape[1], "pair"))

    @property
    def columns(self) -> tuple[Column, ...]:
        return (self.distances,)

    def to_numpy(self) -> np.ndarray:
        """Return the whole matrix, in this process."""
        return self.distances.to_numpy().reshape(self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("a matrix is stored on the ranks: it cannot be read without a copy")
        return self.to_numpy() if dtype is None else self.to_numpy().astype(dtype, copy=False)

    def row(self, index: int) -> np.ndarray:
        """Return the distances from source number `index` to all targets."""
        places = range(self.shape[0])
        try:
            first = places[index] * self.shape[1]
        except IndexError:
            raise IndexError(f"row {index} is not in 0..{self.shape[0] - 1}") from None
        return values_between(self.distances, first, first + self.shape[1])

    def to_dask_array(self) -> dask.array.Array:
        """Return the matrix as a Dask array, one chunk of whole rows for each rank, as `Column.to_dask_array` does."""
        return dask_array_of(self.distances, self.shape[1])

    def _table(self) -> TableOnRanks:
        num_pairs = self.shape[0] * self.shape[1]
        names = (*ENDS, "distance")
        rows = ResultRows(tuple((name, name) for name in names), ENDS)
        return TableOnRanks(self._stored, rows, names, num_pairs, lambda: cuts_of_rows(num_pairs))

    def _violations(self) -> Sequence[Violation]:
        return self._stored.run(check_matrix, self.graph._key, self._spec)[0]

    def __repr__(self) -> str:
        head = f"distances of {self.graph.name}, {self.shape[0]} x {self.shape[1]}"
        return f"<{head}: {'closed' if self.closed else readable_seconds(self.stats.total_s)}>"


def distance_matrix(
    g: Graph,
    sources: Iterable[int] | Iterable[str],
    targets: Iterable[int] | Iterable[str] | None = None,
    *,
    cutoff: float | int | None = None,
    weighted: bool | None = None,
) -> DistanceMatrix:
    """Find the distances from each of many sources to each of many targets (an origin-destination matrix).

    Parameters
    ----------
    g
        A graph with rows.
    sources
        Vertices; repetitions are allowed.
    targets
        Vertices; repetitions are allowed. By default all.
    cutoff
        Targets farther than this count as not reached.
    weighted
        Whether distances are lengths of paths by weights, or hops; by default by weights if the graph has them.

    Returns
    -------
    DistanceMatrix
        A row for each source, a column for each target, on the ranks until it is read. Equal to the bit to the
        distances of `sssp`, or `bfs`, for any number of ranks and backend.

    Raises
    ------
    UsageError
        If a vertex is unknown, a list is empty, or paths are to be measured by weights that the graph does not have.
    InputError, WouldNotFit
        As `sssp`.

    Notes
    -----
    A search from each source, many at once, which ends when all targets are settled. Docs: many-roots.md.

    Examples
    --------
    >>> g = mg.from_edges([0, 1, 2], [1, 2, 3], [2, 2, 5])
    >>> mg.distance_matrix(g, [0, 3], [1, 2, 3]).to_numpy().tolist()
    [[2, 4, 9], [7, 5, 0]]
    """
    spec, names = matrix_spec(g, sources, targets, cutoff, weighted)
    stored = Stored(g)
    parts = g._run(store_matrix, [stored], stored.key, spec, doing="distances")
    return DistanceMatrix(stored, spec, names, Costs(**costs_of_ranks(g, parts)))


def matrix_spec(
    g: Graph, sources: Any, targets: Any, cutoff: Any, weighted: Any
) -> tuple[MatrixSpec, tuple[Sequence, Sequence | None]]:
    """Return the request, once all arguments are known to be valid, and sources and targets as the user names them."""
    require_graph(g)
    g._require_rows("distance_matrix")
    has_weights = g.info.weight_dtype is not None
    by_weights = has_weights if weighted is None else as_flag(weighted, "weighted")
    if by_weights and not has_weights:
        raise UsageError(PATHS_NEED_WEIGHTS)
    dtype = state_dtype(g.info) if by_weights else LEVEL
    limit = as_cutoff(cutoff, dtype) if by_weights else as_depth_limit(g, cutoff)
    starts = _listed(g, sources, "source")
    ends = None if targets is None else _listed(g, targets, "target")
    spec = MatrixSpec(starts.ids, None if ends is None else ends.ids, by_weights, dtype, limit)
    return spec, (starts.names, None if ends is None else ends.names)


def _listed(g: Graph, vertices: Any, what: str) -> Vertices:
    """Return some vertices, repetitions included."""
    if isinstance(vertices, (str, bytes)) or not isinstance(vertices, Iterable):
        raise UsageError(f"{what}s {vertices!r:.80} are not a list of vertices: give a list")
    found = as_vertices(g.info, g._ask, vertices, what)
    if not found.ids:
        raise UsageError(f"there is no {what}: give one or more")
    return found
