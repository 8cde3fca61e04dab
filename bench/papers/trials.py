"""What the papers share: where they run, graphs in natural order, timed and validated searches."""

from __future__ import annotations

import contextlib
import pathlib
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import record

import mgraph as mg
from mgraph.api.graph import Graph
from mgraph.api.graph500 import KERNELS, random_roots
from mgraph.backends.base import Backend, PersistentBackend
from mgraph.backends.cpu import CpuBackend
from mgraph.cluster.in_process import InProcessCluster
from mgraph.edges import EdgeSource
from mgraph.generate.spec import parse_spec
from mgraph.shard.rows_kernels import unpack_rows
from mgraph.shard.shard import Rows
from mgraph.types import Array

# Of natural order: a vertex is its user id, its position and its row.
ORDER = "natural"
ROOT_SEED = 28
Search = Callable[[int], Array]


@dataclass(frozen=True)
class Setting:
    """Where the methods run, and how much.

    Attributes
    ----------
    host
        The CPU cores beside the backend: of a paper's own CPU code, and of what CPU and GPU do together.
    """

    cluster: InProcessCluster
    backend: Backend
    host: CpuBackend
    quick: bool = False
    sources: int = 8
    roads: pathlib.Path | None = None

    def pick(self, full: Any, quick: Any) -> Any:
        """Return what the chosen length of the run has."""
        return quick if self.quick else full

    def open(self, source: EdgeSource | str, order: str = ORDER) -> contextlib.AbstractContextManager[Graph]:
        """Build a graph of a spec or an edge source."""
        edges = parse_spec(source) if isinstance(source, str) else source
        return Graph.from_source(edges, cluster=self.cluster, order=order)  # type: ignore[arg-type]

    def rows(self, g: Graph) -> Rows:
        """Return the adjacency lists of a graph, on the backend."""
        return self.rank.objects[g._key].rows

    @property
    def rank(self) -> Any:
        """The one rank, which is in this process, so that its memory is accessible."""
        (rank,) = self.cluster._ranks
        return rank

    def expected_on_host(self, expected: list[Expected]) -> list[Expected]:
        """Return expected results in host memory, for methods that run there."""
        return [replace(one, values=self.on_host(one.values)[0]) for one in expected]

    def on_host(self, *arrays: Array) -> list[np.ndarray]:
        """Return arrays in host memory."""
        return [np.asarray(self.backend.to_host(array)) for array in arrays]


@dataclass(frozen=True)
class Expected:
    """mgraph's validated result from a source, by vertex."""

    source: int
    values: Array


def has_persistent_kernels(backend: Backend) -> bool:
    """Return whether many layers can be one launch; the CPU has a loop on one core in its place."""
    return isinstance(backend, PersistentBackend)


def starts_of(backend: Backend, rows: Rows) -> Array:
    """Return the vertex at which each arc of the rows starts."""
    starts = backend.xp.empty(len(rows.targets), rows.targets.dtype)
    unpack_rows[backend](0, len(starts), rows.indptr, len(rows.indptr) - 1, 0, 1, 0, starts)
    return starts


def expected_of(setting: Setting, g: Graph, algorithm: str) -> list[Expected]:
    """Search with mgraph from random roots; validate, and keep the results."""
    found = []
    for root in random_roots(g, setting.sources, ROOT_SEED):
        with KERNELS[algorithm](g, root) as result:
            mg.validate(result)
            values = result._stored.run(lambda rank, key: rank.objects[key].traversal.distances)[0]
            found.append(Expected(int(root), values.copy()))
    return found


def own_times(g: Graph, algorithm: str, method: str, expected: list[Expected]) -> list[float]:
    """Return the milliseconds of mgraph's search from every source, after one that compiles kernels."""
    sources = [one.source for one in expected]
    warm_times(g, algorithm, method, sources[:1])
    return warm_times(g, algorithm, method, sources)


def warm_times(g: Graph, algorithm: str, method: str, sources: list[int]) -> list[float]:
    """Return the milliseconds of mgraph's searches, without predecessors, which the papers do not compute."""
    times = []
    for source in sources:
        with KERNELS[algorithm](g, source, method=method, return_predecessors=False) as result:
            times.append(1e3 * result.stats.seconds["traverse"])
    return times


def timed(backend: Backend, work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the milliseconds of a call, until all that it launched is done, and its result."""
    backend.synchronize()
    began = time.perf_counter()
    found = work()
    backend.synchronize()
    return 1e3 * (time.perf_counter() - began), found


def search_times(backend: Backend, methods: Mapping[str, Search], expected: list[Expected]) -> Iterator[tuple]:
    """Yield each method with its milliseconds from every source; a result that differs ends the run."""
    for name, search in methods.items():
        search(expected[0].source)  # compiles kernels
        times = []
        for one in expected:
            milliseconds, found = timed(backend, partial(search, one.source))
            require_same(name, found, one.values)
            times.append(milliseconds)
        yield name, times


def require_same(name: str, found: Array, expected: Array) -> None:
    """End the run if a method reaches other vertices, or one at another distance."""
    found = found[: len(expected)]
    reached = found != unreached(found.dtype)
    is_same = bool((reached == (expected != unreached(expected.dtype))).all())
    if not is_same or not bool((found[reached] == expected[reached]).all()):
        raise SystemExit(f"{name}: the result differs from mgraph's")


def unreached(dtype: np.dtype) -> float | int:
    """Return the value of vertices that are not reached."""
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def line_of(g: Graph, algorithm: str, method: str, times: list[float], *, runs_on: str) -> dict:
    """Return the record of a method, with its rate in arcs of the graph per second, as the papers count."""
    return {
        "graph": g.name,
        "algorithm": algorithm,
        "method": method,
        "runs_on": runs_on,
        "n": g.num_vertices,
        "arcs": g.info.num_arcs,
        "sources": len(times),
        **record.spread(times),
        "arcs_per_s": round(g.info.num_arcs / (1e-3 * statistics.median(times))),
        "validated": True,
    }
