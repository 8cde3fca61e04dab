"""Define results: columns that stay on the ranks, and their costs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mgraph.api.graph import Graph, Stored, as_vertices
from mgraph.api.html import html_of_costs, html_of_result
from mgraph.api.labels import dtype_of_vertices
from mgraph.api.tables_on_ranks import TableOnRanks, table_of_vertices
from mgraph.errors import UsageError, refuse_pickle
from mgraph.formatting import counted, readable_seconds
from mgraph.io.checks import as_integer
from mgraph.io.output_tables import as_objects, joined
from mgraph.rank_jobs.results import copy_column, copy_vertices, count_values, digest, fetch, fetch_vertices
from mgraph.validation.traversal import Violation, ensure_valid

if TYPE_CHECKING:
    import dask.array
    import dask.dataframe
    import pandas


# Fields of trace records that are summed over the ranks.
SUMMED = ("arcs", "bytes", "light", "heavy")


@dataclass(frozen=True)
class Costs:
    """List what a result cost.

    Attributes
    ----------
    seconds
        Seconds by phase, on the slowest rank. Compiling kernels, or loading compiled ones, is the phase `compile`, of
        first calls.
    supersteps
        One record for each superstep: method, frontier, arcs scanned and bytes sent (sums over all ranks),
        microseconds (on the slowest rank), levels where one superstep may find several, and light and heavy edges
        (sums) where these differ. A persistent kernel sums all supersteps beyond the first 4,096 levels or rounds
        (16,384 rounds of shortest paths on one GPU) in the last record.
    arcs
        Arcs scanned by each rank.
    bytes_sent
        Bytes sent by each rank.
    placement
        How many of the cluster's ranks store the graph, and why not all.
    variant
        The loop that ran, by its name in `docs/variants.md`, such as `bfs.persistent`.
    """

    seconds: dict[str, float]
    supersteps: list[dict]
    arcs: list[int]
    bytes_sent: list[int]
    placement: str
    variant: str = field(default="", kw_only=True)

    _repr_html_ = html_of_costs

    @property
    def total_s(self) -> float:
        """Seconds from a prepared graph and compiled kernels to the result in user ids.

        In persistent multi-GPU searches they begin when all ranks have the positions of the sources.
        """
        return sum(s for phase, s in self.seconds.items() if phase not in ("prepare", "compile"))

    def __repr__(self) -> str:
        return (
            f"<Costs: {counted(len(self.supersteps), 'superstep')}, {counted(sum(self.arcs), 'arc')} scanned, "
            f"{readable_seconds(self.total_s)}>"
        )


def costs_of_ranks(g: Graph, parts: Sequence[dict]) -> dict[str, Any]:
    """Merge the costs that the ranks report into the fields of Costs."""
    phases = dict.fromkeys(phase for part in parts for phase in part["seconds"])
    return {
        "seconds": {phase: max(part["seconds"].get(phase, 0.0) for part in parts) for phase in phases},
        "supersteps": [_of_all(steps) for steps in zip(*(part["supersteps"] for part in parts), strict=True)],
        "arcs": [sum(step["arcs"] for step in part["supersteps"]) for part in parts],
        "bytes_sent": [part["bytes_sent"] for part in parts],
        "placement": str(g.placement),
        "variant": parts[0]["variant"],
    }


def _of_all(steps: tuple[dict, ...]) -> dict:
    """Merge the ranks' records of one superstep."""
    if len(steps) == 1:
        return steps[0]
    summed = {name: sum(step[name] for step in steps) for name in SUMMED if name in steps[0]}
    return {**steps[0], **summed, "microseconds": max(step["microseconds"] for step in steps)}


