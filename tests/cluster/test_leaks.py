"""Calls leave nothing behind on scheduler, workers and client, however they end."""

from __future__ import annotations

import gc
import os
import pathlib
import signal
import threading
import time
import warnings

import numpy as np
import pytest
import rank_programs as programs
from dask.sizeof import sizeof
from dask_processes import wait_until

import mgraph as mg
from mgraph.cluster import task_call
from mgraph.cluster.dask import DaskCluster
from mgraph.cluster.task_call import TaskCall
from mgraph.errors import CommAborted, GangLost, MgraphError
from mgraph.io.memory import edges_table, id_options
from mgraph.io.parts import in_parts

NUM_EDGES = 400_000


@pytest.fixture
def cluster(client):
    client.wait_for_workers(2, timeout=60)
    with DaskCluster(client, 2, open_timeout_s=30) as cluster:
        cluster.run(programs.total)
        # Workers forget a task after the scheduler does, and `held` counts both.
        wait_until(lambda: not (client.cluster.scheduler.tasks or any(client.run(num_tasks).values())))
        yield cluster


def num_tasks(dask_worker) -> int:
    return len(dask_worker.state.tasks)


def held_by_worker(dask_worker) -> dict[str, int]:
    plugin = dask_worker.plugins["mgraph"]
    held = {name: len(getattr(plugin, name)) for name in ("_networks", "_objects", "_backends")}
    return held | {"tasks": len(dask_worker.state.tasks), "data": len(dask_worker.data)}


def held(client) -> dict:
    """Count the records of calls on the scheduler, on each worker, and in the client."""
    scheduler = client.cluster.scheduler
    plugin = scheduler.plugins["mgraph"]
    names = "_places", "_gangs", "_sessions", "_calls", "_call_of"
    counts: dict = {name: len(getattr(plugin, name)) for name in names}
    counts |= {"leases": len(plugin._leases._leases), "tasks": len(scheduler.tasks), "futures": len(client.futures)}
    return counts | {"workers": sorted(map(str, client.run(held_by_worker).values()))}


def check_held(client, before: dict) -> None:
    """Wait until no more is held than before; tests disable the garbage collector, which would hide cycles."""
    last = None

    def same() -> bool:
        nonlocal last
        last = held(client)
        return last == before

    try:
        wait_until(same, 20)
    except AssertionError:
        assert last == before


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.ci
def test_failed_calls_leave_nothing(cluster, client, no_collector):
    before = held(client)
    errors = []
    for bad in range(150):
        with pytest.raises(ZeroDivisionError) as caught:
            cluster.run(programs.fail_on, bad % 2)
        # The errors are kept, and must not keep their calls.
        errors.append(caught.value)
    check_held(client, before)
    with pytest.raises(ZeroDivisionError):
        cluster.run_and_store(programs.fail_on, 0)
    check_held(client, before)
    assert len(cluster.run(programs.total)) == 2


@pytest.mark.parametrize("program", ["hold_and_fail", "hold_behind_a_failure", "hold_in_a_verb"])
def test_arguments_of_a_failed_call_are_freed_on_workers(cluster, client, program):
    with pytest.raises(ZeroDivisionError):
        cluster.run(getattr(programs, program), programs.Tracked())

    def count() -> int:
        import gc

        import rank_programs

        gc.collect()
        return len(rank_programs.Tracked.living)

    wait_until(lambda: set(client.run(count).values()) == {0}, 10)


def test_successful_calls_leave_nothing(cluster, client, no_collector):
    before = held(client)
    for _ in range(20):
        cluster.run(programs.total)
    results = cluster.run_and_store(programs.total)
    assert held(client)["tasks"] == before["tasks"] + 2
    del results
    check_held(client, before)


@pytest.mark.ci
@pytest.mark.parametrize("gather", [True, False])
def test_interrupted_calls_leave_nothing(cluster, client, tmp_path, gather):
    before = held(client)
    run = cluster.run if gather else cluster.run_and_store
    for i in range(3):
        with pytest.raises(KeyboardInterrupt):
            run(programs.interrupt_caller, os.getpid(), str(tmp_path / f"m{i}"))
    check_held(client, before)


