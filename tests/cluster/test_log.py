"""Test the logger: silent by default, and records that carry the rank and the job."""

from __future__ import annotations

import logging
import os
import pathlib
import re
import subprocess
import sys

import pytest
from distributed import Client, LocalCluster

import mgraph as mg
from mgraph.cluster import network
from mgraph.cluster.dask import DaskCluster
from mgraph.cluster.log import LOGGER, log_beside_dask, log_of

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
    log_beside_dask()
    log_beside_dask()
    assert LOGGER.handlers.count(handler) == 1
