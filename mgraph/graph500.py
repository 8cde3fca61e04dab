"""The Graph500 benchmark: build an RMAT graph, traverse it from random roots, validate every answer."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mgraph.errors import InputError
from mgraph.generate.rmat import Rmat
from mgraph.graph import Graph
from mgraph.jobs import have_arcs
from mgraph.results import Stats, Traversed, validate
from mgraph.traversals import bfs, sssp

# A root is looked for among some hundred thousand vertices, drawn in this many rounds.
ROUNDS = 14
KERNELS: dict[str, Callable[..., Traversed]] = {"bfs": bfs, "sssp": sssp}


@dataclass
class Graph500Run:
    """What one run measured.

    Attributes
    ----------
    graph, launcher, backend, num_ranks
        What was run, and where.
    num_vertices, num_edges
        Of the graph, loops and parallel edges dropped.
    construction_s
        Generating and building the graph, kernel 1.
    roots
        Where the searches started.
    searches
        For each of bfs and sssp (kernels 2 and 3), the stats of every root, all of them validated if
        `validated`.
    """

    graph: str
    launcher: str
    backend: str
    num_ranks: int
    num_vertices: int
    num_edges: int
    construction_s: float
    roots: list[int]
    validated: bool
    searches: dict[str, list[Stats]] = field(default_factory=dict)

    def summary(self, kernel: str) -> dict[str, float]:
        """Return times and traversed edges per second of a kernel; rates are averaged as harmonic means.

        Edges are those of the root's component once parallel ones and loops are gone, fewer than the
        specification counts.
        """
        times = [stats.total_s for stats in self.searches[kernel]]
        rates = [stats.teps for stats in self.searches[kernel] if stats.num_edges]
        return {
            "min_s": min(times),
            "median_s": statistics.median(times),
            "max_s": max(times),
            "median_teps": statistics.median(rates) if rates else 0.0,
            "harmonic_mean_teps": statistics.harmonic_mean(rates) if rates else 0.0,
        }


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
    """

    scale: int
    edge_factor: int = 16
    seed: int = 1
    num_roots: int = 64
    root_seed: int | None = None
    kernels: tuple[str, ...] = ("bfs", "sssp")
    check: bool = True


def run_graph500(
    spec: Graph500, *, cluster: Any = None, progress: Callable[[str], None] = lambda line: None
) -> Graph500Run:
    """Run the benchmark; `progress` is told what is being done."""
    progress(f"building rmat{spec.scale}")
    with Graph.from_source(Rmat(spec.scale, spec.edge_factor, spec.seed), cluster=cluster) as g:
        where, roots = g.cluster, random_roots(g, spec.num_roots, spec.root_seed)
        run = Graph500Run(
            graph=g.name,
            launcher=where.launcher,
            backend=where.backend,
            num_ranks=where.num_ranks,
            num_vertices=g.num_vertices,
            num_edges=g.num_edges,
            construction_s=max(stats["seconds"] for stats in g.build_stats),
            roots=roots,
            validated=spec.check,
        )
        for kernel in spec.kernels:
            search = KERNELS[kernel]
            # The first call compiles or loads kernels: not a part of any search.
            search(g, roots[0]).close()
            run.searches[kernel] = []
            for i, root in enumerate(roots):
                progress(f"{kernel} {i + 1} of {len(roots)}")
                with search(g, root) as result:
                    if spec.check:
                        validate(result)
                    run.searches[kernel].append(result.stats)
    return run


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
        found = g.cluster.run(have_arcs, g.key, candidates)[0]
        roots.update(dict.fromkeys(v for v, has in zip(candidates, found, strict=True) if has))
        if len(roots) >= count:
            break
        draws *= 2
    if not roots:
        raise InputError(f"{g.name} has too few vertices with arcs out to find one by chance: name the sources")
    return list(roots)[:count]
