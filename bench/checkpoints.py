"""What checkpoints take of a call, and what is left of one that ends at 80 %.

    python bench/checkpoints.py --columns 100000 --calls bfs.step sssp.near_far
    python bench/checkpoints.py --scale 20 --degree 512 --calls components forest --record

The graph of searches is a long grid, of which they have many supersteps; that of components, PageRank and HITS is
directed and random, and that of a forest undirected and random. PageRank and HITS make 100 iterations. On two ranks a
call runs without checkpoints, and with those that the settings say: for how long it has waited for them, and how much
more time it and all its threads on a CPU take. The same call ends at the last superstep before 80 % of its time, and
goes on on three ranks, from whichever checkpoint there is, beside a whole call there. All results are compared.
`--every` and `--share` change the settings; `--pairs 3` compares calls with and without checkpoints three times, by
medians.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import os
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import dask
import numpy as np
import record

import mgraph as mg
from mgraph.cluster.base import Cluster
from mgraph.cluster.in_process import InProcessCluster
from mgraph.rank_jobs.checkpoints import FolderCheckpoints
from mgraph.store.checkpoint import newest_token

CALLS: dict[str, Callable[..., Any]] = {
    "bfs.step": lambda g, **how: mg.bfs(g, 0, method="step", **how),
    "bfs.sweep": lambda g, **how: mg.bfs(g, 0, method="sweep", **how),
    "sssp.near_far": lambda g, **how: mg.sssp(g, 0, method="near_far", **how),
    "sssp.sweep": lambda g, **how: mg.sssp(g, 0, method="sweep", **how),
    "pagerank": lambda g, **how: mg.pagerank(g, tolerance=None, weighted=False, **how),
    "hits": lambda g, **how: mg.hits(g, tolerance=None, weighted=False, **how),
    "components": mg.connected_components,
    "forest": mg.minimum_spanning_forest,
}
ROWS = 64
BEFORE = 2
AFTER = 3
ENDED_AT = 0.8


class EndError(Exception):
    """The end of a call by this program."""


def main() -> int:
    """Print a table with a row for each call."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, default=100_000, help=f"of a grid of {ROWS} rows")
    parser.add_argument("--scale", type=int, default=20, help="log2 of the vertices of the other graphs")
    parser.add_argument("--degree", type=int, default=512, help="arcs of each vertex of these")
    parser.add_argument("--every", type=float, help="seconds between checkpoints")
    parser.add_argument("--share", type=float, help="of the time of a call, at most")
    parser.add_argument("--pairs", type=int, default=1, help="of calls with and without checkpoints")
    parser.add_argument("--backend", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--folder", help="of graphs and checkpoints, in place of one of temporary files")
    parser.add_argument("--calls", nargs="*", choices=CALLS, default=list(CALLS))
    parser.add_argument("--record", action="store_true", help="append to bench/results")
    given = parser.parse_args()
    ours = {"mgraph.checkpoint-every": given.every, "mgraph.checkpoint-share": given.share}
    cells = (
        "call",
        "edges",
        f"s on {BEFORE} ranks",
        "checkpoints",
        "waited",
        "longer",
        "more CPU",
        "kept at",
        "ended at",
    )
    cells += (f"s on {AFTER} ranks", "s from there on", "left", "load")
    print(f"| {' | '.join(cells)} |\n|{' --- |' * len(cells)}")
    with (
        dask.config.set({name: value for name, value in ours.items() if value is not None}),
        tempfile.TemporaryDirectory(dir=given.folder) as folder,
    ):
        for name in given.calls:
            make = functools.partial(graph, name, given)
            ranks_of = functools.partial(InProcessCluster, backend=given.backend)
            facts = measure(CALLS[name], make, ranks_of, folder, given.pairs)
            print(f"| {name} | {' | '.join(itertools.starmap(shown, facts.items()))} |", flush=True)
            if given.record:
                record.append(given.backend, None, {"bench": "checkpoints", "call": name, **vars(given), **facts})
    return 0


def graph(name: str, given: argparse.Namespace, ranks: Cluster) -> mg.Graph:
    """Return the graph of a call."""
    if name in ("components", "pagerank", "hits"):
        return mg.fixed_out_degree(1 << given.scale, given.degree, weights=None, cluster=ranks)
    if name == "forest":
        return mg.uniform(1 << given.scale, given.degree, cluster=ranks)
    return mg.grid(ROWS, given.columns, drop=0, cluster=ranks)


def measure(
    call: Callable[..., Any],
    make: Callable[[Cluster], mg.Graph],
    ranks_of: Callable[[int], Cluster],
    folder: str,
    pairs: int,
) -> dict[str, float]:
    """Return the cells of a call."""
    saved = pathlib.Path(folder, "graph")
    kept = pathlib.Path(folder, "kept")
    with ranks_of(BEFORE) as ranks, make(ranks) as g:
        load_kernels(call, ranks, kept)
        edges = g.num_edges
        plain = []
        keeping = []
        for _ in range(pairs):
            seconds, found = timed(call, g)
            plain.append(seconds)
            expected = digests(found)
            found.close()
            with noted() as whole:
                seconds, found = timed(call, g, checkpoint=kept)
            keeping.append(seconds)
            assert digests(found) == expected
            waited_s = found.stats.seconds["checkpoint"]
            found.close()
        longer, more_cpu = np.median(keeping, 0) / np.median(plain, 0) - 1
        whole_s = keeping[-1][0]
        end = sum(at <= ENDED_AT * whole_s for at in whole.steps)
        with noted(end) as ended, contextlib.suppress(EndError):
            call(g, checkpoint=kept)
        # When it was there in the whole call: how long the call that ended took depends on the load.
        last = ended.kept.get(newest_token(kept), 0)
        g.save(saved, overwrite=True)
    with ranks_of(AFTER) as ranks, mg.load(saved, cluster=ranks) as g:
        load_kernels(call, ranks, kept.with_name("other"))
        (there_s, _), again = timed(call, g)
        assert digests(again) == expected
        again.close()
        (left_s, _), resumed = timed(call, g, checkpoint=kept)
        assert digests(resumed) == expected
    return {
        "edges": edges,
        "whole_s": whole_s,
        "kept": len(whole.kept),
        "waited": waited_s / whole_s,
        "longer": float(longer),
        "more_cpu": float(more_cpu),
        "kept_at": whole.steps[last - 1] / whole_s if last else 0.0,
        "ended_at": whole.steps[end - 1] / whole_s,
        "there_s": there_s,
        "left_s": left_s,
        "left": left_s / there_s,
        "load": os.getloadavg()[0],
    }


def shown(name: str, value: float) -> str:
    """Format a cell: counts, seconds, or a share."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.1f}" if name.endswith(("_s", "load")) else f"{value:.1%}"


def load_kernels(call: Callable[..., Any], ranks: Cluster, folder: pathlib.Path) -> None:
    """Run a call on a small graph."""
    with mg.uniform(1 << 10, cluster=ranks) as g, dask.config.set({"mgraph.checkpoint-share": 1}):
        call(g).close()
        call(g, checkpoint=folder).close()


def digests(found: Any) -> list[int]:
    """Return the hashes of a result's columns."""
    return [column.digest() for column in found.columns]


def timed(call: Callable[..., Any], g: mg.Graph, **how: Any) -> tuple[tuple[float, float], Any]:
    """Return the seconds of a call and those of all threads on a CPU, and its result."""
    began = time.perf_counter()
    cpu_began = time.process_time()
    found = call(g, **how)
    return (time.perf_counter() - began, time.process_time() - cpu_began), found


@dataclass
class Noted:
    """The seconds into a call at which states may be kept; by their tokens, at how many of these they are."""

    steps: list[float] = field(default_factory=list)
    kept: dict[int, int] = field(default_factory=dict)


@contextlib.contextmanager
def noted(end: int = -1) -> Iterator[Noted]:
    """Note when states of a call may be kept, and are; end it at the `end`-th time at which one may be."""
    is_due = FolderCheckpoints.is_due
    keep = FolderCheckpoints.keep
    found = Noted()
    began = time.perf_counter()

    def noting(self: FolderCheckpoints) -> bool:
        if self._comm.rank == 0:
            found.steps.append(time.perf_counter() - began)
            if len(found.steps) == end:
                raise EndError
        return is_due(self)

    def keeping(self: FolderCheckpoints, state: Any, since: float | None = None) -> None:
        keep(self, state, since)
        if self._comm.rank == 0:
            found.kept[self.writer.token] = len(found.steps)

    FolderCheckpoints.is_due = noting  # type: ignore[method-assign]
    FolderCheckpoints.keep = keeping  # type: ignore[method-assign]
    try:
        yield found
    finally:
        FolderCheckpoints.is_due = is_due  # type: ignore[method-assign]
        FolderCheckpoints.keep = keep  # type: ignore[method-assign]


if __name__ == "__main__":
    sys.exit(main())
