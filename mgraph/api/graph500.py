"""Run the Graph500 benchmark: build an RMAT graph, search, validate every result."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mgraph.api.graph import Graph, choose_ranks
from mgraph.api.multi_source import bfs_together
from mgraph.api.results import validate
from mgraph.api.traversal import bfs, sssp
from mgraph.api.traversal_results import Stats, Traversed
from mgraph.edges import EdgeSource
from mgraph.errors import InputError, UsageError
from mgraph.generate.base import Weights
from mgraph.generate.rmat import Rmat
from mgraph.ingest.build import Layout
from mgraph.planning.admission import refuse_searches_without_room
from mgraph.rank_jobs.build import free_memory
from mgraph.rank_jobs.graph500 import count_input_edges, generate, smallest_reached
from mgraph.rank_jobs.traversal import have_arcs, vertex_of_most_arcs

# Rounds in which candidates for roots are drawn, some hundred thousand in all.
ROUNDS = 14
WARM_UP_SCALE = 8
# In a graph of at most this many edges the kernels that a search launches depend on its root; in larger ones every
# search launches all of them.
SMALL_GRAPH_EDGES = 1 << 20
KERNELS: dict[str, Callable[..., Traversed]] = {"bfs": bfs, "sssp": sssp}


@dataclass(frozen=True)
class Search:
    """Record one search: its stats, and the counts of the specification."""

    stats: Stats
    num_edges: int  # input edges in the root's component, loops and parallel edges included
    validate_s: float | None  # None if it was not validated


@dataclass(frozen=True)
class MultiSourceSearch:
    """Record one multi-source BFS for levels, which is not in the specification."""

    num_roots: int
    search_s: float
    translate_s: float  # translation of every root's levels to user ids
    num_edges: int  # input edges in each root's component, summed
    supersteps: int

    @property
    def total_s(self) -> float:
        return self.search_s + self.translate_s


@dataclass
class Graph500Run:
    """Record one run of the benchmark.

    Attributes
    ----------
    graph, launcher, backend, num_ranks
        The name of the graph, and the ranks that ran it.
    scale, edge_factor
        Parameters of the graph.
    num_vertices, num_edges
        Sizes of the graph without loops and parallel edges.
    generation_s
        Seconds to generate every edge once, without storing it.
    construction_s
        Seconds to build the graph (kernel 1); the build generates every edge twice.
    roots
        The roots of the searches.
    searches
        For each of bfs and sssp (kernels 2 and 3), one search for each root, validated if `validated`.
    at_once
        The multi-source BFS, if it was requested; validated like the others.
    """

    graph: str
    launcher: str
    backend: str
    num_ranks: int
    scale: int
    edge_factor: int
    num_vertices: int
    num_edges: int
    generation_s: float
    construction_s: float
    roots: list[int]
    validated: bool
    searches: dict[str, list[Search]] = field(default_factory=dict)
    at_once: MultiSourceSearch | None = None

    def summary(self, kernel: str) -> dict[str, float]:
        """Return the statistics of a kernel, named as in the specification.

        Times begin when all ranks have the root's position and end when every result is stored by user id. Rates count
        the input edges in the root's component, loops and parallel edges included. Their mean is harmonic, as
        specified: one root in a tiny component makes it nearly zero.
        """
        searches = self.searches[kernel]
        times = [search.stats.total_s for search in searches]
        edges = [float(search.num_edges) for search in searches]
        facts = spread("time", times) | spread("nedge", edges)
        rates = [m / s for m, s in zip(edges, times, strict=True)]
        teps = spread("TEPS", rates)
        teps["harmonic_mean_TEPS"] = statistics.harmonic_mean(rates)
        teps["harmonic_stddev_TEPS"] = harmonic_stddev(rates)
        del teps["mean_TEPS"], teps["stddev_TEPS"]
        checks = [search.validate_s for search in searches if search.validate_s is not None]
        return facts | teps | (spread("validate", checks) if checks else {})

    def output_block(self) -> str:
        """Return the output block of the specification."""
        lines: dict[str, float] = {
            "SCALE": self.scale,
            "edgefactor": self.edge_factor,
            "NBFS": len(self.roots),
            "graph_generation": self.generation_s,
            "num_mpi_processes": self.num_ranks,
            "construction_time": self.construction_s,
        }
        for kernel in self.searches:
            lines |= {f"{kernel}  {name}": value for name, value in self.summary(kernel).items()}
        marks = {name: "!" for name in lines if name.endswith(" harmonic_mean_TEPS")}
        return "\n".join(f"{name + ':':32}{marks.get(name, ' ')} {value:.9g}" for name, value in lines.items())


def spread(name: str, values: list[float]) -> dict[str, float]:
    """Return minimum, quartiles, maximum, mean and standard deviation, named as in the specification."""
    several = len(values) > 1
    quartiles = statistics.quantiles(values, method="inclusive") if several else 3 * values
    return {
        f"min_{name}": min(values),
        f"firstquartile_{name}": quartiles[0],
        f"median_{name}": quartiles[1],
        f"thirdquartile_{name}": quartiles[2],
        f"max_{name}": max(values),
        f"mean_{name}": statistics.fmean(values),
        f"stddev_{name}": statistics.stdev(values) if several else 0.0,
    }


def harmonic_stddev(rates: list[float]) -> float:
    """Return the standard error of the harmonic mean, by the specification's formula."""
    if len(rates) < 2 or not all(rates):
        return 0.0
    inverses = [1 / rate for rate in rates]
    return statistics.stdev(inverses) / statistics.fmean(inverses) ** 2 / math.sqrt(len(rates) - 1)


