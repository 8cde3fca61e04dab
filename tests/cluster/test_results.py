"""Results that stay on the workers as Dask arrays are correct, and raise an error after their worker is lost."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest
from dask_processes import wait_until
from distributed import Client
from worker_processes import worker_processes

import mgraph as mg
from mgraph.cluster.dask import DaskCluster
from mgraph.errors import GangLost

# The error follows the loss of a worker after about 0.5 s; a missing error would hang for ever.
SOON_S = 30


@pytest.fixture(scope="module")
def workers():
    with worker_processes(3) as workers:
        yield workers


@pytest.fixture
def graph(workers):
    """Yield a graph on two of three workers; afterwards check that the scheduler has no record of it."""
    scheduler = workers.scheduler
    with Client(workers, set_as_default=False) as client:
        client.wait_for_workers(3, timeout=30)
        with DaskCluster(client, 2, open_timeout_s=30) as cluster, mg.rmat(10, cluster=cluster) as g:
            yield g
        # Dask's client keeps the task of a future that raised its error; but no task may wait for ever.
        wait_until(lambda: {task.state for task in scheduler.tasks.values()} <= {"memory", "released", "erred"})
    wait_until(lambda: not scheduler.tasks)
    plugin = scheduler.plugins["mgraph"]
    assert not (scheduler.unrunnable or plugin._calls or plugin._call_of or plugin._sessions or plugin._gangs)


def distances(g):
    """Return distances as a Dask array with no other reference to it, and as a NumPy array."""
    found = mg.bfs(g, 0)
    return found.distances.to_dask_array(), found.distances.to_numpy()


def lose(g, rank: int = 1) -> None:
    """Kill the worker of a rank, and wait until the scheduler has removed it and no lease on it is kept."""
    client = g.cluster.client
    gang = next(iter(client.cluster.scheduler.plugins["mgraph"]._gangs.values()))
    worker = gang.workers[rank]
    os.kill(client.run(os.getpid, workers=[worker])[worker], signal.SIGKILL)
    wait_until(lambda: worker not in client.cluster.scheduler.workers)
    # Until the client knows of the loss, its next call uses the kept lease, and fails with it.
    wait_until(lambda: not g.cluster._session._kept)


def slow(block: np.ndarray, seconds: float = 2.0) -> np.ndarray:
    time.sleep(seconds)
    return block


@pytest.mark.ci
@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("is_kept", [False, True])
def test_persisted_array_raises_after_its_worker_was_killed(graph, rank, is_kept):
    client = graph.cluster.client
    array, _ = distances(graph)
    persisted = client.persist(array)
    client.gather(client.compute(persisted.sum()))
    if not is_kept:
        del array
    lose(graph, rank)
    with pytest.raises(GangLost, match="build the graph again") as lost:
        client.compute(persisted).result(timeout=SOON_S)
    assert lost.value.rank == rank
    with pytest.raises(GangLost):
        client.compute(persisted.max()).result(timeout=SOON_S)


@pytest.mark.ci
def test_array_raises_after_its_worker_was_killed(graph):
    array, _ = distances(graph)
    lose(graph)
    with pytest.raises(GangLost):
        graph.cluster.client.compute(array).result(timeout=SOON_S)


@pytest.mark.ci
@pytest.mark.parametrize("rank", [0, 1])
def test_computation_on_a_temporary_array_fails_with_its_worker(graph, rank):
    client = graph.cluster.client
    total = client.compute(distances(graph)[0].map_blocks(slow, dtype=np.int32).sum())
    wait_until(lambda: any(task.state == "processing" for task in list(client.cluster.scheduler.tasks.values())))
    lose(graph, rank)
    with pytest.raises(GangLost):
        total.result(timeout=SOON_S)


@pytest.mark.ci
def test_array_survives_its_cluster_but_not_its_worker(graph):
    client = graph.cluster.client
    array, values = distances(graph)
    pids = client.run(os.getpid)
    graph.cluster.close()
    np.testing.assert_array_equal(client.compute(array).result(timeout=SOON_S), values)
    worker = sorted(pids)[0]
    os.kill(pids[worker], signal.SIGKILL)
    wait_until(lambda: worker not in client.cluster.scheduler.workers)
    with pytest.raises(GangLost):
        client.compute(array).result(timeout=SOON_S)


@pytest.mark.ci
def test_arrays_raise_after_a_restart_of_the_workers(graph):
    client = graph.cluster.client
    array, _ = distances(graph)
    persisted = client.persist(array)
    client.restart(timeout=60)
    for lost in (array, persisted):
        with pytest.raises(Exception, match=r"restart|lost|cancelled"):
            client.compute(lost).result(timeout=SOON_S)


@pytest.mark.ci
def test_lost_array_does_not_affect_the_next_graph(graph):
    client = graph.cluster.client
    array, values = distances(graph)
    persisted = client.persist(array)
    lose(graph)
    with mg.rmat(10, cluster=graph.cluster) as again:
        np.testing.assert_array_equal(client.compute(distances(again)[0]).result(timeout=SOON_S), values)
    with pytest.raises(GangLost):
        client.compute(persisted).result(timeout=SOON_S)


# The last test: LocalCluster does not replace a retired worker.
@pytest.mark.ci
def test_array_of_a_retired_worker_is_computed_elsewhere(graph):
    client = graph.cluster.client
    array, values = distances(graph)
    persisted = client.persist(array)
    client.gather(client.compute(persisted.sum()))
    retired = sorted(client.run(os.getpid))[1]
    client.retire_workers([retired], close_workers=True, remove=True)
    wait_until(lambda: retired not in client.cluster.scheduler.workers)
    for copy in (array, persisted):
        np.testing.assert_array_equal(client.compute(copy).result(timeout=SOON_S), values)
    # The graph itself is lost.
    with pytest.raises(mg.MgraphError):
        mg.bfs(graph, 0)
