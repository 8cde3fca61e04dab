"""Workers and clients that die, in every phase: no call hangs, all callers get an error, and the next call works."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import pathlib
import signal
import subprocess
import sys
import threading
import types

import dask
import pytest
import rank_programs as programs
from dask_processes import ENVIRONMENT, held, scheduler_by_hand, wait_until, worker_by_hand
from distributed import Client, Future
from killer import Killer, exist

from mgraph.cluster import network
from mgraph.cluster.dask import DaskCluster
from mgraph.cluster.gangs import Call, Gang, Place, Session
from mgraph.cluster.messages import Ticket
from mgraph.cluster.network import open_network
from mgraph.cluster.scheduler_plugin import GangPlugin
from mgraph.comm.threads import open_threads
from mgraph.errors import ClusterError, CommAborted, CommTimeout, GangLost, GraphClosed, RendezvousTimeout


@pytest.fixture
def marker(tmp_path):
    """Prefix of files by which ranks report that they have begun; ends `nap` at the end of the test."""
    yield str(tmp_path / "m")
    end_naps(tmp_path / "m")


def end_naps(marker) -> None:
    pathlib.Path(f"{marker}-over").write_text("")


def pid_of(cluster: DaskCluster, rank: int) -> int:
    return cluster.run(programs.where)[rank][0]


def check_works_again(cluster: DaskCluster) -> None:
    """Check that a new gang works, and that the objects of the old one are freed."""
    assert [r[2] for r in cluster.run(programs.total)] == [3, 3]
    with pytest.raises(GraphClosed, match="'graph'"):
        cluster.run(programs.recall, "graph")


@pytest.mark.parametrize("victim", [0, 1])
def test_worker_killed_while_ranks_wait_in_a_verb(cluster, marker, victim):
    killer = Killer(pid_of(cluster, victim), exist(f"{marker}-0", f"{marker}-1"))
    # Rank 0 waits in the verb, rank 1 computes: one of each is killed.
    with pytest.raises(GangLost, match="connection to the scheduler broke") as lost:
        cluster.run(programs.wait_for, 1, marker)
    killer.check_prompt()
    assert lost.value.rank == victim
    assert lost.value.worker.startswith("tcp://")
    end_naps(marker)
    check_works_again(cluster)


def test_worker_killed_while_all_ranks_compute(cluster, marker):
    killer = Killer(pid_of(cluster, 1), exist(f"{marker}-0", f"{marker}-1"))
    with pytest.raises(GangLost):
        cluster.run(programs.compute, marker)
    killer.check_prompt()
    end_naps(marker)
    check_works_again(cluster)


def test_worker_killed_between_calls(cluster, client, workers):
    (address, pid), _ = sorted(client.run(os.getpid).items())
    Killer(pid, exist()).join()
    wait_until(lambda: address not in workers.scheduler.workers)
    client.wait_for_workers(2, timeout=30)
    # The surviving worker frees its objects, which are of no use without the lost ones.
    wait_until(lambda: set(client.run(held).values()) == {0})
    check_works_again(cluster)


@pytest.mark.parametrize("victim", [0, 1])
def test_worker_killed_while_the_gang_opens(client, workers, marker, victim):
    """Rank 0 has reported ready and waits for rank 1 on a busy worker."""
    client.wait_for_workers(2, timeout=30)
    pids = [pid for _, pid in sorted(client.run(os.getpid).items())]
    busy = client.submit(programs.nap, marker, workers=[max(client.run(os.getpid))], pure=False)
    wait_until(exist(f"{marker}-begun"))
    with DaskCluster(client, 2, open_timeout_s=30) as cluster:
        gangs = workers.scheduler.plugins["mgraph"]._gangs
        killer = Killer(pids[victim], lambda: any(set(gang.ready) == {0} for gang in list(gangs.values())))
        with pytest.raises(GangLost) as lost:
            cluster.run(programs.total)
        killer.check_prompt()
        assert lost.value.rank == victim
        busy.cancel()
        end_naps(marker)
        assert [r[2] for r in cluster.run(programs.total)] == [3, 3]


def test_rank_that_does_not_report_ready_is_named(client, marker):
    client.wait_for_workers(2, timeout=30)
    late = max(client.run(os.getpid))
    busy = client.submit(programs.nap, marker, workers=[late], pure=False)
    wait_until(exist(f"{marker}-begun"))
    with DaskCluster(client, 2, open_timeout_s=0.5) as cluster:
        with pytest.raises(RendezvousTimeout, match=f"rank 1 on {late} did not report ready within 0.5 s"):
            cluster.run(programs.total)
        end_naps(marker)
        busy.result()
    with DaskCluster(client, 2, open_timeout_s=30) as cluster:
        assert [r[2] for r in cluster.run(programs.total)] == [3, 3]


@pytest.mark.ci
def test_calls_that_wait_for_a_lost_gang_fail(cluster, workers, marker):
    pid = pid_of(cluster, 1)
    errors = []

    def wait_for_lease() -> None:
        try:
            cluster.run(programs.total)
        except GangLost as lost:
            errors.append(lost.rank)

    jobs = [threading.Thread(target=cluster_job) for cluster_job in [wait_for_lease] * 2]

    def start_jobs() -> None:
        wait_until(lambda: os.path.exists(f"{marker}-1"))
        for job in jobs:
            job.start()
        # One holds the lease and two wait for it.
        wait_until(lambda: len(workers.scheduler.plugins["mgraph"]._calls) == 3)
        os.kill(pid, signal.SIGKILL)

    starter = threading.Thread(target=start_jobs)
    starter.start()
    with pytest.raises(GangLost):
        cluster.run(programs.wait_for, 1, marker)
    starter.join()
    for job in jobs:
        job.join(30)
    assert errors == [1, 1]
    check_works_again(cluster)


def test_no_call_is_granted_a_lost_gang():
    async def lose():
        plugin = GangPlugin()
        plugin._scheduler = types.SimpleNamespace(tasks={}, stream_comms={})
        gang = Gang((Place("host", 0, "worker", ""),), "cpu", 300.0)
        plugin._gangs[gang.name] = gang
        session = Session("session", 1, "cpu", 1.0, 1.0, "client", gang)
        calls = [Call(f"lease-{i}", session, (f"key-{i}",), gang=gang) for i in range(64)]
        for call in calls:
            plugin._calls[call.lease] = call
            plugin._resolve_granted(plugin._leases.request(call.lease, gang.workers))
        plugin.remove_worker(plugin._scheduler, "worker", stimulus_id="gone")
        return [type(call.granted.exception()) for call in calls]

    assert asyncio.run(lose()) == [type(None)] + 63 * [GangLost]


CLIENT = """
import sys, rank_programs as programs
from mgraph.cluster.connect import connect
cluster = connect(scheduler=sys.argv[1])
cluster.run(programs.keep, "graph", 1)
print("kept", flush=True)
cluster.run(programs.wait_for, 1, sys.argv[2])
"""


@pytest.mark.ci
def test_death_of_a_client_frees_its_objects_and_its_lease(workers, cluster, client, marker):
    dying = subprocess.Popen(
        [sys.executable, "-c", CLIENT, workers.scheduler_address, marker], env=ENVIRONMENT, stdout=subprocess.PIPE
    )
    assert dying.stdout.readline() == b"kept\n"
    dying.stdout.close()
    wait_until(lambda: os.path.exists(f"{marker}-0"))
    assert set(client.run(held).values()) == {2}
    results = []
    waiting = threading.Thread(target=lambda: results.extend(cluster.run(programs.recall, "graph")))
    waiting.start()
    dying.kill()
    dying.wait()
    wait_until(lambda: set(client.run(held).values()) == {1})
    # Rank 1 of the dead client's job computes to its end, since a thread cannot be killed; the next job waits for it.
    end_naps(marker)
    waiting.join(30)
    assert results == [1, 1]


def test_cancelled_tasks_end_the_call(cluster, client, marker):

    def cancel() -> None:
        wait_until(lambda: os.path.exists(f"{marker}-0"))
        client.cancel([Future(key, client) for key in list(client.futures)], force=True)

    canceller = threading.Thread(target=cancel)
    canceller.start()
    with pytest.raises(ClusterError, match="cancelled"):
        cluster.run_and_store(programs.wait_for, 1, marker)
    canceller.join()
    end_naps(marker)
    assert cluster.run(programs.recall, "graph") == [1, 1]


def test_worker_removed_before_its_registration_arrives_is_no_rank(cluster, client):
    report = {"worker": "tcp://127.0.0.1:1", "host": "", "index": -1, "gpu": ""}
    client.sync(client.scheduler.mgraph_register_worker, **report)
    with DaskCluster(client, open_timeout_s=30) as other:
        assert [r[2] for r in other.run(programs.total)] == [3, 3]


def test_closing_the_client_during_a_call_raises_an_error(workers, marker):
    with Client(workers, set_as_default=False) as closing, DaskCluster(closing, 2, open_timeout_s=30) as cluster:
        cluster.run(programs.nothing)

        def close() -> None:
            wait_until(lambda: os.path.exists(f"{marker}-0"))
            closing.close()

        closer = threading.Thread(target=close)
        closer.start()
        with pytest.raises(ClusterError):
            cluster.run(programs.wait_for, 1, marker)
        closer.join()
    end_naps(marker)


@pytest.mark.ci
def test_restarted_workers_form_a_new_gang(cluster, client):
    client.restart(timeout=60)
    check_works_again(cluster)


def test_death_of_the_scheduler_raises_an_error(tmp_path):
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        scheduler_by_hand(tmp_path) as (scheduler, file),
        worker_by_hand(file),
        Client(scheduler_file=file, set_as_default=False) as client,
        DaskCluster(client) as cluster,
    ):
        cluster.run(programs.nothing)
        scheduler.kill()
        scheduler.wait()
        with pytest.raises(ClusterError, match="scheduler"):
            cluster.run(programs.nothing)


# Opening with a library call that hangs, as NCCL's can.

TICKET = Ticket(
    gang="gang",
    epoch=0,
    session="session",
    members=("tcp://a", "tcp://b"),
    backend="cuda",
    local_ranks=(2, 2),
    open_timeout_s=0.1,
    verb_timeout_s=1.0,
    one_process=False,
    secret=bytes(32),
)


@pytest.fixture
def stuck(monkeypatch):
    """Make opening NCCL a call that hangs until the event is set."""
    end = threading.Event()
    ended = []
    monkeypatch.setattr(network, "_open_nccl", lambda *args: lambda: (end.wait(20), open_threads(1)[0])[1])
    monkeypatch.setattr(os, "_exit", ended.append)
    yield ended
    end.set()


@pytest.mark.parametrize(("nanny", "exits"), [("tcp://nanny", [network.EXIT_CODE]), (None, [])])
def test_rank_that_cannot_connect_ends_its_worker(stuck, caplog, nanny, exits):
    worker = types.SimpleNamespace(nanny=nanny, address="tcp://a")
    with pytest.raises(CommTimeout, match=r"rank 0 on tcp://a did not connect to its gang within 0\.1 s"):
        open_network(TICKET, 0, worker, rendezvous=None, aborted=concurrent.futures.Future())
    assert stuck == exits
    assert ("did not connect" in caplog.text) == bool(exits)


@pytest.mark.ci
def test_loss_of_a_gang_ends_a_hanging_connect(stuck):
    aborted = concurrent.futures.Future()
    aborted.set_result(CommAborted("rank 1 was lost"))
    worker = types.SimpleNamespace(nanny="tcp://nanny", address="tcp://a")
    with pytest.raises(CommAborted, match="rank 1 was lost"):
        open_network(TICKET, 0, worker, rendezvous=None, aborted=aborted)
    assert stuck == []
