"""Test what Dask's Prometheus endpoints say of mgraph."""

from __future__ import annotations

import subprocess
import sys
import urllib.request

import pytest
from dask_processes import wait_until
from distributed import Client, LocalCluster
from prometheus_client.parser import text_string_to_metric_families
from rank_programs import fail_on

import mgraph as mg


@pytest.fixture
def client():
    place = {"protocol": "tcp", "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    workers = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, **place)
    with workers, Client(workers, set_as_default=False) as client:
        yield client


def scraped(port):
    """Return the metrics of mgraph at an endpoint, by name and label."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as reply:
        families = text_string_to_metric_families(reply.read().decode())
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
        if sample.name.startswith("mgraph_") and not sample.name.endswith("_created")
    }


def test_endpoints_report_objects_calls_and_failures(client):
    ports = client.run_on_scheduler(
        lambda dask_scheduler: [worker.services["dashboard"] for worker in dask_scheduler.workers.values()]
    )
    with mg.connect(client, num_ranks=2) as ranks, mg.rmat(6, cluster=ranks) as g, mg.bfs(g, 1):
        with pytest.raises(ZeroDivisionError):
            ranks.run(fail_on, 0)
        # The call fails with its first rank; the other one ends a moment later.
        wait_until(lambda: scraped(ports[0]).get(("mgraph_calls_total", "fail_on")) == 2)
        # Both workers are of this process: each endpoint has the sums.
        found = scraped(ports[0])
        assert found["mgraph_objects", "graph"] == found["mgraph_objects", "result"] == 2
        assert found["mgraph_object_bytes", "graph"] >= sum(built["bytes"] for built in g.build_stats)
        assert found["mgraph_calls_total", "build_graph"] == found["mgraph_calls_total", "traverse"] == 2
        assert found["mgraph_call_failures_total", "traverse"] == 0
        assert found["mgraph_call_failures_total", "fail_on"] == found["mgraph_calls_total", "fail_on"] == 2
        assert 0 < found["mgraph_call_seconds_total", "traverse"] < 60
    scheduler = client.scheduler_info()["services"]["dashboard"]
    wait_until(lambda: scraped(scheduler)["mgraph_leases", "kept"] == 0)
    of_scheduler = scraped(scheduler)
    assert of_scheduler["mgraph_leases", "held"] == of_scheduler["mgraph_leases", "waiting"] == 0
    assert ("mgraph_gangs",) in of_scheduler


def test_without_prometheus_nothing_is_published():
    code = """
import sys
sys.modules["prometheus_client"] = None
from mgraph.cluster import metrics
metrics.importlib.util.find_spec = lambda name: None
metrics.publish_metrics(object(), metrics.of_ranks)
assert metrics._collectors == {}
"""
    subprocess.run([sys.executable, "-c", code], check=True)
