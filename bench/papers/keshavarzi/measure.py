"""Uniform and RMAT graphs of 4 million vertices, and road maps: the choice at each level beside its rivals.

Rows: two launches over masks (Harish), queues (Luo), a warp for each vertex (Hong), the paper's choice; mgraph. Of the
paper's graphs LiveJournal and the map of California are left out; road maps are read from the folder `--roads`.
"""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Iterator
from functools import partial

import numpy as np
from shape_graphs import road

import mgraph as mg
from mgraph.api.graph import Graph
from papers.keshavarzi.kernels import UNREACHED
from papers.keshavarzi.methods import Adjacency, by_choice, by_mask, by_queue, by_warps
from papers.trials import ORDER, Search, Setting, expected_of, line_of, own_times, search_times

TITLE = "Keshavarzi, Deldari, Abrishami: breadth-first search on CPU and GPU"
ALGORITHMS = ("bfs",)
SPECS = ("uniform:2^20:12", "uniform:2^22:4", "uniform:2^22:12", "uniform:2^22:32", "rmat:22")
ROAD_MAPS = "*.gr.xz"
QUICK_SPECS = ("uniform:2^11:12", "rmat:9", "grid:32x32")


def measure(setting: Setting) -> Iterator[dict]:
    """Yield a record for each graph and method."""
    for opened in graphs(setting):
        with opened as g:
            expected = expected_of(setting, g, "bfs")
            for method, times in search_times(setting.backend, methods_of(setting, g, "bfs"), expected):
                yield line_of(g, "bfs", method, times, runs_on=setting.backend.name)
            own = own_times(g, "bfs", "frontier", expected)
            yield line_of(g, "bfs", "mgraph", own, runs_on=setting.backend.name)


def graphs(setting: Setting) -> Iterator[contextlib.AbstractContextManager[Graph]]:
    """Yield the graphs, generated ones and those of the folder of road maps."""
    for spec in setting.pick(SPECS, QUICK_SPECS):
        yield setting.open(spec)
    for file in sorted(setting.roads.glob(ROAD_MAPS)) if setting.roads else ():
        yield open_road(setting, file)


def open_road(setting: Setting, file: pathlib.Path) -> Graph:
    """Build the graph of a road map."""
    n, sources, targets = road(file)(0, np.random.default_rng(1))
    g = mg.from_edges(sources, targets, num_vertices=n, cluster=setting.cluster, order=ORDER)
    g.name = f"road {file.name.partition('.')[0]}"
    return g


def methods_of(setting: Setting, g: Graph, algorithm: str) -> dict[str, Search]:
    """Return the methods, each a search from a source."""
    rows = setting.rows(g)
    host = setting.on_host(rows.indptr, rows.targets)
    of_search = np.full(g.num_vertices, UNREACHED, np.int32), np.empty(g.num_vertices, np.uint32)
    graph = Adjacency(rows.indptr, rows.targets, (host[0], host[1]), *of_search)
    named = {
        "Harish, masks": by_mask,
        "Luo, queues": by_queue,
        "Hong, a warp for each vertex": by_warps,
        "choice at each level": by_choice,
    }
    return {name: partial(search, setting.backend, graph) for name, search in named.items()}
