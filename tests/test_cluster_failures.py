"""Workers and clients that die, in every phase: nobody hangs, everyone is told, and the next call works."""

from __future__ import annotations

import concurrent.futures
import os
import signal
import subprocess
import sys
import threading
import time
import types

import dask
import pytest
import rank_programs as programs
from dask_processes import ENVIRONMENT, held, scheduler_by_hand, wait_until, worker_by_hand
from distributed import Client, Future, LocalCluster

from mgraph.cluster import network
from mgraph.cluster.dask import DaskCluster
from mgraph.cluster.messages import Ticket
from mgraph.cluster.network import open_network
from mgraph.comm.threads import open_threads
from mgraph.errors import ClusterError, CommAborted, CommTimeout, GangLost, GraphClosed, RendezvousTimeout

# From the signal to the error at the client; the machine that runs the tests may be busy.
PROMPTLY_S = 3.0


@pytest.fixture(scope="module")
def workers():
    # LocalCluster gives up a worker for good if it is gone (again) 15 s after it was lost.
    patience = dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"})
    with patience, LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as workers:
        yield workers


@pytest.fixture(scope="module")
def client(workers):
    with Client(workers, set_as_default=False) as client:
        yield client


@pytest.fixture
def cluster(client):
    client.wait_for_workers(2, timeout=20)
    with DaskCluster(client, 2, open_timeout_s=20) as cluster:
        cluster.run(programs.keep, "graph", 1)
        yield cluster


class Killer(threading.Thread):
    """Kills a process as soon as some files are there, and notes when."""

    def __init__(self, pid: int, *markers: str) -> None:
        super().__init__()
        self.pid, self.markers, self.at = pid, markers, 0.0
        self.start()

    def run(self) -> None:
        wait_until(lambda: all(os.path.exists(marker) for marker in self.markers))
        time.sleep(0.1)
        self.at = time.monotonic()
        os.kill(self.pid, signal.SIGKILL)

    def check_prompt(self) -> None:
        self.join()
        assert time.monotonic() - self.at < PROMPTLY_S


def pid_of(cluster: DaskCluster, rank: int) -> int:
    return cluster.run(programs.where)[rank][0]


def check_works_again(cluster: DaskCluster) -> None:
    """Check that there is a new gang, on workers that forgot what the old one had."""
    assert [r[2] for r in cluster.run(programs.total)] == [3, 3]
    with pytest.raises(GraphClosed, match="'graph'"):
        cluster.run(programs.recall, "graph")


@pytest.mark.parametrize("victim", [0, 1])
def test_worker_killed_while_ranks_wait_in_a_verb(cluster, tmp_path, victim):
    marker = str(tmp_path / "m")
    killer = Killer(pid_of(cluster, victim), f"{marker}-0", f"{marker}-1")
    # Rank 0 waits in the verb, rank 1 computes: one of each is killed.
    with pytest.raises(GangLost, match="connection to the scheduler broke") as lost:
        cluster.run(programs.wait_for, 1, marker, 60.0 if victim == 1 else 4.0)
    killer.check_prompt()
    assert lost.value.rank == victim
    assert lost.value.worker.startswith("tcp://")
    check_works_again(cluster)


def test_worker_killed_while_all_ranks_compute(cluster, tmp_path):
    marker = str(tmp_path / "m")
    killer = Killer(pid_of(cluster, 1), f"{marker}-0", f"{marker}-1")
    with pytest.raises(GangLost):
        cluster.run(programs.compute, marker, 4.0)
    killer.check_prompt()
    check_works_again(cluster)


def test_worker_killed_between_calls(cluster, client, tmp_path):
    pid = pid_of(cluster, 0)
    Killer(pid).join()
    # The survivor lets go of what is worth nothing without the rest.
    wait_until(lambda: set(client.run(held, on_error="ignore").values()) == {0})
    check_works_again(cluster)


@pytest.mark.parametrize("victim", ["the one that waits", "the one that is late"])
def test_worker_killed_while_the_gang_opens(client, tmp_path, victim):
    client.wait_for_workers(2, timeout=20)
    pids = client.run(os.getpid)
    late, waits = sorted(pids)[::-1]
    busy = client.submit(time.sleep, 4, workers=[late], pure=False)
    with DaskCluster(client, 2, open_timeout_s=20) as cluster:
        wait_until(lambda: busy.key in client.processing().get(late, ()))
        killer = threading.Timer(0.5, os.kill, (pids[waits if "waits" in victim else late], signal.SIGKILL))
        killer.start()
        start = time.monotonic()
        with pytest.raises(GangLost) as lost:
            cluster.run(programs.total)
        assert time.monotonic() - start < 0.5 + PROMPTLY_S
        assert lost.value.rank == (0 if "waits" in victim else 1)
        busy.cancel()
        assert [r[2] for r in cluster.run(programs.total)] == [3, 3]


