"""Test what `mgraph ps` reports of a Dask cluster, also while calls hold and wait for leases."""

from __future__ import annotations

import json
import threading
import time

import dask
import pytest
from cli_runs import refused, run
from dask_processes import wait_until
from distributed import Client, LocalCluster
from rank_programs import linger

import mgraph as mg
from mgraph.cluster.status import cluster_status


@pytest.fixture(scope="module")
def client():
    place = {"protocol": "tcp", "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    workers = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, **place)
    with workers, Client(workers, set_as_default=False) as client:
        yield client


def test_unused_cluster_has_nothing(client):
    found = cluster_status(client)
    assert found.pop("scheduler") == client.scheduler.address
    assert set(map(str, found.values())) == {"[]"}


def test_graphs_and_results_have_names_and_bytes_by_rank(client):
    with mg.connect(client, num_ranks=2) as ranks, mg.rmat(8, cluster=ranks) as g, mg.bfs(g, 1) as hops:
        found = cluster_status(client)
        graph, result = found["objects"]
        assert (graph["kind"], graph["name"], graph["client"]) == ("graph", "rmat8", client.id)
        assert graph["about"].startswith("256 vertices, ")
        # Rows are the most of it.
        assert all(count >= built["bytes"] for count, built in zip(graph["bytes"], g.build_stats, strict=True))
        assert (result["kind"], result["about"]) == ("result", "distances, predecessors")
        assert sum(result["bytes"]) >= 256 * 12
        assert found["clients"] == [{"client": client.id, "sessions": 1}]
        assert [len(gang["workers"]) for gang in found["gangs"]] == [2]
        hops.close()
        wait_until(lambda: len(cluster_status(client)["objects"]) == 1)
        printed = run("ps", "--scheduler", client.scheduler.address).stdout
        assert "graph rmat8" in printed
        assert all(title in printed for title in ("gangs", "leases", "clients"))
        assert json.loads(run("ps", "--scheduler", client.scheduler.address, "--json").stdout)["objects"] == [graph]


def test_leases_are_reported_while_calls_hold_and_wait(client, tmp_path):
    log = tmp_path / "log"
    with mg.connect(client, num_ranks=2) as ranks:
        calls = [threading.Thread(target=ranks.run, args=(linger, str(log), name, 1.0)) for name in "ab"]
        for call in calls:
            call.start()
        wait_until(lambda: log.exists() and len(cluster_status(client)["leases"]) == 2)
        started = time.monotonic()
        leases = cluster_status(client)["leases"]
        assert time.monotonic() - started < 1
        assert [(lease["job"], lease["state"]) for lease in leases] == [("linger", "held"), ("linger", "waiting")]
        assert {lease["client"] for lease in leases} == {client.id}
        assert all(0 <= lease["seconds"] < 30 for lease in leases)
        for call in calls:
            call.join()
        wait_until(lambda: cluster_status(client)["leases"] == [])


def test_worker_that_does_not_answer_is_named(client, monkeypatch):
    monkeypatch.setattr("mgraph.cluster.status.ANSWER_S", 0.0)
    with mg.connect(client, num_ranks=2) as ranks, mg.rmat(5, cluster=ranks):
        found = cluster_status(client)
    assert found["objects"] == []
    assert found["silent"] == sorted(found["gangs"][0]["workers"])


def test_ps_needs_one_scheduler():
    assert "give --scheduler or --scheduler-file" in refused("ps", code=2)
    with dask.config.set({"mgraph.timeouts.scheduler": 1}):
        assert "no scheduler answers at tcp://127.0.0.1:9" in refused("ps", "--scheduler", "127.0.0.1:9", code=4)
