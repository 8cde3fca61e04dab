"""Run algorithms on a small graph on one GPU, for bench/sanitize.py.

    python bench/every_kernel.py rmat:12 rows bfs sssp_sweep

It allocates without CuPy's pool. `bfs_multi_gpu` and `sssp_multi_gpu` are the persistent multi-GPU kernels, on one rank
with its own peer buffer. The last line printed is a list of the kernels that were launched.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any
from unittest import mock

import click
import cupy

import mgraph as mg
from mgraph.algorithms.pagerank import bins
from mgraph.algorithms.variants import TABLE
from mgraph.api.graph import Graph
from mgraph.api.graph500 import KERNELS, random_roots
from mgraph.api.traversal_results import Result
from mgraph.backends.cuda import CudaBackend
from mgraph.backends.kernel import Kernel
from mgraph.generate.spec import parse_spec

SEARCHES = {
    name + suffix: method
    for name in KERNELS
    for suffix, method in (("", "frontier"), ("_multi_gpu", "frontier"), ("_sweep", "sweep"))
}
OTHERS = ("together", "components", "strong-components", "core-numbers", "pagerank", "hits", "bridges", "msf")


@click.command(help=__doc__)
@click.argument("spec")
@click.argument("layout", type=click.Choice(["rows", "compact", "host"]))
@click.argument("algorithms", nargs=-1, type=click.Choice([*SEARCHES, *OTHERS]))
def main(spec: str, layout: str, algorithms: tuple[str, ...]) -> None:
    cupy.cuda.set_allocator(None)
    launched: set[str] = set()

    def noted(launch: Callable) -> Callable:
        def note(backend: CudaBackend, kernel: Kernel, *args: Any) -> Any:
            launched.add(f"{kernel.module}.{kernel.name}")
            return launch(backend, kernel, *args)

        return note

    with (
        mock.patch.object(CudaBackend, "launch", noted(CudaBackend.launch)),
        mock.patch.object(CudaBackend, "prepared", noted(CudaBackend.prepared)),
        mg.connect(num_ranks=1, backend="cuda") as cluster,
        Graph.from_source(parse_spec(spec), cluster=cluster, layout=layout) as g,
    ):
        print(g, flush=True)
        for algorithm in algorithms:
            with force_multi_gpu() if algorithm.endswith("_multi_gpu") else nullcontext():
                for result in results(g, algorithm):
                    with result:
                        print(result, flush=True)
                        if algorithm not in ("pagerank", "hits") or layout == "rows":
                            mg.validate(result)
    print(json.dumps(sorted(launched)))


@contextmanager
def force_multi_gpu() -> Iterator[None]:
    """Select the multi-GPU variants for frontier searches."""
    rows = {
        algorithm: (replace(next(v for v in TABLE[algorithm] if v.has_peer_buffers), applies=lambda _: True),)
        for algorithm in KERNELS
    }
    with mock.patch.dict(TABLE, rows):
        yield


def results(g: Graph, algorithm: str) -> Iterator[Result]:
    """Yield the results of an algorithm: from one root and from several, lightest and heaviest."""
    roots = random_roots(g, 3, seed=1)
    if algorithm in SEARCHES:
        search = KERNELS[algorithm.partition("_")[0]]
        method = SEARCHES[algorithm]
        yield search(g, roots[0], method=method)
        if method == "frontier":
            yield search(g, roots, method=method)
    elif algorithm == "together":
        with mg.bfs_together(g, roots) as together:
            yield together.answer(1)
    elif algorithm == "components":
        yield mg.connected_components(g)
    elif algorithm == "core-numbers":
        yield mg.core_numbers(g)
    elif algorithm == "strong-components":
        yield mg.strongly_connected_components(g)
    elif algorithm == "pagerank":
        yield mg.pagerank(g)
        yield mg.pagerank(g, weighted=False, personalization={roots[0]: 1})
        with mock.patch.multiple(bins, MIN_ARCS=0, MAX_SLOTS=1 << 20):
            yield mg.pagerank(g, weighted=False)
    elif algorithm == "bridges":
        yield mg.bridges(g)
    elif algorithm == "hits":
        yield mg.hits(g, tolerance=None, max_iterations=3)
        yield mg.hits(g, tolerance=None, max_iterations=3, weighted=False)
    else:
        yield mg.minimum_spanning_forest(g)
        yield mg.minimum_spanning_forest(g, maximum=True)


if __name__ == "__main__":
    main()