@dataclass(frozen=True)
class Graph500:
    """Parameters of a run.

    Attributes
    ----------
    scale, edge_factor, seed, weights
        The graph: 2**scale vertices and edge_factor * 2**scale edges, with weights as of `rmat`.
    num_roots
        Number of roots: different vertices with arcs out.
    root_seed
        Seed of the roots; None draws other roots in every run.
    kernels
        The searches to run: bfs, sssp.
    check
        Whether to validate every result; the times do not include it.
    layout
        `rows`, `compact` or `auto`, as for `Graph.from_source`.
    roots_at_once
        Whether to run a multi-source BFS from all roots too; it needs rows.
    """

    scale: int
    edge_factor: int = 16
    seed: int = 1
    weights: Weights = "int"
    num_roots: int = 64
    root_seed: int | None = None
    kernels: tuple[str, ...] = ("bfs", "sssp")
    check: bool = True
    layout: Layout = "rows"
    roots_at_once: bool = False

    def __post_init__(self) -> None:
        if self.roots_at_once and self.layout == "compact":
            raise UsageError("a search from all roots at once needs rows: use layout rows (--layout rows)")


def run_graph500(
    spec: Graph500, *, cluster: Any = None, progress: Callable[[str], None] = lambda line: None
) -> Graph500Run:
    """Run the benchmark; `progress` receives a line before each step."""
    source = Rmat(spec.scale, spec.edge_factor, spec.seed, spec.weights)
    layout = "rows" if spec.roots_at_once else spec.layout
    chosen, placement = choose_ranks(source, cluster, layout)
    where = chosen.num_ranks, chosen.backend
    refuse_searches_without_room(source, *where, layout, spec.kernels, lambda: chosen.run(free_memory))
    # Warm up by a small build on the same ranks: construction time excludes compiling and loading kernels.
    with Graph.from_source(Rmat(min(spec.scale, WARM_UP_SCALE), weights=spec.weights), cluster=chosen, layout=layout):
        pass
    progress(f"building {source.name}" + f" on {placement}" * placement.is_part)
    with Graph.from_source(source, cluster=cluster, layout=layout) as g:
        ranks = g.cluster
        roots = random_roots(g, spec.num_roots, spec.root_seed)
        run = Graph500Run(
            graph=g.name,
            launcher=ranks.launcher,
            backend=ranks.backend,
            num_ranks=ranks.num_ranks,
            scale=spec.scale,
            edge_factor=spec.edge_factor,
            num_vertices=g.num_vertices,
            num_edges=g.num_edges,
            generation_s=max(ranks.run(generate, source)),
            construction_s=max(stats["seconds"] for stats in g.build_stats),
            roots=roots,
            validated=spec.check,
        )
        edges = _ComponentEdges(source)
        for kernel in spec.kernels:
            search = KERNELS[kernel]
            # Warm up: the times of searches exclude compiling and loading kernels.
            for root in roots if source.num_input_edges <= SMALL_GRAPH_EDGES else roots[:1]:
                search(g, root).close()
            run.searches[kernel] = []
            for i, root in enumerate(roots):
                progress(f"{kernel} {i + 1} of {len(roots)}")
                with search(g, root) as result:
                    seconds = _seconds_to_validate(result) if spec.check else None
                    run.searches[kernel].append(Search(result.stats, edges.of(result), seconds))
        if spec.roots_at_once:
            progress(f"bfs of {len(roots)} roots at once")
            run.at_once = _search_multi_source(g, roots, edges, spec.check)
    return run


