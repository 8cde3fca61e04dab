"""connect() chooses the right cluster, and its errors name what is wrong."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import types

import dask
import pytest
import rank_programs as programs
from dask_processes import (
    ENVIRONMENT,
    listening,
    processes_below,
    scheduler_by_hand,
    worker_by_hand,
)
from distributed import Client, LocalCluster

import mgraph as mg
from mgraph.cluster import connect as connect_module
from mgraph.cluster import devices, scheduler_address
from mgraph.cluster.connect import connect
from mgraph.cluster.dask import DaskCluster
from mgraph.cluster.devices import visible_gpus
from mgraph.cluster.gangs import Place, choose_backend
from mgraph.cluster.in_process import InProcessCluster
from mgraph.errors import ClusterError, CommTimeout, UsageError


@pytest.fixture(autouse=True)
def without_gpus(monkeypatch):
    """Hide GPUs, which connect() without a client would use."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


def test_process_ends_without_closing_its_cluster(workers):
    code = "import sys, mgraph as mg; cluster = mg.connect(scheduler=sys.argv[1])"
    process = subprocess.run([sys.executable, "-c", code, workers.scheduler_address], env=ENVIRONMENT, timeout=60)
    assert process.returncode == 0


@pytest.mark.parametrize("num_ranks", [0, -1])
def test_too_few_ranks_are_refused(num_ranks):
    for make in (InProcessCluster, lambda n: connect(num_ranks=n)):
        with pytest.raises(UsageError, match=str(num_ranks)):
            make(num_ranks)


@pytest.mark.parametrize("num_ranks", [1.5, "2", True])
def test_invalid_numbers_of_ranks_are_refused(num_ranks, client):
    for make in (InProcessCluster, lambda n: connect(num_ranks=n), lambda n: connect(client, num_ranks=n)):
        with pytest.raises(UsageError, match=f"num_ranks {num_ranks!r} is not an integer"):
            make(num_ranks)


@pytest.mark.parametrize("name", ["open_timeout_s", "verb_timeout_s"])
@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "2", True])
def test_invalid_deadlines_are_refused(name, seconds, client):
    option = {"open_timeout_s": "--open-timeout", "verb_timeout_s": "--verb-timeout"}[name]
    for make in (connect, lambda **deadline: connect(client, **deadline)):
        with pytest.raises(UsageError, match=rf"{name} is {seconds!r}: give a positive number of seconds \({option}\)"):
            make(**{name: seconds})


def test_deadlines_reach_the_ranks_of_this_process():
    with connect(num_ranks=2, backend="cpu", verb_timeout_s=0.5, open_timeout_s=1) as cluster:
        for part in (cluster, cluster.narrowed(2)):
            with pytest.raises(CommTimeout, match=r"rank 1 .* within 0\.5 s"):
                part.run(programs.leave_waiting, 1.5)


@pytest.mark.ci
@pytest.mark.parametrize("num_ranks", [2, 1])
def test_deadlines_reach_the_ranks_on_workers(client, num_ranks):
    with connect(client, open_timeout_s=7, verb_timeout_s=0.5) as cluster:
        part = cluster.narrowed(num_ranks)
        session = client.cluster.scheduler.plugins["mgraph"]._sessions[part._session.name]
        assert (session.open_timeout_s, session.verb_timeout_s) == (7, 0.5)
    late = pytest.raises(CommTimeout, match=r"rank 1\b.* within 0\.5 s")
    with connect(scheduler=client.scheduler.address, verb_timeout_s=0.5) as cluster, late:
        cluster.run(programs.leave_waiting, 3.0)


def test_too_many_ranks_in_one_process_are_refused():
    with pytest.raises(UsageError, match="num_ranks is 257: one process has at most 256"):
        connect(num_ranks=257, backend="cpu")