class Column:
    """Hold one value for each user id, or edge of a forest.

    `np.asarray(column)` and `column.to_numpy()` fetch the whole column, `column[v]` and `column[lo:hi]` a part. In a
    graph with labels, `v` is a label, and values that are vertices are labels, strings as an array of str; the order is
    that of the labels, and `column[lo:hi]` are places in it.

    No vertex is negative: `column[-1]` raises IndexError, as every id that no vertex has does. Places, as those of a
    slice, an edge of a forest or a label in `g.labels`, count from the end if they are negative, as in NumPy.

    Examples
    --------
    >>> hops = mg.bfs(mg.from_edges(["a", "b"], ["b", "c"]), "a").distances
    >>> int(hops["c"]), hops[0:2].tolist()
    (2, [0, 1])
    """

    __reduce__ = refuse_pickle("take its values with to_numpy()")

    def __init__(
        self,
        stored: Stored,
        name: str,
        dtype: np.dtype | None = None,
        num_edges: int | None = None,
        *,
        by_place: bool = False,
    ) -> None:
        """Make a column of values of a dtype, or of vertices without one.

        With `by_place` one value is got by its place and not by its vertex.
        """
        info = stored.graph.info
        self._stored = stored
        self.name = name
        self._are_labels = bool(info.labels) and dtype is None
        self.dtype = dtype_of_vertices(info) if dtype is None else dtype
        self._length = info.num_vertices if num_edges is None else num_edges
        self._item = "vertex" if num_edges is None else "edge"
        self._by_place = by_place or num_edges is not None
        self._by_label = bool(info.labels) and not self._by_place

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)

    def __len__(self) -> int:
        return self._length

    @property
    def missing(self) -> Any:
        """The value where no vertex was reached.

        Of vertices it is -1, None for labels that are strings, and the least or greatest integer of the dtype if a
        label is negative or beyond int64. For labels, frames and Arrow have nulls there. Of distances it is -1, or
        infinity for floats.
        """
        if self._are_labels:
            info = self._stored.graph.info
            return None if info.labels == "string" else info.missing_label
        return math.inf if self.dtype.kind == "f" else -1

    def to_numpy(self) -> np.ndarray:
        """Return the whole column."""
        return self._fetch(0, len(self))

    def _fetch(self, lo: int, hi: int) -> np.ndarray:
        job = fetch_vertices if self._are_labels else fetch
        return as_objects(joined(self._stored.run(job, self.name, lo, max(lo, hi))))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("a column is stored on the ranks: it cannot be read without a copy")
        return self.to_numpy() if dtype is None else self.to_numpy().astype(dtype, copy=False)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.to_numpy())

    def __getitem__(self, vertex: int | str | slice) -> Any:
        """Return the value of a vertex, or the values of a range of vertices."""
        if isinstance(vertex, slice):
            lo, hi, step = vertex.indices(len(self))
            if step != 1:
                raise UsageError(f"a slice with step {step} is not supported: use to_numpy() first")
            return self._fetch(lo, hi)
        if getattr(vertex, "ndim", 0):
            raise UsageError(f"a column is indexed by one {self._item} or a slice: use to_numpy() first")
        if self._by_label:
            info = self._stored.graph.info
            (place,) = as_vertices(info, self._stored.run, [vertex], "vertex").ids
            return self._fetch(place, place + 1)[0]
        index = as_integer(vertex, self._item)
        # A negative vertex is often the predecessor of one that was not reached.
        if not (-len(self) if self._by_place else 0) <= index < len(self):
            raise IndexError(f"{self._item} {index} is not in 0..{len(self) - 1}")
        return self._fetch(index % len(self), index % len(self) + 1)[0]

    def __eq__(self, other: object) -> bool:
        """Compare identities of columns only; refuse to compare values, which are on the ranks."""
        if other is None or isinstance(other, Column):
            return self is other
        raise UsageError(f"the values of column {self.name} are on the ranks: use to_numpy() to compare them")

    __hash__ = object.__hash__

    def digest(self) -> int:
        """Return a 64-bit hash of all values and their vertices, both as ids.

        It does not depend on the number of ranks.
        """
        return sum(self._stored.run(digest, self.name)) % 2**64

    def to_dask_array(self) -> dask.array.Array:
        """Return the column as a Dask array, one chunk for each rank.

        Each chunk is a copy on the rank's worker. Compute the array with the client of the cluster: the default one,
        or `g.cluster.client.compute(array)`.
        """
        import dask.array

        job = copy_vertices if self._are_labels else copy_column
        lengths = self._stored.run(count_values)
        chunks = self._stored.graph.cluster.run_and_store(job, self._stored.key, self.name)
        return dask.array.concatenate(
            [
                dask.array.from_delayed(chunk, (length,), self.dtype)
                for chunk, length in zip(chunks, lengths, strict=True)
            ]
        )

    def __repr__(self) -> str:
        what = "closed" if self._stored.closed else f"{counted(len(self), self._item)}, {self.dtype}"
        return f"<Column {self.name}: {what}>"


