"""Opening of a gang's communicator: through sockets between processes, without any port in one process."""

from __future__ import annotations

import asyncio
import concurrent.futures
import queue
import sys
import threading
import time
import types

import pytest
import rank_programs as programs
from dask_processes import wait_until
from distributed import Client, LocalCluster

from mgraph.cluster import network
from mgraph.cluster.dask import DaskCluster
from mgraph.cluster.gangs import Call, Gang, Place, Session
from mgraph.cluster.messages import Ticket
from mgraph.cluster.network import open_network, process_token
from mgraph.errors import CommAborted, CommTimeout, RendezvousTimeout

pytestmark = pytest.mark.timeout(120)

# The addresses that this process has bound since the tests began; an audit hook cannot be removed.
BOUND: list = []
sys.addaudithook(lambda event, args: BOUND.append(args[1]) if event == "socket.bind" else None)


@pytest.fixture(params=["inproc", "tcp"])
def one_process(request):
    """Connect to two workers that are threads of this process."""
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            protocol=request.param,
            dashboard_address=":0",
        ) as workers,
        Client(workers, set_as_default=False) as client,
    ):
        yield client


def test_ranks_of_one_process_open_no_port(one_process):
    bound = len(BOUND)
    with DaskCluster(one_process, open_timeout_s=30) as cluster:
        assert cluster.run(programs.kind_of_comm) == ["ThreadCommunicator"] * 2
        assert [r[2] for r in cluster.run(programs.total)] == [3, 3]
        with pytest.raises(ZeroDivisionError):
            cluster.run(programs.fail_on, 0)
        # Through the communicator of the next epoch.
        assert [r[2] for r in cluster.run(programs.total)] == [3, 3]
    assert BOUND[bound:] == []
    assert network.GROUPS._comms == {}


def test_late_rank_of_one_process_is_named_and_the_next_gang_opens(one_process, tmp_path):
    marker = str(tmp_path / "m")
    late = max(one_process.nthreads())
    busy = one_process.submit(programs.nap, marker, workers=[late], pure=False)
    wait_until((tmp_path / "m-begun").exists)
    try:
        with (
            DaskCluster(one_process, 2, open_timeout_s=0.5) as cluster,
            pytest.raises(RendezvousTimeout, match=r"rank \d on .* did not report ready within 0.5 s"),
        ):
            cluster.run(programs.total)
    finally:
        (tmp_path / "m-over").write_text("")
    busy.result()
    with DaskCluster(one_process, 2, open_timeout_s=30) as cluster:
        assert [r[2] for r in cluster.run(programs.total)] == [3, 3]
    assert network.GROUPS._comms == {}


def test_ranks_of_two_processes_use_sockets(client):
    with DaskCluster(client, 2, open_timeout_s=30) as cluster:
        assert cluster.run(programs.kind_of_comm) == ["SocketCommunicator"] * 2
        assert cluster.run(programs.kinds_of_links) == [["socket"]] * 2


def test_timeout_names_the_late_rank_its_worker_and_the_next_step(client, tmp_path):
    marker = str(tmp_path / "m")
    late = sorted(client.nthreads())[1]
    patient = DaskCluster(client, 2, open_timeout_s=30)
    with patient, DaskCluster(client, 2, open_timeout_s=30, verb_timeout_s=0.5) as cluster:
        # The deadline of another cluster on the same workers is its own.
        patient.run(programs.nothing)
        try:
            with pytest.raises(CommTimeout) as caught:
                cluster.run(programs.wait_for, 1, marker)
        finally:
            (tmp_path / "m-over").write_text("")
    assert str(caught.value) == (
        f"allreduce: rank 1 ({late}) did not answer within 0.5 s: see whether that worker still runs; a rank that "
        "computes longer between two verbs needs a longer verb_timeout_s (--verb-timeout)"
    )


# Parts of the opening.


def ticket(**changes) -> Ticket:
    fields = {
        "gang": "gang",
        "epoch": 0,
        "session": "session",
        "members": ("inproc://a", "inproc://b"),
        "backend": "cpu",
        "local_ranks": (2, 2),
        "open_timeout_s": 20.0,
        "verb_timeout_s": 20.0,
        "one_process": True,
        "secret": bytes(range(32)),
    }
    return Ticket(**fields | changes)


