"""What comes back: dense columns in user ids that stay on the ranks until asked for."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from mgraph.errors import GraphClosed, UsageError
from mgraph.graph import Graph
from mgraph.io.checks import as_integer, check_vertex
from mgraph.jobs import TraversalSpec, check, count_users, digest, fetch, follow, take
from mgraph.translate import user_dtype
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
        What each did: method, frontier, arcs looked at and bytes sent (over all ranks), microseconds (on the
        slowest one).
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

    def __repr__(self) -> str:
        return (
            f"<Stats: {self.method} ({self.reason}), {self.num_reached:,} reached, {len(self.supersteps)} supersteps, "
            f"{sum(self.arcs):,} arcs looked at, {readable_seconds(self.total_s)}>"
        )

    @classmethod
    def of_ranks(cls, spec: TraversalSpec, reason: str, directed: bool, parts: Sequence[dict]) -> Stats:
        """Put the ranks' parts together."""
        phases = {phase for part in parts for phase in part["seconds"]}
        steps = [
            steps[0]
            | {name: sum(step[name] for step in steps) for name in ("arcs", "bytes")}
            | {"microseconds": max(step["microseconds"] for step in steps)}
            for steps in zip(*(part["supersteps"] for part in parts), strict=True)
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


class Kept:
    """What the ranks keep of one answer; freed when it is closed, or when nobody holds it any more.

    Columns hold this and not the result that has them: in a cycle of references, memory would wait for
    the garbage collector.
    """

    def __init__(self, graph: Graph, key: str) -> None:
        self.graph, self.key = graph, key
        self.close = weakref.finalize(self, graph.cluster.forget, key)

    @property
    def closed(self) -> bool:
        return not self.close.alive

    def run(self, job: Any, *args: Any) -> list:
        """Run a job on what the ranks hold of this answer."""
        self.require_open()
        return self.graph.cluster.run(job, self.key, *args)

    def require_open(self) -> None:
        """Raise GraphClosed if it was closed."""
        if self.closed:
            raise GraphClosed("this result was closed: run the search again")


class Column:
    """One value a vertex, by user id; stays on the ranks until asked for.

    `np.asarray(column)` and `column.to_numpy()` fetch all of it, `column[v]` and `column[lo:hi]` a part.
    """

    def __init__(self, kept: Kept, name: str, dtype: np.dtype) -> None:
        self._kept, self.name, self.dtype = kept, name, dtype

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)

    def __len__(self) -> int:
        return self._kept.graph.num_vertices

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
            raise UsageError("a column is indexed by a vertex or a slice: take to_numpy() first")
        index = as_integer(vertex, "vertex")
        if not -len(self) <= index < len(self):
            raise IndexError(f"vertex {index} is not in 0..{len(self) - 1}")
        return self._fetch(index % len(self), index % len(self) + 1)[0]

    def digest(self) -> int:
        """Return a 64-bit number that depends on every value and its vertex, and not on who holds them."""
        return sum(self._kept.run(digest, self.name)) % 2**64

    def to_dask_array(self) -> dask.array.Array:
        """Return the column as a Dask array with one block a rank, a copy that stays on the rank's worker.

        Compute it with the client of the cluster: the default one, or `g.cluster.client.compute(array)`.
        """
        import dask.array

        lengths = self._kept.run(count_users)
        blocks = self._kept.graph.cluster.run_and_keep(take, self._kept.key, self.name)
        return dask.array.concatenate(
            [
                dask.array.from_delayed(block, (length,), self.dtype)
                for block, length in zip(blocks, lengths, strict=True)
            ]
        )

    def __repr__(self) -> str:
        what = "closed" if self._kept.closed else f"{len(self):,} vertices, {self.dtype}"
        return f"<Column {self.name}: {what}>"


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
        self.graph, self.spec, self.stats = graph, spec, stats
        self.sources = spec.sources
        self._kept = Kept(graph, key)
        ids = np.dtype(np.int64)
        self.distances = Column(self._kept, "distances", user_dtype(np.dtype(spec.dtype)))
        self.predecessors = Column(self._kept, "predecessors", ids) if spec.predecessors else None
        self.nearest_source = Column(self._kept, "nearest_source", ids) if len(spec.sources) > 1 else None

    def run(self, job: Any, *args: Any) -> list:
        """Run a job on what the ranks hold of this answer."""
        return self._kept.run(job, *args)

    @property
    def closed(self) -> bool:
        return self._kept.closed

    def path_to(self, target: int) -> list[int]:
        """Return the vertices of the path from a source to `target`, both included; [] if there is none."""
        if self.predecessors is None:
            raise UsageError("paths need predecessors: search again without return_predecessors=False")
        return self.run(follow, check_vertex(self.graph.num_vertices, target, "target"))[0]

    def to_pandas(self) -> pandas.DataFrame:
        """Return all columns as a frame, one row a vertex."""
        try:
            import pandas
        except ImportError:
            raise UsageError("frames need pandas: pip install 'mgraph[io]'") from None

        return pandas.DataFrame(self._columns())

    def to_parquet(self, path: str | PathLike) -> None:
        """Write all columns to a Parquet file of any name, one row a vertex."""
        from mgraph.io.write import write_columns

        write_columns(path, self._columns(), format="parquet")

    def write(self, path: str | PathLike) -> None:
        """Write all columns to a file: .npz, .csv or .parquet."""
        from mgraph.io.write import write_columns

        write_columns(path, self._columns())

    def close(self) -> None:
        """Free the answer's memory on the ranks."""
        self._kept.close()

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
        head = f"{self.spec.algorithm} of {self.graph.name} from {sources}"
        if self.closed:
            return f"<{head}: closed>"
        stats, steps = self.stats, len(self.stats.supersteps)
        return (
            f"<{head}: {stats.num_reached:,} of {self.graph.num_vertices:,} vertices reached, {stats.method}, "
            f"{steps} superstep{'' if steps == 1 else 's'}, {readable_seconds(stats.total_s)}>"
        )