class Result(ABC):
    """Hold columns of one value for each vertex (or edge).

    Free them on `close()` or at the end of `with`.

    Attributes
    ----------
    graph
        The graph that was searched.
    stats
        What the result cost.
    """

    stats: Costs
    # The columns of vertices.
    _vertex_columns: tuple[str, ...] = ()
    # Those of them without a vertex where none was reached.
    _reached_columns: tuple[str, ...] = ()
    __reduce__ = refuse_pickle("take its columns with to_numpy(), or write it with write(path)")
    _repr_html_ = html_of_result

    def __init__(self, stored: Stored) -> None:
        self.graph = stored.graph
        self._stored = stored

    @property
    @abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """All columns of this result."""

    @abstractmethod
    def _violations(self) -> Sequence[Violation]:
        """Check the result on the ranks that store it.

        Return the rules that it breaks.
        """

    @property
    def closed(self) -> bool:
        """Whether the result, its cluster or the cluster's client was closed."""
        return self._stored.closed

    def close(self) -> None:
        """Free the result's memory on the ranks."""
        self._stored.close()

    def to_pandas(self) -> pandas.DataFrame:
        """Return all columns as a data frame, one row for each vertex or edge; the first column is the vertex."""
        return self._table().to_pandas()

    def to_dask_dataframe(self) -> dask.dataframe.DataFrame:
        """Return all columns as a Dask data frame, one partition for each rank.

        Each is a copy on its worker. Compute it with the client of the cluster.
        """
        return self._table().to_dask_dataframe()

    def to_parquet(self, path: str | PathLike, *, overwrite: bool = False) -> None:
        """Write all columns to a Parquet file of any name, or to a folder if it exists or the name ends in a slash."""
        self._table().write_parquet(path, overwrite=overwrite)

    def write(self, path: str | PathLike, *, overwrite: bool = False) -> None:
        """Write all columns to a file, or to a folder of Parquet parts, whole or not at all.

        A file ends in .csv, .tsv (or .csv.gz, .tsv.gz), .parquet, .arrow, .feather or .npz; rows pass through this
        process, some million at a time. A name without an ending, or with a slash at its end, is a folder, which all
        ranks must share: each writes its part. What exists is refused; `overwrite` replaces a file, or a folder of such
        parts.
        """
        self._table().write(path, overwrite=overwrite)

    def _table(self) -> TableOnRanks:
        """Return the rows of the result: its vertices, then its columns."""
        names = [column.name for column in self.columns]
        return table_of_vertices(self._stored, names, self._vertex_columns, self._reached_columns)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def validate(result: Result) -> None:
    """Check a result by rules, on the ranks that store it.

    Searches are checked by the rules of the Graph500 specification (`mgraph/validation/traversal.py`), components and
    forests by rules of their own (`mgraph/validation/components.py`, `mgraph/validation/spanning_forest.py`).

    Raises
    ------
    ValidationFailed
        If a rule is broken: it names the rule, the number of vertices that break it, and the first of them.
    UsageError
        If the result cannot be validated: a search without predecessors.

    Notes
    -----
    One pass over all arcs, and about 10 bytes for each vertex on every rank.

    Examples
    --------
    >>> mg.validate(mg.bfs(mg.rmat(6), 1))
    """
    if not isinstance(result, Result):
        raise UsageError(f"{type(result).__name__} is not the result of an algorithm: validate needs one")
    result.graph._require_open()
    ensure_valid(result._violations())