def test_connect_without_dask_does_not_import_it():
    code = "import sys; from mgraph.cluster.connect import connect; c = connect(backend='cpu'); print(c); c.close()"
    code += "; print([m for m in ('dask', 'distributed', 'cupy') if m in sys.modules])"
    lines = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, check=True, capture_output=True, text=True)
    assert lines.stdout.splitlines() == ["<Cluster: 1 cpu rank, in-process>", "[]"]


def test_connect_uses_the_default_client(workers):
    with connect() as cluster:
        assert cluster.launcher == "in-process"
    with Client(workers) as default, connect() as cluster:
        assert (cluster.launcher, cluster.num_ranks, cluster.client) == ("LocalCluster", 2, default)


def test_connect_prefers_a_given_client_to_the_default_one(workers, client):
    with Client(workers), connect(client, num_ranks=1) as cluster:
        assert (cluster.client, cluster.num_ranks) == (client, 1)
        assert cluster.run(programs.total) == [(0, 1, 1, ())]


def test_connect_by_address_closes_only_its_own_client(workers, client):
    with connect(scheduler=workers.scheduler_address) as cluster:
        assert (cluster.launcher, cluster.num_ranks) == ("dask", 2)
        assert cluster.client is not client
    assert (cluster.client.status, client.status) == ("closed", "running")


def test_connect_refuses_invalid_arguments(client, tmp_path, monkeypatch, caplog):
    with pytest.raises(UsageError, match="'gpu' is not one of auto, cpu, cuda"):
        connect(backend="gpu")
    with pytest.raises(UsageError, match="give one of"):
        connect(client, scheduler="tcp://127.0.0.1:1")
    with dask.config.set({"mgraph.timeouts.scheduler-file": 0.1}):
        for quiet_s, said in ((1, []), (0, [f"waits for the scheduler file {tmp_path / 'no.json'}"])):
            monkeypatch.setattr(scheduler_address, "QUIET_WAIT_S", quiet_s)
            with pytest.raises(ClusterError, match=r"no\.json was not there after 0\.1 s"):
                connect(scheduler_file=str(tmp_path / "no.json"))
            # Dask's event loops write here too.
            assert [record.getMessage() for record in caplog.records if record.name.startswith("mgraph")] == said
    if not visible_gpus():
        with pytest.raises(UsageError, match="wants a GPU"):
            connect(backend="cuda")
        with pytest.raises(UsageError, match="wants a GPU for each worker"):
            connect(client, backend="cuda")


def test_asynchronous_client_is_refused():
    async def attempt() -> None:
        async with Client(asynchronous=True, processes=False, n_workers=1, dashboard_address=":0") as client:
            with pytest.raises(UsageError, match="asynchronous"):
                connect(client)

    asyncio.run(attempt())


def test_too_few_workers_raise_an_error_with_their_number(client):
    with pytest.raises(ClusterError, match=r"3 workers needed, 2 present after 0\.2 s: start more"):
        DaskCluster(client, 3, open_timeout_s=0.2)


@pytest.mark.parametrize(
    ("visible", "indices"),
    [(None, [0, 1]), ("1", [1]), ("1,0", [1, 0]), ("", []), ("7,0", []), ("GPU-b", [1]), ("0,-1,1", [0])],
)
def test_visible_gpus_follow_the_rules_of_cuda_visible_devices(monkeypatch, visible, indices):
    monkeypatch.setattr(devices, "_host_gpus", lambda: [devices.Gpu(0, "GPU-aaa"), devices.Gpu(1, "GPU-bbb")])
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [gpu.index for gpu in visible_gpus()] == indices


def test_backend_is_cuda_if_each_worker_has_its_own_gpu():
    own = [Place("host", i, f"tcp://{i}", f"GPU-{i}") for i in range(2)]
    shared = [Place("host", 0, f"tcp://{i}", "GPU-0") for i in range(2)]
    assert choose_backend("auto", own) == choose_backend("cuda", own) == "cuda"
    assert choose_backend("cpu", own) == choose_backend("auto", shared) == "cpu"
    with pytest.raises(UsageError, match="tcp://1 shares its GPU with tcp://0"):
        choose_backend("cuda", shared)