@pytest.mark.parametrize("moment", ["before", "during"])
def test_group_is_dropped_when_a_rank_never_takes_its_communicator(moment):
    """Rank 1 is lost after the rendezvous: rank 0, in its first verb, leaves no thread and no group behind."""
    worker = types.SimpleNamespace(nanny=None, address="inproc://a")
    aborted = concurrent.futures.Future()
    if moment == "before":
        aborted.set_result(CommAborted("rank 1 was lost"))
    else:
        threading.Timer(0.3, aborted.set_result, (CommAborted("rank 1 was lost"),)).start()
    with pytest.raises(CommAborted, match="rank 1 was lost"):
        open_network(ticket(), 0, worker, lambda address: ["", ""], aborted)
    wait_until(lambda: not [t for t in threading.enumerate() if t.name == "mgraph-open"])
    assert network.GROUPS._comms == {}


def test_gang_lost_while_linking_leaves_no_thread_and_no_port():
    worker = types.SimpleNamespace(nanny=None, address="tcp://127.0.0.1:1", ip="127.0.0.1")
    aborted = concurrent.futures.Future()
    threading.Timer(0.3, aborted.set_result, (CommAborted("rank 1 was lost"),)).start()
    bound = len(BOUND)
    with pytest.raises(CommAborted, match="rank 1 was lost"):
        open_network(ticket(one_process=False), 1, worker, lambda own: ["127.0.0.1:1", own], aborted)
    wait_until(lambda: not [t for t in threading.enumerate() if t.name == "mgraph-open"])
    assert [host for host, _ in BOUND[bound:]] == ["127.0.0.1"]


def test_rank_that_does_not_link_is_named_at_the_deadline():
    worker = types.SimpleNamespace(nanny=None, address="tcp://127.0.0.1:1", ip="127.0.0.1")
    start = time.monotonic()
    with pytest.raises(RendezvousTimeout, match=r"rank 0 \(inproc://a\) did not connect within 0.5 s"):
        open_network(
            ticket(one_process=False, open_timeout_s=0.5),
            1,
            worker,
            lambda own: ["127.0.0.1:1", own],
            concurrent.futures.Future(),
        )
    assert time.monotonic() - start < 20


def test_ticket_has_one_process_only_for_ranks_of_one_process_and_hides_the_secret():
    async def make_ticket(*processes: str) -> Ticket:
        gang = Gang(tuple(Place("host", 0, f"worker-{i}", "", p) for i, p in enumerate(processes)), "cpu", 300.0)
        session = Session("session", len(processes), "cpu", 1.0, 1.0, "client", gang)
        assert repr(gang.secret) not in repr(gang)
        return Call("lease", session, (), gang=gang).ticket()

    def ticket_of(*processes: str) -> Ticket:
        return asyncio.run(make_ticket(*processes))

    here = process_token()
    assert ticket_of(here, here).one_process
    assert not ticket_of(here, "elsewhere").one_process
    assert not ticket_of("", "").one_process
    one = ticket_of(here, here)
    other = ticket_of(here, here)
    assert len(one.secret) == 32
    assert one.secret != other.secret
    assert repr(one.secret) not in repr(one)


def test_abort_of_an_open_network_does_not_run_in_the_callback():
    """The callback runs on the event loop of a worker, where an abort would delay heartbeats."""
    aborts = []
    opening = concurrent.futures.Future()
    aborted = concurrent.futures.Future()
    comm = types.SimpleNamespace(sum=lambda one: [2], abort=lambda cause: aborts.append(threading.get_ident()))
    network._connect(lambda: comm, 2, opening, aborted)
    assert opening.result() is comm
    aborted.set_result(CommAborted("over"))
    # An open communicator is aborted by the plugin that received it.
    assert aborts == []


def test_abort_of_an_opening_network_runs_in_another_thread():
    aborts = queue.SimpleQueue()
    opening = concurrent.futures.Future()
    aborted = concurrent.futures.Future()

    def first_verb(one: int) -> list[int]:
        aborted.set_result(CommAborted("over"))
        assert aborts.get(timeout=30) != threading.get_ident()
        raise CommAborted("over")

    comm = types.SimpleNamespace(sum=first_verb, abort=lambda cause: aborts.put(threading.get_ident()))
    network._connect(lambda: comm, 2, opening, aborted)
    assert isinstance(opening.exception(), CommAborted)
