"""Measure algorithms: generate or read a graph, build it, run, validate, append to bench/results.

    python bench/run.py rmat20 rmat22 --algorithm bfs --algorithm sssp --backend cuda
    python bench/run.py rmat26 --ranks 4 --backend cuda --method sweep --method frontier
    python bench/run.py rmat24 --backend cuda --layout rows --layout compact --method sweep

`median_ms` begins with a built graph and ends when every vertex's result is on the device (distance and predecessor,
component, or the forest's edges). `translate_ms` is the translation to user ids, `prep_ms` what is derived from a graph
once. For BFS on one GPU the translation is launched before the host waits for the search: `translate_ms` is what
remains of it when the search is done. Every run draws other roots unless --root-seed is given; components and forests,
which have no roots, run --sources times. Every timed result is validated, and validation is not timed. It evicts the
graph and the host's code from the caches, so the previous search is repeated after it, and times are those of
consecutive searches. `digest` is a hash of all values of all results: records of the same graph and roots must agree,
for any method, layout and number of ranks; a record that differs ends the run.

`clock` of a search has the times of Graph500's clock, which ends with parents as user ids (and distances of shortest
paths), in the graph's own order and in the order of user ids (docs/benchmarks.md); levels are not translated.
"""

from __future__ import annotations

import hashlib
import re
import statistics
from dataclasses import dataclass
from functools import partial
from typing import Any

import click
import numpy as np
import record

import mgraph as mg
from mgraph.api.graph import Graph
from mgraph.api.graph500 import KERNELS, clocked, random_roots
from mgraph.api.results import Costs
from mgraph.api.traversal_results import Traversed
from mgraph.cluster.base import Cluster
from mgraph.edges import EdgeSource
from mgraph.generate.spec import parse_spec
from mgraph.io.formats import read_source
from mgraph.rank_jobs.build import shard_bytes
from mgraph.shard.shard import ROW_LAYOUTS

STEP = ("method", "frontier", "arcs", "bytes", "microseconds")
MAX_STEPS = 128
# Algorithms without roots: the function, the fact to record, and their methods.
WHOLE = {
    "components": (mg.connected_components, "num_components"),
    "msf": (mg.minimum_spanning_forest, "total_weight"),
}
METHODS = {"components": ("union-find",), "msf": ("boruvka",)}
ALGORITHMS = [*KERNELS, *METHODS]
CLOCKS = ("graph order", "user order")
NAMES = {
    r"rmat(\d+)": "rmat:{0}",
    r"rmat(\d+)-ef(\d+)": "rmat:{0},edge_factor={1}",
    r"uni(\d+)": "uniform:2^{0}:16",
    r"grid(\d+)k": "grid:{0}k",
    r"ssca2-(\d+)": "ssca2:{0},max_clique=48",
}


@click.command(help=__doc__)
@click.argument("graphs", nargs=-1, required=True, metavar="GRAPH...")
@click.option("--algorithm", "algorithms", type=click.Choice(ALGORITHMS), multiple=True, default=tuple(KERNELS))
@click.option("--method", "methods", type=click.Choice(["frontier", "sweep"]), multiple=True, default=("frontier",))
@click.option("--backend", type=click.Choice(["cpu", "cuda"]), required=True)
@click.option("--ranks", type=int, default=1, show_default=True, help="0: as many of all as mgraph chooses.")
@click.option("--scheduler", metavar="ADDRESS", help="A running cluster with this number of workers.")
@click.option("--sources", type=int, default=16, show_default=True)
@click.option("--root-seed", type=int, help="Seed of the roots; other roots in every run by default.")
@click.option("--weights", type=click.Choice(["int", "float32", "float64", "none"]), default="int", show_default=True)
@click.option("--layout", "layouts", type=click.Choice(["rows", "split", "compact"]), multiple=True, default=("rows",))
@click.option(
    "--builds", type=click.IntRange(1), default=2, show_default=True, help="Number of builds; the last is timed."
)
@click.option("--commit", help="The commit to record, if this is not a checkout.")
def main(
    graphs: tuple[str, ...],
    backend: str,
    ranks: int,
    scheduler: str | None,
    builds: int,
    commit: str | None,
    **plan: Any,
) -> None:
    with mg.connect(scheduler=scheduler, num_ranks=ranks or None, backend=backend) as cluster:
        for name in graphs:
            measure_graph(cluster, name, Plan(**plan), builds=builds, commit=commit)


