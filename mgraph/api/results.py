"""What every answer is made of: columns in user ids that stay on the ranks until asked for, and what it cost."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mgraph.api.graph import Graph
from mgraph.errors import GraphClosed, UsageError
from mgraph.formatting import counted, readable_seconds
from mgraph.io.checks import as_integer
from mgraph.rank_jobs.jobs import count_values, digest, fetch, take
from mgraph.validation.traversal import Violation, ensure_valid

if TYPE_CHECKING:
    import dask.array
    import pandas


# What a superstep tells of each rank and is added up.
SUMMED = ("arcs", "bytes", "light", "heavy")


@dataclass(frozen=True)
class Costs:
    """What an answer took.

    Attributes
    ----------
    seconds
        By phase, on the slowest rank.
    supersteps
        What each did: method, frontier, arcs looked at and bytes sent (over all ranks), microseconds (on the
        slowest one), levels where it may take several, and light and heavy edges (over all ranks) where those are
        told apart. A fused search adds up what is beyond the first 4,096 levels, or 16,384 rounds of shortest paths
        on one GPU and 4,096 on several.
    arcs
        Arcs looked at by each rank.
    bytes_sent
        By each rank.
    placement
        How many ranks of those there are hold the graph, and why not all.
    variant
        The loop that ran, by its name in `docs/variants.md`, such as `bfs.persistent`.
    """

    seconds: dict[str, float]
    supersteps: list[dict]
    arcs: list[int]
    bytes_sent: list[int]
    placement: str
    variant: str = field(default="", kw_only=True)

    @property
    def total_s(self) -> float:
        """Seconds from a prepared graph to the answer in user ids.

        Through windows they begin when all ranks know where the sources stand.
        """
        return sum(s for phase, s in self.seconds.items() if phase != "prepare")

    def __repr__(self) -> str:
        return (
            f"<Costs: {counted(len(self.supersteps), 'superstep')}, {counted(sum(self.arcs), 'arc')} looked at, "
            f"{readable_seconds(self.total_s)}>"
        )


def costs_of_ranks(g: Graph, parts: Sequence[dict]) -> dict[str, Any]:
    """Put together what the ranks' parts of an answer took, as the fields of Costs."""
    phases = {phase for part in parts for phase in part["seconds"]}
    return {
        "seconds": {phase: max(part["seconds"].get(phase, 0.0) for part in parts) for phase in sorted(phases)},
        "supersteps": [_of_all(steps) for steps in zip(*(part["supersteps"] for part in parts), strict=True)],
        "arcs": [sum(step["arcs"] for step in part["supersteps"]) for part in parts],
        "bytes_sent": [part["bytes_sent"] for part in parts],
        "placement": str(g.placement),
        "variant": parts[0]["variant"],
    }


def _of_all(steps: tuple[dict, ...]) -> dict:
    """Put together what the ranks tell of one superstep: what one alone tells is all there is."""
    if len(steps) == 1:
        return steps[0]
    summed = {name: sum(step[name] for step in steps) for name in SUMMED if name in steps[0]}
    return {**steps[0], **summed, "microseconds": max(step["microseconds"] for step in steps)}


