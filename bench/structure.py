"""Times of structure, beside NetworkX, SciPy, igraph and NetworKit, in one run on the CPU.

Core numbers, bridges, the vertices within two hops of a hub, sides of a bipartite graph, clusters by weights up to the
median (those of a minimum spanning forest that is cut there), and a Steiner tree of 16 vertices. Linkage is
single-linkage clustering of points in a plane from all their distances, which SciPy makes of the same distances.

A call begins with the library's own graph in memory and ends when all results are in Python, as arrays or as what the
library returns in their place. Every result is compared with mgraph's validated one: a difference ends the run (of
Steiner trees, weights that differ by a tenth: they are approximations). Times are the least of some, in milliseconds; a
dash is a library without the function. The tables are those of docs/core-numbers.md, docs/bridges.md,
docs/neighborhoods.md, docs/bipartite.md, docs/spanning-forests.md and docs/steiner-trees.md.

    pip install igraph networkit
    python bench/structure.py rmat:15 uniform:50000:16 grid:150x150
    python bench/structure.py --only bridges --only cut rmat:15
    python bench/structure.py --only linkage points:1000
"""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click
import igraph
import networkx as nx
import numpy as np
import record
import scipy.cluster.hierarchy
import scipy.sparse.csgraph
import scipy.spatial.distance
from timing import least

import mgraph as mg
from mgraph.generate.spec import is_spec

LIBRARIES = ("NetworkX", "SciPy", "igraph", "NetworKit")
REPEATS = 3
HOPS = 2
NUM_TERMINALS = 16
POINTS = "points:"
Call = Callable[[], Any]