def test_call_interrupted_while_it_waits_for_its_lease_leaves_nothing(cluster, client, tmp_path):
    before = held(client)
    marker = str(tmp_path / "m")
    first = threading.Thread(target=cluster.run, args=(programs.wait_for, 1, marker))
    first.start()
    wait_until(lambda: os.path.exists(f"{marker}-0"))
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        cluster.run(programs.total)
    pathlib.Path(f"{marker}-over").write_text("")
    first.join(30)
    check_held(client, before)


def test_cluster_closed_during_its_calls_leaves_nothing(cluster, client, tmp_path):
    before = held(client)
    marker = str(tmp_path / "m")
    errors = []
    other = DaskCluster(client, 2, open_timeout_s=30)

    def call() -> None:
        with pytest.raises(MgraphError) as caught:
            other.run(programs.wait_for, 1, marker)
        errors.append(caught.type)

    calls = [threading.Thread(target=call) for _ in range(3)]
    for thread in calls:
        thread.start()
    wait_until(lambda: os.path.exists(f"{marker}-0") and held(client)["_calls"] == 3)
    other.close()
    for thread in calls:
        thread.join(30)
    pathlib.Path(f"{marker}-over").write_text("")
    assert errors == [CommAborted] * 3
    check_held(client, before)


def test_call_that_a_restart_made_its_client_forget_leaves_nothing(cluster, client, tmp_path):
    """The scheduler restarts, receives the tasks of a call, and only then does its client learn of the restart."""
    before = held(client)
    marker = str(tmp_path / "m")

    def learn() -> None:
        wait_until(lambda: all(os.path.exists(f"{marker}-{rank}") for rank in (0, 1)))
        client.loop.add_callback(client._handle_restart)

    learning = threading.Thread(target=learn)
    learning.start()
    with pytest.raises(CommAborted, match="cancelled"):
        cluster.run_and_store(programs.compute, marker)
    learning.join()
    pathlib.Path(f"{marker}-over").write_text("")
    check_held(client, before)


def edges(num_edges: int = NUM_EDGES) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    u, v = np.random.default_rng(3).integers(0, 1000, (2, num_edges))
    return u, v, np.linspace(0.5, 2.0, num_edges)


def test_size_of_a_part_equals_that_of_its_edges():
    u, v, w = edges()
    for weights, num_bytes in ((None, 8), (w, 16)):
        for part in in_parts(edges_table(u, v, weights, how=id_options(1 << 33)), 2):
            assert 0 <= sizeof(part) - num_bytes * NUM_EDGES // 2 < 1000


class Scattered:
    """Records the client's calls of scatter."""

    def __init__(self, client, monkeypatch) -> None:
        self.calls: list[dict] = []
        real = client.scatter
        monkeypatch.setattr(client, "scatter", lambda *args, **kw: (self.calls.append(kw), real(*args, **kw))[1])


@pytest.mark.ci
def test_large_parts_are_sent_directly_to_their_workers(cluster, client, monkeypatch):
    # By default a part that takes 2 s, on a busy machine, is sent through the scheduler.
    monkeypatch.setattr(task_call, "ERROR_WAIT_S", 60.0)
    before = held(client)
    scattered = Scattered(client, monkeypatch)
    through_scheduler = []
    real = client.cluster.scheduler.handlers["scatter"]
    monkeypatch.setitem(
        client.cluster.scheduler.handlers, "scatter", lambda **kw: (through_scheduler.append(1), real(**kw))[1]
    )
    u, v, w = edges()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with mg.from_edges(u, v, w, cluster=cluster) as g:
            assert g.num_vertices == 1000
        assert [len(call["workers"]) for call in scattered.calls] == [1, 1]
        with mg.from_edges(u[:1000], v[:1000], cluster=cluster):
            assert len(scattered.calls) == 2
    assert not through_scheduler
    check_held(client, before)


