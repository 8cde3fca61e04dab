"""What comes back: dense columns in user ids that stay on the ranks until asked for."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from mgraph.errors import GraphClosed, UsageError
from mgraph.graph import Graph
from mgraph.jobs import TraversalSpec, check, digest, fetch, follow
from mgraph.validation import ensure_valid

if TYPE_CHECKING:
    import dask.array
    import pandas


@dataclass(frozen=True)
class Stats:
    """How an answer was found.

    Attributes
    ----------
    method, reason
        Which method ran, and why that one.
    seconds
        By phase, on the slowest rank: prepare (once for a graph), traverse, predecessors, translate.
    supersteps
        What each did: method, frontier (over all ranks), arcs looked at (over all ranks).
    arcs
        Arcs looked at by each rank.
    bytes_sent
        By each rank.
    num_reached
        Vertices reached.
    num_edges
        Edges of the component (arcs of reached vertices, where the graph is directed).
    """

    method: str
    reason: str
    seconds: dict[str, float]
    supersteps: list[dict]
    arcs: list[int]
    bytes_sent: list[int]
    num_reached: int
    num_edges: int

    @property
    def total_s(self) -> float:
        """Seconds from a prepared graph to the answer in user ids."""
        return sum(s for phase, s in self.seconds.items() if phase != "prepare")

    @property
    def teps(self) -> float:
        """Traversed edges per second: edges of the component over the time of the whole answer."""
        return self.num_edges / self.total_s if self.total_s else 0.0

    @classmethod
    def of_ranks(cls, spec: TraversalSpec, reason: str, directed: bool, parts: Sequence[dict]) -> Stats:
        """Put the ranks' parts together."""
        phases = {phase for part in parts for phase in part["seconds"]}
        steps = [
            first | {"arcs": sum(step["arcs"] for step in (first, *others))}
            for first, *others in zip(*(part["supersteps"] for part in parts), strict=True)
        ]
        arcs = sum(part["reached_arcs"] for part in parts)
        return cls(
            method=spec.method,
            reason=reason,
            seconds={phase: max(part["seconds"].get(phase, 0.0) for part in parts) for phase in sorted(phases)},
            supersteps=steps,
            arcs=[sum(step["arcs"] for step in part["supersteps"]) for part in parts],
            bytes_sent=[part["bytes_sent"] for part in parts],
            num_reached=sum(part["reached"] for part in parts),
            num_edges=arcs if directed else arcs // 2,
        )


