"""Run the Graph500 benchmark: build an RMAT graph, search, validate every result."""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mgraph.algorithms.variant import TraversalSpec
from mgraph.api.graph import Graph, choose_ranks
from mgraph.api.multi_source import bfs_together
from mgraph.api.results import validate
from mgraph.api.traversal import as_sources, bfs, bfs_spec, sssp, sssp_spec, traverse_many
from mgraph.api.traversal_results import Stats, Traversed
from mgraph.edges import EdgeSource
from mgraph.errors import InputError, UsageError
from mgraph.generate.base import Weights
from mgraph.generate.rmat import Rmat
from mgraph.ingest.build import Layout
from mgraph.planning.admission import refuse_searches_without_room
from mgraph.rank_jobs.build import free_memory
from mgraph.rank_jobs.graph500 import count_input_edges, generate, make_columns, smallest_reached
from mgraph.rank_jobs.traversal import have_arcs, vertex_of_most_arcs

# Rounds in which candidates for roots are drawn, some hundred thousand in all.
ROUNDS = 14
WARM_UP_SCALE = 8
# In a graph of at most this many edges the kernels that a search launches depend on its root; in larger ones every
# search launches all of them.
SMALL_GRAPH_EDGES = 1 << 20
KERNELS: dict[str, Callable[..., Traversed]] = {"bfs": bfs, "sssp": sssp}
SPECS: dict[str, Callable[..., TraversalSpec]] = {"bfs": bfs_spec, "sssp": sssp_spec}


@dataclass(frozen=True)
class Search:
    """Record one search: its stats, and the time and counts of the specification."""

    stats: Stats
    seconds: float  # until its arrays are written, in user ids
    num_edges: int  # input edges in the root's component, self-loops and parallel edges included
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
        Sizes of the graph without self-loops and parallel edges.
    generation_s
        Seconds to generate every edge once, without storing it.
    construction_s
        Seconds to build the graph (kernel 1); the build generates every edge twice.
    roots
        The roots of the searches.
    searches
        For each of bfs and sssp (kernels 2 and 3), one search for each root, validated if `validated`: the one that
        counts, with arrays in the graph's own order.
    in_user_order
        The same with arrays in the order of user ids.
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
    in_user_order: dict[str, list[Search]] = field(default_factory=dict)
    at_once: MultiSourceSearch | None = None

    def summary(self, kernel: str, *, in_user_order: bool = False) -> dict[str, float]:
        """Return the statistics of a kernel, named as in the specification.

        Times begin when all ranks have the root's position and end when the output is written: the parent of each
        vertex as a user id, of shortest paths its distance too. The specification prescribes no order of these arrays,
        and lets isolated vertices be left out. Rates count the input edges in the root's component, self-loops and
        parallel edges included. Their mean is harmonic, as specified: one root in a tiny component makes it nearly
        zero.
        """
        searches = (self.in_user_order if in_user_order else self.searches)[kernel]
        times = [search.seconds for search in searches]
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
        """Return the output block of the specification, and the rates of arrays in the order of user ids."""
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
        marks = {f"{kernel}  harmonic_mean_TEPS": "!" for kernel in self.searches}
        for kernel in self.in_user_order:
            strict = self.summary(kernel, in_user_order=True)
            lines |= {f"{kernel}_in_user_order  {name}": strict[name] for name in ("median_TEPS", "harmonic_mean_TEPS")}
        return "\n".join(f"{name + ':':38}{marks.get(name, ' ')} {value:.9g}" for name, value in lines.items())


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
        `rows`, `split`, `compact`, `host` or `auto`, as for `Graph.from_source`.
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
        if self.roots_at_once and self.layout in ("compact", "host"):
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
        edges = ComponentEdges(source)
        for kernel in spec.kernels:
            # Warm up: the times of searches exclude compiling and loading kernels.
            for root in roots if source.num_input_edges <= SMALL_GRAPH_EDGES else roots[:1]:
                for in_graph_order in (False, True):
                    clocked(g, kernel, root, in_graph_order=in_graph_order)[0].close()
            pairs = []
            for i, root in enumerate(roots):
                progress(f"{kernel} {i + 1} of {len(roots)}")
                pairs.append(_search_twice(g, kernel, root, edges, spec.check))
            run.in_user_order[kernel], run.searches[kernel] = map(list, zip(*pairs, strict=True))
        if spec.roots_at_once:
            progress(f"bfs of {len(roots)} roots at once")
            run.at_once = _search_multi_source(g, roots, edges, spec.check)
    return run


def clock_spec(g: Graph, kernel: str, root: int, *, in_graph_order: bool, method: str = "auto") -> TraversalSpec:
    """Return the request for a search on Graph500's clock.

    Its arrays are the parents as user ids, and of shortest paths the distances: levels are not translated. In the
    graph's own order distances are those of the search, whatever their dtype and their mark of an unreached vertex.
    """
    request = SPECS[kernel](g, as_sources(g, root), None, True, method)
    return dataclasses.replace(request, distances_at_once=kernel == "sssp", in_graph_order=in_graph_order)


def clocked(g: Graph, kernel: str, root: int, *, in_graph_order: bool, method: str = "auto") -> tuple[Traversed, float]:
    """Search on Graph500's clock; return the result, and the seconds until its arrays are written."""
    spec = clock_spec(g, kernel, root, in_graph_order=in_graph_order, method=method)
    found = traverse_many(g, [spec], method)[0]
    return found, found.stats.total_s + max(found._stored.run(make_columns))


def _search_twice(g: Graph, kernel: str, root: int, edges: ComponentEdges, check: bool) -> tuple[Search, Search]:
    """Search with arrays in the order of user ids, then in the graph's own order; validate both."""
    found, seconds = clocked(g, kernel, root, in_graph_order=False)
    with found:
        by_user = Search(found.stats, seconds, edges.of(found), _seconds_to_validate(found) if check else None)
    found, seconds = clocked(g, kernel, root, in_graph_order=True)
    with found:
        validate_s = _seconds_to_validate(found) if check else None
        return by_user, Search(found.stats, seconds, by_user.num_edges, validate_s)


def _search_multi_source(g: Graph, roots: list[int], edges: ComponentEdges, check: bool) -> MultiSourceSearch:
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


class ComponentEdges:
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
