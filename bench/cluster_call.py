"""Measure warm calls through a Dask cluster on this host: what a call takes beside its search.

    python bench/cluster_call.py --workers 1 --workers 2 --workers 3
    python bench/cluster_call.py --workers 2 --scale 20 --record
    python bench/cluster_call.py --backend cuda --workers 1 --scale 20

For each number of workers it starts a LocalCluster, or a LocalCUDACluster, and prints milliseconds as one JSON line:
medians, and the 99th of 100, of a call of nothing, of `mg.bfs` of a graph with its result closed, and of the same
beside the seconds of its phases (`Stats.seconds`, each of the slowest rank), with the number of the calls that take
more than 3 ms beside them. `called` is how the calls reached the ranks. `--as-tasks` sends every call as tasks.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from unittest import mock

import click
import record
from distributed import Client, LocalCluster, SpecCluster

import mgraph as mg
from mgraph.api.graph500 import random_roots
from mgraph.cluster.base import Rank
from mgraph.cluster.client_session import ClientSession

# A call is to take at most this much beside its search.
WANTED_MS = 3.0


def nothing(rank: Rank) -> None:
    """Return at once."""


@click.command(help=__doc__)
@click.option("--backend", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option("--workers", type=click.IntRange(min=1), multiple=True, default=(1, 2, 3), show_default=True)
@click.option("--scale", type=int, default=8, show_default=True)
@click.option("--calls", type=click.IntRange(min=10), default=1000, show_default=True)
@click.option("--as-tasks", is_flag=True, help="Send no call directly.")
@click.option("--record", "is_recorded", is_flag=True, help="Append to bench/results.")
@click.option("--commit", help="The commit to record, if this is not a checkout.")
def main(
    backend: str,
    workers: tuple[int, ...],
    scale: int,
    calls: int,
    as_tasks: bool,
    is_recorded: bool,
    commit: str | None,
) -> None:
    for num_workers in workers:
        with ExitStack() as stack:
            if as_tasks:
                stack.enter_context(mock.patch.object(ClientSession, "_may_be_direct", _never))
            facts = measure(backend, num_workers, scale, calls) | {"called": "as tasks" if as_tasks else "directly"}
            print(json.dumps(facts), flush=True)
            if is_recorded:
                record.append(backend, commit, {"bench": "cluster_call"} | facts)


def _never(*_: object) -> bool:
    return False


def start(backend: str, num_workers: int) -> SpecCluster:
    """Start a cluster of workers in processes of their own."""
    options = {"n_workers": num_workers, "threads_per_worker": 1, "memory_limit": 0, "dashboard_address": ":0"}
    if backend == "cpu":
        return LocalCluster(**options)
    from dask_cuda import LocalCUDACluster

    return LocalCUDACluster(**options)


def measure(backend: str, num_workers: int, scale: int, calls: int) -> dict[str, object]:
    """Measure a loop of calls on ranks of a cluster."""
    with (
        start(backend, num_workers) as local,
        Client(local, set_as_default=False) as client,
        mg.connect(client, num_ranks=num_workers) as cluster,
        mg.rmat(scale, cluster=cluster) as g,
    ):
        beside: list[float] = []
        (source,) = random_roots(g, 1, seed=1)

        def search() -> None:
            began = time.perf_counter()
            with mg.bfs(g, source) as found:
                took = sum(found.stats.seconds.values())
            beside.append(time.perf_counter() - began - took)

        return {
            "backend": cluster.backend,
            "workers": num_workers,
            "graph": f"rmat{scale}",
            "calls": calls,
            **_milliseconds("nothing", _seconds(calls, lambda: cluster.run(nothing))),
            **_milliseconds("bfs", _seconds(calls, search)),
            **_milliseconds("beside_the_search", beside[-calls:]),
            f"beside_over_{WANTED_MS:g}_ms": sum(1e3 * s > WANTED_MS for s in beside[-calls:]),
            "load": round(os.getloadavg()[0], 1),
        }


def _seconds(calls: int, once: Callable[[], object]) -> list[float]:
    for _ in range(3):
        once()
    seconds = []
    for _ in range(calls):
        began = time.perf_counter()
        once()
        seconds.append(time.perf_counter() - began)
    return seconds


def _milliseconds(name: str, seconds: list[float]) -> dict[str, float]:
    return {
        f"{name}_ms": round(1e3 * statistics.median(seconds), 2),
        f"{name}_99_of_100_ms": round(1e3 * statistics.quantiles(seconds, n=100)[98], 2),
    }


if __name__ == "__main__":
    main()