class TraversedMany(Sequence):
    """One answer for each of many roots: a sequence of `Traversed`."""

    def __init__(self, results: Sequence[Traversed]) -> None:
        self.results = list(results)

    @property
    def distances(self) -> np.ndarray:
        """A row of distances for each root."""
        return np.stack([result.distances.to_numpy() for result in self.results])

    @property
    def predecessors(self) -> np.ndarray | None:
        """A row of predecessors for each root; None if they were not asked for."""
        columns = [result.predecessors for result in self.results]
        return None if None in columns else np.stack([column.to_numpy() for column in columns if column is not None])

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, index: Any) -> Any:
        return TraversedMany(self.results[index]) if isinstance(index, slice) else self.results[index]

    def close(self) -> None:
        """Free the answers' memory on the ranks."""
        for result in self.results:
            result.close()

    def __enter__(self) -> TraversedMany:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        total_s = sum(result.stats.total_s for result in self.results)
        what = f"{self.results[0].spec.algorithm} of {self.results[0].graph.name}" if self.results else "nothing"
        return f"<{what} from {len(self)} roots: {readable_seconds(total_s)} in all>"


def readable_seconds(seconds: float) -> str:
    """Return a time as people read it."""
    for unit, factor in (("s", 1), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}" if seconds < 1000 else f"{seconds:,.0f} s"
    return f"{seconds * 1e6:.3g} us"


def validate(result: Traversed) -> None:
    """Check a result by rules on the ranks that hold it, after the Graph500 specification.

    Raises
    ------
    ValidationFailed
        With the number of each broken rule, how many vertices break it, and the first of them.
    """
    if not isinstance(result, Traversed):
        raise UsageError(f"{type(result).__name__} is not what bfs or sssp returns: validate takes one result")
    result.graph.require_open()
    if result.predecessors is None:
        raise UsageError("validation needs predecessors: search again without return_predecessors=False")
    ensure_valid(result.run(check, result.graph.key)[0])
