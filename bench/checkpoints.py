"""What checkpoints take of a call, and what is left of one that was stopped at 80 %.

The graph of searches is a long grid, of which they have many supersteps; that of components is directed and random, and
that of a forest undirected and random, or a square grid. A call of two ranks is stopped at the last state that could
be kept before 80 % of its time, and goes on on three, beside a whole call there. Results are compared.

    python bench/checkpoints.py --columns 100000 --every 2
    python bench/checkpoints.py --scale 20 --every 0.2 --calls components forest "forest of a grid"
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import dask

import mgraph as mg
from mgraph.algorithms.components import afforest
from mgraph.cluster.base import Cluster
from mgraph.cluster.in_process import InProcessCluster
from mgraph.rank_jobs.checkpoints import FolderCheckpoints

CALLS: dict[str, Callable[..., Any]] = {
    "bfs.step": lambda g, **how: mg.bfs(g, 0, method="step", **how),
    "bfs.sweep": lambda g, **how: mg.bfs(g, 0, method="sweep", **how),
    "sssp.near_far": lambda g, **how: mg.sssp(g, 0, method="near_far", **how),
    "sssp.sweep": lambda g, **how: mg.sssp(g, 0, method="sweep", **how),
    "components": mg.connected_components,
    "forest": mg.minimum_spanning_forest,
    "forest of a grid": mg.minimum_spanning_forest,
}
ROWS = 64
# Arcs of a vertex in the graph of components.
DEGREE = 64
# Arcs of a round of components: a short call has as many states then as one of minutes.
ROUND_ARCS = 1 << 20
BEFORE = 2
AFTER = 3
STOPPED_AT = 0.8
# The phases of loops.
LOOPS = ("traverse", "predecessors", "find", "forest")


class StopError(Exception):
    """The end of a call by this program."""


def main() -> int:
    """Print a table with a row for each call."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, default=100_000, help=f"of a grid of {ROWS} rows")
    parser.add_argument("--scale", type=int, default=20, help="log2 of the vertices of the other graphs")
    parser.add_argument("--every", type=float, default=2.0, help="seconds between checkpoints")
    parser.add_argument("--calls", nargs="*", choices=CALLS, default=list(CALLS))
    given = parser.parse_args()
    afforest.ROUND_ARCS = ROUND_ARCS
    on_ranks = f"s on {BEFORE} ranks | checkpoints | their share | s on {AFTER} ranks"
    print(f"| call | states | {on_ranks} | s from 80 % on | left | of the loop |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    with dask.config.set({"mgraph.checkpoint-every": given.every}), tempfile.TemporaryDirectory() as folder:
        for name in given.calls:
            make = functools.partial(graph, name, given.columns, given.scale)
            print(f"| {name} | {row(CALLS[name], make, pathlib.Path(folder, 'kept'))} |", flush=True)
    return 0


def graph(name: str, columns: int, scale: int, ranks: Cluster) -> mg.Graph:
    """Return the graph of a call."""
    if name == "components":
        return mg.fixed_out_degree(1 << scale, DEGREE, weights=None, cluster=ranks)
    if name == "forest":
        return mg.rmat(scale, cluster=ranks)
    if name == "forest of a grid":
        return mg.grid(1 << scale // 2, 1 << -(-scale // 2), cluster=ranks)
    return mg.grid(ROWS, columns, drop=0, cluster=ranks)


def row(call: Callable[..., Any], make: Callable[[Cluster], mg.Graph], folder: pathlib.Path) -> str:
    """Return the cells of a call."""
    with InProcessCluster(BEFORE) as ranks, make(ranks) as g:
        expected = digests(call(g))
        with counted() as steps:
            whole_s, found = timed(call, g, checkpoint=folder)
        assert digests(found) == expected
        share = found.stats.seconds["checkpoint"] / whole_s
        stop = sum(at <= STOPPED_AT * whole_s for at in steps.at)
        with counted(stop), contextlib.suppress(StopError):
            call(g, checkpoint=folder)
    with InProcessCluster(AFTER) as ranks, make(ranks) as g:
        call(g)  # loads kernels
        there_s, whole = timed(call, g)
        left_s, resumed = timed(call, g, checkpoint=folder)
        assert digests(resumed) == expected
    left = f"{there_s:.2f} | {left_s:.2f} | {left_s / there_s:.0%}"
    left += f" | {loop_s(resumed) / loop_s(whole):.0%}"
    return f"{len(steps.at)} | {whole_s:.2f} | {steps.kept} | {share:.2%} | {left}"


def loop_s(found: Any) -> float:
    """Return the seconds of a call without the hash of its graph, the checkpoint, and the translation to user ids."""
    return sum(found.stats.seconds.get(phase, 0.0) for phase in LOOPS)


def digests(found: Any) -> list[int]:
    """Return the hashes of a result's columns."""
    return [column.digest() for column in found.columns]


def timed(call: Callable[..., Any], g: mg.Graph, **how: Any) -> tuple[float, Any]:
    """Return the seconds of a call, and its result."""
    began = time.perf_counter()
    found = call(g, **how)
    return time.perf_counter() - began, found


@dataclass
class Steps:
    """The seconds into a call at which a state may be kept, and the number of those that are."""

    at: list[float] = field(default_factory=list)
    kept: int = 0


@contextlib.contextmanager
def counted(stop: int = -1) -> Iterator[Steps]:
    """Note when states of a call may be kept; with `stop`, keep one, the one of this number, and then end the call."""
    is_due = FolderCheckpoints.is_due
    keep = FolderCheckpoints.keep
    found = Steps()
    began = time.perf_counter()

    def counting(self: FolderCheckpoints) -> bool:
        if self._comm.rank:
            return stop < 0 and is_due(self)
        found.at.append(time.perf_counter() - began)
        return len(found.at) == stop if stop >= 0 else is_due(self)

    def keeping(self: FolderCheckpoints, state: Any, since: float | None = None) -> None:
        keep(self, state, since)
        found.kept += not self._comm.rank
        if stop >= 0:
            raise StopError

    FolderCheckpoints.is_due = counting  # type: ignore[method-assign]
    FolderCheckpoints.keep = keeping  # type: ignore[method-assign]
    try:
        yield found
    finally:
        FolderCheckpoints.is_due = is_due  # type: ignore[method-assign]
        FolderCheckpoints.keep = keep  # type: ignore[method-assign]


if __name__ == "__main__":
    sys.exit(main())
