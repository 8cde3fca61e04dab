"""The phases that a client runs under faults; each always gives the same result."""

from __future__ import annotations

import contextlib
import hashlib
import pathlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import rank_programs as programs

import mgraph as mg
from mgraph.cluster.base import Cluster

READ = ("edges.wel", "edges.wel.gz", "edges.npz", "edges.parquet", "edges.csr")
WRITTEN = ("answer.npz", "answer.csv", "answer.parquet")
JOB = """
[graph]
input = "rmat:13"
[cluster]
workers = 2
[[run]]
algorithm = "pagerank"
output = "out/answer.npz"
[[run]]
algorithm = "bridges"
validate = true
output = "out/answer.csv"
"""


def digest(*values: Any) -> str:
    """Hash values: equal digests mean values equal in every bit."""
    found = hashlib.sha256()
    for value in values:
        array = np.asarray(value)
        found.update(f"{array.dtype} {array.shape};".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def write_inputs(folder: pathlib.Path, scale: int) -> None:
    """Write a graph in every input format, and old output files to be replaced."""
    import gzip

    from mgraph.generate.spec import parse_spec
    from mgraph.io.write import write_edges

    source = parse_spec(f"rmat:{scale}")
    for name in ("edges.npz", "edges.parquet", "edges.csr", "edges.csv"):
        write_edges(folder / name, source)
    # Compressed text and a compressed archive: mgraph reads unpacked temporary copies of these two.
    text = (folder / "edges.csv").read_text().partition("\n")[2].replace(",", " ")
    (folder / "edges.csv").unlink()
    (folder / "edges.wel").write_text(text)
    (folder / "edges.wel.gz").write_bytes(gzip.compress(text.encode(), 1))
    with np.load(folder / "edges.npz") as archive:
        arrays = dict(archive)
    np.savez_compressed(folder / "edges.npz", **arrays)
    (folder / "job.toml").write_text(JOB)
    (folder / "out").mkdir(exist_ok=True)
    for name in WRITTEN:
        (folder / "out" / name).write_text("old")


@dataclass
class Work:
    """A client's cluster, and the graph and the result that it has between calls.

    Attributes
    ----------
    open
        Functions that connect further clusters, by name.
    folder
        The folder that `write_inputs` has filled.
    """

    open: dict[str, Callable[[], Cluster]]
    cluster: Cluster
    folder: pathlib.Path
    scale: int
    graph: mg.Graph = field(init=False)
    found: Any = field(init=False)
    terminals: list[int] = field(init=False)
    to_close: list = field(default_factory=list)

    def build(self) -> None:
        """Build the graph that the next phases search."""
        self.graph = mg.rmat(self.scale, cluster=self.cluster)
        self.found = mg.bfs(self.graph, 0)
        self.terminals = (self.found.distances >= 0).vertices()[:3].tolist()

    def close(self) -> None:
        """Close the graph and its result."""
        self.found.close()
        self.graph.close()

    def phases(self) -> dict[str, Callable[[], Iterator[Any]]]:
        """Return the generators of all phases' values, by name; `prepare` makes the objects that `closing` closes."""
        graph = self.graph
        cluster = self.cluster
        return {
            **{f"connecting {way}": lambda make=make: _connect(make) for way, make in self.open.items()},
            **{f"reading {name}": lambda name=name: _read(self.folder / name, cluster) for name in READ},
            "building": lambda: _build(mg.rmat(self.scale, cluster=cluster)),
            "building of arrays": lambda: _build(mg.from_edges(*_ARRAYS, cluster=cluster)),
            "bfs": lambda: _columns(mg.bfs(graph, 1)),
            "bfs by sweeps": lambda: _columns(mg.bfs(graph, 1, method="sweep")),
            "sssp": lambda: _columns(mg.sssp(graph, 2)),
            "components": lambda: _columns(mg.connected_components(graph)),
            "sides": lambda: _columns(mg.is_bipartite(graph)),
            "core numbers": lambda: _columns(mg.core_numbers(graph)),
            "strong components": lambda: _strong_components(cluster),
            "forest": lambda: _columns(mg.minimum_spanning_forest(graph)),
            "diameter": lambda: _diameter(graph),
            "pagerank": lambda: _columns(mg.pagerank(graph, tolerance=None, max_iterations=5)),
            "hits": lambda: _columns(mg.hits(graph, tolerance=None, max_iterations=5)),
            "bridges": lambda: _columns(mg.bridges(graph)),
            "tree of terminals": lambda: _columns(mg.steiner_tree(graph, self.terminals)),
            "distances": lambda: iter([mg.distance_matrix(graph, [0, 1, 2]).to_numpy()]),
            "distances on a grid": lambda: _distances_on_grid(cluster),
            "neighborhood": lambda: _neighborhood(graph),
            "closeness": lambda: iter([mg.closeness(graph, [0, 1, 2])]),
            "paths": lambda: iter([path.distance for path in mg.shortest_paths(graph, [0, 1], [1, 2])]),
            "degrees": lambda: iter([mg.degrees(graph).to_numpy()]),
            "many roots": lambda: _together(mg.bfs_together(graph, [0, 1, 2, 3])),
            "validating": self._validate,
            "fetching": lambda: iter([c.to_numpy() for c in self.found.columns]),
            "dask array": self._dask_array,
            **{f"writing {name}": lambda name=name: self._write(name) for name in WRITTEN},
            "closing": self._close,
        }

    def prepare(self, name: str) -> None:
        """Make the objects that a phase needs."""
        if name == "closing":
            self.to_close.append(next(iter(self.open.values()))())
            self.to_close.append(mg.rmat(6, cluster=self.to_close[0]))
            self.to_close += [mg.bfs(self.to_close[1], root) for root in range(8)]

    def finish(self) -> None:
        """Close the objects of a phase, which an interrupt may have left open."""
        for thing in reversed(self.to_close):
            thing.close()
        self.to_close.clear()

    def _validate(self) -> Iterator[Any]:
        mg.validate(self.found)
        yield 0

    def _dask_array(self) -> Iterator[Any]:
        array = self.found.distances.to_dask_array()
        client = getattr(self.cluster, "client", None)
        if client is None:
            yield array.compute(scheduler="synchronous")
            return
        future = client.compute(array)
        try:
            value = future.result()
        except Exception as error:
            # Dask keeps the error of a task, with the frames of its traceback: they must not refer to the task.
            del array, future
            raise error.with_traceback(None) from None
        yield value

    def _write(self, name: str) -> Iterator[Any]:
        self.found.write(self.folder / "out" / name, overwrite=True)
        yield 0

    def _close(self) -> Iterator[Any]:
        for thing in reversed(self.to_close):
            thing.close()
        yield 0


_IDS = np.arange(1 << 12)
_ARRAYS = _IDS, (_IDS * 7 + 1) % len(_IDS), _IDS % 50 + 1


def _connect(make: Callable[[], Cluster]) -> Iterator[Any]:
    with make() as cluster:
        yield [found[:3] for found in cluster.run(programs.total)]


def _read(path: pathlib.Path, cluster: Cluster) -> Iterator[Any]:
    yield from _build(mg.read(path, cluster=cluster))


def _build(graph: mg.Graph) -> Iterator[Any]:
    with graph:
        yield [graph.num_vertices, graph.num_edges]
        yield from _columns(mg.connected_components(graph))


def _strong_components(cluster: Cluster) -> Iterator[Any]:
    """Build a directed graph, and find its strong components."""
    with mg.from_edges(*_ARRAYS, directed=True, cluster=cluster) as graph:
        yield from _columns(mg.strongly_connected_components(graph))


def _distances_on_grid(cluster: Cluster) -> Iterator[Any]:
    """Build a deep graph, which several ranks search from all sources at once."""
    with mg.grid(16, 16, cluster=cluster) as graph, mg.distance_matrix(graph, [0, 17, 255]) as found:
        yield found.to_numpy()


def _diameter(graph: mg.Graph) -> Iterator[Any]:
    """Build the largest component of a graph, and find its diameter."""
    with mg.largest_component(graph) as part:
        yield mg.diameter(part)


def _columns(result: Any) -> Iterator[Any]:
    with result:
        yield from [column.to_numpy() for column in result.columns]


def _neighborhood(graph: mg.Graph) -> Iterator[Any]:
    """Find a neighborhood, and build its graph."""
    with mg.k_hop(graph, 1, 2) as near, near.subgraph() as part:
        yield from (near.vertices, near.levels, part.num_edges)


def _together(results: Any) -> Iterator[Any]:
    with results:
        for result in results:
            with contextlib.closing(result):
                yield result.distances.to_numpy()