class Column:
    """One value a vertex, by user id; stays on the ranks until asked for."""

    def __init__(self, answer: Traversed, name: str) -> None:
        self._answer, self.name = answer, name

    def __len__(self) -> int:
        return self._answer.graph.num_vertices

    def to_numpy(self) -> np.ndarray:
        """Return the whole column."""
        return np.concatenate(self._answer.run(fetch, self.name, 0, len(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("a column lives on the ranks: it cannot be had without a copy")
        return self.to_numpy() if dtype is None else self.to_numpy().astype(dtype, copy=False)

    def __getitem__(self, vertex: int | slice) -> Any:
        """Return the value of a vertex, or the values of a run of vertices."""
        if isinstance(vertex, slice):
            lo, hi, step = vertex.indices(len(self))
            if step != 1:
                raise UsageError(f"a slice with step {step} is not supported: take to_numpy() first")
            return np.concatenate(self._answer.run(fetch, self.name, lo, max(lo, hi)))
        index = range(len(self))[vertex]
        return np.concatenate(self._answer.run(fetch, self.name, index, index + 1))[0]

    def digest(self) -> int:
        """Return a 64-bit number that depends on every value and its vertex, and not on who holds them."""
        return sum(self._answer.run(digest, self.name)) % 2**64

    def to_dask_array(self) -> dask.array.Array:
        """Return the column as a Dask array with one block a rank, on the rank's worker."""
        import dask.array

        blocks = self._answer.run_and_keep(fetch, self.name, 0, len(self))
        return dask.array.concatenate([dask.array.from_delayed(block, shape, dtype) for block, shape, dtype in blocks])

    def __repr__(self) -> str:
        return f"<Column {self.name}: {len(self):,} vertices>"


class Traversed:
    """The answer of a breadth-first search or of shortest paths.

    Unpacks like a tuple: `distances, predecessors = mg.bfs(g, 0)`.

    Attributes
    ----------
    distances
        bfs: int32, -1 where not reached. sssp: floats as the weights, inf where not reached; int64 for
        integer weights, -1 where not reached.
    predecessors
        int64, -1 where not reached, a source its own; None if they were not asked for.
    nearest_source
        With several sources, the one each vertex is nearest to; None with one.
    sources
        Where it started from.
    stats
        How it was found.
    """

    def __init__(self, graph: Graph, key: str, spec: TraversalSpec, stats: Stats) -> None:
        self.graph, self.key, self.spec, self.stats = graph, key, spec, stats
        self.sources = spec.sources
        self.distances = Column(self, "distances")
        self.predecessors = Column(self, "predecessors") if spec.predecessors else None
        self.nearest_source = Column(self, "nearest_source") if len(spec.sources) > 1 else None
        self._finalizer = weakref.finalize(self, graph.cluster.forget, key)

    def run(self, job: Any, *args: Any) -> list:
        """Run a job on what the ranks hold of this answer."""
        if not self._finalizer.alive:
            raise GraphClosed("this result was closed: run the search again")
        return self.graph.cluster.run(job, self.key, *args)

    def path_to(self, target: int) -> list[int]:
        """Return the vertices of the path from a source to `target`, both included; [] if there is none."""
        if self.predecessors is None:
            raise UsageError("paths need predecessors: search again without return_predecessors=False")
        n = self.graph.num_vertices
        if not 0 <= target < n:
            raise UsageError(f"target {target} is not a vertex: ids are 0..{n - 1}")
        return self.run(follow, int(target))[0]

    def to_pandas(self) -> pandas.DataFrame:
        """Return all columns as a frame, one row a vertex."""
        import pandas

        return pandas.DataFrame(self._columns())

    def to_parquet(self, path: str | PathLike) -> None:
        """Write all columns to a Parquet file, one row a vertex."""
        self.write(path)

    def write(self, path: str | PathLike) -> None:
        """Write all columns to a file: .npz, .csv or .parquet."""
        from mgraph.io.write import write_columns

        write_columns(path, self._columns())

    def close(self) -> None:
        """Free the answer's memory on the ranks."""
        self._finalizer()

    def _columns(self) -> dict[str, np.ndarray]:
        columns = (self.distances, self.predecessors, self.nearest_source)
        return {column.name: column.to_numpy() for column in columns if column is not None}

    def __iter__(self) -> Iterator[Column | None]:
        return iter((self.distances, self.predecessors))

    def __enter__(self) -> Traversed:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        sources = ", ".join(map(str, self.sources[:3])) + (", ..." if len(self.sources) > 3 else "")
        return (
            f"<{self.spec.algorithm} of {self.graph.name} from {sources}: {self.stats.num_reached:,} vertices reached, "
            f"{self.stats.method}, {len(self.stats.supersteps)} supersteps, {self.stats.total_s * 1e3:.3g} ms>"
        )


@dataclass
class TraversedMany(Sequence):
    """One answer for each of many roots."""

    results: list[Traversed] = field(default_factory=list)

    @property
    def distances(self) -> np.ndarray:
        """A row of distances for each root."""
        return np.stack([result.distances.to_numpy() for result in self.results])

    @property
    def predecessors(self) -> np.ndarray:
        """A row of predecessors for each root."""
        return np.stack([np.asarray(result.predecessors) for result in self.results])

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, index: Any) -> Any:
        return self.results[index]

    def close(self) -> None:
        """Free the answers' memory on the ranks."""
        for result in self.results:
            result.close()


def validate(result: Traversed) -> None:
    """Check a result by rules on the ranks that hold it, after the Graph500 specification.

    Raises
    ------
    ValidationFailed
        With the number of each broken rule, how many vertices break it, and the first of them.
    """
    result.graph.require_open()
    if result.predecessors is None:
        raise UsageError("validation needs predecessors: search again without return_predecessors=False")
    ensure_valid(result.run(check, result.graph.key)[0])
