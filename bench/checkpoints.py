"""What checkpoints take of a search, and what is left of one that was stopped at 80 %.

The graph is a long grid, of which a search has many supersteps. A search of two ranks is stopped at a
checkpoint after 80 % of its supersteps, and goes on on three, beside a whole search there. Results are compared.

    python bench/checkpoints.py --columns 100000 --every 2
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import dask

import mgraph as mg
from mgraph.cluster.in_process import InProcessCluster
from mgraph.rank_jobs.checkpoints import FolderCheckpoints

SEARCHES: dict[str, Callable[..., Any]] = {
    "bfs.step": lambda g, **how: mg.bfs(g, 0, method="step", **how),
    "bfs.sweep": lambda g, **how: mg.bfs(g, 0, method="sweep", **how),
    "sssp.near_far": lambda g, **how: mg.sssp(g, 0, method="near_far", **how),
    "sssp.sweep": lambda g, **how: mg.sssp(g, 0, method="sweep", **how),
}
ROWS = 64
BEFORE = 2
AFTER = 3
STOPPED_AT = 0.8


class StopError(Exception):
    """The end of a search by this program."""


def main() -> int:
    """Print a table with a row for each search."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, default=100_000, help=f"of a grid of {ROWS} rows")
    parser.add_argument("--every", type=float, default=2.0, help="seconds between checkpoints")
    parser.add_argument("--searches", nargs="*", choices=SEARCHES, default=list(SEARCHES))
    given = parser.parse_args()
    print(f"| search | steps | s on {BEFORE} ranks | checkpoints | their share | s on {AFTER} | s left there | left |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    with dask.config.set({"mgraph.checkpoint-every": given.every}), tempfile.TemporaryDirectory() as folder:
        for name in given.searches:
            print(f"| {name} | {row(SEARCHES[name], given.columns, pathlib.Path(folder, 'kept'))} |", flush=True)
    return 0


def row(search: Callable[..., Any], columns: int, folder: pathlib.Path) -> str:
    """Return the cells of a search."""
    with InProcessCluster(BEFORE) as ranks, mg.grid(ROWS, columns, drop=0, cluster=ranks) as g:
        expected = search(g).distances.digest()
        with counted() as steps:
            whole_s, found = timed(search, g, checkpoint=folder)
        assert found.distances.digest() == expected
        share = found.stats.seconds["checkpoint"] / whole_s
        with counted(int(STOPPED_AT * steps.steps)), contextlib.suppress(StopError):
            search(g, checkpoint=folder)
    with InProcessCluster(AFTER) as ranks, mg.grid(ROWS, columns, drop=0, cluster=ranks) as g:
        there_s, _ = timed(search, g)
        left_s, resumed = timed(search, g, checkpoint=folder)
        assert resumed.distances.digest() == expected
    left = f"{there_s:.1f} | {left_s:.1f} | {left_s / there_s:.0%}"
    return f"{steps.steps} | {whole_s:.1f} | {steps.kept} | {share:.2%} | {left}"


def timed(search: Callable[..., Any], g: mg.Graph, **how: Any) -> tuple[float, Any]:
    """Return the seconds of a search, and its result."""
    began = time.perf_counter()
    found = search(g, **how)
    return time.perf_counter() - began, found


@dataclass
class Steps:
    """The supersteps of a search after which a checkpoint may be kept, and the checkpoints that are."""

    steps: int = 0
    kept: int = 0


@contextlib.contextmanager
def counted(stop: int = -1) -> Iterator[Steps]:
    """Count the supersteps of a search; with `stop`, keep one checkpoint, after that many, and then end the search."""
    is_due = FolderCheckpoints.is_due
    keep = FolderCheckpoints.keep
    found = Steps()

    def counting(self: FolderCheckpoints) -> bool:
        if self._comm.rank:
            return stop < 0 and is_due(self)
        found.steps += 1
        return found.steps == stop if stop >= 0 else is_due(self)

    def keeping(self: FolderCheckpoints, state: Any) -> None:
        keep(self, state)
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