class Kept:
    """What the ranks keep of one answer; freed when it is closed, or when nobody holds it any more.

    Made before the call that has the ranks keep something under its key, so that what an interrupt behind that call
    leaves there is freed too.

    Columns hold this and not the result that has them: in a cycle of references, memory would wait for
    the garbage collector.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph, self.key = graph, f"answer-{uuid.uuid4().hex}"
        self.close = graph.cluster.hold(self, self.key)

    @property
    def closed(self) -> bool:
        return not self.close.alive or self.graph.cluster.closed

    def run(self, job: Any, *args: Any) -> list:
        """Run a job on what the ranks hold of this answer."""
        self.require_open()
        try:
            return self.graph.cluster.run_on_kept(job, self.key, *args)
        except GraphClosed as error:
            raise GraphClosed(
                f"this result about {self.graph.name}, or the graph, is not on its ranks any more: it was closed, or "
                "one of them was lost; build the graph again and ask again"
            ) from error

    def require_open(self) -> None:
        """Raise GraphClosed if it was closed by itself; a closed cluster says so when it is asked to run."""
        if not self.close.alive:
            raise GraphClosed("this result was closed: ask for it again")


class Column:
    """One value a vertex, by user id, or one an edge of a forest; stays on the ranks until asked for.

    `np.asarray(column)` and `column.to_numpy()` fetch all of it, `column[v]` and `column[lo:hi]` a part.
    """

    def __init__(self, kept: Kept, name: str, dtype: np.dtype, num_edges: int | None = None) -> None:
        self._kept, self.name, self.dtype = kept, name, dtype
        self._length = kept.graph.num_vertices if num_edges is None else num_edges
        self._item = "vertex" if num_edges is None else "edge"

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)

    def __len__(self) -> int:
        return self._length

    def to_numpy(self) -> np.ndarray:
        """Return the whole column."""
        return self._fetch(0, len(self))

    def _fetch(self, lo: int, hi: int) -> np.ndarray:
        return np.concatenate(self._kept.run(fetch, self.name, lo, max(lo, hi)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("a column lives on the ranks: it cannot be had without a copy")
        return self.to_numpy() if dtype is None else self.to_numpy().astype(dtype, copy=False)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.to_numpy())

    def __getitem__(self, vertex: int | slice) -> Any:
        """Return the value of a vertex, or the values of a run of vertices."""
        if isinstance(vertex, slice):
            lo, hi, step = vertex.indices(len(self))
            if step != 1:
                raise UsageError(f"a slice with step {step} is not supported: take to_numpy() first")
            return self._fetch(lo, hi)
        if getattr(vertex, "ndim", 0):
            raise UsageError(f"a column is indexed by one {self._item} or a slice: take to_numpy() first")
        index = as_integer(vertex, self._item)
        if not -len(self) <= index < len(self):
            raise IndexError(f"{self._item} {index} is not in 0..{len(self) - 1}")
        return self._fetch(index % len(self), index % len(self) + 1)[0]

    def __eq__(self, other: object) -> bool:
        """Refuse what would not be a comparison of values, as of an array, but always False."""
        if other is None or isinstance(other, Column):
            return self is other
        raise UsageError(f"the values of column {self.name} are on the ranks: take to_numpy() to compare them")

    __hash__ = object.__hash__

    def digest(self) -> int:
        """Return a 64-bit number that depends on every value and its vertex, and not on who holds them."""
        return sum(self._kept.run(digest, self.name)) % 2**64

    def to_dask_array(self) -> dask.array.Array:
        """Return the column as a Dask array with one block a rank, a copy that stays on the rank's worker.

        Compute it with the client of the cluster: the default one, or `g.cluster.client.compute(array)`.
        """
        import dask.array

        lengths = self._kept.run(count_values)
        blocks = self._kept.graph.cluster.run_and_keep(take, self._kept.key, self.name)
        return dask.array.concatenate(
            [
                dask.array.from_delayed(block, (length,), self.dtype)
                for block, length in zip(blocks, lengths, strict=True)
            ]
        )

    def __repr__(self) -> str:
        what = "closed" if self._kept.closed else f"{counted(len(self), self._item)}, {self.dtype}"
        return f"<Column {self.name}: {what}>"


class Result(ABC):
    """An answer of columns, one value a vertex (or an edge) in each; `close()` or the end of a `with` block frees it.

    Attributes
    ----------
    graph
        What it is an answer about.
    stats
        What it took.
    """

    stats: Costs

    def __init__(self, kept: Kept) -> None:
        self.graph, self._kept = kept.graph, kept

    @property
    @abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """The columns there are."""

    @abstractmethod
    def violations(self) -> Sequence[Violation]:
        """Check the answer by rules on the ranks that hold it; return those that it breaks."""

    def run(self, job: Any, *args: Any) -> list:
        """Run a job on what the ranks hold of this answer."""
        return self._kept.run(job, *args)

    @property
    def closed(self) -> bool:
        """Whether its memory was freed: it was closed, or its cluster or the client of that was."""
        return self._kept.closed

    def close(self) -> None:
        """Free the answer's memory on the ranks."""
        self._kept.close()

    def to_pandas(self) -> pandas.DataFrame:
        """Return all columns as a frame, one row a vertex or an edge."""
        try:
            import pandas
        except ImportError:
            raise UsageError("frames need pandas: pip install pandas") from None

        return pandas.DataFrame(self._arrays())

    def to_parquet(self, path: str | PathLike) -> None:
        """Write all columns to a Parquet file of any name, one row a vertex or an edge."""
        from mgraph.io.write import write_columns

        write_columns(path, self._arrays(), format="parquet")

    def write(self, path: str | PathLike) -> None:
        """Write all columns to a file: .npz, .csv or .parquet."""
        from mgraph.io.write import write_columns

        write_columns(path, self._arrays())

    def _arrays(self) -> dict[str, np.ndarray]:
        return {column.name: column.to_numpy() for column in self.columns}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def validate(result: Result) -> None:
    """Check a result by rules on the ranks that hold it.

    Those of searches follow the Graph500 specification (`mgraph/validation/traversal.py`), those of components
    and of forests are in `mgraph/validation/components.py` and `mgraph/validation/spanning_forest.py`.

    Raises
    ------
    ValidationFailed
        With the number of each broken rule, how many vertices break it, and the first of them.
    """
    if not isinstance(result, Result):
        raise UsageError(f"{type(result).__name__} is not what an algorithm returns: validate takes one result")
    result.graph.require_open()
    ensure_valid(result.violations())
