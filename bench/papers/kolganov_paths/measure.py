"""RMAT graphs of mean degree 32: what segments, the read-only path and one read of an edge gain.

Rows: one thread for each edge (base); each optimization alone; both; both, with each direction read by itself; for BFS
both, with narrow levels by vertex, where the paper launches a kernel from a kernel; the base on all CPU cores. Then
mgraph: its sweep, which keeps segments and one read of an edge, and its default; and the default with one of the
author's later ideas switched off: hybrid traversal (no pull), local sorting (plain rows), renumbering (natural order).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from functools import partial
from unittest import mock

from cost_model import CHOICES, PLACES, forget

from mgraph.api.graph import Graph
from papers.kolganov_paths import kernels
from papers.kolganov_paths.methods import (
    EdgeList,
    levels,
    levels_by_vertices,
    list_edges,
    shortest_paths,
    sort_by_segments,
)
from papers.trials import (
    Expected,
    Search,
    Setting,
    expected_of,
    has_persistent_kernels,
    line_of,
    own_times,
    search_times,
)

ALGORITHMS = ("bfs", "sssp")
TITLE = "Kolganov: breadth-first search and shortest paths over a list of edges"
SCALES = (14, 18, 19, 20, 21, 22, 24)
QUICK_SCALES = (8, 9)
# A larger graph takes the CPU seconds from each source.
MAX_CPU_SCALE = 20
# A segment of states is this part of the cache: the groups of edges use two, and the list streams by.
CACHE_SHARE = 8
# The loop over an edge list, the bytes of its state, and its kernels: base, read-only path, each direction by itself.
LOOPS = {
    "bfs": (levels, 1, (kernels.advance_edges, kernels.advance_edges_read_only, kernels.advance_arcs)),
    "sssp": (shortest_paths, 8, (kernels.relax_edges, kernels.relax_edges_read_only, kernels.relax_arcs)),
}


def measure(setting: Setting) -> Iterator[dict]:
    """Yield a record for each graph, algorithm and method."""
    for scale in setting.pick(SCALES, QUICK_SCALES):
        with setting.open(f"rmat:{scale}") as g:
            for algorithm in LOOPS:
                expected = expected_of(setting, g, algorithm)
                for method, times in search_times(setting.backend, methods_of(setting, g, algorithm), expected):
                    yield line_of(g, algorithm, method, times, runs_on=setting.backend.name)
                if scale <= MAX_CPU_SCALE and setting.backend.name != "cpu":
                    few = setting.expected_on_host(expected[:2])
                    for method, times in search_times(setting.host, on_cores(setting, g, algorithm), few):
                        yield line_of(g, algorithm, method, times, runs_on="cpu")
                natural = own_times(g, algorithm, "frontier", expected)
                yield line_of(g, algorithm, "mgraph, natural order", natural, runs_on=setting.backend.name)
        with setting.open(f"rmat:{scale}", "degree") as g:
            for algorithm in LOOPS:
                yield from own_lines(setting, g, algorithm, expected_of(setting, g, algorithm))


def methods_of(setting: Setting, g: Graph, algorithm: str) -> dict[str, Search]:
    """Return the paper's methods, each a search from a source."""
    backend = setting.backend
    rows = setting.rows(g)
    loop, state_bytes, (base, read_only, by_arcs) = LOOPS[algorithm]
    segment = backend.cache_bytes // CACHE_SHARE // state_bytes
    edges = list_edges(backend, rows)
    by_segment = sort_by_segments(backend, edges, segment)

    def over(kernel: kernels.Kernel, edges: EdgeList) -> Search:
        return partial(loop, backend, kernel, edges, g.num_vertices)

    def each_direction(source: int) -> object:
        return loop(backend, by_arcs, arcs(), g.num_vertices, source)

    @functools.cache
    def arcs() -> EdgeList:
        return sort_by_segments(backend, list_edges(backend, rows, each_once=False), segment)

    found = {
        "base": over(base, edges),
        "read-only": over(read_only, edges),
        "segments": over(base, by_segment),
        "segments, read-only": over(read_only, by_segment),
    }
    if algorithm == "bfs":
        found["segments, read-only, narrow levels by vertex"] = partial(
            levels_by_vertices, backend, read_only, by_segment, rows
        )
    return found | {"segments, read-only, each direction by itself": each_direction}


def on_cores(setting: Setting, g: Graph, algorithm: str) -> dict[str, Search]:
    """Return the base on all CPU cores."""
    loop, _, (base, *_) = LOOPS[algorithm]
    edges = list_edges(setting.backend, setting.rows(g))
    on_host = EdgeList(*setting.on_host(edges.starts, edges.ends, edges.weights))
    return {"base, all CPU cores": partial(loop, setting.host, base, on_host, g.num_vertices)}


def own_lines(setting: Setting, g: Graph, algorithm: str, expected: list[Expected]) -> Iterator[dict]:
    """Yield the rows of mgraph, in degree order."""

    def line(name: str, method: str) -> dict:
        return line_of(g, algorithm, name, own_times(g, algorithm, method, expected), runs_on=setting.backend.name)

    yield line("mgraph, sweep", "sweep")
    shard = setting.rank.objects[g._key]
    if has_persistent_kernels(setting.backend):
        with mock.patch.object(*PLACES[algorithm], CHOICES[algorithm]["rates, no pull"]):
            g.cluster.run(forget, g._key)
            yield line("mgraph, no pull", "persistent")
        g.cluster.run(forget, g._key)
        # A search that was prepared before takes no lightest arcs again.
        own_times(g, algorithm, "persistent", expected[:1])
        if algorithm == "sssp" and shard.lightest_arcs is not None:
            with mock.patch.object(shard, "lightest_arcs", None):
                yield line("mgraph, plain rows", "persistent")
    yield line("mgraph", "frontier")
