"""The caller of a cluster of workers catches the error that a rank raised, unchanged."""

from __future__ import annotations

import inspect
import traceback

import pytest
import rank_programs as programs
from cli_runs import start
from dask_processes import scheduler_by_hand, worker_by_hand
from distributed import Client

import mgraph as mg
from mgraph import errors
from mgraph.api.graph import Graph
from mgraph.cluster.dask import DaskCluster
from mgraph.planning import placement

CLASSES = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory):
    """Start a scheduler and two workers by Dask's commands; return the scheduler file."""
    with scheduler_by_hand(tmp_path_factory.mktemp("cluster")) as (_, file), worker_by_hand(file), worker_by_hand(file):
        yield file


@pytest.fixture(params=["LocalCluster", "dask worker"])
def cluster(request):
    if request.param == "LocalCluster":
        client = Client(request.getfixturevalue("workers"), set_as_default=False)
    else:
        client = Client(scheduler_file=request.getfixturevalue("by_hand"), set_as_default=False)
    with client, DaskCluster(client, 2, open_timeout_s=30) as cluster:
        # The first call is made of tasks, all others are direct.
        cluster.run(programs.nothing)
        yield cluster


def arguments_of(kind: type[Exception]) -> tuple:
    """Return a value for each parameter of an error class."""
    if "__init__" not in vars(kind):
        return (f"a {kind.__name__} with Größe",)
    return tuple(f"some {name}" for name in list(inspect.signature(kind).parameters))


@pytest.mark.covering(every=3)
@pytest.mark.parametrize("kind", [*CLASSES, programs.TooLarge])
def test_error_of_a_rank_arrives_as_it_was_raised(cluster, kind):
    args = arguments_of(kind)
    made = kind(*args)
    with pytest.raises(errors.MgraphError) as caught:
        cluster.run(programs.raise_error, kind, args, FileNotFoundError)
    error = caught.value
    assert type(error) is kind
    assert str(error) == str(made)
    assert vars(error) == vars(made)
    assert error.exit_code == made.exit_code
    assert type(error.__cause__) is FileNotFoundError
    assert "in raise_error" in "".join(traceback.format_exception(error))


@pytest.mark.parametrize("run", ["run", "run_and_store"])
def test_error_arrives_even_if_its_cause_cannot_be_pickled(cluster, run):
    with pytest.raises(mg.WouldNotFit, match="too large") as caught:
        getattr(cluster, run)(programs.raise_error, mg.WouldNotFit, ("too large",), programs.Unsendable)
    assert "Unsendable('holds a lock')" in "".join(traceback.format_exception(caught.value))


@pytest.mark.covering(every=4)
@pytest.mark.parametrize("run", ["run", "run_and_store"])
@pytest.mark.parametrize("kind", [FileNotFoundError, TimeoutError, BrokenPipeError])
def test_os_errors_of_a_rank_are_not_mistaken_for_a_lost_scheduler(cluster, kind, run):
    with pytest.raises(kind, match="on the rank"):
        getattr(cluster, run)(programs.raise_error, kind, ("on the rank",), ValueError)


@pytest.mark.ci
def test_command_line_exits_with_the_code_and_message_of_the_ranks_error(by_hand):
    process = start("bfs", "rmat:34", "--source", "1", "--scheduler-file", by_hand)
    output, errors_shown = process.communicate(timeout=120)
    assert (process.returncode, output) == (mg.WouldNotFit.exit_code, "")
    *progress, line = errors_shown.splitlines()
    assert progress == ["building rmat34"]
    assert line.startswith("mgraph: ")
    assert "is needed on each rank" in line


@pytest.mark.ci
def test_command_line_says_what_it_waits_for(by_hand):
    process = start(
        "bfs", "rmat:4", "--source", "1", "--scheduler-file", by_hand, "--workers", "5", "--open-timeout", "4"
    )
    _, errors_shown = process.communicate(timeout=120)
    assert process.returncode == errors.ClusterError.exit_code
    # A busy machine may first wait for workers to answer.
    *waits, failed = errors_shown.splitlines()
    assert all(line.startswith("mgraph: waits for ") for line in waits)
    assert waits[-1] == "mgraph: waits for 5 workers, and 2 can be ranks"
    assert failed.startswith("mgraph: 5 workers needed, 2 present after 4 s")


@pytest.mark.ci
def test_graph_that_does_not_fit_on_fewer_ranks_is_built_on_all(workers, client, tmp_path, monkeypatch):
    monkeypatch.setitem(placement.ARCS_PER_RANK, "cpu", 1 << 31)
    source = programs.TooLargeForOneRank(10, marker=str(tmp_path / "reader"))
    with DaskCluster(client, open_timeout_s=30) as cluster, mg.rmat(10, cluster=cluster) as same:
        assert same.num_ranks == 1
        with Graph.from_source(source, cluster=cluster, num_chunks=4) as g:
            assert g.num_ranks == 2
            assert mg.bfs(g, 0).distances.digest() == mg.bfs(same, 0).distances.digest()
