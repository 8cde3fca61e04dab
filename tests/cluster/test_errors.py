"""What went wrong on a rank is what the caller of a cluster of workers catches."""

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
    """Return the file of a scheduler with two workers, as `dask scheduler` and `dask worker` start them."""
    with scheduler_by_hand(tmp_path_factory.mktemp("cluster")) as (_, file), worker_by_hand(file), worker_by_hand(file):
        yield file


@pytest.fixture(params=["LocalCluster", "dask worker"])
def cluster(request):
    if request.param == "LocalCluster":
        client = Client(request.getfixturevalue("workers"), set_as_default=False)
    else:
        client = Client(scheduler_file=request.getfixturevalue("by_hand"), set_as_default=False)
    with client, DaskCluster(client, 2, open_timeout_s=30) as cluster:
        yield cluster


def arguments_of(kind: type[Exception]) -> tuple:
    """Return a value for each argument that such an error takes."""
    if "__init__" not in vars(kind):
        return (f"a {kind.__name__} with Größe",)
    return tuple(f"some {name}" for name in list(inspect.signature(kind).parameters))


@pytest.mark.covering
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


def test_error_arrives_though_what_it_came_of_cannot(cluster):
    with pytest.raises(mg.WouldNotFit, match="too large") as caught:
        cluster.run(programs.raise_error, mg.WouldNotFit, ("too large",), programs.Unsendable)
    assert "Unsendable('holds a lock')" in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("kind", [FileNotFoundError, TimeoutError, BrokenPipeError])
def test_errors_of_files_on_a_rank_are_not_taken_for_the_schedulers(cluster, kind):
    with pytest.raises(kind, match="on the rank"):
        cluster.run(programs.raise_error, kind, ("on the rank",), ValueError)


def test_command_line_ends_as_the_ranks_error_says(by_hand):
    process = start("bfs", "rmat:34", "--source", "1", "--scheduler-file", by_hand)
    output, says = process.communicate(timeout=120)
    assert (process.returncode, output) == (mg.WouldNotFit.exit_code, "")
    *progress, line = says.splitlines()
    assert progress == ["building rmat34"]
    assert line.startswith("mgraph: ")
    assert "is needed on each rank" in line


def test_graph_that_does_not_fit_where_it_was_put_is_put_on_all_ranks(workers, client, tmp_path, monkeypatch):
    monkeypatch.setitem(placement.ARCS_A_RANK, "cpu", 1 << 31)
    source = programs.TooLargeForOneRank(10, marker=str(tmp_path / "reader"))
    with DaskCluster(client, open_timeout_s=30) as cluster, mg.rmat(10, cluster=cluster) as alike:
        assert alike.num_ranks == 1
        with Graph.from_source(source, cluster=cluster, num_chunks=4) as g:
            assert g.num_ranks == 2
            assert mg.bfs(g, 0).distances.digest() == mg.bfs(alike, 0).distances.digest()
