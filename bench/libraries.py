"""Compare whole Python calls of mgraph on the CPU with SciPy, NetworkX, igraph and NetworKit, in one run.

    pip install igraph networkit
    python bench/libraries.py rmat:18 NY.gr.xz NE.gr.xz --record

A call begins with the library's own graph in memory and ends when all distances, the forest's edges or all labels are
in Python: as an array, or as what the library returns in its place. Parents are included where a library finds them in
the same call (mgraph, igraph's and SciPy's BFS). Every result is compared with mgraph's validated one: a difference
ends the run. Edges of files without weights get integers 1..255, drawn with seed 1. Times are medians over random
roots, one after another, in milliseconds; after --seconds no further root is begun. At the end comes the table for
README.md, of the first two graphs.
"""

from __future__ import annotations

import pathlib
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click
import numpy as np
import record

import mgraph as mg
from mgraph.api.graph500 import random_roots
from mgraph.backends.cpu import available_cores
from mgraph.generate.spec import is_spec

MAX_WEIGHT = 255
ALGORITHMS = ("bfs", "sssp", "msf", "components")
TITLES = {"bfs": "BFS", "sssp": "SSSP", "msf": "spanning forest", "components": "components"}
# By algorithm and library.
Times = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Edges:
    """The undirected edges of a graph, each once."""

    num_vertices: int
    sources: np.ndarray
    targets: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True)
class Call:
    """A call of a library, and what makes its result comparable: an array of values by vertex, or one number."""

    run: Callable[[int], Any]
    comparable: Callable[[Any], Any]


Calls = dict[str, Call]


def mgraph_calls(edges: Edges, g: mg.Graph) -> Calls:
    """Return the calls of mgraph; results are fetched as arrays."""

    def fetched(result: Any) -> list[np.ndarray]:
        with result:
            return [np.asarray(column) for column in result.columns]

    return {
        "bfs": Call(lambda root: fetched(mg.bfs(g, root)), lambda found: found[0]),
        "sssp": Call(lambda root: fetched(mg.sssp(g, root)), lambda found: found[0]),
        "msf": Call(lambda _: fetched(mg.minimum_spanning_forest(g)), lambda found: found[2].sum()),
        "components": Call(lambda _: fetched(mg.connected_components(g)), lambda found: found[0]),
    }


def scipy_calls(edges: Edges) -> Calls:
    """Return the calls of scipy.sparse.csgraph."""
    import scipy.sparse
    from scipy.sparse import csgraph

    ends = np.concatenate((edges.sources, edges.targets)), np.concatenate((edges.targets, edges.sources))
    weights = np.concatenate((edges.weights, edges.weights)).astype(float)
    matrix = scipy.sparse.csr_array((weights, ends), shape=(edges.num_vertices,) * 2)

    def levels(found: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        order, parents = found
        depth = np.full(edges.num_vertices, -1)
        depth[order[0]] = 0
        for v in order[1:]:
            depth[v] = depth[parents[v]] + 1
        return depth

    return {
        "bfs": Call(lambda root: csgraph.breadth_first_order(matrix, root), levels),
        "sssp": Call(lambda root: csgraph.dijkstra(matrix, indices=root), reached_or_minus_one),
        "msf": Call(lambda _: csgraph.minimum_spanning_tree(matrix), lambda found: found.sum()),
        "components": Call(
            lambda _: csgraph.connected_components(matrix, directed=False), lambda found: smallest_of(found[1])
        ),
    }


def networkx_calls(edges: Edges) -> Calls:
    """Return the calls of NetworkX."""
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(edges.num_vertices))
    graph.add_weighted_edges_from(
        zip(edges.sources.tolist(), edges.targets.tolist(), edges.weights.tolist(), strict=True)
    )

    def by_vertex(found: dict[int, float]) -> np.ndarray:
        values = np.full(edges.num_vertices, -1.0)
        values[list(found)] = list(found.values())
        return values

    def labels(found: list[set[int]]) -> np.ndarray:
        values = np.empty(edges.num_vertices, np.int64)
        for component in found:
            values[list(component)] = min(component)
        return values

    def weight(found: list[tuple]) -> float:
        return sum(data["weight"] for _, _, data in found)

    return {
        "bfs": Call(lambda root: dict(nx.single_source_shortest_path_length(graph, root)), by_vertex),
        "sssp": Call(lambda root: nx.single_source_dijkstra_path_length(graph, root), by_vertex),
        "msf": Call(lambda _: list(nx.minimum_spanning_edges(graph)), weight),
        "components": Call(lambda _: list(nx.connected_components(graph)), labels),
    }


