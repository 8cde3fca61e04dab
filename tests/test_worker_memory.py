"""Workers with a memory limit of Dask's: what does not fit is refused, and what fits runs to its end."""

from __future__ import annotations

import contextlib

import dask
import pytest
import rank_programs as programs
from distributed import Client, LocalCluster

import mgraph as mg
from mgraph.cluster.dask import DaskCluster
from mgraph.cluster.worker_memory import free_of_worker
from mgraph.errors import WouldNotFit
from mgraph.jobs import free_bytes

MB = 10**6


@contextlib.contextmanager
def limited(memory_limit, n_workers=2, **options):
    """Start workers with a limit; yield a client of theirs, and the ranks on them."""
    made = LocalCluster(
        n_workers=n_workers, threads_per_worker=1, memory_limit=memory_limit, dashboard_address=":0", **options
    )
    with made as workers, Client(workers, set_as_default=False) as client, DaskCluster(client) as cluster:
        yield client, cluster


def memory_of_workers(client: Client) -> dict[str, int]:
    return client.run(lambda dask_worker: dask_worker.monitor.get_process_memory())


@pytest.mark.parametrize(("memory_limit", "said"), [("500MB", "477 MiB"), ("300MB", "286 MiB")])
def test_what_does_not_fit_a_worker_is_refused_by_its_limit(memory_limit, said):
    with limited(memory_limit) as (client, cluster):
        begun = client.run(lambda dask_worker: dask_worker.id)
        with pytest.raises(WouldNotFit, match="MiB") as refused:
            mg.minimum_spanning_forest(mg.rmat(21, cluster=cluster))
        assert f"at 80% of the worker's memory limit, {said}: start workers with --memory-limit 0" in str(refused.value)
        assert "memory_limit=0" in str(refused.value)
        # None of them was ended for it, and what fits runs to its end.
        assert client.run(lambda dask_worker: dask_worker.id) == begun
        with mg.rmat(15, cluster=cluster) as g, mg.minimum_spanning_forest(g) as forest, mg.bfs(g, 1) as found:
            mg.validate(forest)
            mg.validate(found)
        assert client.run(lambda dask_worker: dask_worker.id) == begun


def test_a_forest_that_does_not_fit_beside_its_graph_is_refused():
    with limited("500MB") as (_, cluster), mg.rmat(20, cluster=cluster) as g:
        # The forest takes 50 MB.
        cluster.run(programs.fill, "other data", min(cluster.run(free_bytes)) - 25 * MB)
        with pytest.raises(WouldNotFit, match=r"a spanning forest takes .* at 80% of the worker's memory limit"):
            mg.minimum_spanning_forest(g)
        cluster.forget("other data")
        with mg.minimum_spanning_forest(g) as forest:
            mg.validate(forest)


def test_what_is_free_is_what_a_worker_has_left_of_its_limit():
    with limited("1GB") as (client, cluster):
        for free, used in zip(cluster.run(free_bytes), memory_of_workers(client).values(), strict=True):
            # A limit of its own is not shared with the other worker of the host.
            assert free == pytest.approx(800 * MB - used, abs=20 * MB)


@pytest.mark.parametrize(
    ("pause", "terminate", "fraction"), [(0.5, 0.95, 0.5), (False, 0.9, 0.9), (0.8, False, 0.8), (False, False, None)]
)
def test_fractions_are_those_of_the_worker(pause, terminate, fraction):
    fractions = {"distributed.worker.memory.pause": pause, "distributed.worker.memory.terminate": terminate}
    with dask.config.set(fractions), limited("1GB", n_workers=1) as (client, cluster):
        left = client.run(lambda dask_worker: free_of_worker(dask_worker))
        (used,) = memory_of_workers(client).values()
        (free,) = left.values()
        if fraction is None:
            assert free is None
            assert cluster.run(free_bytes)[0] > 1000 * MB
        else:
            assert free.num_bytes == pytest.approx(fraction * 1000 * MB - used, abs=20 * MB)
            assert f"at {fraction:.0%} of" in free.limit


def test_a_worker_without_a_limit_has_what_its_host_has():
    with limited(0, n_workers=1) as (client, cluster):
        assert list(client.run(lambda dask_worker: free_of_worker(dask_worker)).values()) == [None]
        assert cluster.run(free_bytes)[0] > 1000 * MB


def test_workers_of_one_process_share_its_limit():
    with limited("2GB", processes=False) as (client, cluster):
        used = max(memory_of_workers(client).values())
        for free in cluster.run(free_bytes):
            assert free == pytest.approx((1600 * MB - used) / 2, abs=40 * MB)
