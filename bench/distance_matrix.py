"""Distances from some vertices to all beside SciPy's `dijkstra` and igraph's `distances`, in one run.

By weights on an RMAT graph, and by hops and weights on road maps (`--road`, weights 1 to 255). All have their graph
built, and return a matrix in Python. Distances are compared: a difference ends the run. Appends a record for each row,
with the machine's load: mgraph uses all cores and SciPy one, so that other work on them changes the ratio. The table is
that of docs/many-roots.md.

    python bench/distance_matrix.py --scale 16 --road roads/NY.gr.xz
"""

from __future__ import annotations

import argparse
import os
import sys

import igraph
import numpy as np
import record
import scipy.sparse
from scipy.sparse import csgraph
from timing import least

import mgraph as mg
from mgraph.api.graph import Graph

REPEATS = 3


def main() -> int:
    """Print a table with a row for each graph and kind of distances."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, default=16, help="of the RMAT graph")
    parser.add_argument("--road", nargs="*", default=[], help="road maps")
    parser.add_argument("--sources", type=int, default=64, help="number of random sources")
    given = parser.parse_args()
    print("| graph | distances | mgraph ms | SciPy ms | igraph ms | load |\n| --- | --- | --- | --- | --- | --- |")
    with mg.connect(num_ranks=1, backend="cpu") as cluster:
        with mg.rmat(given.scale, cluster=cluster) as g:
            for weighted in (False, True):
                measure(g, given.sources, weighted=weighted)
        for path in given.road:
            with mg.read(path, cluster=cluster) as roads:
                sources, targets = roads.edges.to_numpy()
                weights = np.random.default_rng(1).integers(1, 256, len(sources)).astype(np.uint8)
            with mg.from_edges(sources, targets, weights, num_vertices=roads.num_vertices, cluster=cluster) as g:
                for weighted in (False, True):
                    measure(g, given.sources, weighted=weighted)
    return 0


def measure(g: Graph, count: int, *, weighted: bool) -> None:
    """Print and record the row of a graph."""
    sources, targets, weights = g.edges.to_numpy()
    n = g.num_vertices
    matrix = scipy.sparse.csr_array((weights.astype(np.float64), (sources, targets)), shape=(n, n))
    theirs = igraph.Graph(n=n, edges=np.column_stack((sources, targets)))
    vertices = np.random.default_rng(3).choice(n, count, replace=False)

    def by_mgraph() -> np.ndarray:
        with mg.distance_matrix(g, vertices, weighted=weighted) as found:
            return found.to_numpy()

    def by_scipy() -> np.ndarray:
        return csgraph.dijkstra(matrix, directed=False, indices=vertices, unweighted=not weighted)

    def by_igraph() -> list[list[float]]:
        return theirs.distances(vertices.tolist(), weights=weights.tolist() if weighted else None)

    seconds, found = least(REPEATS, by_mgraph)
    scipy_s, expected = least(REPEATS, by_scipy)
    igraph_s, _ = least(1, by_igraph)
    np.testing.assert_array_equal(np.where(found < 0, np.inf, found), expected)
    load = round(os.getloadavg()[0], 1)
    facts = {"bench": "distance_matrix", "graph": g.name, "weighted": weighted, "sources": count, "validated": True}
    times = {"ms": seconds, "scipy_ms": scipy_s, "igraph_ms": igraph_s}
    record.append("cpu", None, facts | {name: round(1e3 * s, 2) for name, s in times.items()} | {"load": load})
    cells = " | ".join(f"{1e3 * s:.0f}" for s in times.values())
    print(f"| {g.name} | {'weights' if weighted else 'hops'} | {cells} | {load} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
