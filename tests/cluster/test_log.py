"""Test the logger: silent by default, and records that carry the rank and the job."""

from __future__ import annotations

import collections
import contextlib
import io
import logging
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest
from distributed import Client, LocalCluster

import mgraph as mg
from mgraph.cluster import client_lease, log, network
from mgraph.cluster.dask import DaskCluster
from mgraph.cluster.log import LOGGER, call_scope, log_beside_dask, log_of

ROOT = pathlib.Path(__file__).parents[2]


def test_library_prints_nothing_by_itself():
    code = "from mgraph.cluster.log import log_of; log_of(3, 'bfs').error('lost')"
    finished = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert finished.stdout + finished.stderr == ""


def test_records_carry_rank_and_job(caplog):
    log_of(3, "bfs").warning("slow")
    log_of(None, "build_graph").warning("large")
    assert [(r.name, r.rank, r.job, r.getMessage()) for r in caplog.records] == [
        ("mgraph", 3, "bfs", "slow"),
        ("mgraph", None, "build_graph", "large"),
    ]


def test_built_graph_is_logged_by_the_client(caplog):
    with caplog.at_level(logging.INFO, "mgraph"), mg.connect(backend="cpu") as cluster, mg.rmat(4, cluster=cluster):
        pass
    (record,) = [record for record in caplog.records if record.job == "build_graph"]
    assert re.fullmatch(r"built <Graph rmat4: .*> in [\d.]+ [mu]?s", record.getMessage())


def test_jobs_of_workers_are_logged_with_their_rank(caplog):
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as workers,
        Client(workers, set_as_default=False) as client,
        DaskCluster(client, 1, backend="cpu") as cluster,
        caplog.at_level(logging.DEBUG, "mgraph"),
    ):
        with mg.rmat(4, cluster=cluster) as g:
            caplog.clear()
            mg.bfs(g, 0)
        found = {(record.rank, record.getMessage().split()[0]) for record in caplog.records if record.job == "traverse"}
    assert found == {(0, "begins"), (0, "ends")}


def fail_on_rank_1(rank, graph):
    if rank.index == 1:
        raise ValueError("spoiled")
    rank.comm.barrier()


def test_all_records_of_a_call_have_one_id_of_their_own(caplog):
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as workers,
        Client(workers, set_as_default=False) as client,
        DaskCluster(client, 2, backend="cpu") as cluster,
        caplog.at_level(logging.DEBUG, "mgraph"),
        mg.rmat(4, cluster=cluster) as g,
    ):
        for call in (lambda: mg.bfs(g, 0), lambda: mg.bfs(g, 0), lambda: g._ask(fail_on_rank_1)):
            with contextlib.suppress(ValueError):
                call()
    jobs = collections.defaultdict(set)
    for record in caplog.records:
        if record.name == "mgraph" and record.job in ("traverse", "fail_on_rank_1", "build_graph"):
            jobs[record.call].add((record.job, record.rank, record.getMessage().split()[0]))
    begun_and_ended = {(rank, word) for rank in (0, 1) for word in ("begins", "ends")}
    by_job = [{(rank, word) for _, rank, word in records} for records in jobs.values()]
    assert None not in jobs
    assert by_job[0] == begun_and_ended | {(None, "built")}
    assert by_job[1:3] == [begun_and_ended] * 2
    # Rank 0 may begin, and end, after the client has its error.
    failed = {(None, "fails:"), (1, "begins"), (1, "fails:")}
    assert failed <= by_job[3] <= failed | {(0, "begins"), (0, "fails:")}
    assert len(jobs) == 4


def test_call_whose_end_was_interrupted_gives_its_id_to_no_other(monkeypatch):
    def interrupted(token):
        raise KeyboardInterrupt

    variable = log._scope
    monkeypatch.setattr(log, "_scope", SimpleNamespace(get=variable.get, set=variable.set, reset=interrupted))
    with contextlib.suppress(KeyboardInterrupt), call_scope("01234567"):
        pass
    monkeypatch.undo()
    with call_scope() as call:
        assert call != "01234567"


def test_wait_of_a_client_has_the_id_of_its_call(caplog, monkeypatch):
    monkeypatch.setattr(client_lease, "QUIET_WAIT_S", 0.0)
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as workers,
        Client(workers, set_as_default=False) as client,
        DaskCluster(client, 1, backend="cpu") as cluster,
        DaskCluster(client, 1, backend="cpu") as other,
    ):
        held = threading.Thread(target=other.run, args=(sleep,))
        held.start()
        time.sleep(0.3)
        with call_scope("01234567"):
            cluster.run(sleep)
        held.join()
    waits = [record for record in caplog.records if record.getMessage().startswith("waits for")]
    assert "01234567" in {record.call for record in waits}


def sleep(rank):
    time.sleep(1)


def test_worker_that_ends_itself_logs_why_before(monkeypatch, caplog):
    class Worker:
        nanny = "tcp://127.0.0.1:1"

    def leave(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setattr(logging, "shutdown", lambda: None)
    with pytest.raises(SystemExit):
        network._end_worker(Worker(), 1, "rank 1 did not connect")
    (record,) = caplog.records
    assert (record.levelname, record.rank, record.job) == ("ERROR", 1, "open_network")
    assert record.getMessage().startswith("rank 1 did not connect; ending this worker")


def test_worker_without_a_handler_uses_those_of_dask(monkeypatch):
    handler = logging.StreamHandler()
    monkeypatch.setattr(logging.getLogger("distributed"), "handlers", [handler])
    monkeypatch.setattr(LOGGER, "handlers", [logging.NullHandler()])
    log_beside_dask()
    assert handler not in LOGGER.handlers or not logging.getLogger().handlers
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    # As Dask's configuration `logging: mgraph: debug` does.
    LOGGER.addHandler(handler)
    log_beside_dask()
    log_beside_dask()
    assert len(LOGGER.handlers) == 2
    written = io.StringIO()
    LOGGER.handlers[1].setStream(written)
    with call_scope("01234567"):
        log_of(3, "bfs").warning("slow")
    assert re.fullmatch(r"[\d:, -]+ - mgraph - WARNING - call 01234567 - rank 3 - bfs - slow\n", written.getvalue())
    assert handler.formatter is None
