"""Test results: columns that stay on the ranks until they are read."""

from __future__ import annotations

import gc
import re
import sys

import dask
import numpy as np
import oracles
import pandas
import pytest
from dask_processes import held, wait_until
from distributed import Client, get_worker, wait
from forest_checks import check as check_forest
from forest_checks import undirected
from rank_programs import nothing
from user_graphs import graph_of
from worker_processes import worker_processes
from zoo import random_case

import mgraph as mg
from mgraph.cluster.in_process import InProcessCluster

CASE = random_case(3)
ALL = slice(None)


@pytest.fixture(scope="module", params=[1, 3])
def cluster(request):
    with InProcessCluster(request.param) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def graph(cluster):
    with graph_of(CASE, cluster) as g:
        yield g


@pytest.fixture
def result(graph):
    with mg.sssp(graph, [0, 1]) as result:
        yield result


def stored_keys(cluster):
    """Return the keys of results on each rank, after a call has freed unreferenced ones."""
    cluster.run(nothing)
    return [[key for key in objects if not key.startswith("graph-")] for objects in cluster._objects]


def test_closed_result_is_freed_and_raises_graph_closed(graph, cluster):
    result = mg.bfs(graph, 0)
    assert all(stored_keys(cluster))
    result.close()
    result.close()
    assert not any(stored_keys(cluster))
    assert repr(result) == "<bfs of edges from 0: closed>"
    assert repr(result.distances) == "<Column distances: closed>"
    for use in (result.distances.to_numpy, lambda: result.path_to(0), result.distances.digest, result.to_pandas):
        with pytest.raises(mg.GraphClosed, match="this result was closed: compute it again"):
            use()
    for search_many in (mg.bfs_many, mg.sssp_many):
        with search_many(graph, [0, 1]):
            assert [len(keys) for keys in stored_keys(cluster)] == [2] * cluster.num_ranks
        assert not any(stored_keys(cluster))


def test_result_is_freed_with_its_last_column(graph, cluster):
    gc.disable()
    try:
        distances, predecessors = mg.bfs(graph, 0)
        assert all(stored_keys(cluster))
        del predecessors
        assert distances[0] == 0
        del distances
        assert not any(stored_keys(cluster))
    finally:
        gc.enable()


def test_out_of_memory_raises_would_not_fit_and_leaves_nothing(graph, cluster, monkeypatch):
    def full(*args):
        raise MemoryError("out of memory allocating 9 bytes")

    monkeypatch.setattr("mgraph.rank_jobs.traversal._translate", full)
    with pytest.raises(mg.WouldNotFit, match=r"traverse on edges needs more memory than there is \(out of memory"):
        mg.bfs(graph, 0)
    assert not any(stored_keys(cluster))