def _search_multi_source(g: Graph, roots: list[int], edges: _ComponentEdges, check: bool) -> MultiSourceSearch:
    # Warm up: the first result also compiles the translation to user ids.
    with bfs_together(g, roots) as warm:
        warm[0].close()
    translate_s = 0.0
    num_edges = 0
    with bfs_together(g, roots) as found:
        for i in range(len(roots)):
            with found[i] as result:
                translate_s += result.stats.seconds["translate"]
                num_edges += edges.of(result)
            if check:
                # The rules need predecessors, which are computed from the levels here.
                with found.answer(i) as result:
                    validate(result)
        return MultiSourceSearch(len(roots), found.stats.total_s, translate_s, num_edges, len(found.stats.supersteps))


def _seconds_to_validate(result: Traversed) -> float:
    started = time.perf_counter()
    validate(result)
    return time.perf_counter() - started


class _ComponentEdges:
    """Count the input edges of each root's component.

    The generator runs once for each component.
    """

    def __init__(self, source: EdgeSource) -> None:
        self.source = source
        self.known: dict[int, int] = {}

    def of(self, result: Traversed) -> int:
        """Return the count for the component that a search reached."""
        smallest = min(result._stored.run(smallest_reached))
        if smallest not in self.known:
            self.known[smallest] = sum(result._stored.run(count_input_edges, result.graph._key, self.source))
        return self.known[smallest]


def random_roots(g: Graph, count: int, seed: int | None) -> list[int]:
    """Return at most `count` different vertices with arcs out.

    Fewer if they are too rare.
    """
    draw = np.random.default_rng(seed)
    connected = g.num_vertices - g.info.num_isolated
    _require_edges(g)
    count = min(count, connected)
    roots = dict[int, None]()
    # Each round draws twice as many, so that few rounds suffice where few vertices have arcs.
    draws = 4 * count + 16
    for _ in range(ROUNDS):
        candidates = draw.integers(0, g.num_vertices, draws).tolist()
        found = g._ask(have_arcs, candidates)[0]
        roots.update(dict.fromkeys(v for v, has in zip(candidates, found, strict=True) if has))
        if len(roots) >= count:
            break
        draws *= 2
    if not roots:
        raise InputError(f"{g.name} has too few vertices with arcs out to find one at random: give the sources")
    return list(roots)[:count]


def largest_root(g: Graph) -> int:
    """Return the vertex with the most arcs out, of several the smallest."""
    _require_edges(g)
    return g._ask(vertex_of_most_arcs)[0]


def _require_edges(g: Graph) -> None:
    if not g.num_edges:
        raise InputError(f"{g.name} has no edges: there is no root to search from")
