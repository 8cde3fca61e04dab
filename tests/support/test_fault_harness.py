"""The harness of random faults detects planted ones: leftovers, wrong results, hangs, unnamed errors."""

from __future__ import annotations

import os
import random
import signal
import threading

import pytest
from dask_processes import wait_until
from faults import leftovers
from faults.campaign import Outputs, Strikes, Tally, draws, interrupt
from faults.commands import Ended, judge
from faults.log import summary
from faults.phases import digest, write_inputs
from faults.processes import ClientProcess, Run, client_process
from killer import PROMPTLY_S

# The harness of the tests; a newcomer seldom changes it.
pytestmark = pytest.mark.ci

# Planted in the client, and the problem that must be found.
PLANTED = {
    "wrong result": "bfs: a wrong result",
    "foreign error": "bfs: no error of mgraph: ValueError: planted",
    "object": "client: objects left behind",
    "thread": "client: threads mgraph-planted left behind",
    "descriptor": "client: descriptors files null left behind",
    "child": "client: children left behind",
    "spool": "temporary files left behind",
    "beside": "files beside the output left behind",
    "output": "answer.csv is neither old nor new",
    "graph": "the next call fails with GraphClosed",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    write_inputs(folder, 6)
    # Correct calls are short on so small a graph; only planted faults reach these times.
    return Run(folder, settle_s=0.3, ending_s=0.3)


@pytest.fixture(scope="module")
def process(run):
    process = ClientProcess(run, ranks=1, scale=6)
    yield process
    process.kill()
    run.end()


def strike(strikes: Strikes) -> list[str]:
    """Interrupt a client after its phase, so that only the planted fault is found."""

    def blow() -> None:
        wait_until(lambda: not strikes.process.silent)
        os.kill(strikes.process.pid, signal.SIGINT)

    strikes.strike("bfs", 0.0, blow)
    assert strikes.check("bfs", "sssp")["late"]
    return strikes.problems


@pytest.mark.parametrize(("planted", "problem"), PLANTED.items(), ids=PLANTED)
def test_planted_faults_are_found(run, process, planted, problem):
    strikes = Strikes(run, process, Tally("planted", "no seed"))
    assert strike(strikes) == []
    process.request("planted", do="plant", name=planted)
    assert [found for found in strike(strikes) if problem in found], strikes.problems
    with pytest.raises(AssertionError, match="no seed"):
        strikes.tally.check()


def test_interrupt_is_counted_at_its_call(run, process):
    strikes = Strikes(run, process, Tally("planted", "no seed"))
    # Until one arrives in time, on a machine that may be busy.
    while not strikes.tally.outcomes["interrupted"]:
        interrupt(strikes, random.Random(1), 1, ["components"])
        strikes.problems.clear()
    assert strikes.tally.faults["components"] == 1
    assert 0 < strikes.tally.worst_s < 60


@pytest.mark.ci
def test_hanging_call_is_ended_with_its_stack(tmp_path):
    write_inputs(tmp_path, 6)
    run = Run(tmp_path)
    tally = Tally("planted", "no seed")
    with tally.noting(run), client_process(run, ranks=1, scale=6) as process:
        strikes = Strikes(run, process, tally)
        process.request("planted", do="plant", name="hang")
        run.deadline_s = 3.0
        strike(strikes)
    assert tally.problems[0].startswith("Hung: no 'wrong' within 3 s")
    assert 'planted.py", line' in tally.problems[0]
    assert not leftovers.marked(run.mark)


def test_client_that_dies_reports_the_cause(tmp_path):
    run = Run(tmp_path)
    tally = Tally("planted", "no seed")
    # There are no inputs.
    with tally.noting(run), client_process(run, ranks=1, scale=6):
        pass
    assert "the client ended with 1" in tally.problems[0]
    assert "edges.wel" in tally.problems[0]


@pytest.mark.parametrize(
    ("ended", "is_new", "wrong"),
    [
        (Ended(signal.SIGINT, "bfs", 130, "mgraph: interrupted"), False, False),
        (Ended(signal.SIGTERM, "bfs", 143, "mgraph: terminated"), False, False),
        (Ended(signal.SIGKILL, "writing", -9, "writing"), False, False),
        (Ended(signal.SIGINT, "writing", 0, "writing"), True, False),
        (Ended(signal.SIGTERM, "starting", -15, "starting"), False, False),
        (Ended(signal.SIGINT, "bfs", 0, "writing"), False, True),
        (Ended(signal.SIGINT, "bfs", 1, "Traceback"), False, True),
        (Ended(signal.SIGINT, "bfs", 130, "Traceback"), False, True),
        (Ended(signal.SIGTERM, "bfs", 130, "mgraph: interrupted"), False, True),
        (Ended(signal.SIGTERM, "starting", 0, "starting"), False, True),
    ],
)
def test_unnamed_error_of_a_command_is_found(ended, is_new, wrong):
    assert bool(judge(ended, is_new)) == wrong


def test_late_error_is_found():
    tally = Tally("planted", "no seed")
    tally.add("bfs", "named", PROMPTLY_S)
    tally.add("bfs", "answered")
    assert tally.problems == []
    tally.add("bfs", "named", PROMPTLY_S + 1)
    assert tally.problems == ["bfs: named 6.0 s after the fault"]


def test_every_phase_is_drawn_before_one_repeats():
    names = list("abcdefg")
    drawn = [name for name, _ in draws(random.Random(3), names, 21)]
    assert [sorted(drawn[i : i + 7]) for i in (0, 7, 14)] == [names] * 3
    assert list(draws(random.Random(3), names, 9)) == list(draws(random.Random(3), names, 9))


def test_results_that_differ_in_a_bit_have_different_names():
    assert digest([1.0, 2.0]) == digest([1.0, 2.0]) != digest([1.0, 2.0 + 2**-51])
    assert digest([1], [2]) != digest([1, 2]) != digest([1.0, 2.0])


def test_growth_is_found_except_that_of_dask():
    before = {"gangs": 1, "sockets": 3}
    assert leftovers.grown(before, {"gangs": 1, "sockets": 2}) == {}
    assert leftovers.grown(before, {"gangs": 2, "tasks": 1}) == {"gangs": "1 -> 2", "tasks": "0 -> 1"}
    assert leftovers.grown(before, {"sockets": 8}, leftovers.DASK_SLACK) == {}
    assert leftovers.grown(before, {"sockets": 12}, leftovers.DASK_SLACK) == {"sockets": "3 -> 12"}


def ask_for_a_lease(dask_scheduler, end=False):
    leases = dask_scheduler.plugins["mgraph"]._leases
    leases.end("planted") if end else leases.request("planted", ("a member",))


def test_leftovers_on_scheduler_and_workers_are_counted(client):
    import mgraph as mg

    def count():
        scheduler = client.run_on_scheduler(leftovers.of_scheduler)
        return scheduler, leftovers.of_workers(client.run(leftovers.of_worker))

    with mg.connect(client) as cluster:
        scheduler, workers = count()
        assert (scheduler["sessions"], scheduler["gangs"], workers["objects"], workers["networks"]) == (1, 0, 0, 0)
        with mg.rmat(5, cluster=cluster) as graph, mg.bfs(graph, 0):
            scheduler, workers = count()
            assert scheduler["gangs"] == 1
            assert (workers["objects"], workers["networks"]) == (2 * cluster.num_ranks, cluster.num_ranks)
            assert set(client.run_on_scheduler(leftovers.members)) == set(client.run_on_scheduler(leftovers.places))
        # The lease of the last call is kept for a while.
        wait_until(lambda: count()[0]["leases"] == count()[0]["calls"] == 0)
        scheduler, _ = count()
        client.run_on_scheduler(ask_for_a_lease)
        assert count()[0]["leases"] == scheduler["leases"] + 1
        client.run_on_scheduler(ask_for_a_lease, end=True)
        kept = client.submit(threading.active_count)
        kept.result()
        assert count()[0]["tasks"] == scheduler["tasks"] + 1


def test_outputs_that_are_gone_or_torn_are_found(tmp_path):
    run = Run(tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    (out / "a").write_text("old")
    (out / "b").write_text("old")
    outputs = Outputs(run)
    (out / "b").write_text("new")
    outputs.learn()
    assert outputs.wrong() == []
    (out / "a").unlink()
    (out / "b").write_text("ne")
    assert outputs.wrong() == ["a is gone", "b is neither old nor new"]


def test_summary_has_the_counts_of_faults():
    tally = Tally("test_x", "no seed")
    tally.add("bfs", "named", 0.5)
    tally.add("bfs", "answered")
    text = summary([tally.facts()], 7)
    assert "hit bfs 2" in text
    assert "ended answered 1, named 1" in text
    assert "at worst 0.5 s" in text
    assert "2 faults, drawn by --fault-seed 7" in text
