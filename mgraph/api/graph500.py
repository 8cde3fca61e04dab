"""The Graph500 benchmark: build an RMAT graph, traverse it from random roots, validate every answer."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mgraph.api.graph import Graph, choose_ranks
from mgraph.api.multi_source import bfs_together
from mgraph.api.results import validate
from mgraph.api.traversal import bfs, sssp
from mgraph.api.traversal_results import Stats, Traversed
from mgraph.cluster.base import Rank
from mgraph.edges import EdgeChunk, EdgeSource
from mgraph.errors import InputError, UsageError
from mgraph.generate.rmat import Rmat
from mgraph.ingest.plan import default_chunks
from mgraph.rank_jobs.jobs import Answer, have_arcs
from mgraph.types import Array

# A root is looked for among some hundred thousand vertices, drawn in this many rounds.
ROUNDS = 14
WARM_UP_SCALE = 8
# In a graph of so few edges which kernels a search takes depends on its root; in a larger one any takes all.
FEW_EDGES = 1 << 20
KERNELS: dict[str, Callable[..., Traversed]] = {"bfs": bfs, "sssp": sssp}


@dataclass(frozen=True)
class Search:
    """One search of a run: its stats, and what the specification counts beside them."""

    stats: Stats
    num_edges: int  # of the input in the root's component, loops and parallel ones included
    validate_s: float | None  # None if it was not validated


@dataclass(frozen=True)
class AtOnce:
    """All searches breadth first at once, for levels alone: no part of the specification."""

    num_roots: int
    search_s: float
    translate_s: float  # of every root's levels into user ids
    num_edges: int  # of the input in each root's component, added up
    supersteps: int

    @property
    def total_s(self) -> float:
        return self.search_s + self.translate_s


@dataclass
class Graph500Run:
    """What one run measured.

    Attributes
    ----------
    graph, launcher, backend, num_ranks
        What was run, and where.
    scale, edge_factor
        Of the graph.
    num_vertices, num_edges
        Of the graph, loops and parallel edges dropped.
    generation_s
        Generating every edge once, without keeping it.
    construction_s
        Building the graph, kernel 1; generates every edge twice as it goes.
    roots
        Where the searches started.
    searches
        For each of bfs and sssp (kernels 2 and 3), one search a root, all of them validated if `validated`.
    at_once
        The searches breadth first at once, if they were asked for; validated with the others.
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
    at_once: AtOnce | None = None

    def summary(self, kernel: str) -> dict[str, float]:
        """Return what the specification asks for of a kernel, by its names: time, nedge, TEPS and validate.

        Times run from the root, which all ranks know by then, to every vertex's answer, in user ids. Rates are of the
        input's edges in the root's component, loops and parallel ones included; their mean is the harmonic one, as
        the specification has it: a root in a tiny component takes it to nearly zero.
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
        """Return the lines that the specification asks a run to print."""
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
    """Return smallest, quartiles, largest, mean and standard deviation, by the specification's names."""
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
    """Return the standard error of the harmonic mean, as the specification reckons it."""
    if len(rates) < 2 or not all(rates):
        return 0.0
    inverses = [1 / rate for rate in rates]
    return statistics.stdev(inverses) / statistics.fmean(inverses) ** 2 / math.sqrt(len(rates) - 1)


@dataclass(frozen=True)
class Graph500:
    """What to run.

    Attributes
    ----------
    scale, edge_factor, seed
        The graph: 2**scale vertices and edge_factor * 2**scale edges, with weights.
    num_roots
        How many different vertices with edges to search from.
    root_seed
        Draws the roots; fresh ones at every run when None.
    kernels
        Which searches: bfs, sssp.
    check
        Whether every answer is validated, outside the times.
    layout
        `rows`, `compact` or `auto`, as for `Graph.from_source`.
    roots_at_once
        Whether to search breadth first from all roots at once too, over rows.
    """

    scale: int
    edge_factor: int = 16
    seed: int = 1
    num_roots: int = 64
    root_seed: int | None = None
    kernels: tuple[str, ...] = ("bfs", "sssp")
    check: bool = True
    layout: str = "rows"
    roots_at_once: bool = False

    def __post_init__(self) -> None:
        if self.roots_at_once and self.layout == "compact":
            raise UsageError("a search from all roots at once needs rows: use layout rows (--layout rows)")


