"""Test Graph: its repr, constructors and errors, and that closing it frees memory on the ranks."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import scipy.sparse
from distributed import Client
from rank_programs import nothing
from zoo import ZOO

import mgraph as mg
from mgraph.backends.cpu import CpuBackend
from mgraph.cluster.in_process import InProcessCluster


@pytest.fixture(params=[1, 3])
def cluster(request):
    with InProcessCluster(request.param) as cluster:
        yield cluster


def stored_objects(cluster):
    """Return the number of objects on each rank, after a call has freed unreferenced ones."""
    cluster.run(nothing)
    return [len(objects) for objects in cluster._objects]


def path(cluster, **options):
    return mg.from_edges([0, 1, 2], [1, 2, 3], np.float32([1, 2, 3]), cluster=cluster, **options)


def test_repr_shows_sizes_weights_order_and_ranks(cluster):
    ranks = "1 cpu rank" if cluster.num_ranks == 1 else "3 cpu ranks"
    g = path(cluster)
    assert repr(g) == f"<Graph edges: 4 vertices, 3 edges, float32 weights, natural order, {ranks}>"
    with mg.from_edges([0], [1], num_vertices=2000, directed=True, cluster=cluster) as g:
        assert repr(g) == f"<Graph edges: 2,000 vertices, 1 arc, no weights, degree order, {ranks}>"
    assert repr(g) == "<Graph edges: closed>"


def test_info_and_build_stats_have_the_sizes(cluster):
    case = ZOO["parallel"]
    with mg.from_edges(case.sources, case.targets, case.weights, cluster=cluster) as g:
        assert (g.num_vertices, g.num_edges, g.num_ranks) == (3, 2, cluster.num_ranks)
        assert (g.info.num_loops, g.info.num_parallel, g.info.num_isolated, g.info.max_degree) == (2, 3, 0, 2)
        assert g.info.weight_dtype == "uint8"
        assert len(g.build_stats) == cluster.num_ranks
        assert all(stats["seconds"] > 0 and stats["bytes"] > 0 for stats in g.build_stats)


def test_close_frees_the_memory_on_ranks_and_is_idempotent(cluster):
    g = path(cluster)
    assert stored_objects(cluster) == [1] * cluster.num_ranks
    g.close()
    assert g.closed
    assert stored_objects(cluster) == [0] * cluster.num_ranks
    g.close()


def test_with_block_closes_the_graph(cluster):
    with path(cluster) as g:
        assert not g.closed
    assert stored_objects(cluster) == [0] * cluster.num_ranks


def test_unreferenced_graph_is_freed_before_the_next_call(cluster):
    gc.disable()
    try:
        g = path(cluster)
        mg.bfs(g, 0)
        assert stored_objects(cluster) == [1] * cluster.num_ranks
        del g
        assert stored_objects(cluster) == [0] * cluster.num_ranks
    finally:
        gc.enable()


def test_closed_graph_raises_graph_closed_and_results_remain(cluster):
    g = path(cluster)
    result = mg.bfs(g, 0)
    g.close()
    for call in (lambda: mg.bfs(g, 0), lambda: mg.sssp_many(g, [0]), lambda: mg.validate(result)):
        with pytest.raises(mg.GraphClosed, match="the graph edges was closed: build it again"):
            call()
    # Existing results remain.
    assert result.distances.to_numpy().tolist() == [0, 1, 2, 3]
    assert g.num_vertices == 4


def check_closed(g, *results):
    """Check that a graph and its results are closed, also in their reprs."""
    assert g.closed
    assert repr(g) == f"<Graph {g.name}: closed>"
    for result in results:
        assert result.closed
        assert repr(result).endswith(": closed>")
        assert {repr(column).endswith(": closed>") for column in result.columns} == {True}


@pytest.mark.parametrize("part", [False, True])
def test_graph_on_workers_is_closed_with_its_cluster(client, part):
    with mg.connect(client) as cluster:
        g = path(cluster.narrowed(1) if part else cluster)
        result = mg.bfs(g, 0)
        assert not (g.closed or result.closed)
    check_closed(g, result)


def test_graph_on_workers_is_closed_with_the_client(workers):
    with Client(workers, set_as_default=False) as client:
        g = path(mg.connect(client))
        result = mg.bfs(g, 0)
        assert not (g.closed or result.closed)
    check_closed(g, result)


def test_failed_build_leaves_nothing_on_the_ranks(cluster):
    with pytest.raises(mg.UsageError, match="order 'random' is not one of auto, degree, natural"):
        path(cluster, order="random")
    assert stored_objects(cluster) == [0] * cluster.num_ranks
    assert path(cluster).num_edges == 3


def test_closed_cluster_raises_cluster_error():
    with InProcessCluster(2) as cluster:
        g = path(cluster)
        result = mg.bfs(g, 0)
        forest = mg.minimum_spanning_forest(g)
        assert not (g.closed or result.closed or forest.closed)
    check_closed(g, result, forest)
    for call in (lambda: mg.bfs(g, 0), lambda: np.asarray(result.distances), lambda: path(cluster)):
        with pytest.raises(mg.ClusterError, match="this cluster is closed"):
            call()


def test_graph_that_would_not_fit_is_refused_before_allocation(cluster, monkeypatch):
    monkeypatch.setattr(CpuBackend, "free_bytes", lambda self: 80_000)
    with pytest.raises(mg.WouldNotFit, match=r"takes .* more .*, and 78.1 KiB is free: use \d+ ranks"):
        mg.rmat(8, cluster=cluster)
    assert stored_objects(cluster) == [0] * cluster.num_ranks


@pytest.mark.parametrize("last", [10**13, 2**62])
def test_id_too_large_for_a_degree_array_is_refused(last, cluster):
    with pytest.raises(
        mg.WouldNotFit, match=rf"needed on each rank for the degrees of {last + 1:,} vertices, .*: ids need no gaps"
    ):
        mg.from_edges([0], [last], labels=False, cluster=cluster)
    assert stored_objects(cluster) == [0] * cluster.num_ranks


def test_graphs_without_a_cluster_share_one():
    first = mg.from_edges([0], [1])
    second = mg.from_edges([1], [2])
    assert first.cluster is second.cluster
    shared = weakref.ref(first.cluster)
    del first, second
    gc.collect()
    assert shared() is None


def test_all_constructors_make_valid_graphs(cluster, tmp_path):
    sources = [0, 1, 1, 2]
    targets = [1, 0, 2, 1]
    weights = [2, 2, 5, 5]
    matrix = scipy.sparse.csr_array((weights, (sources, targets)), shape=(3, 3))
    np.savez(tmp_path / "edges.npz", sources=sources, targets=targets, weights=weights)
    for g in (
        mg.from_edges(sources, targets, weights, cluster=cluster),
        mg.from_csr(matrix.indptr, matrix.indices, matrix.data, cluster=cluster),
        mg.from_scipy(matrix, cluster=cluster),
        mg.read(tmp_path / "edges.npz", cluster=cluster, num_chunks=5),
    ):
        assert (g.num_vertices, g.num_edges, g.info.directed) == (3, 2, False)
        assert mg.sssp(g, 0).distances.to_numpy().tolist() == [0, 2, 7]
    for g in (
        mg.rmat(6, 4, weights=None, cluster=cluster),
        mg.uniform(64, 4, cluster=cluster),
        mg.fixed_out_degree(64, 3, cluster=cluster),
        mg.grid(8, 8, cluster=cluster),
        mg.ssca2(6, cluster=cluster),
        mg.read("grid:8x8", cluster=cluster),
    ):
        assert g.num_vertices == 64
        mg.validate(mg.bfs(g, 0))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda **at: mg.from_edges([0, 1], [1], **at), mg.InputError, "2 sources and 1 targets"),
        (
            lambda **at: mg.from_edges([0, 3], [1, 1], num_vertices=3, **at),
            mg.InputError,
            r"edge 1: vertex 3 is not in 0\.\.2",
        ),
        (
            lambda **at: mg.from_edges([0, -3], [1, 1], labels=False, **at),
            mg.InputError,
            "edge 1: vertex -3 is negative",
        ),
        (lambda **at: mg.from_edges([0], [1], [np.nan], **at), mg.InputError, r"weights\[0\] = nan is not a finite"),
        (lambda **at: mg.from_edges([0.5], [1], **at), mg.InputError, "sources are float64, not integers"),
        (
            lambda **at: mg.from_csr([0, 2], [0], **at),
            mg.InputError,
            "from 0 to 2, not from 0 to the number of arcs, 1",
        ),
        (lambda **at: mg.from_scipy(np.eye(3), **at), mg.InputError, "ndarray is not a SciPy sparse array"),
        (lambda **at: mg.read("none.txt", **at), mg.InputError, "none.txt: no such file"),
        (lambda **at: mg.read("rmat:x", **at), mg.UsageError, "rmat:x"),
        (
            lambda **at: mg.read("rmat:5", weight="w", **at),
            mg.UsageError,
            "weight applies to files, and rmat:5 is gene",
        ),
        (lambda **at: mg.rmat(0, -1, **at), mg.UsageError, "-1"),
        (lambda **at: mg.read("rmat:5", num_chunks=0, **at), mg.UsageError, "num_chunks is 0: give 1 or more"),
        (lambda **at: mg.read("rmat:5", num_chunks=-3, **at), mg.UsageError, "num_chunks is -3"),
        (lambda **at: mg.read("rmat:5", num_chunks=1.5, **at), mg.UsageError, "num_chunks 1.5 is not an integer"),
    ],
)
def test_invalid_input_is_refused_with_its_value(make, error, message, cluster):
    with pytest.raises(error, match=message):
        make(cluster=cluster)


@pytest.mark.ci
def test_argument_that_is_no_cluster_is_refused():
    with pytest.raises(mg.UsageError, match="3 is not a cluster"):
        mg.from_edges([0], [1], cluster=3)
