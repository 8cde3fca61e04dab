"""Times of core numbers beside NetworkX, igraph and NetworKit, in one run on the CPU.

A call begins with the library's own graph in memory and ends when all numbers are in Python, as an array or as what the
library returns in its place. Every result is compared with mgraph's validated one: a difference ends the run. Times are
the least of some, in milliseconds. The table is that of docs/core-numbers.md.

    pip install igraph networkit
    python bench/structure.py rmat:15 uniform:50000:16 grid:150x150
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
from timing import least

import mgraph as mg
from mgraph.generate.spec import is_spec

REPEATS = 3


def main() -> int:
    """Print a table with a row for each graph."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+", help="a spec, or a file")
    given = parser.parse_args()
    head = ["graph", "vertices", "edges", "NetworkX", "igraph", "NetworKit", "1 rank", "2 ranks"]
    print(f"| {' | '.join(head)} |\n| {'--- | ' * (len(head) - 1)}--- |")
    for name in given.graphs:
        print(f"| {name} | {' | '.join(row(name))} |", flush=True)
    return 0


def row(name: str) -> list[str]:
    """Return the cells of a graph."""
    times = []
    right = None
    for num_ranks in (1, 2):
        with mg.connect(num_ranks=num_ranks, backend="cpu") as cluster, built(name, cluster) as g:
            with mg.core_numbers(g) as found:
                mg.validate(found)
            seconds, cores = least(REPEATS, lambda g=g: mg.core_numbers(g).cores.to_numpy())
            times.append(seconds)
            assert right is None or np.array_equal(right, cores)
            right = cores
            sizes = g.num_vertices, g.num_edges
            sources, targets, *_ = g.edges.to_numpy()
    libraries = []
    for call in calls(sizes[0], sources, targets):
        seconds, found = least(REPEATS, call)
        if not np.array_equal(found, right):
            raise SystemExit(f"{name}: core numbers differ")
        libraries.append(seconds)
    return [*map(str, sizes), *(f"{1e3 * seconds:.3g}" for seconds in (*libraries, *times))]


def built(name: str, cluster: mg.Cluster) -> mg.Graph:
    """Return an undirected graph of a spec, or of a file."""
    return mg.read(name, directed=None if is_spec(name) else False, cluster=cluster)


def calls(n: int, sources: np.ndarray, targets: np.ndarray) -> tuple[Callable[[], Any], ...]:
    """Return the calls of NetworkX, igraph and NetworKit; its parallel peeling is slower on two cores."""
    import igraph
    import networkit as nk

    of_networkx = nx.Graph()
    of_networkx.add_nodes_from(range(n))
    of_networkx.add_edges_from(zip(sources.tolist(), targets.tolist(), strict=True))
    of_igraph = igraph.Graph(n=n, edges=np.column_stack((sources, targets)))
    of_networkit = nk.GraphFromCoo((sources, targets), n=n)

    def by_networkit() -> list[float]:
        return nk.centrality.CoreDecomposition(of_networkit, enforceBucketQueueAlgorithm=True).run().scores()

    return lambda: list(nx.core_number(of_networkx).values()), of_igraph.coreness, by_networkit


if __name__ == "__main__":
    sys.exit(main())