@pytest.mark.ci
def test_workers_that_join_later_become_ranks(tmp_path):
    with (
        scheduler_by_hand(tmp_path) as (_, file),
        worker_by_hand(file),
        connect(scheduler_file=file, num_ranks=1) as cluster,
    ):
        # The plugins are installed while there is one worker; the other receives its plugin when it registers.
        assert cluster.run(programs.total)[0][:3] == (0, 1, 1)
        cluster.run(programs.keep, "graph", 1)
        with worker_by_hand(file), connect(scheduler_file=file, num_ranks=2) as both:
            assert [r[2] for r in both.run(programs.total)] == [3, 3]
            # What was stored before stays where it is.
            assert cluster.run(programs.recall, "graph") == [1]
            assert cluster.run(programs.total)[0][:3] == (0, 1, 1)


def test_cluster_started_for_local_gpus_listens_on_loopback_alone(monkeypatch):
    """LocalCUDACluster passes its arguments to LocalCluster, which opens the ports."""
    before = listening(processes_below(os.getpid()))
    opened = []

    class Workers(LocalCluster):
        def __enter__(self):
            opened.extend(listening(processes_below(os.getpid())) - before)
            return super().__enter__()

    monkeypatch.setitem(sys.modules, "dask_cuda", types.SimpleNamespace(LocalCUDACluster=Workers))
    # The missing GPU is reported after all ports are open.
    with pytest.raises(UsageError, match="wants a GPU for each worker"):
        connect_module._on_local_gpus(2, {})
    assert {address for address, _ in opened} == {"127.0.0.1"}


@pytest.fixture
def without_mgraph(tmp_path):
    """Return the environment of a process that cannot import mgraph."""
    folder = tmp_path / "without" / "mgraph"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'mgraph'\")")
    return {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join((str(folder.parent), ENVIRONMENT["PYTHONPATH"]))}


def test_scheduler_without_mgraph_is_named(tmp_path, without_mgraph):
    named = pytest.raises(ClusterError, match=r"scheduler tcp://.* cannot import mgraph \(No module named 'mgraph'\)")
    with scheduler_by_hand(tmp_path, without_mgraph) as (_, file), named:
        connect(scheduler_file=file)


@pytest.mark.ci
def test_worker_without_mgraph_is_named(tmp_path, without_mgraph):
    with (
        scheduler_by_hand(tmp_path) as (_, file),
        worker_by_hand(file),
        worker_by_hand(file, without_mgraph),
        Client(scheduler_file=file, set_as_default=False) as client,
    ):
        client.wait_for_workers(2, timeout=30)
        with pytest.raises(
            ClusterError, match=r"does not work on tcp://.*No module named 'mgraph'.*install dask-mgraph there"
        ):
            connect(client)
        with pytest.raises(ClusterError, match=r"2 workers needed, 1 present.*No module named 'mgraph'"):
            DaskCluster(client, 2, open_timeout_s=0.2)
        with connect(client, num_ranks=1) as cluster:
            assert cluster.run(programs.total) == [(0, 1, 1, ())]


@pytest.mark.ci
def test_closed_client_is_refused(workers):
    with Client(workers, set_as_default=False) as client:
        pass
    with pytest.raises(ClusterError, match="the client of this cluster was closed: connect again"):
        connect(client)


@pytest.mark.ci
def test_graphs_made_after_a_client_was_closed_do_not_use_it(workers):
    with Client(workers):
        g = mg.from_edges([0], [1])
        assert g.cluster.launcher == "LocalCluster"
    with pytest.raises(ClusterError, match="the client of this cluster was closed: connect again"):
        mg.bfs(g, 0)
    with mg.from_edges([0], [1]) as later:
        assert later.cluster.launcher == "in-process"