def test_failed_search_leaves_nothing_on_the_ranks(graph, cluster, monkeypatch):
    monkeypatch.setattr("mgraph.rank_jobs.traversal._translate", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        mg.bfs(graph, 0)
    assert not any(stored_keys(cluster))


def test_reprs_of_results_columns_and_stats(graph):
    result = mg.bfs(graph, [0, 1, 2, 3])
    text = repr(result)
    assert text.startswith("<bfs of edges from 0, 1, 2, ...: ")
    assert f"4 of {graph.num_vertices:,} vertices reached (no arc leaves the sources), frontier, " in text
    assert repr(result.distances) == f"<Column distances: {graph.num_vertices:,} vertices, int32>"
    stats = r"<Stats: frontier \(.*\), [\d,]+ reached, \d+ supersteps?, [\d,]+ arcs .*>"
    assert re.fullmatch(stats, repr(result.stats))
    assert repr(mg.sssp_many(graph, [0, 1])).startswith("<sssp of edges from 2 roots: ")


def test_two_columns_are_equal_if_they_are_the_same(result):
    assert result.distances in {result.distances: 1}
    assert result.distances != result.predecessors


def test_columns_convert_to_arrays_of_their_dtype(result, graph):
    distances = result.distances.to_numpy()
    assert result.distances.shape == distances.shape == (len(result.distances),) == (graph.num_vertices,)
    for column, dtype in (
        (result.distances, oracles.state_dtype(CASE)),
        (result.predecessors, np.int64),
        (result.nearest_source, np.int64),
        (mg.bfs(graph, 0).distances, np.int32),
    ):
        assert column.dtype == column.to_numpy().dtype == np.asarray(column).dtype == dtype
    np.testing.assert_array_equal(np.asarray(result.distances), distances)
    assert np.asarray(result.distances, np.float64).dtype == np.float64
    assert list(result.distances) == list(distances)
    with pytest.raises(ValueError, match="without a copy"):
        np.array(result.distances, copy=False)


def test_fetched_values_are_copies(result):
    first = result.distances.to_numpy()
    wanted = first.copy()
    first[:] = 7
    result.distances[0:10][:] = 7
    dask_array = result.distances.to_dask_array()
    dask_array.compute()[:] = 7
    np.testing.assert_array_equal(result.distances.to_numpy(), wanted)


def test_columns_are_indexed_by_vertices_and_slices(result):
    column = result.predecessors
    whole = result.predecessors.to_numpy()
    n = len(whole)
    for vertex in (0, 1, n // 2, n - 1, np.int32(5), np.uint64(6)):
        assert column[vertex] == whole[vertex]
        assert column[vertex].dtype == whole.dtype
    for part in (
        ALL,
        slice(3, 70),
        slice(-5, None),
        slice(n - 1, n + 9),
        slice(9, 3),
        slice(n, None),
        slice(-n - 5, 2),
    ):
        np.testing.assert_array_equal(column[part], whole[part])
        assert column[part].dtype == whole.dtype
    for vertex in (n, -1, np.int64(-1), -n, -n - 1):
        with pytest.raises(IndexError, match=rf"vertex {vertex} is not in 0\.\.{n - 1}"):
            column[vertex]
    for index, message in (
        (slice(0, 9, 2), "step 2"),
        (1.5, "1.5"),
    ):
        with pytest.raises(mg.UsageError, match=message):
            column[index]


def test_no_column_of_vertices_has_a_negative_one_and_edges_count_from_the_end(cluster):
    edges = [0, 1, 2], [1, 2, 3], [3, 2, 1]
    for shift in (0, 10**9):  # without labels and with them
        with mg.from_edges(*([end + shift for end in ends] for ends in edges[:2]), edges[2], cluster=cluster) as g:
            searched = mg.sssp(g, [shift, shift + 1]).columns
            for column in (*searched, *mg.connected_components(g).columns):
                with pytest.raises((IndexError, mg.UsageError), match="vertex -1 is not"):
                    column[-1]
                assert column[-2:].tolist() == column.to_numpy()[-2:].tolist()
            forest = mg.minimum_spanning_forest(g)
            for column in (*forest.columns, g.labels):
                assert column[-1] == column.to_numpy()[-1]
            with pytest.raises(IndexError, match=r"edge -4 is not in 0\.\.2"):
                forest.weights[-4]


def test_dask_array_has_one_chunk_for_each_rank(result, cluster):
    for column in (result.distances, result.predecessors):
        array = column.to_dask_array()
        assert array.dtype == column.dtype
        assert array.shape == column.shape
        assert len(array.chunks[0]) == cluster.num_ranks
        with dask.config.set(scheduler="synchronous"):
            np.testing.assert_array_equal(array.compute(), column.to_numpy())
            assert (array + 1).max().compute() == column.to_numpy().max() + 1


def test_dask_array_outlives_its_result(graph):
    result = mg.bfs(graph, 0)
    wanted = result.distances.to_numpy()
    array = result.distances.to_dask_array()
    result.close()
    np.testing.assert_array_equal(array.compute(scheduler="synchronous"), wanted)


def test_data_frames_and_files_have_all_columns(result, tmp_path):
    frame = result.to_pandas()
    assert list(frame) == ["vertex", "distances", "predecessors", "nearest_source"]
    assert frame["vertex"].tolist() == list(range(result.graph.num_vertices))
    for name in list(frame)[1:]:
        np.testing.assert_array_equal(frame[name], getattr(result, name).to_numpy())
    result.to_parquet(tmp_path / "r.parquet")
    pandas.testing.assert_frame_equal(pandas.read_parquet(tmp_path / "r.parquet"), frame)
    result.write(tmp_path / "r.csv")
    pandas.testing.assert_frame_equal(pandas.read_csv(tmp_path / "r.csv"), frame)
    result.write(tmp_path / "r.npz")
    with np.load(tmp_path / "r.npz") as archive:
        assert archive.files == list(frame)
        np.testing.assert_array_equal(archive["distances"], frame["distances"])
    with pytest.raises(mg.UsageError, match=r"'.xlsx' is not one of .npz, .csv, .*parquet"):
        result.write(tmp_path / "r.xlsx")
    # write() follows the suffix; to_parquet() writes Parquet under any name.
    result.to_parquet(tmp_path / "columns")
    pandas.testing.assert_frame_equal(pandas.read_parquet(tmp_path / "columns"), frame)


def test_columns_that_were_not_requested_are_none(graph, tmp_path):
    result = mg.bfs(graph, 0, return_predecessors=False)
    assert result.predecessors is None
    assert result.nearest_source is None
    assert list(result.to_pandas()) == ["vertex", "distances"]
    distances, predecessors = result
    assert predecessors is None
    assert distances[0] == 0
    many = mg.bfs_many(graph, [0, 1], return_predecessors=False)
    assert many.predecessors is None
    assert many.distances.shape == (2, graph.num_vertices)
    with mg.sssp(graph, [0, 1], return_predecessors=False) as nearest:
        assert nearest.predecessors is None
        with mg.sssp(graph, [0, 1]) as full:
            np.testing.assert_array_equal(nearest.nearest_source, full.nearest_source)


def test_missing_pandas_error_names_the_package(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(mg.UsageError, match="frames need pandas: pip install pandas"):
        result.to_pandas()


def test_many_results_are_a_sequence(graph):
    many = mg.bfs_many(graph, [5, 0, 9])
    assert len(many) == 3
    assert [result.sources for result in many] == [(5,), (0,), (9,)]
    assert [result.sources for result in many[1:]] == [(0,), (9,)]
    assert many[1:].distances.shape == (2, graph.num_vertices)


def test_digests_depend_on_values_and_not_on_ranks_or_order():
    digests = {}
    for num_ranks in (1, 2, 5):
        with InProcessCluster(num_ranks) as cluster:
            for order in ("degree", "natural"):
                g = mg.from_edges(
                    CASE.sources,
                    CASE.targets,
                    CASE.weights,
                    num_vertices=CASE.num_vertices,
                    cluster=cluster,
                    order=order,
                )
                for name, search, source in (("a", mg.bfs, 0), ("b", mg.bfs, 1), ("c", mg.sssp, 0), ("d", mg.sssp, 1)):
                    digest = search(g, source).distances.digest()
                    assert 0 <= digest < 2**64
                    assert digests.setdefault(name, digest) == digest
    assert len(set(digests.values())) == 4


@pytest.mark.parametrize("method", ["frontier", "sweep"])
def test_results_of_all_methods_are_valid(graph, method):
    for result in (
        mg.bfs(graph, 0, method=method),
        mg.sssp(graph, [0, 1], method=method),
        mg.bfs(graph, 0, depth_limit=2, method=method),
        mg.sssp(graph, 0, cutoff=2**31, method=method),
    ):
        mg.validate(result)


@pytest.mark.parametrize("column", ["distances", "predecessors"])
def test_corrupted_result_fails_validation(graph, cluster, column):
    for search in (mg.bfs, mg.sssp):
        result = search(graph, int(CASE.sources[0]))
        key = stored_keys(cluster)[0][0]
        # Corrupt the last reached vertex that is no source, on one rank, as a wrong kernel would.
        traversal = cluster._objects[-1][key].traversal
        values = getattr(traversal, column)
        top = np.iinfo(traversal.predecessors.dtype).max
        victim = np.flatnonzero((traversal.predecessors != top) & (traversal.distances > 0))[-1]
        values[victim] += 1
        with pytest.raises(mg.ValidationFailed, match=r"rule \d: .*: \d+ of them, first vertex \d+"):
            mg.validate(result)
        values[victim] -= 1
        mg.validate(result)
        result.close()


def test_error_names_the_graph_that_the_ranks_lost():
    with InProcessCluster(2) as cluster, graph_of(CASE, cluster) as g, mg.bfs(g, 0) as result:
        for objects in cluster._objects:
            objects.clear()
        with pytest.raises(mg.GraphClosed, match=r"the graph edges is not on its ranks any more: .* build it again"):
            mg.bfs(g, 0)
        for read in (result.distances.to_numpy, lambda: result.path_to(1), lambda: mg.validate(result)):
            with pytest.raises(mg.GraphClosed, match="this result about edges, or the graph, is not on its ranks"):
                read()


def test_validate_refuses_anything_but_results(graph):
    with pytest.raises(mg.UsageError, match="TraversedMany is not the result of an algorithm"):
        mg.validate(mg.bfs_many(graph, [0]))
    with pytest.raises(mg.UsageError, match="int is not the result of"):
        mg.validate(3)


def worker_of_chunk(block, block_info=None):
    return np.full(len(block), get_worker().id)


@pytest.mark.ci
def test_results_and_dask_arrays_stay_on_dask_workers():
    with (
        worker_processes() as workers,
        Client(workers) as client,
        mg.from_edges(
            CASE.sources, CASE.targets, CASE.weights, num_vertices=CASE.num_vertices, directed=CASE.directed
        ) as g,
    ):
        assert g.num_ranks == 2
        assert repr(g).endswith("2 cpu ranks>")
        distances, predecessors = mg.sssp(g, 0)
        np.testing.assert_array_equal(distances, oracles.sssp(CASE, [0]))
        array = distances.to_dask_array()
        assert array.chunks == (((len(distances) + 1) // 2, len(distances) // 2),)
        # Chunks stay on their workers, and so do computations on them.
        owners = array.map_blocks(worker_of_chunk, dtype="U99").compute()
        assert len(set(owners)) == 2
        assert len(set(owners[: array.chunks[0][0]])) == 1
        np.testing.assert_array_equal(array.compute(), distances)
        assert array.sum().compute() == distances.to_numpy().sum()
        # The chunks are copies that Dask owns; the result itself is freed with its last column.
        del distances, predecessors
        wait_until(lambda: sum(client.run(held).values()) == 2)
        wait(array.persist())
        # A forest's edges stay on the workers too, and do not depend on their number.
        case = undirected(CASE)
        with graph_of(case, None) as both_ways, mg.minimum_spanning_forest(both_ways) as forest:
            check_forest(forest, case, both_ways.info.order)
            mg.validate(forest)
            assert forest.weights.to_dask_array().compute().sum() == forest.total_weight
        with pytest.raises(mg.UsageError, match="source 99999 is not a vertex"):
            mg.bfs(g, 99999)
        g.close()
        wait_until(lambda: sum(client.run(held).values()) == 0)
