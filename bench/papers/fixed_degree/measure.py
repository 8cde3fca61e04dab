"""Directed graphs of a fixed out-degree as large as the paper's, which filled a device of 3 GB.

Rows: the two kernels on the backend; on a GPU also the same two functions on all CPU cores; mgraph. mgraph drops loops
and parallel arcs, of which such graphs have few; rates are in arcs of its graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from mgraph.api.graph import Graph
from mgraph.generate.spec import parse_spec
from mgraph.generate.uniform import FixedOutDegree
from mgraph.types import Array
from papers.fixed_degree.methods import two_kernels
from papers.trials import Search, Setting, expected_of, line_of, own_times, search_times

TITLE = "Breadth-first search with CUDA and OpenMP on graphs of a fixed out-degree"
ALGORITHMS = ("bfs",)
DEGREES = (5, 20, 70)
QUICK_DEGREES = (5, 20)
# The paper's sizes, of which it names the first and the last: targets, and 16 bytes of state for each vertex, in
# multiples of 2^19 vertices.
FILLED_BYTES = 36 * 66_060_288
STATE_BYTES = 16
QUICK_VERTICES = 2048
CPU_SOURCES = 1


def measure(setting: Setting) -> Iterator[dict]:
    """Yield a record for each degree and method."""
    for degree in setting.pick(DEGREES, QUICK_DEGREES):
        n = setting.pick(-(-FILLED_BYTES // (4 * degree + STATE_BYTES) >> 19) << 19, QUICK_VERTICES)
        with setting.open(f"fixed:{n}:{degree},weights=none") as g:
            expected = expected_of(setting, g, "bfs")
            for method, times in search_times(setting.backend, methods_of(setting, g, "bfs"), expected):
                yield line_of(g, "bfs", method, times, runs_on=setting.backend.name)
            if setting.backend.name != "cpu":
                few = setting.expected_on_host(expected[:CPU_SOURCES])
                for method, times in search_times(setting.host, on_cores(setting, g), few):
                    yield line_of(g, "bfs", method, times, runs_on="cpu")
            own = own_times(g, "bfs", "frontier", expected)
            yield line_of(g, "bfs", "mgraph", own, runs_on=setting.backend.name)


def methods_of(setting: Setting, g: Graph, algorithm: str) -> dict[str, Search]:
    """Return the paper's method."""
    targets, degree = targets_of(setting, g)
    return {"two kernels a level": partial(two_kernels, setting.backend, targets, degree)}


def on_cores(setting: Setting, g: Graph) -> dict[str, Search]:
    """Return the same method on all CPU cores."""
    targets, degree = targets_of(setting, g)
    (targets,) = setting.on_host(targets)
    return {"two kernels a level, all CPU cores": partial(two_kernels, setting.host, targets, degree)}


def targets_of(setting: Setting, g: Graph) -> tuple[Array, int]:
    """Return the generated targets, vertex by vertex, loops and parallel arcs included; and the out-degree."""
    source = parse_spec(f"fixed:{g.num_vertices}:{g.info.max_degree},weights=none")
    assert isinstance(source, FixedOutDegree)
    chunk = source.chunk(0, 1, setting.backend)
    return chunk.targets.astype(np.uint32, copy=False), source.out_degree
