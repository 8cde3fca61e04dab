"""Closeness of some vertices beside SciPy's searches from the same vertices and igraph's closeness, in one run.

By hops on an RMAT graph, and by hops and lengths on road maps (`--road`, random lengths). All have their graph built.
SciPy runs `dijkstra(indices=vertices, unweighted=...)`, of which NumPy then takes the sums. Values are compared: a
difference beyond rounding ends the run. Appends a record for each row; the table is that of docs/closeness.md.

    python bench/closeness.py --scale 16 --road roads/NY.gr.xz
"""

from __future__ import annotations

import argparse
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
    """Print a table with a row for each graph and length."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, default=16, help="of the RMAT graph")
    parser.add_argument("--road", nargs="*", default=[], help="road maps")
    parser.add_argument("--vertices", type=int, default=64, help="number of random vertices")
    given = parser.parse_args()
    print("| graph | lengths | mgraph ms | SciPy ms | igraph ms |\n| --- | --- | --- | --- | --- |")
    with mg.connect(num_ranks=1, backend="cpu") as cluster:
        with mg.rmat(given.scale, weights=None, cluster=cluster) as g:
            measure(g, given.vertices, weighted=False)
        for path in given.road:
            with mg.read(path, cluster=cluster) as roads:
                sources, targets = roads.edges.to_numpy()
                lengths = np.random.default_rng(1).integers(1, 10_000, len(sources))
            with mg.from_edges(sources, targets, lengths, num_vertices=roads.num_vertices, cluster=cluster) as g:
                for weighted in (False, True):
                    measure(g, given.vertices, weighted=weighted)
    return 0


def measure(g: Graph, count: int, *, weighted: bool) -> None:
    """Print and record the row of a graph."""
    sources, targets, *weights = g.edges.to_numpy()
    lengths = weights[0].astype(np.float64) if weighted else np.ones(len(sources))
    n = g.num_vertices
    matrix = scipy.sparse.csr_array((lengths, (sources, targets)), shape=(n, n))
    theirs = igraph.Graph(n=n, edges=np.column_stack((sources, targets)))
    vertices = np.random.default_rng().choice(n, count, replace=False)

    def by_scipy() -> np.ndarray:
        rows = csgraph.dijkstra(matrix, directed=False, indices=vertices, unweighted=not weighted)
        finite = np.isfinite(rows)
        others = finite.sum(axis=1) - 1
        totals = np.where(finite, rows, 0).sum(axis=1)
        return np.where(totals > 0, others / np.maximum(totals, 1) * others / (n - 1), 0)

    def by_igraph() -> np.ndarray:
        # Within the component, without the share that is reached.
        return np.array(theirs.closeness(vertices.tolist(), weights=lengths.tolist() if weighted else None))

    seconds, found = least(REPEATS, lambda: mg.closeness(g, vertices, weighted=weighted))
    scipy_s, expected = least(REPEATS, by_scipy)
    igraph_s, _ = least(REPEATS, by_igraph)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    facts = {"bench": "closeness", "graph": g.name, "weighted": weighted, "vertices": count, "validated": True}
    times = {"ms": seconds, "scipy_ms": scipy_s, "igraph_ms": igraph_s}
    record.append("cpu", None, facts | {name: round(1e3 * s, 2) for name, s in times.items()})
    cells = " | ".join(f"{1e3 * s:.0f}" for s in times.values())
    print(f"| {g.name} | {'weights' if weighted else 'hops'} | {cells} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
