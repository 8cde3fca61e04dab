"""Processes killed and interrupted at random: errors are named and in time, later results correct, nothing is left.

`--faults N` sets the number of faults, `--fault-seed` repeats the same ones.
"""

from __future__ import annotations

import contextlib
import random

import pytest
from faults.campaign import Strikes, Tally, interrupt, kill_clients, kill_workers
from faults.commands import COMMANDS, strike_commands
from faults.phases import write_inputs
from faults.processes import Run, client_process, monitored
from local_clusters import GPU

# Well above the time of the faults of one test (SHARES), and below faulthandler_timeout.
pytestmark = [pytest.mark.timeout(360), pytest.mark.widens]

# By test: its share of `--faults N`, and the most faults in one test. N SIGKILLs in all, and at least N SIGINTs.
SHARES = {
    "test_interrupted_calls_in_process": (0.5, 50),
    "test_interrupted_calls_on_workers": (0.3, 30),
    "test_killed_workers": (0.6, 12),
    "test_killed_clients": (0.15, 6),
    "test_killed_commands": (0.75, 15),
}
SCALE = 10
SMALL_SCALE = 5


def pytest_generate_tests(metafunc):
    if "count" in metafunc.fixturenames:
        share, most = SHARES[metafunc.function.__name__]
        count = max(1, round(share * metafunc.config.getoption("faults")))
        parts = [min(most, count - done) for done in range(0, count, most)]
        metafunc.parametrize("count", parts, ids=[f"{part} faults {i}" for i, part in enumerate(parts)])


@pytest.fixture
def run(tmp_path):
    write_inputs(tmp_path, SCALE)
    return Run(tmp_path)


@pytest.fixture
def campaign(request, run, record_property):
    """Return a context that counts the faults of a campaign, and at its end fails with all problems."""

    @contextlib.contextmanager
    def run_campaign():
        seed = f"--fault-seed {request.config.getoption('fault_seed')}"
        tally = Tally(request.node.name, seed)
        with tally.noting(run):
            yield tally, random.Random(seed + request.node.name)
        record_property("faults", tally.facts())
        tally.check()

    return run_campaign


@pytest.mark.parametrize("ranks", [1, *(pytest.param(ranks, marks=pytest.mark.ci) for ranks in (2, 3, GPU))])
def test_interrupted_calls_in_process(run, campaign, ranks, count):
    # On one rank a larger graph, so that its kernels run in several threads; small ones for the emulator.
    scale = {1: SCALE + 4, GPU: SMALL_SCALE}.get(ranks, SCALE)
    if ranks == GPU:
        write_inputs(run.folder, SMALL_SCALE)
    with campaign() as (tally, chance), client_process(run, ranks=ranks, scale=scale) as process:
        interrupt(Strikes(run, process, tally), chance, count)


@pytest.mark.ci
def test_interrupted_calls_on_workers(run, campaign, count):
    with (
        campaign() as (tally, chance),
        monitored(run) as monitor,
        client_process(run, ranks=2, scale=SCALE, scheduler_file=monitor.file) as process,
    ):
        interrupt(Strikes(run, process, tally, monitor), chance, count)


@pytest.mark.ci
def test_killed_workers(run, campaign, count):
    with (
        campaign() as (tally, chance),
        monitored(run) as monitor,
        client_process(run, ranks=2, scale=SCALE, scheduler_file=monitor.file) as process,
    ):
        kill_workers(Strikes(run, process, tally, monitor), monitor, chance, count)


@pytest.mark.ci
def test_killed_clients(run, campaign, count):
    """Kill clients of the API, and commands."""
    with campaign() as (tally, chance), monitored(run) as monitor:
        kill_clients(run, monitor, tally, chance, count, ranks=2, scale=SCALE, scheduler_file=monitor.file)
        strike_commands(run, tally, chance, ["bfs"], 3, monitor)


@pytest.mark.ci
def test_killed_commands(run, campaign, count):
    """Kill, interrupt and terminate commands, a third each."""
    with campaign() as (tally, chance):
        strike_commands(run, tally, chance, list(COMMANDS), count)
