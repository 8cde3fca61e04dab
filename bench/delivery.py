"""Measure how results of searches on several ranks reach user ids: on both clocks, and each part of the way.

    python bench/delivery.py rmat26 rmat28 --ranks 1,2,4 --largest rmat30 --backend cuda

Times are medians in milliseconds. *own* and *strict* are those of Graph500's clock, with parents (and distances of
shortest paths) in the graph's own order and in that of user ids; GTEPS are edges of the graph over these. The search of
the first root is validated, and its results must equal those on other numbers of ranks. The parts of the strict way are
timed one by one: values packed for the ranks that store them, sent, put in order; with peer buffers packed as they are
sent. A second line has the way by verbs, without peer buffers.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import click
import run
from scaling import parse_numbers

import mgraph as mg
from mgraph.api.graph import Graph
from mgraph.api.graph500 import KERNELS, clocked, random_roots
from mgraph.cluster.base import Cluster, Rank
from mgraph.errors import WouldNotFit

# What is timed of a way, with the width and digits of its column.
PARTS = (("whole", 8, 3), ("pack", 7, 3), ("send", 7, 3), ("order", 7, 3), ("MB", 7, 0))
REPEATS = 5
HEADER = (
    f"{'graph':8}{'ranks':>6} {'':5}{'search':>8}{'own':>8}{'strict':>8}{'GTEPS own':>10}{'strict':>7}"
    f"{'to ids: own':>12}{'strict':>7}{'whole':>8}{'pack':>7}{'send':>7}{'order':>7}{'MB':>7}{'build s':>8}"
)


@click.command(help=__doc__)
@click.argument("graphs", nargs=-1, required=True, metavar="GRAPH...")
@click.option("--ranks", callback=parse_numbers, default="1,2", show_default=True)
@click.option("--largest", multiple=True, metavar="GRAPH", help="A graph for the largest number of ranks only.")
@click.option("--backend", type=click.Choice(["cpu", "cuda"]), required=True)
@click.option("--sources", type=int, default=4, show_default=True)
@click.option("--seconds", type=float, default=float("inf"), help="Begin no graph after these.")
def main(
    graphs: tuple[str, ...], ranks: list[int], largest: tuple[str, ...], backend: str, sources: int, seconds: float
) -> None:
    began = time.perf_counter()
    digests: dict[tuple[str, str], bytes] = {}
    with mg.connect(num_ranks=max(ranks), backend=backend) as cluster:
        print(f"{time.perf_counter() - began:.0f} s to start\n{HEADER}", flush=True)
        # The largest number first: what takes longest to start, and is wanted most.
        for num_ranks in sorted(ranks, reverse=True):
            part = cluster.narrowed(num_ranks)
            for name in (*graphs, *largest) if num_ranks == max(ranks) else graphs:
                if time.perf_counter() - began > seconds:
                    print(f"{name} on {num_ranks}: no time left", flush=True)
                    continue
                try:
                    _measure_graph(part, name, sources, digests)
                except WouldNotFit as error:
                    print(f"{name} on {num_ranks}: {error}", flush=True)
        print(f"{time.perf_counter() - began:.0f} s in all")


def _measure_graph(cluster: Cluster, name: str, sources: int, digests: dict[tuple[str, str], bytes]) -> None:
    began = time.perf_counter()
    with Graph.from_source(run.source_of(name, "int"), cluster=cluster, layout="rows") as g:
        build_s = time.perf_counter() - began
        roots = random_roots(g, sources, seed=1)
        for algorithm in KERNELS:
            with KERNELS[algorithm](g, roots[0], method="frontier") as result:
                mg.validate(result)
                digest = run.digest_of(result)
            if digests.setdefault((name, algorithm), digest) != digest:
                raise SystemExit(f"{name} {algorithm}: the results on {g.num_ranks} ranks differ from those before")
            _show(name, g, algorithm, build_s, _clocks(g, algorithm, roots))


def _clocks(g: Graph, algorithm: str, roots: list[int]) -> dict[str, Any]:
    found: dict[str, list[Any]] = {"search": [], "own": [], "strict": [], "own ids": [], "strict ids": []}
    parts: list[list[dict[str, float]]] = []
    for order in ("own", "strict"):
        for k, root in enumerate([roots[-1], *roots]):
            result, seconds = clocked(g, algorithm, root, in_graph_order=order == "own", method="frontier")
            with result:
                if k:
                    of = result.stats.seconds
                    found[order].append(1e3 * seconds)
                    found["search"].append(1e3 * (of["traverse"] + of.get("predecessors", 0.0)))
                    found[f"{order} ids"].append(1e3 * of["translate"])
                if k == 1 and order == "strict" and g.num_ranks > 1:
                    args = (time_parts, result._stored.key, g._key, algorithm == "sssp")
                    parts = [g.cluster.run(*args, by_verbs) for by_verbs in (False, True)]
    medians: dict[str, Any] = {name: statistics.median(times) for name, times in found.items()}
    return medians | {"ways": [{part: max(of[part] for of in ranks) for part, *_ in PARTS} for ranks in parts]}


def _show(name: str, g: Graph, algorithm: str, build_s: float, found: dict[str, Any]) -> None:
    rates = [g.num_edges / found[order] / 1e6 for order in ("own", "strict")]
    ways = ["".join(f"{of[part]:{width}.{digits}f}" for part, width, digits in PARTS) for of in found["ways"]]
    print(
        f"{name:8}{g.num_ranks:6} {algorithm:5}{found['search']:8.3f}{found['own']:8.3f}{found['strict']:8.3f}"
        f"{rates[0]:10.0f}{rates[1]:7.0f}{found['own ids']:12.3f}{found['strict ids']:7.3f}"
        f"{ways[0] if ways else ' ' * 36}{build_s:8.1f}",
        flush=True,
    )
    if ways:
        print(f"{'by verbs':>80}{ways[1]}", flush=True)


def time_parts(rank: Rank, key: str, graph: str, distances: bool, by_verbs: bool) -> dict[str, float]:
    """Return the medians of the milliseconds of each part of `translate_results`, and the megabytes sent."""
    from mgraph.shard import user_ids

    shard = rank.objects[graph].for_call(rank.comm)
    traversal = rank.objects[key].traversal
    comm: Any = rank.comm
    comm.at = at = []

    def timed(comm: Any, send: Any, *args: Any) -> Any:
        at = comm.at  # ranks that are threads share the patched function
        rank.backend.synchronize()
        at.append(time.perf_counter())
        comm.barrier()
        at.append(time.perf_counter())
        found = send(*args)
        rank.backend.synchronize()
        at.append(time.perf_counter())
        return found

    def translate() -> float:
        rank.backend.synchronize()
        comm.barrier()
        began = time.perf_counter()
        user_ids.translate_results(shard, comm, traversal.distances if distances else None, traversal.predecessors)
        rank.backend.synchronize()
        at.append(time.perf_counter())
        return began

    found: dict[str, list[float]] = {part: [] for part, *_ in PARTS}
    kept = {name: getattr(user_ids, name) for name in ("Delivery", "fits_peer_buffers")}
    comm.barrier()
    try:
        if by_verbs:
            user_ids.fits_peer_buffers = lambda *_: False
        translate()
        exchange = comm.alltoallv
        for _ in range(REPEATS):
            at.clear()
            began = translate()
            found["whole"].append(1e3 * (at[-1] - began))
        comm.alltoallv = lambda *args: timed(comm, exchange, *args)
        user_ids.Delivery = lambda shard, comm, *args: timed(comm, kept["Delivery"], shard, comm, *args)
        for _ in range(REPEATS):
            at.clear()
            sent = comm.bytes_sent
            began = translate()
            found["pack"].append(1e3 * (at[0] - began))
            found["send"].append(1e3 * sum(at[k + 2] - at[k + 1] for k in range(0, len(at) - 1, 3)))
            found["order"].append(1e3 * (at[-1] - at[-2]))
            found["MB"].append((comm.bytes_sent - sent) / 1e6)
        comm.barrier()
    finally:
        comm.__dict__.pop("alltoallv", None)
        for name, value in kept.items():
            setattr(user_ids, name, value)
    return {part: statistics.median(times) for part, times in found.items()}


if __name__ == "__main__":
    main()
