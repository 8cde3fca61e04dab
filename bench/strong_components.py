"""Times of strong components beside SciPy's, rounds and passes, on graphs that are hard in different ways.

Rings, paths and chains have the longest ways, acyclic graphs the most components; `rmat` is an RMAT graph with its arcs
as drawn. With `--road FILE` also a road map, of which one arc in ten is left out so that its directions differ. A round
pushes colors along arcs; a pass is all rounds in one direction; scans are arcs scanned by rounds and by trimming, for
each arc of the graph. One rank searches in depth; on several colors spread, and rounds, passes and scans are theirs.
Every label is compared with SciPy's: a difference ends the run. The table is that of docs/strong-components.md.

    python bench/strong_components.py --scale 18 --road roads/NY.gr.xz
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import numpy as np
import scipy.sparse
from scipy.sparse import csgraph
from timing import least

import mgraph as mg
from mgraph.cluster.in_process import InProcessCluster
from mgraph.generate.rmat import Rmat

SEED = 1
REPEATS = 3
Arcs = tuple[int, np.ndarray, np.ndarray]


def main() -> int:
    """Print a table with a row for each graph."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vertices", type=int, default=100_000, help="of the graphs but rmat and the road map")
    parser.add_argument("--scale", type=int, default=16, help="of rmat")
    parser.add_argument("--road", help="a road map")
    parser.add_argument("--ranks", type=int, default=2, help="of the second cluster")
    given = parser.parse_args()
    graphs = dict(drawn(given.vertices)) | {f"rmat, scale {given.scale}": rmat(given.scale)}
    if given.road:
        graphs["road map, directed"] = road(given.road)
    head = ["graph", "vertices", "arcs", "components", "SciPy ms", "1 rank ms", f"{given.ranks} ranks ms"]
    head += ["rounds", "passes", "scans of an arc"]
    print("docs/strong-components.md, What it costs:\n")
    print(f"| {' | '.join(head)} |\n| {'--- | ' * (len(head) - 1)}--- |")
    with InProcessCluster(1, backend="cpu") as one, InProcessCluster(given.ranks, backend="cpu") as several:
        for name, arcs in graphs.items():
            print(f"| {name} | {' | '.join(row(arcs, one, several))} |", flush=True)
    return 0


def row(arcs: Arcs, one: InProcessCluster, several: InProcessCluster) -> list[str]:
    """Return the cells of a graph."""
    n, sources, targets = arcs
    matrix = scipy.sparse.csr_array((np.ones(len(sources), np.int8), (sources, targets)), shape=(n, n))
    scipy_s, (_, numbers) = least(REPEATS, lambda: csgraph.connected_components(matrix, connection="strong"))
    smallest = np.full(n, n)
    np.minimum.at(smallest, numbers, np.arange(n))
    times = [f"{1e3 * scipy_s:.0f}"]
    for cluster in (one, several):
        with mg.from_edges(sources, targets, num_vertices=n, directed=True, cluster=cluster) as g:
            seconds, found = least(REPEATS, lambda: mg.strongly_connected_components(g))
            if not np.array_equal(found.labels.to_numpy(), smallest[numbers]):
                raise SystemExit(f"labels differ from SciPy's on {cluster}")
            num_arcs = g.num_edges
            times.append(f"{1e3 * seconds:.0f}")
    rounds = [step["method"] for step in found.stats.supersteps if step["method"] != "trim"]
    # The direction of two passes in a row differs.
    passes = sum(a != b for a, b in zip(["", *rounds], rounds, strict=False))
    scans = f"{sum(found.stats.arcs) / num_arcs:.1f}"
    return [str(n), str(num_arcs), str(found.num_components), *times, str(len(rounds)), str(passes), scans]


def drawn(n: int) -> Iterator[tuple[str, Arcs]]:
    """Yield graphs of n vertices by name."""
    random = np.random.default_rng(SEED)
    ids = np.arange(n)
    names = random.permutation(n)
    yield "ring", (n, ids, (ids + 1) % n)
    yield "ring, shuffled ids", (n, names, np.roll(names, -1))
    yield "path", (n, ids[:-1], ids[1:])
    yield "path, shuffled ids", (n, names[:-1], names[1:])
    first = ids[: n - 1 : 2]
    chain = np.concatenate([first, first + 1, first[:-1] + 1]), np.concatenate([first + 1, first, first[1:]])
    yield "chain of cycles of two", (n, *chain)
    yield "chain of cycles of two, shuffled ids", (n, *(names[end] for end in chain))
    u, v = random.integers(0, n, (2, 4 * n))
    yield "acyclic, random arcs", (n, np.minimum(u, v), np.maximum(u, v))
    u = random.integers(0, n - 1, 8 * n)
    yield "acyclic, arcs over at most 20 ids", (n, u, np.minimum(u + random.integers(1, 21, len(u)), n - 1))
    yield "random, mean degree 1.1", (n, *random.integers(0, n, (2, 11 * n // 10)))
    yield "random, mean degree 2", (n, *random.integers(0, n, (2, 2 * n)))


def rmat(scale: int) -> Arcs:
    """Return the arcs of an RMAT graph as drawn."""
    with InProcessCluster(1, backend="cpu") as cluster:
        chunk = Rmat(scale, weights=None).chunk(0, 1, cluster.run(lambda rank: rank.backend)[0])
    return 1 << scale, np.asarray(chunk.sources), np.asarray(chunk.targets)


def road(path: str) -> Arcs:
    """Return the arcs of a road map, both ways, without one in ten."""
    with mg.read(path, directed=False) as g:
        n = g.num_vertices
        u, v, *_ = g.edges.to_numpy()
    kept = np.random.default_rng(SEED).random(2 * len(u)) < 0.9
    return n, np.concatenate([u, v])[kept], np.concatenate([v, u])[kept]


if __name__ == "__main__":
    sys.exit(main())
