"""Workers under Dask's memory limit: a call that does not fit is refused, and one that fits succeeds."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import dask
import numpy as np
import psutil
import pytest
import rank_programs as programs
from dask_processes import wait_until
from distributed import Client
from worker_processes import worker_processes

import mgraph as mg
from mgraph.cluster import client_session
from mgraph.cluster.dask import DaskCluster
from mgraph.cluster.worker_memory import free_of_worker
from mgraph.errors import ClusterError, GangLost, WouldNotFit
from mgraph.formatting import readable_bytes
from mgraph.rank_jobs.build import free_bytes

MB = 10**6


@contextlib.contextmanager
def limited(memory_limit, n_workers=2, **options):
    """Start workers with a memory limit; yield a client, and a cluster of ranks on them."""
    if options.get("processes", True):
        options["env"] = {"CUDA_VISIBLE_DEVICES": ""}
    started = worker_processes(n_workers, memory_limit=memory_limit, **options)
    with started as workers, Client(workers, set_as_default=False) as client, DaskCluster(client) as cluster:
        yield client, cluster


def memory_of_workers(client: Client) -> dict[str, int]:
    return client.run(lambda dask_worker: dask_worker.monitor.get_process_memory())


@pytest.fixture(scope="module")
def small_limit() -> int:
    """Return a limit that leaves a worker 60 MB more than it needs for small graphs."""
    with limited(0, n_workers=1) as (client, cluster):
        with mg.rmat(15, cluster=cluster) as g, mg.minimum_spanning_forest(g) as forest, mg.bfs(g, 1) as found:
            mg.validate(forest)
            mg.validate(found)
        return int((max(memory_of_workers(client).values()) + 60 * MB) / 0.8)


@pytest.mark.ci
@pytest.mark.parametrize("more", [0, 160 * MB])
def test_graph_that_exceeds_the_worker_limit_is_refused_without_losing_workers(small_limit, more):
    memory_limit = small_limit + int(more / 0.8)
    limit = readable_bytes(memory_limit)
    with limited(memory_limit) as (client, cluster):
        ids = client.run(lambda dask_worker: dask_worker.id)
        with pytest.raises(WouldNotFit, match="MiB") as refused:
            mg.minimum_spanning_forest(mg.rmat(21, cluster=cluster))
        assert f"at 80% of the worker's memory limit, {limit}: start workers with --memory-limit 0" in str(
            refused.value
        )
        assert "memory_limit=0" in str(refused.value)
        # No worker was ended, and a graph that fits succeeds.
        assert client.run(lambda dask_worker: dask_worker.id) == ids
        with mg.rmat(15, cluster=cluster) as g, mg.minimum_spanning_forest(g) as forest, mg.bfs(g, 1) as found:
            mg.validate(forest)
            mg.validate(found)
        assert client.run(lambda dask_worker: dask_worker.id) == ids


@pytest.mark.ci
def test_forest_that_does_not_fit_beside_its_graph_is_refused():
    with limited("600MB") as (_, cluster), mg.rmat(20, cluster=cluster) as g:
        # The forest needs 50 MB.
        cluster.run(programs.fill, "other data", min(cluster.run(free_bytes)) - 25 * MB)
        with pytest.raises(WouldNotFit, match=r"a spanning forest takes .* at 80% of the worker's memory limit"):
            mg.minimum_spanning_forest(g)
        cluster.forget("other data")
        with mg.minimum_spanning_forest(g) as forest:
            mg.validate(forest)


def test_free_memory_is_the_rest_of_the_worker_limit():
    with limited("1GB") as (client, cluster):
        for free, used in zip(cluster.run(free_bytes), memory_of_workers(client).values(), strict=True):
            # A worker's limit is not shared with the other worker of the host.
            assert free == pytest.approx(800 * MB - used, abs=20 * MB)


@pytest.mark.ci
@pytest.mark.parametrize(
    ("pause", "terminate", "fraction"), [(0.5, 0.95, 0.5), (False, 0.9, 0.9), (0.8, False, 0.8), (False, False, None)]
)
def test_free_memory_follows_the_workers_pause_and_terminate_fractions(pause, terminate, fraction):
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


def test_worker_without_a_limit_has_the_free_memory_of_its_host():
    with limited(0, n_workers=1) as (client, cluster):
        assert list(client.run(lambda dask_worker: free_of_worker(dask_worker)).values()) == [None]
        assert cluster.run(free_bytes)[0] > 1000 * MB


def test_workers_of_one_process_share_its_limit():
    # Relative to the present size of this process, which other tests have grown.
    memory_limit = int((psutil.Process().memory_info().rss + 800 * MB) / 0.8)
    with limited(memory_limit, processes=False) as (client, cluster):
        used = max(memory_of_workers(client).values())
        for free in cluster.run(free_bytes):
            assert free == pytest.approx((0.8 * memory_limit - used) / 2, abs=40 * MB)


# Workers that are paused or ended for their memory use; the memory is allocated outside of ranks, as by user code.


def hold(num_bytes, dask_worker):
    """Make a worker's process use `num_bytes` in all, or no more than its own memory if that is larger."""
    dask_worker.held_by_test = None
    dask_worker.held_by_test = np.ones(max(num_bytes - dask_worker.monitor.get_process_memory(), 0), np.uint8)


def plugin_of(client):
    return client.cluster.scheduler.plugins["mgraph"]


def address_of(client, rank):
    (gang,) = plugin_of(client)._gangs.values()
    return gang.workers[rank]