def test_rank_that_does_not_come_is_named(client):
    client.wait_for_workers(2, timeout=20)
    late = sorted(client.run(os.getpid))[1]
    busy = client.submit(time.sleep, 2, workers=[late], pure=False)
    with DaskCluster(client, 2, open_timeout_s=0.5) as cluster:
        with pytest.raises(RendezvousTimeout, match=f"rank 1 on {late} did not report ready within 0.5 s"):
            cluster.run(programs.total)
        busy.result()
        assert [r[2] for r in cluster.run(programs.total)] == [3, 3]


def test_jobs_that_wait_for_a_lost_gang_are_told(cluster, tmp_path):
    marker = str(tmp_path / "m")
    pid = pid_of(cluster, 1)
    errors = []

    def wait_in_line() -> None:
        try:
            cluster.run(programs.total)
        except GangLost as lost:
            errors.append(lost.rank)

    jobs = [threading.Thread(target=cluster_job) for cluster_job in [wait_in_line] * 2]

    def start_jobs() -> None:
        wait_until(lambda: os.path.exists(f"{marker}-1"))
        for job in jobs:
            job.start()
        time.sleep(0.5)
        os.kill(pid, signal.SIGKILL)

    starter = threading.Thread(target=start_jobs)
    starter.start()
    with pytest.raises(GangLost):
        cluster.run(programs.wait_for, 1, marker)
    starter.join()
    for job in jobs:
        job.join(10)
    assert errors == [1, 1]
    check_works_again(cluster)


CLIENT = """
import sys, rank_programs as programs
from mgraph.cluster.connect import connect
cluster = connect(scheduler=sys.argv[1])
cluster.run(programs.keep, "graph", 1)
print("kept", flush=True)
cluster.run(programs.wait_for, 1, sys.argv[2], 3.0)
"""


def test_dead_client_frees_its_objects_and_its_turn(workers, cluster, client, tmp_path):
    marker = str(tmp_path / "m")
    dying = subprocess.Popen(
        [sys.executable, "-c", CLIENT, workers.scheduler_address, marker], env=ENVIRONMENT, stdout=subprocess.PIPE
    )
    assert dying.stdout.readline() == b"kept\n"
    dying.stdout.close()
    wait_until(lambda: os.path.exists(f"{marker}-0"))
    assert set(client.run(held).values()) == {2}
    answers = []
    waiting = threading.Thread(target=lambda: answers.extend(cluster.run(programs.recall, "graph")))
    waiting.start()
    dying.kill()
    dying.wait()
    wait_until(lambda: set(client.run(held).values()) == {1})
    # Rank 1 of the dead client's job computes to its end: a thread cannot be ended, so the next job waits for it.
    waiting.join(15)
    assert answers == [1, 1]


def test_cancelled_tasks_end_the_call(cluster, client, tmp_path):
    marker = str(tmp_path / "m")

    def cancel() -> None:
        wait_until(lambda: os.path.exists(f"{marker}-0"))
        client.cancel([Future(key, client) for key in list(client.futures)], force=True)

    canceller = threading.Thread(target=cancel)
    canceller.start()
    with pytest.raises(ClusterError, match="cancelled"):
        cluster.run(programs.wait_for, 1, marker, 2.0)
    canceller.join()
    assert cluster.run(programs.recall, "graph") == [1, 1]


def test_restarted_workers_are_a_new_gang(cluster, client, tmp_path):
    client.restart(timeout=30)
    check_works_again(cluster)


def test_scheduler_that_dies_is_named(tmp_path):
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


# Opening, with a library that does not come back: what NCCL can do and sockets cannot.

TICKET = Ticket(
    gang="gang",
    epoch=0,
    session="session",
    members=("tcp://a", "tcp://b"),
    backend="cuda",
    neighbours=(2, 2),
    open_timeout_s=0.1,
    verb_timeout_s=1.0,
)


@pytest.fixture
def stuck(monkeypatch):
    """Make opening NCCL a call that hangs until the event is set."""
    end, ended = threading.Event(), []
    monkeypatch.setattr(network, "_open_nccl", lambda *args: lambda: (end.wait(20), open_threads(1)[0])[1])
    monkeypatch.setattr(os, "_exit", ended.append)
    yield ended
    end.set()


@pytest.mark.parametrize(("nanny", "exits"), [("tcp://nanny", [network.EXIT_CODE]), (None, [])])
def test_rank_that_cannot_connect_ends_its_worker(stuck, capfd, nanny, exits):
    worker = types.SimpleNamespace(nanny=nanny, address="tcp://a")
    with pytest.raises(CommTimeout, match=r"rank 0 on tcp://a did not connect to its gang within 0\.1 s"):
        open_network(TICKET, 0, worker, meet=None, aborted=concurrent.futures.Future())
    assert stuck == exits
    assert ("did not connect" in capfd.readouterr().err) == bool(exits)


def test_gang_lost_while_a_rank_connects(stuck):
    aborted = concurrent.futures.Future()
    aborted.set_result(CommAborted("rank 1 was lost"))
    worker = types.SimpleNamespace(nanny="tcp://nanny", address="tcp://a")
    with pytest.raises(CommAborted, match="rank 1 was lost"):
        open_network(TICKET, 0, worker, meet=None, aborted=aborted)
    assert stuck == []
