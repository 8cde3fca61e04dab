"""Direct calls, and the lease that a client keeps between them: who holds it when, and how it is given up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import dask
import pytest
import rank_programs as programs
from dask_processes import ENVIRONMENT, held_keys, scheduler_by_hand, stopped, wait_until, worker_by_hand
from distributed import Client
from killer import PROMPTLY_S, Killer, exist

import mgraph as mg
from mgraph.cluster import client_lease, client_session, direct_call, scheduler_plugin, worker_plugin
from mgraph.cluster.dask import DaskCluster
from mgraph.errors import ClusterError, CommAborted, GangLost, GraphClosed

FOR_EVER = 1000.0


@pytest.fixture
def kept_for_ever(monkeypatch):
    monkeypatch.setattr(client_session, "KEPT_S", FOR_EVER)


@pytest.fixture
def other(workers, client):
    """Return a cluster of another client, whose next call is direct."""
    client.wait_for_workers(2, timeout=60)
    with Client(workers, set_as_default=False) as other, DaskCluster(other, 2, open_timeout_s=30) as cluster:
        cluster.run(programs.nothing)
        yield cluster


def plugin_of(workers):
    return workers.scheduler.plugins["mgraph"]


def leases(workers) -> int:
    return len(plugin_of(workers)._leases._leases)


def holders(workers) -> list[str]:
    """Return the clients that keep a lease."""
    return [call.session.client for call in list(plugin_of(workers)._calls.values()) if call.is_kept]


def totals(cluster) -> list[int]:
    return [found[2] for found in cluster.run(programs.total)]


def test_lease_is_kept_between_calls_and_returned_soon_after_the_last_one(workers, client, cluster):
    assert totals(cluster) == [3, 3]
    wait_until(lambda: holders(workers) == [client.id])
    began = time.monotonic()
    wait_until(lambda: not leases(workers), client_session.KEPT_S + 20)
    assert time.monotonic() - began > client_session.KEPT_S / 2
    assert not plugin_of(workers)._calls


def test_idle_holder_returns_its_lease_when_another_client_asks(workers, cluster, other, client, kept_for_ever):
    for first, second in [(cluster, other), (other, cluster), (cluster, other)]:
        assert totals(first) == [3, 3]
        wait_until(lambda first=first: holders(workers) == [first.client.id])
        assert totals(second) == [3, 3]
        wait_until(lambda second=second: holders(workers) == [second.client.id])
    other.close()
    wait_until(lambda: not leases(workers))


def test_two_clients_take_turns(workers, cluster, other, kept_for_ever):
    done = {"one": 0, "other": 0}
    ends = {}

    def call(name, cluster) -> None:
        for _ in range(30):
            assert totals(cluster) == [3, 3]
            done[name] += 1
        ends[name] = dict(done)

    callers = [threading.Thread(target=call, args=args) for args in (("one", cluster), ("other", other))]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    assert done == {"one": 30, "other": 30}
    # Neither waited until the other had made its last call.
    assert min(min(end.values()) for end in ends.values()) > 5


def test_threads_of_one_client_take_turns(workers, cluster, other, kept_for_ever):
    wrong = []

    def call(cluster) -> None:
        for i in range(12):
            if i == 6:
                with pytest.raises(ZeroDivisionError, match="rank 1 fails"):
                    cluster.run(programs.fail_on, 1)
            elif totals(cluster) != [3, 3]:
                wrong.append(i)

    callers = [threading.Thread(target=call, args=(one,)) for one in [cluster] * 8 + [other]]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(100)
        assert not caller.is_alive()
    assert not wrong
    assert leases(workers) <= 1
    cluster.close()
    other.close()
    wait_until(lambda: not (leases(workers) or plugin_of(workers)._calls))


HOLDER = """
import sys, rank_programs as programs
from mgraph.cluster import client_session
from mgraph.cluster.connect import connect
client_session.KEPT_S = 1000.0
cluster = connect(scheduler=sys.argv[1])
cluster.run(programs.nothing)
cluster.run(programs.nothing)
print("holds", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(workers, cluster):
    """Return a process whose client keeps its lease and does nothing."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, workers.scheduler_address],
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"holds\n"
    wait_until(lambda: holders(workers) not in ([], [cluster.client.id]))
    with process:
        yield process
        process.kill()


def test_killed_holder_loses_its_lease(workers, holder, cluster):
    holder.kill()
    holder.wait()
    assert totals(cluster) == [3, 3]
    wait_until(lambda: len(plugin_of(workers)._sessions) == 1)
    cluster.close()
    wait_until(lambda: not (leases(workers) or plugin_of(workers)._calls))


@pytest.mark.ci
def test_stopped_holder_loses_its_lease_when_others_ask_and_goes_on_later(workers, holder, cluster, monkeypatch):
    # Longer than the time between the heartbeats of clients.
    monkeypatch.setattr(scheduler_plugin, "CLIENT_SILENCE_S", 7.0)
    with stopped(holder.pid):
        began = time.monotonic()
        assert totals(cluster) == [3, 3]
        assert 3 < time.monotonic() - began < 30
    assert totals(cluster) == [3, 3]
    holder.stdin.close()
    assert holder.wait(30) == 0


@pytest.fixture
def messages(workers, monkeypatch):
    """Return the keys of the messages about dropped objects, as the scheduler receives them."""
    received = []
    plugin = plugin_of(workers)

    def forget(client, session, key):
        received.append(key)
        plugin.forget(client, session, key)

    monkeypatch.setitem(workers.scheduler.stream_handlers, "mgraph-forget", forget)
    return received


def stored_keys(client) -> list[list[str]]:
    return sorted(client.run(lambda dask_worker: sorted(held_keys(dask_worker))).values())


def test_next_direct_call_drops_what_was_dropped_without_a_message(cluster, client, messages, monkeypatch):
    monkeypatch.setattr(client_session, "DROP_S", FOR_EVER)
    for i in range(5):
        cluster.run(programs.keep, f"result-{i}", i)
        cluster.forget(f"result-{i}")
    assert [sorted(keys) for keys in cluster.run(programs.keys_of_process)] == [["graph"]] * 2
    assert messages == []


@pytest.mark.parametrize("limit", [1 << 20, 0])
def test_large_results_are_freed_before_the_next_call_and_small_ones_after_it(cluster, client, limit, monkeypatch):
    monkeypatch.setattr(client_session, "DROP_S", FOR_EVER)

    def set_limit():
        worker_plugin.FREED_LATER_BYTES = limit

    client.run(set_limit)
    cluster.run(programs.keep_array, "result")
    cluster.forget("result")
    assert cluster.run(programs.array_is_there) == [limit > 0] * 2
    assert cluster.run(programs.array_is_there) == [False] * 2


def test_objects_are_dropped_soon_if_no_call_follows(cluster, client, messages):
    for key in "first", "second":
        cluster.run(programs.keep, key, 1)
        cluster.forget(key)
    wait_until(lambda: stored_keys(client) == [["graph"]] * 2)
    assert messages == ["second"]
    cluster.run(programs.keep, "third", 1)
    wait_until(lambda: not cluster._session._is_sent_soon)
    cluster.forget("third")
    wait_until(lambda: stored_keys(client) == [["graph"]] * 2)


def test_objects_that_a_failed_call_was_to_drop_are_dropped(cluster, client, messages, monkeypatch):
    monkeypatch.setattr(client_session, "DROP_S", FOR_EVER)
    cluster.run(programs.keep, "result", 1)
    cluster.run(programs.keep, "more", 1)
    cluster.forget("result")
    with pytest.raises(GraphClosed, match="'absent'"):
        cluster.run(programs.recall, "absent")
    wait_until(lambda: "result" in messages)
    # The next call is of tasks, which follow the messages.
    cluster.forget("more")
    cluster.run(programs.nothing)
    assert stored_keys(client) == [["graph"]] * 2


def test_worker_lost_between_direct_calls_is_reported(workers, client, cluster, kept_for_ever):
    assert totals(cluster) == [3, 3]
    wait_until(lambda: holders(workers) == [client.id])
    address, pid = sorted(client.run(os.getpid).items())[1]
    os.kill(pid, signal.SIGKILL)
    # It may find the loss before the scheduler does.
    with pytest.raises(GangLost, match="connection to the scheduler broke") as lost:
        cluster.run_on_stored(programs.recall, "graph")
    assert (lost.value.rank, lost.value.worker) == (1, address)
    wait_until(lambda: address not in workers.scheduler.workers)
    with pytest.raises(GangLost):
        cluster.run_on_stored(programs.recall, "graph")
    assert not leases(workers)
    assert totals(cluster) == [3, 3]
    with pytest.raises(GraphClosed, match="'graph'"):
        cluster.run(programs.recall, "graph")


@pytest.mark.ci
def test_holder_learns_that_its_gang_was_lost_without_a_call(workers, client, cluster, kept_for_ever):
    assert totals(cluster) == [3, 3]
    address, pid = sorted(client.run(os.getpid).items())[0]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: address not in workers.scheduler.workers)
    wait_until(lambda: not (leases(workers) or cluster._session._kept))
    # Not an error: this call stores and needs nothing.
    assert totals(cluster) == [3, 3]


@pytest.mark.ci
def test_restart_of_the_workers_ends_kept_leases_and_direct_calls(workers, client, cluster, kept_for_ever, tmp_path):
    assert totals(cluster) == [3, 3]
    wait_until(lambda: holders(workers) == [client.id])
    client.restart(timeout=60)
    wait_until(lambda: not (leases(workers) or cluster._session._kept))
    with pytest.raises(GangLost, match="build the graph again"):
        cluster.run_on_stored(programs.recall, "graph")
    assert totals(cluster) == totals(cluster) == [3, 3]
    marker = str(tmp_path / "m")

    def restart() -> None:
        wait_until(lambda: os.path.exists(f"{marker}-0") and os.path.exists(f"{marker}-1"))
        client.restart(timeout=60)

    restarting = threading.Thread(target=restart)
    restarting.start()
    with pytest.raises(GangLost):
        cluster.run(programs.compute, marker)
    restarting.join()
    assert totals(cluster) == [3, 3]


@pytest.mark.ci
def test_call_whose_message_is_lost_fails_alone(client, cluster, monkeypatch):
    """The connection of one rank breaks, and its worker lives on."""
    real = direct_call.DirectCall._run_rank

    async def run_rank(call, rank, worker, message):
        await real(call, rank, "tcp://127.0.0.1:1" if rank == 1 else worker, message)

    with monkeypatch.context() as patch, dask.config.set({"distributed.comm.timeouts.connect": "100ms"}):
        patch.setattr(direct_call.DirectCall, "_run_rank", run_rank)
        patch.setattr(client.rpc, "timeout", 0.1)
        with pytest.raises(CommAborted, match=r"the call of rank 1 on tcp://127.0.0.1:1 broke \(OSError"):
            cluster.run(programs.total)
    assert cluster.run(programs.recall, "graph") == [1, 1]


def test_long_wait_for_a_lease_is_logged(cluster, other, monkeypatch, tmp_path, caplog):
    monkeypatch.setattr(client_lease, "QUIET_WAIT_S", 0.2)
    marker = str(tmp_path / "m")
    holding = threading.Thread(target=cluster.run, args=(programs.compute, marker))
    holding.start()
    wait_until(lambda: os.path.exists(f"{marker}-1"))

    def end() -> None:
        wait_until(lambda: caplog.records)
        (tmp_path / "m-over").write_text("")

    ending = threading.Thread(target=end)
    with caplog.at_level("WARNING", "mgraph"):
        ending.start()
        assert totals(other) == [3, 3]
    holding.join()
    ending.join()
    (record,) = caplog.records
    assert record.job == "total"
    assert record.getMessage() == f"waits for the end of 1 call on its ranks: compute of {cluster.client.id}"


@pytest.mark.ci
def test_long_wait_for_workers_is_logged(client, monkeypatch, caplog):
    monkeypatch.setattr(client_lease, "QUIET_WAIT_S", 0.2)
    with (
        caplog.at_level("WARNING", "mgraph"),
        pytest.raises(ClusterError, match="3 workers needed, 2 present after 1 s"),
    ):
        DaskCluster(client, 3, open_timeout_s=1)
    assert [record.getMessage() for record in caplog.records] == ["waits for 3 workers, and 2 can be ranks"]


def test_calls_are_tasks_if_the_client_cannot_connect_to_workers(workers, client, monkeypatch):
    async def cannot(*_):
        return False

    monkeypatch.setattr(direct_call, "_can_connect", cannot)
    client.wait_for_workers(2, timeout=60)
    with DaskCluster(client, 2, open_timeout_s=30) as cluster:
        for _ in range(3):
            assert totals(cluster) == [3, 3]
        assert not holders(workers)


@pytest.mark.ci
def test_dropped_objects_are_gone_when_the_next_call_begins(cluster, client):
    for i in range(10):
        cluster.run(programs.keep, "result", i)
        cluster.forget("result")
        with pytest.raises(GraphClosed, match="'result'"):
            cluster.run(programs.recall, "result")
        # The failed call has aborted the communicator; this one is made of tasks.
        cluster.run(programs.nothing)
        if i % 5 == 0:
            closed = DaskCluster(client, 2)
            closed.run(programs.keep, "more", 1)
            closed.close()
            assert [sorted(keys) for keys in cluster.run(programs.keys_of_process)] == [["graph"]] * 2


@pytest.mark.ci
def test_death_of_the_scheduler_during_and_between_direct_calls_raises_an_error(tmp_path, kept_for_ever):
    with (
        scheduler_by_hand(tmp_path) as (scheduler, file),
        worker_by_hand(file),
        # It tries to connect again for longer than the error may take.
        Client(scheduler_file=file, timeout=30, set_as_default=False) as client,
        DaskCluster(client) as cluster,
    ):
        cluster.run(programs.nothing)
        cluster.run(programs.nothing)
        marker = str(tmp_path / "m")
        killer = Killer(scheduler.pid, exist(f"{marker}-0"))
        with pytest.raises(ClusterError):
            cluster.run(programs.compute, marker)
        killer.check_prompt()
        scheduler.wait()
        (tmp_path / "m-over").write_text("")
        for begin in (
            lambda: cluster.run(programs.nothing),
            lambda: DaskCluster(client),
            lambda: mg.rmat(5, cluster=cluster),
        ):
            began = time.monotonic()
            with pytest.raises(ClusterError, match="scheduler cannot be reached"):
                begin()
            assert time.monotonic() - began < PROMPTLY_S
