"""Distances from some vertices to all beside SciPy's `dijkstra` and igraph's `distances`, in one run.

By weights on an RMAT graph, and by hops and weights on road maps (`--road`, weights 1 to 255). All have their graph
built, and return a matrix in Python. Distances are compared: a difference ends the run. Appends a record for each row,
with the machine's load: mgraph uses all cores and SciPy one, so that other work on them changes the ratio. The table is
that of docs/many-roots.md.

    python bench/distance_matrix.py --scale 16 --road roads/NY.gr.xz
    python bench/distance_matrix.py --scale 16 --road roads/NY.gr.xz --workers 2 4

With `--workers` the loops by weights are compared instead, on these numbers of CPU ranks of this process: all sources
as one computation (mgraph/algorithms/distance_matrix/near_far.py) beside one search after another, in turns.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import time
from collections.abc import Iterator
from unittest import mock

import igraph
import numpy as np
import record
import scipy.sparse
from scipy.sparse import csgraph
from timing import least

import mgraph as mg
from mgraph.algorithms.distance_matrix import near_far, one_by_one
from mgraph.api.graph import Graph
from mgraph.cluster.base import Cluster
from mgraph.rank_jobs import distance_matrix as job

REPEATS = 3


def main() -> int:
    """Print a table with a row for each graph and kind of distances."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, default=16, help="of the RMAT graph")
    parser.add_argument("--road", nargs="*", default=[], help="road maps")
    parser.add_argument("--sources", type=int, default=64, help="number of random sources")
    parser.add_argument("--workers", type=int, nargs="*", default=[], help="numbers of ranks: compares their loops")
    given = parser.parse_args()
    if given.workers:
        print("| graph | ranks | one computation, ms | one by one, ms | load |\n| --- | --- | --- | --- | --- |")
        for num_ranks in given.workers:
            for g in graphs(given.scale, given.road, num_ranks):
                compare_loops(g, given.sources, num_ranks)
        return 0
    print("| graph | distances | mgraph ms | SciPy ms | igraph ms | load |\n| --- | --- | --- | --- | --- | --- |")
    for g in graphs(given.scale, given.road, 1):
        for weighted in (False, True):
            measure(g, given.sources, weighted=weighted)
    return 0


def graphs(scale: int, roads: list[str], num_ranks: int) -> Iterator[Graph]:
    """Yield the RMAT graph and the road maps, on CPU ranks of this process."""
    with mg.connect(num_ranks=num_ranks, backend="cpu") as cluster:
        with mg.rmat(scale, cluster=cluster) as g:
            yield g
        for path in roads:
            with weighted_roads(path, cluster) as g:
                yield g


def weighted_roads(path: str, cluster: Cluster) -> Graph:
    """Return a road map with random weights."""
    with mg.read(path, cluster=cluster) as roads:
        sources, targets = roads.edges.to_numpy()
        weights = np.random.default_rng(1).integers(1, 256, len(sources)).astype(np.uint8)
        return mg.from_edges(sources, targets, weights, num_vertices=roads.num_vertices, cluster=cluster)


def random_vertices(g: Graph, count: int) -> np.ndarray:
    """Return vertices, the same on every run."""
    return np.random.default_rng(3).choice(g.num_vertices, count, replace=False)


def compare_loops(g: Graph, count: int, num_ranks: int) -> None:
    """Print and record the row of a graph: the least times of both loops, which find equal distances."""
    vertices = random_vertices(g, count)
    loops = {"ms": near_far.VARIANT, "one_by_one_ms": one_by_one.VARIANT}
    seconds = dict.fromkeys(loops, float("inf"))
    digests = set()
    for _ in range(1 + REPEATS):
        for name, variant in loops.items():
            always = dataclasses.replace(variant, applies=lambda conditions: True)
            with mock.patch.object(job, "DISTANCE_MATRIX", (always,)):
                began = time.perf_counter()
                with mg.distance_matrix(g, vertices) as found:
                    took = time.perf_counter() - began
                    digests.add(found.distances.digest())
            seconds[name] = min(seconds[name], took)
    assert len(digests) == 1, "the loops find different distances"
    load = round(os.getloadavg()[0], 1)
    times = {name: round(1e3 * s, 2) for name, s in seconds.items()}
    facts = {"bench": "distance_matrix", "graph": g.name, "weighted": True, "sources": count, "ranks": num_ranks}
    record.append("cpu", None, facts | times | {"load": load})
    print(f"| {g.name} | {num_ranks} | {' | '.join(f'{ms:.0f}' for ms in times.values())} | {load} |", flush=True)


def measure(g: Graph, count: int, *, weighted: bool) -> None:
    """Print and record the row of a graph."""
    sources, targets, weights = g.edges.to_numpy()
    n = g.num_vertices
    matrix = scipy.sparse.csr_array((weights.astype(np.float64), (sources, targets)), shape=(n, n))
    theirs = igraph.Graph(n=n, edges=np.column_stack((sources, targets)))
    vertices = random_vertices(g, count)

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
