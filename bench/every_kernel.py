"""Every algorithm that one GPU runs, on small graphs, validated: what bench/sanitize.py has the tools look at.

    python bench/every_kernel.py

Takes memory without CuPy's pool. The last line printed is a list of the kernels that were launched.
"""

from __future__ import annotations

import json
from unittest import mock

import cupy

import mgraph as mg
from mgraph.generate.spec import parse_spec
from mgraph.graph import Graph
from mgraph.graph500 import KERNELS, random_roots
from mgraph.kernels.cuda import CudaBackend
from mgraph.kernels.pair import Kernel

# With hubs that a block shares and frontiers worth a pull; with levels enough to walk; with arcs one way.
GRAPHS = (("rmat:12", "rows"), ("rmat:10", "compact"), ("grid:48x48", "rows"), ("fixed:600:4,weights=float32", "rows"))
METHODS = {"rows": ("frontier", "sweep"), "compact": ("sweep",)}


def main() -> None:
    cupy.cuda.set_allocator(None)
    launched: set[str] = set()
    launch = CudaBackend.launch

    def noted(backend: CudaBackend, kernel: Kernel, args: tuple) -> None:
        launched.add(f"{kernel.source.stem}.{kernel.name}")
        launch(backend, kernel, args)

    with mock.patch.object(CudaBackend, "launch", noted), mg.connect(num_ranks=1, backend="cuda") as cluster:
        for spec, layout in GRAPHS:
            with Graph.from_source(parse_spec(spec), cluster=cluster, layout=layout) as g:
                run_all(g)
    print(json.dumps(sorted(launched)))


def run_all(g: Graph) -> None:
    """Run all that there is for a graph of this kind and layout."""
    roots = random_roots(g, 3, seed=1)
    for search in KERNELS.values():
        for method in METHODS[g.info.layout]:
            for sources in (roots[0], roots):
                with search(g, sources, method=method) as found:
                    mg.validate(found)
    if g.info.layout == "compact":
        return
    with mg.bfs_together(g, roots) as together, together.answer(1) as found:
        mg.validate(found)
    with mg.connected_components(g) as components:
        mg.validate(components)
    for maximum in () if g.info.directed else (False, True):
        with mg.minimum_spanning_forest(g, maximum=maximum) as forest:
            mg.validate(forest)


if __name__ == "__main__":
    main()
