"""Measure the parts of a call of mg.bfs on one GPU, in microseconds.

    python bench/call.py rmat20 rmat22

Each part is a function, timed without the parts that it calls; the table has the median of each over the roots. Times
of kernels are those of their trace. The translation is compared with the least time of its memory accesses: the bytes
of its tables at the rate of a stream, its lookups at the rate of random loads from a table of that size.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest import mock

import click
import numpy as np
import record
from floors import STREAM, random_load
from run import source_of

import mgraph as mg
from mgraph.algorithms import run_variant
from mgraph.api import traversal as traversals
from mgraph.api.graph import Graph
from mgraph.api.graph500 import random_roots
from mgraph.backends import cuda
from mgraph.backends.cuda import CudaBackend
from mgraph.rank_jobs import traversal as jobs

# The parts: module or class, function, and the key in records.
PARTS: tuple[tuple[Any, str, str], ...] = (
    (jobs, "prepare", "is all there that the method needs"),
    (run_variant, "positions_of", "source to position: orders, read back"),
    (jobs, "search", "the search: memory, orders"),
    (cuda, "_launch", "launches"),
    (CudaBackend, "synchronize", "waiting"),
    (cuda._Mark, "__call__", "waiting"),
    (jobs, "_translate", "translation: memory, arguments"),
    (jobs, "store_traversal", "the result besides"),
    (traversals, "traverse", "the job besides"),
    (traversals, "bfs", "arguments, lease, result"),
)
WARM_UP = 5


class Clock:
    """Accumulate seconds by part, each without the parts that it calls."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._inside: list[float] = []

    def timed(self, name: str, function: Callable) -> Callable:
        """Return the function, timed as a part."""

        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            self._inside.append(0.0)
            started = time.perf_counter()
            try:
                return function(*args, **options)
            finally:
                took = time.perf_counter() - started
                self.seconds[name] = self.seconds.get(name, 0.0) + took - self._inside.pop()
                if self._inside:
                    self._inside[-1] += took

        return call


@click.command(help=__doc__)
@click.argument("graphs", nargs=-1, required=True, metavar="GRAPH...")
@click.option("--sources", type=int, default=32, show_default=True)
@click.option("--commit", help="The commit to record, if this is not a checkout.")
def main(graphs: tuple[str, ...], sources: int, commit: str | None) -> None:
    with mg.connect(num_ranks=1, backend="cuda") as cluster:
        for name in graphs:
            with Graph.from_source(source_of(name, "none"), cluster=cluster) as g:
                facts = {"bench": "call", "graph": name, "gpus": 1, "algorithm": "bfs", **measure(g, sources)}
            show(facts)
            record.append("cuda", commit, facts)


def measure(g: Graph, sources: int) -> dict:
    """Search from random roots; return the median microseconds of calls and their parts."""
    roots = random_roots(g, sources + WARM_UP, None)
    calls = [_call(g, root) for root in roots][WARM_UP:]
    parts = [_timed_call(g, root) for root in roots][WARM_UP:]
    names = list(dict.fromkeys(name for part in parts for name in part))
    connected = g.num_vertices - g.info.num_isolated
    return {
        "sources": sources,
        "call_us": _median([1e6 * seconds for seconds, _, _ in calls]),
        "kernels_us": _median([kernels for _, kernels, _ in calls]),
        "translate_us": _median([1e6 * translate for _, _, translate in calls]),
        "translate_memory_us": round(1e6 * translate_memory(g.num_vertices, connected), 1),
        "parts_us": {name: _median([1e6 * part.get(name, 0.0) for part in parts]) for name in names},
    }


def _median(values: list[float]) -> float:
    return round(statistics.median(values), 1)


def _call(g: Graph, root: int) -> tuple[float, float, float]:
    """Return seconds of a call, microseconds of its kernels, seconds of its translation."""
    started = time.perf_counter()
    result = mg.bfs(g, root)
    seconds = time.perf_counter() - started
    stats = result.stats
    result.close()
    return seconds, sum(step["microseconds"] for step in stats.supersteps), stats.seconds["translate"]


def _timed_call(g: Graph, root: int) -> dict[str, float]:
    """Return the seconds of every part of a call."""
    clock = Clock()
    with ExitStack() as stack:
        for owner, attribute, name in PARTS:
            timed = clock.timed(name, getattr(owner, attribute))
            stack.enter_context(mock.patch.object(owner, attribute, timed))
        result = traversals.bfs(g, root)
    result.close()
    return clock.seconds


def translate_memory(n: int, connected: int) -> float:
    """Return the least seconds to translate n user ids, `connected` of them with arcs.

    Positions are read in a stream, levels and predecessors are written in one; the parent is a random lookup. Lookups
    of the parent's user id and level are not counted: most are those of hubs, which are in the cache.
    """
    return n * (4 + 4 + 8) / STREAM + connected * random_load(4 * connected)


def show(facts: dict) -> None:
    """Print the parts of a call."""
    print(f"{facts['graph']}: a call {facts['call_us']} us, its kernels {facts['kernels_us']} us, ", end="")
    print(f"translation {facts['translate_us']} us, its memory {facts['translate_memory_us']} us")
    for name, microseconds in facts["parts_us"].items():
        print(f"    {microseconds:8.1f}  {name}")
    print(f"    {np.round(sum(facts['parts_us'].values()), 1):8.1f}  sum, clock included", flush=True)


if __name__ == "__main__":
    main()
