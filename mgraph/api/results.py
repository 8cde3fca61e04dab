"""Define results: columns, and what they cost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

from mgraph.api.chrome_trace import chrome_trace
from mgraph.api.columns import Column
from mgraph.api.graph import Graph, Stored
from mgraph.api.html import html_of_costs, html_of_result
from mgraph.api.tables_on_ranks import TableOnRanks, table_of_vertices
from mgraph.errors import UsageError, refuse_pickle
from mgraph.formatting import counted, readable_seconds
from mgraph.validation.traversal import Violation, ensure_valid

if TYPE_CHECKING:
    import dask.dataframe
    import pandas


# Fields of trace records that are summed over the ranks.
SUMMED = ("arcs", "bytes", "listed", "edges", "link_bytes", "host_parts", "skipped_parts", "skipped_units")


@dataclass(frozen=True)
class Costs:
    """List what a result cost.

    Attributes
    ----------
    seconds
        Seconds by phase, on the slowest rank. Compiling kernels, or loading compiled ones, is the phase `compile`, of
        first calls.
    supersteps
        One record for each superstep: method, frontier, arcs scanned and bytes sent (sums over all ranks), microseconds
        (on the slowest rank), levels where one superstep may find several, and light and heavy edges (sums) where these
        differ. In the layout host also edges read, bytes over the link, and parts in host memory that were streamed and
        skipped (sums); in sweeps of BFS edges read and units of edges that were skipped. A persistent kernel sums all
        supersteps beyond the first 4,096 levels or rounds (16,384 rounds of shortest paths on one GPU) in the last
        record.
    arcs
        Arcs scanned by each rank.
    bytes_sent
        Bytes sent by each rank.
    placement
        How many of the cluster's ranks store the graph, and why not all.
    link_bytes
        Bytes that each rank streamed from host memory to its device, of a graph in the layout host.
    variant
        The loop that ran, by its name in `docs/variants.md`, such as `bfs.persistent`.
    """

    seconds: dict[str, float]
    supersteps: list[dict]
    arcs: list[int]
    bytes_sent: list[int]
    placement: str
    link_bytes: list[int] = field(default_factory=list, kw_only=True)
    variant: str = field(default="", kw_only=True)

    _repr_html_ = html_of_costs

    @property
    def total_s(self) -> float:
        """Seconds from a prepared graph and compiled kernels to the result in user ids.

        On one CPU rank the columns of a search are translated to user ids when they are read, which is not counted.
        In persistent multi-GPU searches they begin when all ranks have the positions of the sources.
        """
        return sum(s for phase, s in self.seconds.items() if phase not in ("prepare", "compile"))

    def to_chrome_trace(self) -> dict[str, Any]:
        """Return phases and supersteps in Chrome's trace format: as JSON, Perfetto and chrome://tracing open it."""
        return chrome_trace(self)

    def __repr__(self) -> str:
        return (
            f"<Costs: {counted(len(self.supersteps), 'superstep')}, {counted(sum(self.arcs), 'arc')} scanned, "
            f"{readable_seconds(self.total_s)}>"
        )


def costs_of_ranks(g: Graph, parts: Sequence[dict]) -> dict[str, Any]:
    """Merge the costs that the ranks report into the fields of Costs."""
    first, *others = parts
    seconds = first["seconds"]
    supersteps = first["supersteps"]
    if others:
        phases = dict.fromkeys(phase for part in parts for phase in part["seconds"])
        seconds = {phase: max(part["seconds"].get(phase, 0.0) for part in parts) for phase in phases}
        supersteps = [_of_all(steps) for steps in zip(*(part["supersteps"] for part in parts), strict=True)]
    return {
        "seconds": seconds,
        "supersteps": supersteps,
        "arcs": [sum(step["arcs"] for step in part["supersteps"]) for part in parts],
        "bytes_sent": [part["bytes_sent"] for part in parts],
        "link_bytes": [part["link_bytes"] for part in parts],
        "placement": str(g.placement),
        "variant": parts[0]["variant"],
    }


def added_up(costs: Sequence[Costs]) -> Costs:
    """Return what several calls on one graph cost, one after the other; the last gives the variant."""
    seconds: dict[str, float] = {}
    for one in costs:
        for phase, s in one.seconds.items():
            seconds[phase] = seconds.get(phase, 0.0) + s
    return Costs(
        seconds,
        [step for one in costs for step in one.supersteps],
        [sum(arcs) for arcs in zip(*(one.arcs for one in costs), strict=True)],
        [sum(sent) for sent in zip(*(one.bytes_sent for one in costs), strict=True)],
        costs[-1].placement,
        link_bytes=[sum(streamed) for streamed in zip(*(one.link_bytes for one in costs), strict=True)],
        variant=costs[-1].variant,
    )


def _of_all(steps: tuple[dict, ...]) -> dict:
    """Merge the ranks' records of one superstep."""
    summed = {name: sum(step[name] for step in steps) for name in SUMMED if name in steps[0]}
    return {**steps[0], **summed, "microseconds": max(step["microseconds"] for step in steps)}


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

    Searches are checked by the rules of the Graph500 specification (`mgraph/validation/traversal.py`), components,
    forests and PageRank by rules of their own, in files of `mgraph/validation`.

    Raises
    ------
    ValidationFailed
        If a rule is broken: it names the rule, the number of vertices that break it, and the first of them.
    UsageError
        If the result cannot be validated: a search without predecessors.

    Notes
    -----
    One pass over all arcs, and 16 bytes for each vertex of a search on one rank.

    Examples
    --------
    >>> mg.validate(mg.bfs(mg.rmat(6), 1))
    """
    if not isinstance(result, Result):
        raise UsageError(f"{type(result).__name__} is not the result of an algorithm: validate needs one")
    result.graph._require_open()
    ensure_valid(result._violations())