@dataclass
class Edges:
    """Edges of an undirected graph, from which each library makes its own graph once."""

    n: int
    sources: np.ndarray
    targets: np.ndarray
    weights: np.ndarray

    @functools.cached_property
    def of_networkx(self) -> nx.Graph:
        graph = nx.Graph()
        graph.add_nodes_from(range(self.n))
        graph.add_weighted_edges_from(zip(*map(np.ndarray.tolist, self._columns), strict=True))
        return graph

    @functools.cached_property
    def of_scipy(self) -> scipy.sparse.csr_array:
        return scipy.sparse.csr_array((self.weights.astype(np.float64), (self.sources, self.targets)), (self.n,) * 2)

    @functools.cached_property
    def of_igraph(self) -> igraph.Graph:
        graph = igraph.Graph(n=self.n, edges=np.column_stack((self.sources, self.targets)))
        graph.es["weight"] = self.weights
        return graph

    @functools.cached_property
    def of_networkit(self) -> Any:
        import networkit as nk

        return nk.GraphFromCoo((self.sources, self.targets), n=self.n)

    @functools.cached_property
    def hub(self) -> int:
        return int(np.bincount(np.append(self.sources, self.targets)).argmax())

    @functools.cached_property
    def median(self) -> float:
        return float(np.median(self.weights))

    @functools.cached_property
    def connected(self) -> nx.Graph:
        """The component of the hub: NetworkX's Steiner trees need a connected graph."""
        return self.of_networkx.subgraph(nx.node_connected_component(self.of_networkx, self.hub)).copy()

    @functools.cached_property
    def terminals(self) -> list[int]:
        vertices = sorted(self.connected)
        return vertices[:: -(-len(vertices) // NUM_TERMINALS)]

    @property
    def _columns(self) -> tuple[np.ndarray, ...]:
        return self.sources, self.targets, self.weights


def core_numbers(g: mg.Graph, edges: Edges) -> Any:
    with mg.core_numbers(g) as found:
        return found.cores.to_numpy()


def core_numbers_of_others(edges: Edges) -> dict[str, Call]:
    def by_networkit() -> list[float]:
        # Its parallel peeling is slower on two cores.
        import networkit as nk

        return nk.centrality.CoreDecomposition(edges.of_networkit, enforceBucketQueueAlgorithm=True).run().scores()

    return {
        "NetworkX": lambda: list(nx.core_number(edges.of_networkx).values()),
        "igraph": edges.of_igraph.coreness,
        "NetworKit": by_networkit,
    }


def bridges(g: mg.Graph, edges: Edges) -> Any:
    with mg.bridges(g) as found:
        return set(zip(*(column.to_numpy().tolist() for column in found), strict=True))


def bridges_of_others(edges: Edges) -> dict[str, Call]:
    def by_igraph() -> set:
        return {tuple(sorted(edges.of_igraph.es[edge].tuple)) for edge in edges.of_igraph.bridges()}

    return {
        "NetworkX": lambda: {tuple(sorted(edge)) for edge in nx.bridges(edges.of_networkx, backend="networkx")},
        "igraph": by_igraph,
    }


def k_hop(g: mg.Graph, edges: Edges) -> Any:
    with mg.k_hop(g, edges.hub, HOPS) as found:
        return found.vertices


def k_hop_of_others(edges: Edges) -> dict[str, Call]:
    def by_scipy() -> np.ndarray:
        how = {"directed": False, "indices": edges.hub, "unweighted": True, "limit": HOPS}
        return np.flatnonzero(np.isfinite(scipy.sparse.csgraph.dijkstra(edges.of_scipy, **how)))

    def by_networkx() -> list[int]:
        return sorted(nx.single_source_shortest_path_length(edges.of_networkx, edges.hub, HOPS, backend="networkx"))

    return {
        "NetworkX": by_networkx,
        "SciPy": by_scipy,
        "igraph": lambda: sorted(edges.of_igraph.neighborhood(edges.hub, HOPS)),
    }


def bipartite(g: mg.Graph, edges: Edges) -> Any:
    with mg.is_bipartite(g) as found:
        return bool(found)


def bipartite_of_others(edges: Edges) -> dict[str, Call]:
    return {
        "NetworkX": lambda: nx.is_bipartite(edges.of_networkx, backend="networkx"),
        "igraph": edges.of_igraph.is_bipartite,
    }


def cut(g: mg.Graph, edges: Edges) -> Any:
    with mg.minimum_spanning_forest(g) as forest, forest.cut(edges.median) as found:
        return found.labels.to_numpy()


def cut_of_others(edges: Edges) -> dict[str, Call]:
    def by_scipy() -> np.ndarray:
        forest = scipy.sparse.csgraph.minimum_spanning_tree(edges.of_scipy)
        forest.data[forest.data > edges.median] = 0
        forest.eliminate_zeros()
        return smallest(scipy.sparse.csgraph.connected_components(forest, directed=False)[1])

    def by_igraph() -> np.ndarray:
        forest = edges.of_igraph.spanning_tree(weights="weight")
        kept = forest.subgraph_edges(forest.es.select(weight_le=edges.median), delete_vertices=False)
        return smallest(np.array(kept.connected_components().membership))

    return {"SciPy": by_scipy, "igraph": by_igraph}


def smallest(labels: np.ndarray) -> np.ndarray:
    """Return for each vertex the smallest one with its label."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return first[inverse]


def steiner_tree(g: mg.Graph, edges: Edges) -> Any:
    with mg.steiner_tree(g, edges.terminals) as found:
        return found.total_weight


def steiner_tree_of_others(edges: Edges) -> dict[str, Call]:
    how = {"method": "mehlhorn", "backend": "networkx"}
    return {"NetworkX": lambda: nx.approximation.steiner_tree(edges.connected, edges.terminals, **how).size("weight")}


def linkage(g: mg.Graph, edges: Edges) -> Any:
    with mg.minimum_spanning_forest(g) as forest:
        return forest.linkage()[:, 2]


def linkage_of_others(edges: Edges) -> dict[str, Call]:
    # Edges of a complete graph are in the order of condensed distances.
    return {"SciPy": lambda: scipy.cluster.hierarchy.linkage(edges.weights, "single")[:, 2]}


FUNCTIONS = {
    "core-numbers": (core_numbers, core_numbers_of_others),
    "bridges": (bridges, bridges_of_others),
    "k-hop": (k_hop, k_hop_of_others),
    "bipartite": (bipartite, bipartite_of_others),
    "cut": (cut, cut_of_others),
    "steiner-tree": (steiner_tree, steiner_tree_of_others),
    "linkage": (linkage, linkage_of_others),
}


def built(name: str, cluster: mg.Cluster) -> mg.Graph:
    """Return an undirected graph of a spec or a file, or the complete one of random points."""
    if name.startswith(POINTS):
        n = int(name.removeprefix(POINTS))
        distances = scipy.spatial.distance.pdist(np.random.default_rng(1).random((n, 2)))
        return mg.from_edges(*np.triu_indices(n, 1), distances, num_vertices=n, cluster=cluster)
    return mg.read(name, directed=None if is_spec(name) else False, cluster=cluster)


def measured(name: str, function: str) -> dict[str, float]:
    """Return the milliseconds of all libraries, and of mgraph on one rank and on two."""
    ours, of_others = FUNCTIONS[function]
    times: dict[str, float] = {}
    results = []
    for num_ranks in (1, 2):
        with mg.connect(num_ranks=num_ranks, backend="cpu") as cluster, built(name, cluster) as g:
            edges = Edges(g.num_vertices, *g.edges.to_numpy())
            validate(g, edges, function)
            seconds, found = least(REPEATS, lambda g=g, edges=edges: ours(g, edges))
            times[f"{num_ranks} rank{'s' * (num_ranks > 1)}"] = 1e3 * seconds
            results.append(found)
    right = results[0]
    compare(name, function, results[1], right)
    for library, call in of_others(edges).items():
        seconds, found = least(REPEATS, call)
        compare(f"{name}: {library}", function, found, right)
        times[library] = 1e3 * seconds
    return times


def validate(g: mg.Graph, edges: Edges, function: str) -> None:
    """Validate mgraph's result by rules."""
    checked: dict[str, Callable[[mg.Graph], Any]] = {
        "core-numbers": mg.core_numbers,
        "bridges": mg.bridges,
        "bipartite": mg.is_bipartite,
        "cut": mg.minimum_spanning_forest,
        "linkage": mg.minimum_spanning_forest,
    }
    if function == "steiner-tree":
        checked[function] = functools.partial(mg.steiner_tree, terminals=edges.terminals)
    if function in checked:
        with checked[function](g) as found:
            mg.validate(found)


def compare(what: str, function: str, found: Any, right: Any) -> None:
    """End the run if results differ."""
    if function == "linkage":
        are_equal = np.allclose(found, right, rtol=1e-12)
    elif function == "steiner-tree":
        are_equal = abs(found - right) <= 0.1 * right
    else:
        are_equal = found == right if isinstance(right, (set, bool)) else np.array_equal(found, right)
    if not are_equal:
        raise SystemExit(f"{what}: {function} differ")


@click.command(help=__doc__)
@click.argument("graphs", nargs=-1, required=True)
@click.option("--only", multiple=True, type=click.Choice([*FUNCTIONS]), help="Functions; all but linkage.")
def main(graphs: tuple[str, ...], only: tuple[str, ...]) -> None:
    warnings.filterwarnings("ignore", category=RuntimeWarning, module="igraph")
    columns = (*LIBRARIES, "1 rank", "2 ranks")
    click.echo(f"| function | graph | {' | '.join(columns)} |\n| {'--- | ' * (len(columns) + 2)}")
    for function in only or [name for name in FUNCTIONS if name != "linkage"]:
        for name in graphs:
            times = measured(name, function)
            cells = [f"{times[column]:.3g}" if column in times else "-" for column in columns]
            click.echo(f"| {function} | {name} | {' | '.join(cells)} |")
            facts = {"bench": "structure", "function": function, "graph": name, "validated": function != "k-hop"}
            facts |= {"load": round(os.getloadavg()[0], 1), "ms": {key: round(ms, 3) for key, ms in times.items()}}
            record.append("cpu", None, facts)


if __name__ == "__main__":
    main()
