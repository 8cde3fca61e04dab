"""The one driver: make or read a graph, build it, run, validate, append a line to bench/results.

    python bench/run.py rmat20 rmat22 --algorithm bfs --algorithm sssp --backend cuda
    python bench/run.py rmat26 --ranks 4 --backend cuda --method sweep --method frontier

`median_ms` runs from a built graph to every vertex's distance and predecessor on the device;
`translate_ms`, into user ids, and `prep_ms`, what a method needs once for a graph, stand beside it.
Roots are drawn anew at every run unless --root-seed says otherwise. Validation is not timed. `digest`
is of all distances and predecessors of all roots: lines of the same graph and roots must agree,
whatever the method and the number of ranks; one that does not ends the run.
"""

from __future__ import annotations

import hashlib
import re
import statistics

import click
import numpy as np
import record

import mgraph as mg
from mgraph.cluster.base import Cluster
from mgraph.generate.spec import parse_spec
from mgraph.graph import Graph
from mgraph.graph500 import KERNELS, random_roots
from mgraph.io.formats import read_source
from mgraph.results import Traversed
from mgraph.types import EdgeSource

NAMES = {
    r"rmat(\d+)": "rmat:{0}",
    r"uni(\d+)": "uniform:2^{0}:16",
    r"grid(\d+)k": "grid:{0}k",
    r"ssca2-(\d+)": "ssca2:{0},max_clique=48",
}


@click.command(help=__doc__)
@click.argument("graphs", nargs=-1, required=True, metavar="GRAPH...")
@click.option("--algorithm", "algorithms", type=click.Choice(list(KERNELS)), multiple=True, default=tuple(KERNELS))
@click.option("--method", "methods", type=click.Choice(["frontier", "sweep"]), multiple=True, default=("frontier",))
@click.option("--backend", type=click.Choice(["cpu", "cuda"]), required=True)
@click.option("--ranks", type=int, default=1, show_default=True)
@click.option("--sources", type=int, default=16, show_default=True)
@click.option("--root-seed", type=int, help="Draws the roots; fresh ones by default.")
@click.option("--weights", type=click.Choice(["int", "float32", "float64"]), default="int", show_default=True)
@click.option("--commit", help="Of the code, where there is no checkout to ask.")
def main(
    graphs: tuple[str, ...],
    algorithms: tuple[str, ...],
    methods: tuple[str, ...],
    backend: str,
    ranks: int,
    sources: int,
    root_seed: int | None,
    weights: str,
    commit: str | None,
) -> None:
    root_seed = int(np.random.SeedSequence().entropy % 2**32) if root_seed is None else root_seed
    with mg.connect(num_ranks=ranks, backend=backend) as cluster:
        for name in graphs:
            # The first build of a size also fills the memory pool; the second is what is timed.
            with Graph.from_source(source_of(name, weights), cluster=cluster):
                pass
            with Graph.from_source(source_of(name, weights), cluster=cluster) as g:
                roots = random_roots(g, sources, root_seed)
                for algorithm in algorithms:
                    for method in methods:
                        facts = {"graph": name, "gpus": ranks * (backend == "cuda"), "weights": g.info.weight_dtype}
                        facts |= {"root_seed": root_seed} | measure(g, cluster, algorithm, method, roots)
                        show(name, ranks, facts)
                        refuse_another_answer(backend, facts)
                        record.append(backend, commit, facts)


def source_of(name: str, weights: str) -> EdgeSource:
    """Return the graph that a name of the benchmarks means; a path is read."""
    for pattern, spec in NAMES.items():
        if match := re.fullmatch(pattern, name):
            size = match[1] if "grid" not in name else f"{1024 * int(match[1])}x{1024 * int(match[1])}"
            return parse_spec(f"{spec.replace('{0}k', '{0}').format(size)},weights={weights}")
    return read_source(name)


def measure(g: Graph, cluster: Cluster, algorithm: str, method: str, roots: list[int]) -> dict:
    """Search from every root, validate, and return what the times were."""
    search = KERNELS[algorithm]
    with search(g, roots[0], method=method) as first:
        prep_ms = 1e3 * first.stats.seconds["prepare"]
    searched, translated, teps, digest = [], [], [], hashlib.sha256()
    for root in roots:
        with search(g, root, method=method) as result:
            mg.validate(result)
            seconds = result.stats.seconds
            searched.append(1e3 * (seconds["traverse"] + seconds.get("predecessors", 0.0)))
            translated.append(1e3 * seconds["translate"])
            teps.append(result.stats.num_edges / (1e-3 * searched[-1]))
            digest.update(digest_of(result))
            stats = result.stats
    return {
        "launcher": cluster.launcher,
        "ranks": cluster.num_ranks,
        "backend": cluster.backend,
        "algorithm": algorithm,
        "method": method,
        "n": g.num_vertices,
        "m": g.num_edges,
        "sources": len(roots),
        **record.spread(searched),
        "translate_ms": round(statistics.median(translated), 4),
        "prep_ms": round(prep_ms, 3),
        "teps": round(statistics.harmonic_mean(teps)),
        "bytes_per_edge": round(sum(part["bytes"] for part in g.build_stats) / max(g.num_edges, 1), 2),
        "build_s": round(max(part["seconds"] for part in g.build_stats), 3),
        "supersteps": len(stats.supersteps),
        "arcs_by_rank": stats.arcs,
        "bytes_sent_by_rank": stats.bytes_sent,
        "digest": digest.hexdigest()[:16],
        "validated": True,
    }


def digest_of(result: Traversed) -> bytes:
    """Return a number that changes with any bit of the answer, and not with who holds it."""
    return np.array([result.distances.digest(), result.predecessors.digest()], np.uint64).tobytes()


def refuse_another_answer(backend: str, facts: dict) -> None:
    """End the run if an earlier line has other answers for the same graph, roots and algorithm."""
    same = ("graph", "weights", "algorithm", "root_seed", "sources")
    for line in record.lines(backend):
        if all(line.get(name) == facts[name] for name in same) and line["digest"] != facts["digest"]:
            raise SystemExit(f"the answers are not those of {line['commit']}, {line['ranks']} ranks, {line['method']}")


def show(name: str, ranks: int, facts: dict) -> None:
    """Print a line of the short table."""
    print(
        f"{name:8} x{ranks} {facts['algorithm']:4} {facts['method']:8} {facts['median_ms']:9.3f} ms "
        f"({facts['min_ms']:.3f} .. {facts['max_ms']:.3f})  translate {facts['translate_ms']:.3f}  prep "
        f"{facts['prep_ms']:.1f}  {facts['teps'] / 1e9:8.3f} GTEPS  build {facts['build_s']:.3f} s  {facts['digest']}",
        flush=True,
    )


if __name__ == "__main__":
    main()