def status_of(client, address):
    return client.cluster.scheduler.workers[address].status.name


@pytest.fixture
def paused():
    """Two ranks on workers with 400 MB, and a function that makes Dask pause or resume the worker of rank 1."""
    with limited("400MB") as (client, cluster):
        cluster.run(programs.nothing)
        address = address_of(client, 1)

        def pause(*, on=True):
            client.run(hold, 350 * MB if on else 0, workers=[address])
            wait_until(lambda: status_of(client, address) == ("paused" if on else "running"))
            if on:
                # A client that keeps a lease returns it.
                wait_until(lambda: not plugin_of(client)._leases._leases)

        yield client, cluster, address, pause


def check_pause_is_named(error, address):
    assert f"worker {address} is paused by Dask" in str(error.value)
    assert re.search(r"it uses \d+ MiB of its memory limit, 381 MiB", str(error.value))
    assert "--memory-limit 0" in str(error.value)


@pytest.mark.ci
def test_worker_paused_before_a_call_is_named(paused, monkeypatch):
    _, cluster, address, pause = paused
    monkeypatch.setattr(client_session, "KEPT_S", 1000.0)
    # A direct call, whose lease is kept.
    cluster.run(programs.nothing)
    pause()
    for _ in range(2):
        with pytest.raises(ClusterError) as error:
            cluster.run(programs.total)
        check_pause_is_named(error, address)
    pause(on=False)
    assert [r[2] for r in cluster.run(programs.total)] == [3, 3]


@pytest.mark.ci
def test_worker_paused_before_the_tasks_of_a_call_are_sent_is_named(paused, monkeypatch):
    client, cluster, address, pause = paused

    async def accept(workers):
        pass

    monkeypatch.setattr(plugin_of(client)._pauses, "refuse", accept)
    pause()
    with pytest.raises(ClusterError) as error:
        cluster.run_and_store(programs.total)
    check_pause_is_named(error, address)
    pause(on=False)
    assert [r[2] for r in cluster.run(programs.total)] == [3, 3]


@pytest.mark.ci
def test_worker_paused_after_it_received_the_task_of_a_call_is_named(paused, tmp_path):
    client, cluster, address, pause = paused
    marker = str(tmp_path / "m")
    # Occupies the worker's only thread, so that the task waits there.
    napping = client.submit(programs.nap, marker, workers=[address], pure=False)
    wait_until(lambda: os.path.exists(f"{marker}-begun"))
    with ThreadPoolExecutor(1) as pool:
        called = pool.submit(cluster.run_and_store, programs.total)
        wait_until(lambda: len(client.cluster.scheduler.workers[address].processing) == 2)
        pause()
        with pytest.raises(ClusterError) as error:
            called.result(30)
    check_pause_is_named(error, address)
    (tmp_path / "m-over").write_text("")
    pause(on=False)
    napping.result(30)
    assert [r[2] for r in cluster.run(programs.total)] == [3, 3]


@pytest.mark.ci
@pytest.mark.parametrize("seen", [True, False])
def test_short_pause_of_a_worker_ends_no_call(paused, seen, monkeypatch):
    client, cluster, _, pause = paused
    monkeypatch.setattr("mgraph.cluster.pauses.RESUME_S", 30.0)
    pauses = plugin_of(client)._pauses
    waiting = threading.Event()
    refuse = pauses.refuse

    async def refuse_if_seen(workers):
        waiting.set()
        if seen:
            await refuse(workers)

    monkeypatch.setattr(pauses, "refuse", refuse_if_seen)
    pause()
    with ThreadPoolExecutor(1) as pool:
        called = pool.submit(cluster.run, programs.total)
        wait_until(waiting.is_set)
        pause(on=False)
        assert [r[2] for r in called.result(30)] == [3, 3]


@pytest.mark.ci
def test_worker_ended_by_its_nanny_for_its_memory_use_is_replaced(paused, tmp_path):
    client, cluster, address, _ = paused
    marker = str(tmp_path / "m")

    def fill():
        wait_until(lambda: os.path.exists(f"{marker}-1"))
        client.run(hold, 395 * MB, workers=[address], on_error="ignore")

    with ThreadPoolExecutor(1) as pool:
        pool.submit(fill)
        # The nanny logs the cause while it ends the worker: the scheduler may notice the broken connection first.
        with pytest.raises(
            GangLost, match=r"its nanny ended it, as it used|its connection to the scheduler broke"
        ) as lost:
            cluster.run(programs.compute, marker)
    assert (lost.value.rank, lost.value.worker) == (1, address)
    (tmp_path / "m-over").write_text("")
    client.wait_for_workers(2, timeout=30)
    assert [r[2] for r in cluster.run(programs.total)] == [3, 3]


@pytest.mark.ci
def test_event_of_the_nanny_is_the_cause_of_the_loss_of_its_worker(paused, tmp_path):
    client, cluster, address, _ = paused
    marker = str(tmp_path / "m")
    event = {"worker": address, "rss": 390 * MB}
    pid = client.run(os.getpid, workers=[address])[address]

    def log_and_kill():
        wait_until(lambda: os.path.exists(f"{marker}-1"))
        client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.log_event("worker-restart-memory", event))
        os.kill(pid, signal.SIGKILL)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(log_and_kill)
        with pytest.raises(
            GangLost, match=r"its nanny ended it, as it used 372 MiB.* start workers with --memory-limit 0"
        ):
            cluster.run(programs.compute, marker)
    (tmp_path / "m-over").write_text("")
