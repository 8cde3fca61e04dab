"""Test `mgraph doctor --scheduler`: what it reports of a cluster, and its warnings and problems."""

from __future__ import annotations

import json
import socket

import pytest
from cli_runs import run
from distributed import LocalCluster

from mgraph.cli import doctor_cluster, process_facts
from mgraph.cli.doctor import Findings

pytestmark = pytest.mark.usefixtures("no_gpus")


@pytest.fixture(scope="module")
def address():
    place = {"protocol": "tcp", "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=False, **place) as workers:
        yield workers.scheduler_address


def test_cluster_of_this_host_has_no_problem_and_no_warning(address):
    found = json.loads(run("doctor", "--scheduler", address, "--json").stdout)
    assert (found["problems"], found["warnings"]) == ([], [])
    facts = found["facts"]
    assert facts["scheduler"] == f"{address}, without TLS"
    assert (facts["workers"], facts["gpus"], facts["would use"]) == ("2 on 1 host", "0", "at most 2 cpu ranks")
    assert facts["reachable"] == "from its host alone"
    assert facts["deadlines"] == "open 60 s, verb 300 s, scheduler 10 s"


def test_open_port_of_a_process_is_found(address):
    with socket.create_server(("0.0.0.0", 0)) as opened:
        port = f"0.0.0.0:{opened.getsockname()[1]}"
        assert port in process_facts.open_addresses()
        assert json.loads(run("doctor", "--scheduler", address, "--json").stdout)["warnings"]
    assert port not in process_facts.open_addresses()


@pytest.mark.parametrize(
    ("encrypted", "ports", "warned"),
    [
        (False, ["10.0.0.1:8786"], ["tcp://10.0.0.1:8786 listens on 10.0.0.1:8786: who reaches it can run code"]),
        (True, ["10.0.0.1:8786"], []),
        (True, ["10.0.0.1:8786", ":::8787"], ["listens on :::8787: Dask's HTTP pages have no"]),
        (False, [":::1", ":::2"], ["listens on :::1, and 1 other port is open: Dask's HTTP pages"]),
    ],
)
def test_ports_that_others_can_reach_are_warned_of(encrypted, ports, warned):
    found = Findings()
    doctor_cluster._warn_of_open_ports(found, {"scheduler tcp://10.0.0.1:8786": {"open": ports}}, encrypted)
    assert found.facts["reachable"] == "from other hosts"
    assert [part in warning for part, warning in zip(warned, found.warnings, strict=True)] == [True] * len(warned)


def test_other_versions_and_silent_workers_are_problems(address, monkeypatch):
    ask = doctor_cluster.ask_workers

    def answers(client, workers, function):
        one, other = ask(client, workers, function).items()
        versions = one[1]["versions"] | {"mgraph": "0.0.1", "numpy": "1.0"}
        return {one[0]: one[1] | {"versions": versions}, other[0]: TimeoutError()}

    monkeypatch.setattr(doctor_cluster, "ask_workers", answers)
    found = json.loads(run("doctor", "--scheduler", address, "--json", code=4).stdout)
    silent, mgraph = found["problems"]
    assert "does not answer (TimeoutError())" in silent
    assert " has mgraph 0.0.1, and this process " in mgraph
    assert " has numpy 1.0, " in found["warnings"][0]


def test_cluster_without_workers_is_a_problem():
    place = {"protocol": "tcp", "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=0, processes=False, **place) as empty:
        found = run("doctor", "--scheduler", empty.scheduler_address, code=4)
    assert "has no worker that answers: start some" in found.stdout
