"""An adaptive cluster keeps the workers of living graphs, and starts workers that a session waits for."""

from __future__ import annotations

import time

import numpy as np
import pytest
from dask_processes import wait_until
from distributed import Client, LocalCluster
from worker_processes import worker_processes

import mgraph as mg
from mgraph.errors import GangLost

OFTEN = {"minimum": 1, "maximum": 3, "interval": "500ms", "wait_count": 2}


@pytest.fixture
def workers():
    with worker_processes(3, memory_limit=0) as workers:
        yield workers


@pytest.fixture
def client(workers):
    with Client(workers, set_as_default=False) as client:
        client.wait_for_workers(3, timeout=60)
        yield client


def number(workers: LocalCluster) -> int:
    return len(workers.scheduler.workers)


@pytest.mark.ci
def test_workers_of_a_graph_are_retired_only_after_it_is_closed(workers, client):
    with mg.connect(client) as cluster, mg.rmat(8, cluster=cluster) as g:
        before = mg.bfs(g, 1).distances.to_numpy()
        workers.adapt(**OFTEN)
        # Several times as long as Dask needs to retire two of them.
        time.sleep(6)
        assert number(workers) == 3
        np.testing.assert_array_equal(mg.bfs(g, 1).distances.to_numpy(), before)
    wait_until(lambda: number(workers) == 1, timeout_s=60)


@pytest.mark.ci
def test_workers_that_a_session_waits_for_are_started(workers, client):
    workers.adapt(**OFTEN)
    wait_until(lambda: number(workers) == 1, timeout_s=60)
    with mg.connect(client, num_ranks=3) as cluster, mg.rmat(6, cluster=cluster) as g:
        assert g.num_ranks == number(workers) == 3


@pytest.mark.ci
def test_loss_of_a_worker_retired_by_hand_is_reported_at_once(workers, client):
    # With a long deadline, since no other worker joins: a call that waited for one would hang.
    with mg.connect(client, open_timeout_s=1000) as cluster, mg.rmat(6, cluster=cluster) as g:
        result = mg.bfs(g, 1)
        retired = max(client.nthreads())
        client.retire_workers([retired])
        wait_until(lambda: retired not in workers.scheduler.workers)
        for call in (lambda: mg.bfs(g, 1), result.distances.to_numpy, lambda: mg.bfs(g, 1)):
            with pytest.raises(GangLost, match=f"{retired} was lost .*retire.* build the graph again"):
                call()