def igraph_calls(edges: Edges) -> Calls:
    """Return the calls of igraph."""
    import igraph

    graph = igraph.Graph(n=edges.num_vertices, edges=np.column_stack((edges.sources, edges.targets)))
    weights = edges.weights.tolist()

    def levels(found: tuple[list[int], list[int], list[int]]) -> np.ndarray:
        order, starts, _ = found
        depth = np.full(edges.num_vertices, -1)
        depth[order] = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        return depth

    return {
        "bfs": Call(graph.bfs, levels),
        "sssp": Call(
            lambda root: graph.distances(root, weights=weights)[0], lambda found: reached_or_minus_one(np.array(found))
        ),
        "msf": Call(
            lambda _: graph.spanning_tree(weights, return_tree=False), lambda found: edges.weights[found].sum()
        ),
        "components": Call(
            lambda _: graph.connected_components().membership, lambda found: smallest_of(np.array(found))
        ),
    }


def networkit_calls(edges: Edges) -> Calls:
    """Return the calls of NetworKit, with a thread for each core."""
    import networkit as nk

    nk.setNumberOfThreads(available_cores())
    graph = nk.GraphFromCoo(
        (edges.weights.astype(float), (edges.sources, edges.targets)), n=edges.num_vertices, weighted=True
    )

    def unreached(found: Any) -> np.ndarray:
        # NetworKit's distance of a vertex that is not reached is the largest double.
        values = np.asarray(found)
        return np.where(values > 1e300, -1, values)

    def distances(search: Callable[..., Any]) -> Callable[[int], Any]:
        return lambda root: search(graph, root, storePaths=False).run().getDistances(asarray=True)

    def labels(_: int) -> Any:
        return nk.components.ParallelConnectedComponents(graph).run().getPartition().getVector()

    return {
        "bfs": Call(distances(nk.distance.BFS), unreached),
        "sssp": Call(distances(nk.distance.Dijkstra), unreached),
        "msf": Call(lambda _: nk.graph.KruskalMSF(graph).run().getForest(), lambda found: found.totalEdgeWeight()),
        "components": Call(labels, lambda found: smallest_of(np.array(found))),
    }