@dataclass(frozen=True)
class Plan:
    """The measurements of every graph, as in the options."""

    algorithms: tuple[str, ...] = tuple(KERNELS)
    methods: tuple[str, ...] = ("frontier",)
    sources: int = 16
    root_seed: int | None = None
    weights: str = "int"
    layouts: tuple[str, ...] = ("rows",)


def measure_graph(cluster: Cluster, name: str, plan: Plan, *, builds: int = 2, commit: str | None = None) -> None:
    """Build a graph, run all measurements, and append a record for each."""
    seed = int(np.random.SeedSequence().entropy % 2**32) if plan.root_seed is None else plan.root_seed
    for layout in plan.layouts:
        source = source_of(name, plan.weights)
        # Warm up: the first build of a size also compiles kernels and fills the memory pool.
        for _ in range(builds - 1):
            Graph.from_source(source, cluster=cluster, layout=layout).close()
        with Graph.from_source(source, cluster=cluster, layout=layout) as g:
            roots = random_roots(g, plan.sources, seed) if {*plan.algorithms} & {*KERNELS} else []
            for algorithm in plan.algorithms:
                for method in methods_of(algorithm, plan.methods, layout):
                    facts = {"graph": name, "gpus": g.num_ranks * (cluster.backend == "cuda")}
                    facts |= {"weights": g.info.weight_dtype, "launcher": cluster.launcher, "ranks": g.num_ranks}
                    facts |= {"backend": cluster.backend, "placement": str(g.placement)}
                    facts |= {"algorithm": algorithm, "method": method, "n": g.num_vertices, "m": g.num_edges}
                    if algorithm in KERNELS:
                        facts |= {"root_seed": seed} | measure(g, algorithm, method, roots)
                    else:
                        facts |= {"root_seed": None} | measure_whole(g, algorithm, plan.sources)
                    show(name, g.num_ranks, facts)
                    require_same_digest(cluster.backend, facts)
                    record.append(cluster.backend, commit, facts)


def methods_of(algorithm: str, methods: tuple[str, ...], layout: str) -> tuple[str, ...]:
    """Return the methods to time: the compact layout has sweeps only."""
    has_rows = layout in ROW_LAYOUTS
    if algorithm in KERNELS:
        return methods if has_rows else ("sweep",)
    return METHODS[algorithm] if has_rows else ()


def source_of(name: str, weights: str) -> EdgeSource:
    """Return the edge source of a benchmark name, or of a file."""
    for pattern, spec in NAMES.items():
        if match := re.fullmatch(pattern, name):
            size = match[1] if "grid" not in name else f"{1024 * int(match[1])}x{1024 * int(match[1])}"
            return parse_spec(f"{spec.replace('{0}k', '{0}').format(size, *match.groups()[1:])},weights={weights}")
    return read_source(name)


def measure(g: Graph, algorithm: str, method: str, roots: list[int]) -> dict:
    """Search from every root, validate, and return the times."""
    search = KERNELS[algorithm]
    with search(g, roots[0], method=method) as first:
        prep_ms = 1e3 * first.stats.seconds["prepare"]
    searched = []
    translated = []
    edges = 0
    stats = []
    digest = hashlib.sha256()
    for before, root in zip([roots[-1], *roots], roots, strict=False):
        search(g, before, method=method).close()
        with search(g, root, method=method) as result:
            mg.validate(result)
            seconds = result.stats.seconds
            searched.append(1e3 * (seconds["traverse"] + seconds.get("predecessors", 0.0)))
            translated.append(1e3 * seconds["translate"])
            edges += result.stats.num_edges
            digest.update(digest_of(result))
            stats.append(result.stats)
    usual = stats[searched.index(statistics.median_low(searched))]
    return {
        **times(searched, translated, prep_ms),
        # Equal to the harmonic mean of the rates if all roots are in one component, and robust to roots in tiny ones.
        "teps": round(edges / (1e-3 * sum(searched))),
        **costs(g, usual),
        "clock": on_clock(g, algorithm, method, roots),
        "digest": digest.hexdigest()[:16],
        "validated": True,
    }


