"""One call of mg.bfs goes through the files and functions that docs/architecture.md lists, and through few of them."""

from __future__ import annotations

import pathlib
import re

import call_trace
import pytest
from dask_processes import ENVIRONMENT
from emulator.backend import EmulatedBackend

import mgraph as mg
from mgraph.cluster.in_process import InProcessCluster

DOCUMENT = pathlib.Path(__file__).parents[2] / "docs" / "architecture.md"
# Compilers: the emulator compiles at every launch, a GPU once.
COMPILE = {"backends/cuda_source.py", "backends/shared_names.py"}


def listed(name: str) -> list[str]:
    """Return the `file function` lines of a list in the document."""
    block = re.search(rf"<!-- traced: {name} -->\n```\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert block, name
    return [" ".join(line.split()[:2]) for line in block[1].splitlines()]


def check_in_order(name: str, calls: list[str]) -> None:
    """Check that the functions of a list are called, in its order."""
    place = 0
    for line in listed(name):
        assert line in calls[place:], f"{line} is not called, or not in this place of the list {name!r}"
        place = calls.index(line, place)


def traced_on_emulated_gpus(num_ranks: int, search) -> tuple[call_trace.CallTrace, call_trace.CallTrace]:
    """Return what the caller and what rank 0 call during a search that is not the first."""
    with (
        InProcessCluster(num_ranks, make_backend=lambda: EmulatedBackend(block=32, blocks=2)) as cluster,
        mg.rmat(8, cluster=cluster) as g,
    ):
        search(g, 1)
        cluster.run(call_trace.start_on_rank)
        caller = call_trace.CallTrace()
        caller.start()
        search(g, 2)
        caller.stop()
        return caller, cluster.run(call_trace.stop_on_rank)[0]


def test_call_on_one_gpu_is_as_documented():
    caller, rank = traced_on_emulated_gpus(1, mg.bfs)
    check_in_order("one GPU, caller", caller.calls)
    check_in_order("one GPU, rank", rank.calls)


def test_call_on_four_gpus_is_as_documented():
    _, rank = traced_on_emulated_gpus(4, mg.bfs)
    check_in_order("four GPUs, rank", rank.calls)


@pytest.mark.ci
def test_call_on_a_cluster_of_four_processes_is_as_documented():
    from distributed import Client, LocalCluster

    started = LocalCluster(
        n_workers=4, threads_per_worker=1, dashboard_address=":0", env={"PYTHONPATH": ENVIRONMENT["PYTHONPATH"]}
    )
    with (
        started as workers,
        Client(workers, set_as_default=False) as client,
        mg.connect(client, num_ranks=4, backend="cpu") as cluster,
        mg.rmat(8, cluster=cluster) as g,
    ):
        mg.bfs(g, 1)
        cluster.run(call_trace.start_on_rank)
        caller = call_trace.CallTrace()
        caller.start()
        mg.bfs(g, 2)
        caller.stop()
        ranks = cluster.run(call_trace.stop_on_rank)
    check_in_order("four ranks, client", caller.calls)
    for rank in ranks:
        check_in_order("four ranks, worker", rank.calls)


@pytest.mark.parametrize(("search", "files", "frames"), [(mg.bfs, 19, 7), (mg.sssp, 16, 7)])
def test_few_files_and_frames_are_between_a_call_and_its_launch(search, files, frames):
    caller, rank = traced_on_emulated_gpus(1, search)
    waits = caller.calls.index("signals.py wait_for")
    (launch, *_) = [stack for stack in rank.launches if "algorithms/" in " ".join(stack[-2:])]
    until = rank.calls.index(launch[-1])
    crossed = {call.split()[0] for call in [*caller.calls[:waits], *rank.calls[:until], *launch]} - COMPILE
    assert len(crossed) <= files, sorted(crossed)
    assert len(launch) <= frames, launch