def table(found: dict[str, Times]) -> str:
    """Return the times of some graphs as a table, the least of each row and graph in bold."""
    libraries = ["mgraph", *LIBRARIES]
    lines = [f"| {', '.join(found)} | {' | '.join(libraries)} |", f"| {'--- | ' * len(libraries)}--- |"]
    for algorithm in ALGORITHMS:
        rows = [times[algorithm] for times in found.values()]
        cells = [", ".join(_number(row[library], min(row.values())) for row in rows) for library in libraries]
        lines.append(f"| {TITLES[algorithm]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _number(milliseconds: float, least: float) -> str:
    text = f"{float(f'{milliseconds:.3g}'):,g}"
    return f"**{text}**" if milliseconds == least else text


LIBRARIES = {"SciPy": scipy_calls, "NetworkX": networkx_calls, "igraph": igraph_calls, "NetworKit": networkit_calls}


def reached_or_minus_one(distances: np.ndarray) -> np.ndarray:
    """Return distances with -1 in place of infinity."""
    return np.where(np.isinf(distances), -1, distances)


def smallest_of(labels: np.ndarray) -> np.ndarray:
    """Return the smallest vertex with a vertex's label, for each vertex."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return first[inverse]


def edges_of(g: mg.Graph) -> Edges:
    """Return the edges of a built graph."""
    sources, targets, *rest = g.edges.to_numpy()
    return Edges(g.num_vertices, sources, targets, *rest)


def built(name: str, cluster: mg.Cluster) -> mg.Graph:
    """Read and build a graph; one without weights gets drawn ones."""
    g = mg.read(name, directed=None if is_spec(name) else False, cluster=cluster)
    if g.info.weight_dtype is not None:
        return g
    with g:
        sources, targets = g.edges.to_numpy()
    weights = np.random.default_rng(1).integers(1, MAX_WEIGHT, len(sources), endpoint=True)
    return mg.from_edges(sources, targets, weights, num_vertices=g.num_vertices, directed=False, cluster=cluster)


def measure(call: Call, expected: list[Any], roots: list[int], seconds: float) -> list[float]:
    """Return the milliseconds of a call from each root, as many as fit; each result must be as expected."""
    times: list[float] = []
    began = time.perf_counter()
    for root, right in zip(roots, expected, strict=True):
        started = time.perf_counter()
        found = call.run(root)
        times.append(1e3 * (time.perf_counter() - started))
        np.testing.assert_array_equal(call.comparable(found), right)
        if time.perf_counter() - began > seconds:
            break
    return times


def validated(g: mg.Graph, algorithm: str, roots: list[int]) -> list[Any]:
    """Return mgraph's comparable result of each root, after its validation; also warms up."""
    find = {"bfs": mg.bfs, "sssp": mg.sssp, "msf": mg.minimum_spanning_forest, "components": mg.connected_components}
    has_roots = algorithm in ("bfs", "sssp")
    results = []
    for root in roots if has_roots else roots[:1]:
        with find[algorithm](g, *[root] * has_roots) as result:
            mg.validate(result)
            results.append(result.total_weight if algorithm == "msf" else np.asarray(result.columns[0]))
    return results if has_roots else results * len(roots)


@click.command(help=__doc__)
@click.argument("graphs", nargs=-1, required=True)
@click.option("--roots", "num_roots", type=click.IntRange(1), default=8, show_default=True)
@click.option("--root-seed", type=int, help="By default every run draws other roots.")
@click.option("--seconds", type=float, default=20.0, show_default=True, help="For each library and algorithm.")
@click.option("--record", "recorded", is_flag=True, help="Append the figures to bench/results.")
def main(graphs: tuple[str, ...], num_roots: int, root_seed: int | None, seconds: float, recorded: bool) -> None:
    measured: dict[str, Times] = {}
    for name in graphs:
        with mg.connect(num_ranks=1, backend="cpu") as cluster, built(name, cluster) as g:
            graph = name.replace(":", "") if is_spec(name) else pathlib.Path(name).name.partition(".")[0]
            roots = random_roots(g, num_roots, root_seed)
            edges = edges_of(g)
            expected = {algorithm: validated(g, algorithm, roots) for algorithm in ALGORITHMS}
            found: Times = {algorithm: {} for algorithm in ALGORITHMS}
            click.echo(f"{graph}: {g.num_vertices:,} vertices, {g.num_edges:,} edges")
            for library in ("mgraph", *LIBRARIES):
                calls = mgraph_calls(edges, g) if library == "mgraph" else LIBRARIES[library](edges)
                for algorithm, call in calls.items():
                    times = measure(call, expected[algorithm], roots, seconds)
                    found[algorithm][library] = round(statistics.median(times), 3)
                    click.echo(f"  {algorithm:10} {library:10} {statistics.median(times):10.2f} ms of {len(times)}")
            measured[graph] = found
            for algorithm in ALGORITHMS if recorded else ():
                record.append("cpu", None, {
                    "bench": "libraries", "graph": graph, "algorithm": algorithm, "n": g.num_vertices,
                    "m": g.num_edges, "call_ms": found[algorithm], "cores": available_cores(), "validated": True,
                })  # fmt: skip
    shown = dict(list(measured.items())[:2])
    click.echo(f"\nREADME.md, How fast it is: milliseconds of whole calls on {available_cores()} cores\n")
    click.echo(table(shown))


if __name__ == "__main__":
    main()
