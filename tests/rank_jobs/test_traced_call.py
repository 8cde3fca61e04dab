"""One call of mg.bfs goes through the files and functions that docs/architecture.md lists, and through few of them."""

from __future__ import annotations

import contextlib
import pathlib
import re
from collections.abc import Iterator

import call_trace
import pytest
from dask_processes import ENVIRONMENT
from emulator.backend import EmulatedBackend
from worker_processes import worker_processes

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


@contextlib.contextmanager
def graph_on_emulated_gpus(num_ranks: int) -> Iterator[mg.Graph]:
    with (
        InProcessCluster(num_ranks, make_backend=lambda: EmulatedBackend(block=32, blocks=2)) as cluster,
        mg.rmat(8, cluster=cluster) as g,
    ):
        yield g


def traced_on_one_emulated_gpu(search) -> call_trace.CallTrace:
    """Return what the caller's thread calls during a search that is not the first."""
    with graph_on_emulated_gpus(1) as g:
        # Kept: nothing that was collected is to be forgotten during the second search.
        first = search(g, 1)
        trace = call_trace.CallTrace()
        trace.start()
        search(g, 2)
        trace.stop()
        first.close()
        return trace


def test_call_on_one_gpu_is_as_documented():
    check_in_order("one GPU", traced_on_one_emulated_gpu(mg.bfs).calls)


def test_call_on_four_gpus_is_as_documented():
    with graph_on_emulated_gpus(4) as g:
        mg.bfs(g, 1)
        g.cluster.run(call_trace.start_on_rank)
        mg.bfs(g, 2)
        rank, *_ = g.cluster.run(call_trace.stop_on_rank)
    check_in_order("four GPUs, rank", rank.calls)


@pytest.mark.ci
def test_call_on_a_cluster_of_four_processes_is_as_documented():
    from distributed import Client

    with (
        worker_processes(4, env={"PYTHONPATH": ENVIRONMENT["PYTHONPATH"]}) as workers,
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


@pytest.mark.parametrize(("search", "files", "frames"), [(mg.bfs, 15, 7), (mg.sssp, 15, 7)])
def test_few_files_and_frames_are_between_a_call_and_its_launch(search, files, frames):
    trace = traced_on_one_emulated_gpu(search)
    launch = next(launch for launch in trace.launches if "algorithms/" in " ".join(launch.stack[-2:]))
    crossed = {call.split()[0] for call in trace.calls[: launch.num_calls]} - COMPILE
    assert len(crossed) <= files, sorted(crossed)
    assert len(launch.stack) <= frames, launch.stack
