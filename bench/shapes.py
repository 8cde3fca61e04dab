"""Compare mgraph with SciPy on one core over graphs of many shapes, and compare the answers; the slowest cell first.

    python bench/shapes.py --backend cpu --roads ~/roads

Both sides have their graph built, and are timed until NumPy arrays are held: the best of some calls, which take turns.
SciPy runs breadth_first_order, dijkstra with predecessors, minimum_spanning_tree and connected_components. `ratio` is
mgraph's time in what is allowed: SciPy's time, on graphs of fewer than 2^14 edges 0.2 ms more, and where little is
reached the measured time to write 12 bytes a vertex more. `first` is mgraph's first call, with what is prepared and
compiled. The folder --roads has road maps, `NAME.gr.xz`; their weights are random.
"""

from __future__ import annotations

import math
import pathlib
import time
from collections.abc import Callable
from typing import Any

import click
import numpy as np
import record
import scipy.sparse
from scipy.sparse import csgraph
from shape_graphs import SHAPES, Shape, matrix_of, road

import mgraph as mg
from mgraph.api.components import Components
from mgraph.backends.cpu import available_cores

SEED = 1
# Runs of each call for a cell, at most; after SECONDS none begins.
RUNS = 20
SECONDS = 2.0
SMALL_EDGES = 1 << 14
SMALL_MS = 0.2
# Little is reached: at most this share of the vertices.
LITTLE = 1 / 16
ALGORITHMS = ("bfs", "sssp", "components", "msf")