def run_graph500(
    spec: Graph500, *, cluster: Any = None, progress: Callable[[str], None] = lambda line: None
) -> Graph500Run:
    """Run the benchmark; `progress` is told what is being done."""
    source = Rmat(spec.scale, spec.edge_factor, spec.seed)
    layout = "rows" if spec.roots_at_once else spec.layout
    chosen, placement = choose_ranks(source, cluster, layout)
    # A small build first, on the same ranks: compiling or loading kernels is not a part of construction.
    with Graph.from_source(Rmat(min(spec.scale, WARM_UP_SCALE)), cluster=chosen, layout=layout):
        pass
    progress(f"building {source.name}" + f" on {placement}" * placement.is_part)
    with Graph.from_source(source, cluster=cluster, layout=layout) as g:
        where, roots = g.cluster, random_roots(g, spec.num_roots, spec.root_seed)
        run = Graph500Run(
            graph=g.name,
            launcher=where.launcher,
            backend=where.backend,
            num_ranks=where.num_ranks,
            scale=spec.scale,
            edge_factor=spec.edge_factor,
            num_vertices=g.num_vertices,
            num_edges=g.num_edges,
            generation_s=max(where.run(generate, source)),
            construction_s=max(stats["seconds"] for stats in g.build_stats),
            roots=roots,
            validated=spec.check,
        )
        edges = _ComponentEdges(source)
        for kernel in spec.kernels:
            search = KERNELS[kernel]
            # The first call compiles or loads kernels: not a part of any search.
            for root in roots if source.num_input_edges <= FEW_EDGES else roots[:1]:
                search(g, root).close()
            run.searches[kernel] = []
            for i, root in enumerate(roots):
                progress(f"{kernel} {i + 1} of {len(roots)}")
                with search(g, root) as result:
                    seconds = _seconds_to_validate(result) if spec.check else None
                    run.searches[kernel].append(Search(result.stats, edges.of(result), seconds))
        if spec.roots_at_once:
            progress(f"bfs of {len(roots)} roots at once")
            run.at_once = _search_at_once(g, roots, edges, spec.check)
    return run


def _search_at_once(g: Graph, roots: list[int], edges: _ComponentEdges, check: bool) -> AtOnce:
    # The first answer compiles what puts it into user ids, too.
    with bfs_together(g, roots) as warm:
        warm[0].close()
    translate_s, num_edges = 0.0, 0
    with bfs_together(g, roots) as found:
        for i in range(len(roots)):
            with found[i] as result:
                translate_s += result.stats.seconds["translate"]
                num_edges += edges.of(result)
            if check:
                # By their levels; the predecessors that the rules want are found for it.
                with found.answer(i) as result:
                    validate(result)
        return AtOnce(len(roots), found.stats.total_s, translate_s, num_edges, len(found.stats.supersteps))


def _seconds_to_validate(result: Traversed) -> float:
    started = time.perf_counter()
    validate(result)
    return time.perf_counter() - started


class _ComponentEdges:
    """How many edges of the input each root's component has; asked of the generator once a component."""

    def __init__(self, source: EdgeSource) -> None:
        self.source = source
        self.known: dict[int, int] = {}

    def of(self, result: Traversed) -> int:
        """Return the count for the component that a search reached, known by its smallest vertex."""
        smallest = min(result.run(smallest_reached))
        if smallest not in self.known:
            self.known[smallest] = sum(result.run(count_input_edges, result.graph.key, self.source))
        return self.known[smallest]


def random_roots(g: Graph, count: int, seed: int | None) -> list[int]:
    """Return different vertices with arcs out, at most `count`; fewer where they are too rare to be found."""
    draw = np.random.default_rng(seed)
    connected = g.num_vertices - g.info.num_isolated
    if not connected:
        raise InputError(f"{g.name} has no edges: there is no root to search from")
    count, roots = min(count, connected), dict[int, None]()
    # Each round draws twice as many: a graph of few arcs has its roots found in a few rounds too.
    draws = 4 * count + 16
    for _ in range(ROUNDS):
        candidates = draw.integers(0, g.num_vertices, draws).tolist()
        found = g.cluster.run_on_kept(have_arcs, g.key, candidates)[0]
        roots.update(dict.fromkeys(v for v, has in zip(candidates, found, strict=True) if has))
        if len(roots) >= count:
            break
        draws *= 2
    if not roots:
        raise InputError(f"{g.name} has too few vertices with arcs out to find one by chance: name the sources")
    return list(roots)[:count]


# What runs on a rank.


def generate(rank: Rank, source: EdgeSource) -> float:
    """Generate this rank's part of the edges, keep none, and return the seconds it took."""
    started = time.perf_counter()
    for _ in _own_chunks(rank, source):
        pass
    rank.backend.synchronize()
    return time.perf_counter() - started


def smallest_reached(rank: Rank, key: str) -> int:
    """Return the smallest vertex reached of those this rank answers for, or one that is too large."""
    reached = _reached(rank.objects[key])
    first = int(reached.argmax()) if len(reached) else 0
    return rank.objects[key].first + first if len(reached) and reached[first] else np.iinfo(np.int64).max


def count_input_edges(rank: Rank, key: str, graph: str, source: EdgeSource) -> int:
    """Return how many edges of the input are in what was reached, among those this rank generates."""
    stride, own = rank.objects[graph].user_stride, _reached(rank.objects[key])
    part = rank.backend.xp.zeros(stride, np.uint8)
    part[: len(own)] = own
    reached = rank.comm.allgather(part, rank.backend.xp.empty(stride * rank.size, np.uint8))
    # Both ends of an edge are in one component.
    return sum(int(reached[chunk.sources].sum(dtype=np.int64)) for chunk in _own_chunks(rank, source))


def _reached(answer: Answer) -> Array:
    distances = answer.columns["distances"]
    return (distances >= 0) & (distances < np.inf)


def _own_chunks(rank: Rank, source: EdgeSource) -> Iterator[EdgeChunk]:
    chunks = default_chunks(source.num_input_edges, rank.backend.limits, rank.size)
    return (source.chunk(k, chunks, rank.backend) for k in range(rank.index, chunks, rank.size))