@pytest.mark.ci
def test_parts_are_sent_through_the_scheduler_if_workers_are_unreachable(cluster, client, monkeypatch):
    before = held(client)

    async def unreachable(*args, **kwargs):
        raise OSError("no route to host")

    monkeypatch.setattr("distributed.client.scatter_to_workers", unreachable)
    u, v, w = edges()
    with mg.from_edges(u, v, w, cluster=cluster) as g:
        assert g.num_vertices == 1000
    check_held(client, before)


@pytest.mark.ci
def test_input_of_a_failed_build_is_freed(cluster, client, no_collector):
    before = held(client)
    u, v, _ = edges()
    errors = []
    for _ in range(6):
        with pytest.raises(mg.WouldNotFit) as caught:
            mg.from_edges(u, v, num_vertices=10**12, cluster=cluster)
        errors.append(caught.value)
    check_held(client, before)


def test_input_of_an_interrupted_build_is_freed(cluster, client):
    before = held(client)
    u, v, _ = edges(8_000_000)
    real = DaskCluster.run
    # While parts are sent, while tasks are submitted, while ranks build.
    for delay_s in (0.0, 0.05, 0.1, 0.2, 0.4):

        def run(cluster, *args, delay_s=delay_s, **kwargs):
            threading.Timer(delay_s, os.kill, (os.getpid(), signal.SIGINT)).start()
            real(cluster, *args, **kwargs)
            time.sleep(30)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(DaskCluster, "run", run)
            with pytest.raises(KeyboardInterrupt):
                mg.from_edges(u, v, cluster=cluster)
    check_held(client, before)


@pytest.mark.ci
def test_worker_lost_before_its_part_arrives_is_named(cluster, client, monkeypatch):
    victim = sorted(client.run(os.getpid).items())[1]
    real = TaskCall._scatter

    async def scatter(call, part, worker):
        if worker == victim[0]:
            os.kill(victim[1], signal.SIGKILL)
        return await real(call, part, worker)

    monkeypatch.setattr(TaskCall, "_scatter", scatter)
    u, v, _ = edges()
    with pytest.raises(GangLost) as lost:
        mg.from_edges(u, v, cluster=cluster)
    assert lost.value.rank == 1
    monkeypatch.undo()
    assert [r[2] for r in cluster.run(programs.total)] == [3, 3]


@pytest.mark.ci
def test_lost_workers_leave_nothing(cluster, client, tmp_path):
    """Calls wait in a verb, compute, or wait for a lease when a worker is killed; each time the next call works."""
    before = held(client)
    for i in range(12):
        marker = str(tmp_path / f"m{i}")
        errors = []
        program = (programs.wait_for, 1, marker) if i % 2 else (programs.compute, marker)

        def call(program=program, errors=errors) -> None:
            try:
                cluster.run(*program)
            except GangLost as error:
                errors.append(error)

        calls = [threading.Thread(target=call) for _ in range(3)]
        for thread in calls:
            thread.start()
        wait_until(lambda marker=marker: all(os.path.exists(f"{marker}-{rank}") for rank in (0, 1)))
        pid = sorted(client.run(os.getpid).items())[i // 2 % 2][1]
        os.kill(pid, signal.SIGKILL)
        for thread in calls:
            thread.join(30)
        pathlib.Path(f"{marker}-over").write_text("")
        assert len(errors) == 3
        client.wait_for_workers(2, timeout=60)
        assert [r[2] for r in cluster.run(programs.total)] == [3, 3]
    check_held(client, before)
    cluster.close()
    check_held(client, before | held_nothing(before))


def held_nothing(before: dict) -> dict:
    """Return the expected counts after the cluster was closed."""
    empty = {"_networks": 0, "_objects": 0, "_backends": 0, "tasks": 0, "data": 0}
    return {"_gangs": before["_gangs"] - 1, "_sessions": before["_sessions"] - 1, "workers": [str(empty)] * 2}