def on_clock(g: Graph, algorithm: str, method: str, roots: list[int]) -> dict:
    """Search from every root; return times and rates of Graph500's clock, for each order of its arrays."""
    found = {}
    for order in CLOCKS:
        clock = partial(clocked, g, algorithm, in_graph_order=order == CLOCKS[0], method=method)
        clock(roots[-1])[0].close()
        searched = []
        rates = []
        for root in roots:
            result, seconds = clock(root)
            with result:
                searched.append(1e3 * seconds)
                rates.append(result.stats.num_edges / seconds)
        harmonic = round(statistics.harmonic_mean(rates))
        found[order] = record.spread(searched) | {"teps": round(statistics.median(rates)), "harmonic_teps": harmonic}
    return found


def measure_whole(g: Graph, algorithm: str, repeats: int) -> dict:
    """Run an algorithm without roots several times, validate it, return its times."""
    find, fact = WHOLE[algorithm]
    find(g).close()
    found = []
    translated = []
    digests = set()
    for _ in range(repeats):
        with find(g) as result:
            translated.append(1e3 * result.stats.seconds["translate"])
            found.append(1e3 * result.stats.total_s - translated[-1])
            digests.add(tuple(column.digest() for column in result.columns))
    # All runs have the same result, so it suffices to validate one of them.
    (digest,) = digests
    # A single digest has always been hashed as text: older records must remain comparable.
    hashed = str(*digest).encode() if len(digest) == 1 else np.array(digest, np.uint64).tobytes()
    with find(g) as result:
        mg.validate(result)
        return {
            **times(found, translated, prep_ms=0.0),
            "teps": round(g.num_edges / (1e-3 * statistics.median(found))),
            **costs(g, result.stats),
            fact: getattr(result, fact),
            "digest": hashlib.sha256(hashed).hexdigest()[:16],
            "validated": True,
        }


def times(found: list[float], translated: list[float], prep_ms: float) -> dict:
    """Return the number of runs and their times in milliseconds."""
    return {
        "sources": len(found),
        **record.spread(found),
        "translate_ms": round(statistics.median(translated), 4),
        "prep_ms": round(prep_ms, 3),
    }


def costs(g: Graph, stats: Costs) -> dict:
    """Return the costs of the graph and of one result."""
    return {
        "bytes_per_edge": round(sum(g.cluster.run(shard_bytes, g._key)) / max(g.num_edges, 1), 2),
        "layout": g.info.layout,
        "host_bytes": sum(part["host_bytes"] for part in g.build_stats),
        "build_peak_bytes": max(part["peak_bytes"] for part in g.build_stats),
        "build_s": round(max(part["seconds"] for part in g.build_stats), 3),
        "supersteps": len(stats.supersteps),
        # The model of a superstep is fitted to these; deep searches are cut off.
        "steps": [{name: step[name] for name in STEP} for step in stats.supersteps[:MAX_STEPS]],
        "arcs_by_rank": stats.arcs,
        "bytes_sent_by_rank": stats.bytes_sent,
    }


def digest_of(result: Traversed) -> bytes:
    """Return a hash of all values of the result.

    It does not depend on the number of ranks.
    """
    return np.array([result.distances.digest(), result.predecessors.digest()], np.uint64).tobytes()


def require_same_digest(backend: str, facts: dict) -> None:
    """End the run if an earlier record of the search has another digest."""
    same = ("graph", "weights", "algorithm", "root_seed", "sources")
    for line in record.lines(backend):
        if all(line.get(name) == facts[name] for name in same) and line["digest"] != facts["digest"]:
            raise SystemExit(
                f"the results differ from those of {line['commit']}, {line['ranks']} ranks, {line['method']}"
            )


def show(name: str, ranks: int, facts: dict) -> None:
    """Print a summary line."""
    print(
        f"{name:8} x{ranks} {facts['algorithm']:10} {facts['method']:10} {facts['median_ms']:9.3f} ms "
        f"({facts['min_ms']:.3f} .. {facts['max_ms']:.3f})  translate {facts['translate_ms']:.3f}  prep "
        f"{facts['prep_ms']:.1f}  {facts['teps'] / 1e9:8.3f} GTEPS  build {facts['build_s']:.3f} s, peak "
        f"{facts['build_peak_bytes'] / 2**30:.2f} GiB  {facts['layout']} {facts['bytes_per_edge']:.2f} B/edge  "
        f"{facts['digest']}",
        flush=True,
    )
    for order, clock in facts.get("clock", {}).items():
        print(
            f"    parents in {order}: {clock['median_ms']:.3f} ms ({clock['min_ms']:.3f} .. {clock['max_ms']:.3f}), "
            f"{clock['teps'] / 1e9:.3f} GTEPS, harmonic mean {clock['harmonic_teps'] / 1e9:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
