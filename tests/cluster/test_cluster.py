"""Clusters of ranks in this process and on Dask workers behave the same."""

from __future__ import annotations

import collections
import itertools
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import rank_programs as programs
from dask_processes import ENVIRONMENT, held, make_security, wait_until
from distributed import Client, LocalCluster, SchedulerPlugin
from local_clusters import GPU, local_cluster
from worker_processes import worker_processes

from mgraph.backends.cpu import CpuBackend
from mgraph.cluster.connect import connect
from mgraph.cluster.dask import DaskCluster
from mgraph.cluster.in_process import InProcessCluster
from mgraph.errors import ClusterError, CommAborted, GraphClosed, UsageError


@pytest.fixture(params=[1, 3, GPU, "dask"])
def cluster(request):
    if request.param == "dask":
        with DaskCluster(request.getfixturevalue("client"), open_timeout_s=30) as cluster:
            yield cluster
    else:
        with local_cluster(request.param) as cluster:
            yield cluster


# On every kind of cluster.


def test_run_returns_what_each_rank_returned(cluster):
    p = cluster.num_ranks
    assert cluster.run(programs.total, "a", 2) == [(r, p, p * (p + 1) // 2, ("a", 2)) for r in range(p)]


def test_parts_go_to_their_ranks(cluster):
    p = cluster.num_ranks
    assert [args for *_, args in cluster.run(programs.total, 7, parts=list("abcdef"[:p]))] == [
        ("abcdef"[r], 7) for r in range(p)
    ]
    # Larger than SCATTER_BYTES, so that parts are sent separately.
    parts = [np.full(300_000, r, np.float64) for r in range(p)]
    assert cluster.run(programs.length, parts=parts) == [(r, 2_400_000, r) for r in range(p)]


def test_parts_must_be_one_a_rank(cluster):
    with pytest.raises(UsageError, match=f"5 objects for {cluster.num_ranks} ranks"):
        cluster.run(programs.total, parts=range(5))


def test_objects_stay_until_forgotten(cluster):
    p = cluster.num_ranks
    cluster.run(programs.keep, "graph", [1, 2])
    cluster.run(programs.keep, "other", 3)
    assert cluster.run(programs.recall, "graph") == [[1, 2]] * p
    cluster.forget("graph")
    cluster.forget("never there")
    with pytest.raises(GraphClosed, match="'graph'"):
        cluster.run(programs.recall, "graph")
    assert cluster.run(programs.recall, "other") == [3] * p


def test_error_of_a_rank_reaches_the_caller_and_frees_the_others(cluster):
    cluster.run(programs.keep, "graph", 1)
    for bad in range(cluster.num_ranks):
        start = time.monotonic()
        with pytest.raises(ZeroDivisionError, match=f"rank {bad} fails"):
            cluster.run(programs.fail_on, bad)
        assert time.monotonic() - start < 10
    with pytest.raises(ZeroDivisionError, match="every rank fails"):
        cluster.run(programs.fail_alike)
    # The next call has a new communicator, and no object was lost.
    assert len(cluster.run(programs.total)) == cluster.num_ranks
    assert cluster.run(programs.recall, "graph") == [1] * cluster.num_ranks


def test_calls_of_several_threads_run_one_after_another(cluster, tmp_path):
    log = str(tmp_path / "log")
    jobs = [threading.Thread(target=cluster.run, args=(programs.linger, log, f"job{i}", 0.05)) for i in range(4)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join(30)
    check_turns(log, 4, cluster.num_ranks)


def test_interrupted_call_frees_the_ranks(cluster, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        cluster.run(programs.interrupt_caller, os.getpid(), str(tmp_path / "m"))
    start = time.monotonic()
    assert len(cluster.run(programs.total)) == cluster.num_ranks
    assert time.monotonic() - start < 10


@pytest.mark.parametrize("kind", [1, 2, GPU])
def test_interrupt_of_a_waiting_call_does_not_affect_other_calls(kind, tmp_path):
    log = tmp_path / "log"
    with local_cluster(kind, timeout_s=20) as cluster:
        first = threading.Thread(target=cluster.run, args=(programs.linger, str(log), "job", 1.0))
        first.start()
        wait_until(log.exists)
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            cluster.run(programs.keep, "graph", 1)
        assert first.is_alive()
        first.join(30)
        check_turns(str(log), 1, cluster.num_ranks)
        assert len(cluster.run(programs.total)) == cluster.num_ranks
        assert not any(cluster._objects)


@pytest.mark.parametrize("kind", [1, 2, GPU])
def test_waiting_calls_are_refused_when_the_cluster_is_closed(kind, tmp_path):
    cluster = local_cluster(kind, timeout_s=20)
    errors = []

    def call(name):
        with pytest.raises((ClusterError, CommAborted)) as caught:
            cluster.run(programs.linger, str(tmp_path / "log"), name, 1.0)
        errors.append(caught.value)

    callers = [threading.Thread(target=call, args=(f"job{i}",)) for i in range(3)]
    for caller in callers:
        caller.start()
    wait_until((tmp_path / "log").exists)
    for closer in (closers := [threading.Thread(target=cluster.close) for _ in range(2)]):
        closer.start()
    for thread in (*closers, *callers):
        thread.join(30)
        assert not thread.is_alive()
    assert sorted(type(error).__name__ for error in errors) == ["ClusterError", "ClusterError", "CommAborted"]


def test_threads_end_when_a_cluster_is_collected_without_close():
    threads = set(threading.enumerate())
    cluster = InProcessCluster(3)
    cluster.run(programs.keep, "graph", 1)
    assert len(set(threading.enumerate()) - threads) >= 3
    del cluster
    wait_until(lambda: set(threading.enumerate()) <= threads)


def test_failure_to_start_a_thread_raises_an_error(monkeypatch):
    real = threading.Thread.start
    starts = itertools.count()

    def start(thread):
        if next(starts) == 1:
            raise RuntimeError("can't start new thread")
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(ClusterError, match=r"3 ranks in this process need a thread each \(can't start"):
        InProcessCluster(3)


def test_closed_cluster_refuses_calls(cluster):
    cluster.close()
    cluster.close()
    cluster.forget("graph")
    for call in cluster.run, cluster.read:
        with pytest.raises(ClusterError, match="closed"):
            call(programs.nothing)


def test_repr_names_ranks_backend_and_launcher(cluster):
    ranks = f"{cluster.num_ranks} {cluster.backend} rank" + "s" * (cluster.num_ranks > 1)
    assert repr(cluster) == f"<Cluster: {ranks}, {cluster.launcher}>"


# In this process.


def test_one_rank_runs_in_the_threads_of_its_callers_and_each_of_several_in_its_own():
    with InProcessCluster(1) as cluster:
        assert cluster.run(programs.where)[0][:2] == (os.getpid(), threading.get_ident())
    with InProcessCluster(3) as cluster:
        places = [place[:2] for place in cluster.run(programs.where)]
        assert {pid for pid, _ in places} == {os.getpid()}
        threads = {ident for _, ident in places}
        assert len(threads) == 3
        assert threading.get_ident() not in threads
        assert [place[:2] for place in cluster.run(programs.where)] == places


def test_ranks_share_the_cores():
    cores = len(os.sched_getaffinity(0))
    for p in (1, 3):
        with InProcessCluster(p) as cluster:
            assert {threads for *_, threads in cluster.run(programs.where)} == {max(1, cores // p)}


def test_cluster_uses_a_given_backend():
    class Emulated(CpuBackend):
        name = "emulated"

    with InProcessCluster(2, make_backend=Emulated) as cluster:
        assert cluster.backend == "emulated"
        assert [name for _, _, name, _ in cluster.run(programs.where)] == ["emulated"] * 2


# On Dask.


class Counter(SchedulerPlugin):
    """Counts the messages that the scheduler receives and those that it sends to workers."""

    name = "counter"

    def __init__(self, scheduler) -> None:
        self.scheduler = scheduler
        self.seen: collections.Counter = collections.Counter()
        self.original = dict(scheduler.handlers), dict(scheduler.stream_handlers)
        for handlers in (scheduler.handlers, scheduler.stream_handlers):
            for op, handler in handlers.items():
                if op.startswith("mgraph"):
                    handlers[op] = self.counted(op, handler)
        for stream in scheduler.stream_comms.values():
            stream.send = self.counted_send(stream.send)
        scheduler.add_plugin(self)

    def counted(self, op, handler):
        def count(*args, **kwargs):
            self.seen[op] += 1
            return handler(*args, **kwargs)

        return count

    def counted_send(self, send):
        def count(*messages):
            self.seen.update(message["op"] for message in messages)
            send(*messages)

        return count

    def transition(self, key, start, finish, *args, **kwargs) -> None:
        self.seen[finish] += finish == "processing"

    def close_counter(self) -> None:
        self.scheduler.handlers, self.scheduler.stream_handlers = self.original
        for stream in self.scheduler.stream_comms.values():
            del stream.send
        self.scheduler.remove_plugin("counter")


def test_warm_call_sends_nothing_to_the_scheduler(workers, client):
    with DaskCluster(client) as cluster:
        # The first opens the gang by tasks; the second is direct, and keeps its lease.
        cluster.run(programs.total)
        cluster.run(programs.total)
        plugin = workers.scheduler.plugins["mgraph"]
        wait_until(lambda: [call.is_kept for call in plugin._calls.values()] == [True])
        counter = Counter(workers.scheduler)
        try:
            for _ in range(5):
                assert [r[2] for r in cluster.run(programs.total)] == [3, 3]
        finally:
            counter.close_counter()
    assert {op: n for op, n in counter.seen.items() if n and op != "free-keys"} == {}


def test_direct_calls_return_objects_bytes_and_arrays(client):
    results = [None, b"bytes", {"stats": (1, 2.5)}, np.arange(5), {"column": np.arange(1 << 16)}]
    with DaskCluster(client) as cluster:
        cluster.run(programs.echo, None)  # opens the gang by tasks
        for result in results:
            for found in cluster.run(programs.echo, result):
                np.testing.assert_equal(found, result)


def test_call_that_leaves_its_results_is_one_lease_message_and_one_task_a_worker(workers, client):
    with DaskCluster(client) as cluster:
        cluster.run(programs.total)
        counter = Counter(workers.scheduler)
        try:
            for _ in range(5):
                cluster.run_and_store(programs.total)
        finally:
            counter.close_counter()
    seen = {op: n for op, n in counter.seen.items() if n and op != "free-keys"}
    assert seen == {"mgraph_lease": 5, "processing": 10, "compute-task": 10}


def test_ranks_are_numbered_by_address_in_every_cluster(client):
    with DaskCluster(client) as one, DaskCluster(client) as other:
        pids = [pid for pid, *_ in one.run(programs.where)]
        addresses = sorted(client.run(os.getpid).items())
        assert pids == [pid for _, pid in addresses]
        assert [pid for pid, *_ in other.run(programs.where)] == pids


def test_other_tasks_of_a_worker_run_beside_ranks(client):
    with DaskCluster(client) as cluster:
        futures = client.map(lambda i: i + 1, range(50), pure=False)
        assert len(cluster.run(programs.total)) == 2
        assert client.gather(futures) == list(range(1, 51))


def test_close_frees_the_objects_of_its_session_alone(client):
    with DaskCluster(client) as one, DaskCluster(client) as other:
        one.run(programs.keep, "graph", 1)
        other.run(programs.keep, "graph", 2)
        one.close()
        assert other.run(programs.recall, "graph") == [2, 2]
        assert set(client.run(held).values()) == {1}
    wait_until(lambda: set(client.run(held).values()) == {0})


def test_unreferenced_cluster_is_closed(client):
    DaskCluster(client).run(programs.keep, "graph", 1)
    wait_until(lambda: set(client.run(held).values()) == {0})


def test_calls_of_clients_in_several_processes_run_one_after_another(workers, client, tmp_path):
    log = str(tmp_path / "log")
    code = (
        "import sys, rank_programs as programs; from mgraph.cluster.connect import connect\n"
        "with connect(scheduler=sys.argv[1]) as cluster:\n"
        "    for i in range(3): cluster.run(programs.linger, sys.argv[2], sys.argv[3] + str(i), 0.02)\n"
    )
    jobs = [
        subprocess.Popen([sys.executable, "-c", code, workers.scheduler_address, log, name], env=ENVIRONMENT)
        for name in "ab"
    ]
    with connect(client) as cluster:
        for i in range(3):
            cluster.run(programs.linger, log, f"c{i}", 0.02)
    assert [job.wait(60) for job in jobs] == [0, 0]
    check_turns(log, 9, 2)


def test_workers_of_this_process_can_be_ranks():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as workers,
        Client(workers, set_as_default=False) as client,
        connect(client) as cluster,
    ):
        assert [r[2] for r in cluster.run(programs.total)] == [3, 3]
        with pytest.raises(ZeroDivisionError):
            cluster.run(programs.fail_on, 0)
        assert [r[2] for r in cluster.run(programs.total)] == [3, 3]


@pytest.mark.ci
def test_ranks_of_a_tls_cluster_link_through_tls(tmp_path):
    security = make_security(tmp_path)
    with (
        worker_processes(protocol="tls", security=security) as workers,
        Client(workers, set_as_default=False) as client,
        connect(client) as cluster,
    ):
        assert workers.scheduler_address.startswith("tls://")
        # The second call is direct.
        for _ in range(2):
            assert [r[2] for r in cluster.run(programs.total)] == [3, 3]
        assert [call.is_kept for call in workers.scheduler.plugins["mgraph"]._calls.values()] == [True]
        assert cluster.run(programs.kinds_of_links) == [["SSLSocket"]] * 2


def check_turns(log: str, jobs: int, num_ranks: int) -> None:
    """Check in a log of `linger` that each job ends on all ranks before the next begins on any."""
    lines = sorted(line.split(" ", 1) for line in pathlib.Path(log).read_text().splitlines())
    assert len(lines) == 2 * jobs * num_ranks
    for i in range(0, len(lines), 2 * num_ranks):
        assert len({line.split()[0] for _, line in lines[i : i + 2 * num_ranks]}) == 1, lines
