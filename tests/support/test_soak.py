"""The soak detects what is planted: wrong answers, hangs, late errors, leftovers and growing memory."""

from __future__ import annotations

import json
import os
import pathlib
import queue
import random
import subprocess
import sys
import time
import types

import oracles
import pytest
from dask_processes import ENVIRONMENT
from faults import soak_client
from faults.processes import Hung, Run
from faults.soak_cluster import HANG_S, SoakClient, SoakCluster
from faults.soak_tally import GROWTH_MIB, Tally
from killer import PROMPTLY_S

import mgraph as mg

# The harness of the tests; a newcomer seldom changes it.
pytestmark = pytest.mark.ci


def run_jobs(cluster, out, count: int = 150) -> list[str]:
    """Run jobs that a seed draws; return their names."""
    jobs = soak_client.Jobs(cluster, random.Random(4), out)
    names = []
    for _ in range(count):
        name, job = jobs.draw()
        names.append(name)
        job()
    jobs.close()
    return names


def test_jobs_of_a_seed_are_the_same_and_cover_all_algorithms(clusters, tmp_path):
    names = run_jobs(clusters[2], tmp_path / "a.npz")
    assert names == run_jobs(clusters[1], tmp_path / "b.npz")
    jobs = soak_client.JOBS + soak_client.OF_DIRECTED + soak_client.OF_UNDIRECTED
    assert set(names) == {"build", *jobs}


def test_wrong_answer_is_found(clusters, tmp_path, monkeypatch):
    monkeypatch.setattr(oracles, "components", lambda case: oracles.strong_components(case) + 1)
    with pytest.raises(AssertionError) as wrong:
        run_jobs(clusters[2], tmp_path / "a.npz")
    assert soak_client._kind(wrong.value) == "wrong"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (mg.ValidationFailed("a rule"), "wrong"),
        (mg.GangLost(1, "tcp://a", "gone"), "named"),
        (KeyboardInterrupt(), "interrupted"),
        (TypeError("a bug"), "foreign"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_outcome_of_a_job_is_that_of_its_error(error, kind):
    assert soak_client._kind(error) == kind


@pytest.fixture
def cluster(tmp_path):
    """Return a cluster of the soak, without processes."""
    (tmp_path / "out").mkdir()
    client = types.SimpleNamespace(run_on_scheduler=lambda function: os.getpid())
    monitor = types.SimpleNamespace(client=client, num_workers=2, workers=dict, count=dict)
    return SoakCluster(Run(tmp_path, settle_s=0.1), monitor, random.Random(1), Tally())


def said(cluster, **reply) -> list[str]:
    """Make a client say how a job ended; return the problems."""
    cluster._note(SoakClient(None, 1), {"job": "bfs", "error": "Error: planted", "began": 10.0, "at": 20.0} | reply)
    return cluster.tally.problems


def test_bad_outcomes_are_problems(cluster):
    assert said(cluster, outcome="answered") == said(cluster, outcome="named") == said(cluster, outcome="interrupted")
    assert cluster.tally.problems == []
    assert said(cluster, outcome="wrong") == ["bfs: wrong: Error: planted"]
    assert said(cluster, outcome="foreign")[1:] == ["bfs: foreign: Error: planted"]
    assert said(cluster, outcome="named", job="check")[2:] == ["a call without a fault ended with Error: planted"]


def test_late_error_of_a_killed_worker_is_a_problem(cluster):
    cluster._kills["tcp://a"] = 20.0 - PROMPTLY_S + 0.5
    assert said(cluster, outcome="named", worker="tcp://a") == []
    assert cluster.tally.to_error_s["worker"] == [PROMPTLY_S - 0.5]
    # Neither a call that began later, nor one beside a process that was stopped.
    said(cluster, outcome="named", worker="tcp://a", began=19.0)
    cluster._kills["tcp://a"] = 11.0
    cluster._stops = [(5.0, 8.0)]
    assert said(cluster, outcome="named", worker="tcp://a") == []
    cluster._stops = []
    assert said(cluster, outcome="named", worker="tcp://a") == ["the error after a killed worker came after 9.0 s"]


def test_client_that_ends_no_call_is_a_hang(cluster):
    def nothing():
        raise queue.Empty

    silent = SoakClient(types.SimpleNamespace(next=nothing), 8)
    cluster.clients.append(silent)
    cluster._read_all()
    silent.heard = time.monotonic() - HANG_S - 1
    with pytest.raises(Hung, match="a client of 8 threads has ended no call"):
        cluster._read_all()


def test_leftovers_and_torn_files_are_found(cluster):
    counts = {
        "scheduler: sessions": 0,
        "scheduler: clients": 1,
        "scheduler: leases": 0,
        "workers: descriptors files": 3,
    }
    cluster.monitor.count = counts.copy
    cluster._check_left()
    assert cluster.tally.problems == []
    counts |= {"scheduler: leases": 1, "scheduler: sessions": 1, "workers: descriptors files": 4}
    (cluster.run.folder / "out" / ".mgraph-half").mkdir()
    (cluster.run.folder / "out" / "a.npz").write_text("half")
    cluster._check_left()
    found = "\n".join(cluster.tally.problems)
    for left in ("leases", "sessions", "descriptors files", "files beside the output", "a.npz is not whole"):
        assert left in found, left


def test_memory_that_grows_is_a_problem():
    tally = Tally()
    tally.add_memory("scheduler", 100.0, 100.0 + GROWTH_MIB)
    assert tally.problems == []
    tally.add_memory("scheduler", 100.0, 101.0 + GROWTH_MIB)
    assert tally.problems == ["scheduler: its memory grew from 100 to 165 MiB"]
    assert tally.facts()["memory_mib"] == {"scheduler": [(100.0, 164.0), (100.0, 165.0)]}


def test_short_soak_finds_nothing_and_leaves_nothing(tmp_path):
    folder = tmp_path / "tmp"
    folder.mkdir()
    report = tmp_path / "soak.jsonl"
    options = "--minutes", "0.12", "--seed", "3", "--workers", "2", "--clients", "1", "--record", str(report)
    done = subprocess.run(
        [sys.executable, "-m", "faults.soak", *options],
        env=ENVIRONMENT | {"TMPDIR": str(folder)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(report.read_text())
    assert found["problems"] == [] and found["leftovers"] == {}
    assert found["faults"] and found["outcomes"]["answered"]
    assert [path for path in pathlib.Path(folder).iterdir() if path.name.startswith("soak")] == []
