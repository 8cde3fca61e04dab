"""Random and SSCA#2 graphs of 128 to 16,384 vertices, weights 1..1000: tiers of queues beside masks.

Rows: the mask-based search of IIIT; Moore's queue with a launch for each layer (K3 alone); in three tiers (K1, K2, K3);
mgraph. The limits of the tiers are a block's threads, and those of a block on each multiprocessor.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from mgraph.api.graph import Graph
from papers.guo.kernels import BLOCK
from papers.guo.methods import by_mask, by_queue, pair_up, resident_threads
from papers.trials import Search, Setting, expected_of, line_of, own_times, search_times

TITLE = "Guo et al.: shortest paths by Moore's algorithm"
ALGORITHMS = ("sssp",)
LOGARITHMS = range(7, 15)
QUICK_LOGARITHMS = (7, 9)
# GTgraph's random graphs have 10 arcs for each vertex.
GRAPHS = ("uniform:2^{0}:10,max_weight=1000", "ssca2:{0},max_weight=1000")


def measure(setting: Setting) -> Iterator[dict]:
    """Yield a record for each graph and method."""
    for spec in GRAPHS:
        for logarithm in setting.pick(LOGARITHMS, QUICK_LOGARITHMS):
            with setting.open(spec.format(logarithm)) as g:
                expected = expected_of(setting, g, "sssp")
                for method, times in search_times(setting.backend, methods_of(setting, g, "sssp"), expected):
                    yield line_of(g, "sssp", method, times, runs_on=setting.backend.name)
                own = own_times(g, "sssp", "frontier", expected)
                yield line_of(g, "sssp", "mgraph", own, runs_on=setting.backend.name)


def methods_of(setting: Setting, g: Graph, algorithm: str) -> dict[str, Search]:
    """Return the paper's methods, each a search from a source."""
    backend = setting.backend
    graph = pair_up(backend, setting.rows(g))
    return {
        "IIIT, mask": partial(by_mask, backend, graph),
        "queue, a launch for each layer": partial(by_queue, backend, graph, 0, 0),
        "queue, three tiers": partial(by_queue, backend, graph, BLOCK, resident_threads(backend)),
    }