@click.command(help=__doc__)
@click.option("--backend", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option("--size", type=int, default=18, show_default=True, help="Graphs have about 2^SIZE vertices.")
@click.option("--roads", type=click.Path(exists=True, file_okay=False, path_type=pathlib.Path))
@click.option("--shape", "names", multiple=True, help="Only these shapes.")
@click.option("--algorithm", "algorithms", multiple=True, type=click.Choice(ALGORITHMS), default=ALGORITHMS)
def main(
    backend: str, size: int, roads: pathlib.Path | None, names: tuple[str, ...], algorithms: tuple[str, ...]
) -> None:
    files = sorted(roads.glob("*.gr.xz")) if roads else []
    shapes = SHAPES | {f"road {file.name.partition('.')[0]}": Shape(road(file)) for file in files}
    if unknown := [name for name in names if name not in shapes]:
        raise click.BadParameter(f"there is no {', '.join(unknown)}: shapes are {', '.join(shapes)}")
    cells = []
    with mg.connect(num_ranks=1, backend=backend) as cluster:
        write_ms = written(12 << 20) / (1 << 20)
        for name in names or shapes:
            matrix = matrix_of(shapes[name], 1 << size, SEED)
            for cell in measured(matrix, shapes[name].directed, algorithms, cluster, write_ms):
                facts = {"graph": name, "bench": "shapes", "backend": backend, "size": size, "cores": available_cores()}
                facts |= cell
                record.append(backend, None, facts)
                cells.append(facts)
    show(cells)


def measured(
    matrix: scipy.sparse.csr_array, directed: bool, algorithms: tuple[str, ...], cluster: Any, write_ms: float
) -> list[dict]:
    """Return the times of each algorithm on a graph, answers compared; undirected graphs are given as half a matrix."""
    n = matrix.shape[0]
    u, v = ends_of(matrix)
    weights = smallest(matrix.data)
    both = scipy.sparse.csr_array((matrix.data.astype(np.float64), matrix.indices, matrix.indptr), shape=matrix.shape)
    if not directed:
        # Of 32 bits: the spanning trees of SciPy 1.16 take no others.
        ends = np.r_[u, v].astype(np.int32), np.r_[v, u].astype(np.int32)
        both = scipy.sparse.csr_array((np.r_[both.data, both.data], ends), shape=matrix.shape)
    cells = []
    with mg.from_edges(u, v, weights, num_vertices=n, directed=directed, cluster=cluster) as g:
        source = int(np.flatnonzero(np.diff(both.indptr))[0])
        for algorithm in algorithms:
            if algorithm == "msf" and directed:
                continue
            ours, theirs, differs = CELLS[algorithm]
            began = time.perf_counter()
            with ours(g, source) as found:
                read(found)
                first_ms = 1e3 * (time.perf_counter() - began)
                mg.validate(found)
                share = differs(found, theirs(both, source))
                variant = found.stats.variant
            ms, scipy_ms = best(lambda: held(ours(g, source)), lambda: theirs(both, source))  # noqa: B023
            allowed = scipy_ms + (SMALL_MS if len(u) < SMALL_EDGES else 0) + (write_ms * n if share < LITTLE else 0)
            cells.append(
                {"algorithm": algorithm, "variant": variant, "n": n, "m": len(u), "ms": round(ms, 4),
                 "scipy_ms": round(scipy_ms, 4), "allowed_ms": round(allowed, 4), "ratio": round(ms / allowed, 3),
                 "first_ms": round(first_ms, 1), "validated": True}
            )  # fmt: skip
    return cells


def ends_of(matrix: scipy.sparse.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Return source and target of every entry, those of value 0 included."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)), matrix.indices.astype(np.int64)


def smallest(weights: np.ndarray) -> np.ndarray:
    """Return integers in the smallest dtype that holds them."""
    return weights if weights.dtype.kind == "f" else weights.astype(np.min_scalar_type(int(weights.max(initial=0))))


def held(result: Any) -> None:
    """Read a result, and free it."""
    with result:
        read(result)


def read(result: Any) -> list[np.ndarray]:
    """Return the columns of a result."""
    columns = (result.labels,) if isinstance(result, Components) else result
    return [column.to_numpy() for column in columns]


def best(*calls: Callable[[], Any]) -> list[float]:
    """Return the milliseconds of the fastest run of each call; they take turns, so that all see the same noise."""
    times: list[list[float]] = [[] for _ in calls]
    while len(times[0]) < RUNS and sum(map(sum, times)) < 1e3 * SECONDS:
        for call, of_call in zip(calls, times, strict=True):
            began = time.perf_counter()
            call()
            of_call.append(1e3 * (time.perf_counter() - began))
    return [min(of_call) for of_call in times]


def written(num_bytes: int) -> float:
    """Return the milliseconds that allocating and writing a number of bytes takes."""
    (ms,) = best(lambda: np.full(num_bytes, 1, np.uint8))
    return ms


def differ(what: str) -> None:
    raise click.ClickException(f"{what} differ from SciPy's")


def compare_levels(found: Any, theirs: tuple[np.ndarray, np.ndarray]) -> float:
    """Compare what is reached with SciPy's order, and levels with its tree; return the share that is reached."""
    order, parents = theirs
    levels = found.distances.to_numpy()
    reached = np.zeros(len(levels), bool)
    reached[order] = True
    if not np.array_equal(levels >= 0, reached) or (levels[order[1:]] != levels[parents[order[1:]]] + 1).any():
        differ("levels")
    return len(order) / len(levels)


def compare_distances(found: Any, theirs: tuple[np.ndarray, np.ndarray]) -> float:
    distances = found.distances.to_numpy()
    is_reached = distances >= 0 if distances.dtype.kind == "i" else np.isfinite(distances)
    if not np.array_equal(np.where(is_reached, distances, np.inf), theirs[0]):
        differ("distances")
    return float(is_reached.mean())


def compare_components(found: Any, theirs: tuple[int, np.ndarray]) -> float:
    num, labels = theirs
    smallest_of = np.full(num, len(labels))
    np.minimum.at(smallest_of, labels, np.arange(len(labels)))
    if not np.array_equal(found.labels.to_numpy(), smallest_of[labels]):
        differ("components")
    return 1.0


def compare_totals(found: Any, theirs: scipy.sparse.csr_array) -> float:
    if not math.isclose(found.total_weight, math.fsum(theirs.data), rel_tol=1e-12):
        differ("total weights")
    return 1.0


# Of each algorithm mgraph's call, SciPy's, and the comparison of their answers.
CELLS: dict[str, tuple[Callable, Callable, Callable]] = {
    "bfs": (mg.bfs, lambda A, s: csgraph.breadth_first_order(A, s), compare_levels),
    "sssp": (
        mg.sssp,
        lambda A, s: csgraph.dijkstra(A, indices=s, return_predecessors=True),
        compare_distances,
    ),
    "components": (
        lambda g, s: mg.connected_components(g),
        lambda A, s: csgraph.connected_components(A, connection="weak"),
        compare_components,
    ),
    "msf": (
        lambda g, s: mg.minimum_spanning_forest(g),
        lambda A, s: csgraph.minimum_spanning_tree(A),
        compare_totals,
    ),
}


def show(cells: list[dict]) -> None:
    """Print the table, the worst cell first."""
    print(
        f"{'ratio':>7} {'mgraph ms':>10} {'SciPy ms':>10} {'allowed ms':>10} {'first ms':>9}  {'vertices':>9} "
        f"{'edges':>9}  cell"
    )
    for cell in sorted(cells, key=lambda cell: -cell["ratio"]):
        print(
            f"{cell['ratio']:7.2f} {cell['ms']:10.2f} {cell['scipy_ms']:10.2f} {cell['allowed_ms']:10.2f} "
            f"{cell['first_ms']:9.1f}  "
            f"{cell['n']:9} {cell['m']:9}  {cell['graph']}: {cell['variant']}"
        )


if __name__ == "__main__":
    main()
