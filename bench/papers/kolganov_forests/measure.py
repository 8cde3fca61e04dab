"""RMAT and SSCA#2 graphs of mean degree near 32, float weights: each preparation switched off, CPU and GPU together.

Rows: no preparation; all three (lists sorted by weight, near numbers by a breadth-first search, 32-bit weights), and
all but one; all with compressed neighbors; all with a share of the lists searched by the CPU; all CPU cores alone;
mgraph, which is not timed with any preparation either: its rows are as built. Preparations are not timed, as in the
paper; `prepare_ms` has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import mgraph as mg
from mgraph.api.graph import Graph
from mgraph.types import Array
from papers.kolganov_forests.methods import boruvka, copy_to_host, search_lists, share_with_host
from papers.kolganov_forests.prepare import Arcs, Lists, compress, list_arcs, near_numbers, prepare
from papers.trials import Setting, line_of, timed

TITLE = "Kolganov: minimum spanning forests on GPU and CPU"
ALGORITHMS = ("msf",)
# Some 10^9 distinct weights: what the paper maps to 32 bits.
WEIGHTS = "weights=float64,max_weight=1000000000"
SCALES = (16, 20, 22, 24, 25)
QUICK_SCALES = (8,)
GRAPHS = ("rmat:{0}," + WEIGHTS, "ssca2:{0},max_clique=48," + WEIGHTS)
# What the paper gives the CPU, and less.
SHARES = (0.05, 0.1, 0.25)
# A larger graph takes the CPU alone seconds.
MAX_CPU_SCALE = 22
ALL = {"is_sorted": True, "has_near_numbers": True, "has_ranks": True}
PREPARATIONS = {
    "no preparation": dict.fromkeys(ALL, False),
    "all but sorted lists": ALL | {"is_sorted": False},
    "all but near numbers": ALL | {"has_near_numbers": False},
    "all but 32-bit weights": ALL | {"has_ranks": False},
    "all preparations": ALL,
}
Find = Callable[[], Array]


def measure(setting: Setting) -> Iterator[dict]:
    """Yield a record for each graph and method."""
    for scale in setting.pick(SCALES, QUICK_SCALES):
        for spec in GRAPHS:
            with setting.open(spec.format(scale)) as g:
                yield from _lines(setting, g, has_cpu=setting.backend.name != "cpu" and scale <= MAX_CPU_SCALE)


def _lines(setting: Setting, g: Graph, *, has_cpu: bool) -> Iterator[dict]:
    arcs = list_arcs(setting.backend, setting.rows(g))
    expected = expected_edges(setting, g, arcs)

    def line(method: str, find: Find, repeats: int = setting.sources, **more: object) -> dict:
        find()  # compiles kernels
        times = []
        for _ in range(repeats):
            milliseconds, found = timed(setting.backend, find)
            require_forest(setting, method, found, expected)
            times.append(milliseconds)
        runs_on = "cpu" if "all CPU cores" in method else setting.backend.name
        return line_of(g, "msf", method, times, runs_on=runs_on) | more

    for method, (find, more) in methods_of(setting, g, arcs, has_cpu=has_cpu):
        yield line(method, find, 2 if "all CPU cores" in method else setting.sources, **more)
    times = []
    mg.minimum_spanning_forest(g).close()
    for _ in range(setting.sources):
        with mg.minimum_spanning_forest(g) as result:
            times.append(1e3 * result.stats.seconds["forest"])
    yield line_of(g, "msf", "mgraph", times, runs_on=setting.backend.name)


def methods_of(setting: Setting, g: Graph, arcs: Arcs, *, has_cpu: bool = True) -> Iterator[tuple]:
    """Yield each method's name, its search, and what it took to prepare; the lists are made one after another."""
    backend = setting.backend
    numbers_ms, numbers = timed(backend, lambda: numbers_of(setting, g))

    def prepared(is_sorted: bool, has_near_numbers: bool, has_ranks: bool) -> Lists:
        of = numbers if has_near_numbers else None
        return prepare(backend, arcs, is_sorted=is_sorted, numbers=of, has_ranks=has_ranks)

    def searched(lists: Lists) -> Array:
        return boruvka(backend, lists, search_lists(backend, lists))

    for method, wanted in PREPARATIONS.items():
        prepare_ms, lists = timed(backend, partial(prepared, **wanted))
        prepare_ms += numbers_ms if wanted["has_near_numbers"] else 0
        yield method, (partial(searched, lists), {"prepare_ms": round(prepare_ms, 3)})
    on_host = copy_to_host(backend, lists)

    def shared(share: float) -> Array:
        return boruvka(backend, lists, share_with_host(backend, setting.host, lists, on_host, share))

    for share in SHARES:
        yield f"all preparations, CPU share {share:.0%}", (partial(shared, share), {"cpu_share": share})
    if has_cpu:
        alone = partial(boruvka, setting.host, on_host)
        yield "all preparations, all CPU cores", (lambda: alone(search_lists(setting.host, on_host)), {})
    more_ms, packed = timed(backend, partial(compress, backend, lists))
    facts = {"prepare_ms": round(prepare_ms + more_ms, 3), "bytes_per_arc": packed.compressed.bytes_per_arc}
    yield "all preparations, compressed neighbors", (partial(searched, packed), facts)


def numbers_of(setting: Setting, g: Graph) -> Array:
    """Return new numbers of the vertices by a breadth-first search from the one of most arcs."""
    root = int(setting.backend.to_host(setting.rows(g).indptr[1:] - setting.rows(g).indptr[:-1]).argmax())
    with mg.bfs(g, root) as result:
        levels = setting.backend.to_device(result.distances.to_numpy())
        parents = setting.backend.to_device(result.predecessors.to_numpy())
    return near_numbers(setting.backend, levels, parents)


def expected_edges(setting: Setting, g: Graph, arcs: Arcs) -> Array:
    """Return the numbers of the edges of mgraph's validated forest, sorted."""
    high = np.uint64(32)
    with mg.minimum_spanning_forest(g) as result:
        mg.validate(result)
        ends = (column.to_numpy().astype(np.uint64) for column in (result.sources, result.targets))
        sources, targets = (setting.backend.to_device(end) for end in ends)
    keys = arcs.edge_starts.astype(np.uint64) << high | arcs.edge_ends
    return setting.backend.xp.searchsorted(keys, sources << high | targets)


def require_forest(setting: Setting, method: str, found: Array, expected: Array) -> None:
    """End the run if a forest has other edges."""
    if not isinstance(found, type(expected)):
        expected = setting.backend.to_host(expected)
    found.sort()
    if len(found) != len(expected) or not bool((found == expected).all()):
        raise SystemExit(f"{method}: the forest differs from mgraph's")
