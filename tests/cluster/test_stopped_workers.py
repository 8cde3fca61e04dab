"""Workers that are stopped, not dead: errors name them after the deadline, no call hangs, and the next one works."""

from __future__ import annotations

import os

import dask
import pytest
import rank_programs as programs
from dask_processes import stopped, wait_until
from distributed import Client
from worker_processes import worker_processes

import mgraph as mg
from mgraph.cluster import client_lease
from mgraph.errors import ClusterError, CommTimeout, GangLost, RendezvousTimeout

DEADLINE_S = 2.0


@pytest.fixture
def client():
    # Disable Dask's own removal of silent workers after five minutes, so that no test passes because of it.
    no_worker_ttl = dask.config.set({"distributed.scheduler.worker-ttl": None})
    with (
        no_worker_ttl,
        worker_processes(memory_limit=0) as workers,
        Client(workers, set_as_default=False) as client,
    ):
        client.wait_for_workers(2, timeout=60)
        yield client


def processes(client: Client) -> list[tuple[str, int]]:
    """Return the addresses and process ids of the workers, by rank."""
    return sorted(client.run(os.getpid).items())


@pytest.mark.ci
def test_stopped_rank_is_named_and_works_again_after_it_continues(client):
    (_, (worker, pid)) = processes(client)
    with mg.connect(client, verb_timeout_s=DEADLINE_S, open_timeout_s=30) as cluster:
        cluster.run(programs.keep, "graph", 1)
        with stopped(pid), pytest.raises(CommTimeout, match=r"rank 1\b.* within 2 s"):
            cluster.run(programs.total)
        assert worker in client.nthreads()
        assert cluster.run_on_stored(programs.recall, "graph") == [1, 1]


@pytest.mark.ci
def test_rank_that_stays_stopped_is_removed_and_replaced(client):
    (_, (worker, pid)) = processes(client)
    cluster = mg.connect(client, verb_timeout_s=DEADLINE_S, open_timeout_s=60)
    with cluster, mg.rmat(6, cluster=cluster) as g, stopped(pid):
        with pytest.raises(CommTimeout):
            mg.bfs(g, 1)
        # After the deadline and the delay that heartbeats may have.
        with pytest.raises(GangLost, match=rf"rank 1 on {worker} was lost \(it sent no heartbeat for \d+ s"):
            mg.bfs(g, 1)
        with pytest.raises(GangLost, match=worker):
            mg.bfs(g, 1)
        # The nanny starts another worker, which may import and compile for longer than the deadline.
        with mg.connect(client, open_timeout_s=60) as patient, mg.rmat(6, cluster=patient) as first:
            mg.bfs(first, 1)
        with mg.rmat(6, cluster=cluster) as again:
            assert mg.bfs(again, 1).stats.num_reached > 1


@pytest.mark.ci
@pytest.mark.parametrize("how", ["no other rank waits for it", "its result is fetched"])
def test_stopped_rank_is_removed_even_if_no_verb_waits_for_it(client, how, monkeypatch, caplog):
    monkeypatch.setattr(client_lease, "QUIET_WAIT_S", 0.2)
    worker = processes(client)[1][0]
    with mg.connect(client, verb_timeout_s=DEADLINE_S, open_timeout_s=60) as cluster:
        cluster.run(programs.nothing)
        program = programs.stop_self if how.startswith("no") else programs.stop_behind
        with pytest.raises(GangLost, match=worker):
            cluster.run(program, 1)
        assert f"waits for rank 1 on {worker} to answer" in waits(caplog)
        wait_until(lambda: len(client.nthreads()) == 2, timeout_s=60)
        assert [r[2] for r in cluster.run(programs.total)] == [3, 3]


@pytest.mark.ci
def test_connect_names_a_worker_that_was_stopped_before(client):
    (_, (worker, pid)) = processes(client)
    with stopped(pid):
        with pytest.raises(ClusterError, match=rf"does not work on {worker} \(it did not answer within 2 s: stopped"):
            mg.connect(client, open_timeout_s=2)
        with mg.connect(client, num_ranks=1, open_timeout_s=2) as cluster:
            assert cluster.run(programs.total) == [(0, 1, 1, ())]
    with mg.connect(client, num_ranks=2, open_timeout_s=60) as cluster:
        assert [r[2] for r in cluster.run(programs.total)] == [3, 3]


@pytest.mark.ci
def test_worker_that_stops_before_its_gang_opens_is_named(client, monkeypatch, caplog):
    monkeypatch.setattr(client_lease, "QUIET_WAIT_S", 0.2)
    (_, (worker, pid)) = processes(client)
    named = pytest.raises(RendezvousTimeout, match=rf"rank 1 on {worker} did not report ready within 2 s")
    with mg.connect(client, verb_timeout_s=60, open_timeout_s=2) as cluster, stopped(pid), named:
        cluster.run(programs.total)
    assert waits(caplog) == [f"waits for rank 1 on {worker} to report ready"]


def waits(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "mgraph"]
