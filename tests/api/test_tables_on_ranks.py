"""Tables of results: data frames, files and folders of parts; failures leave nothing that reads as a result."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time

import dask
import numpy as np
import pandas
import pytest
from dask_processes import ENVIRONMENT, wait_until
from disks import mounted_disk
from distributed import Client
from killer import Killer, exist
from rank_programs import LingeringRows, where
from user_graphs import graph_of
from worker_processes import worker_processes
from zoo import ZOO, random_case

import mgraph as mg
from mgraph.cluster.in_process import InProcessCluster
from mgraph.rank_jobs import table_rows as jobs
from mgraph.rank_jobs.results import count_values

CASE = random_case(3)


@pytest.fixture(scope="module", params=[1, 3])
def graph(request):
    with InProcessCluster(request.param) as cluster, graph_of(CASE, cluster) as g:
        yield g


@pytest.fixture
def result(graph):
    with mg.sssp(graph, [0, 1]) as result:
        yield result


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("part_rows", [1 << 20, 7])
def test_parts_are_the_rows_of_the_ranks(result, tmp_path, monkeypatch, part_rows):
    monkeypatch.setattr(jobs, "PART_ROWS", part_rows)
    frame = result.to_pandas()
    for path in (tmp_path / "a", f"{tmp_path}/b.c/"):
        result.write(path)
    (tmp_path / "d.e").mkdir()
    result.to_parquet(tmp_path / "d.e")
    for name in ("a", "b.c", "d.e"):
        parts = names(tmp_path / name)
        assert all(re.fullmatch(r"part-\d{5}.parquet", part) for part in parts)
        frames = [pandas.read_parquet(tmp_path / name / part) for part in parts]
        pandas.testing.assert_frame_equal(pandas.concat(frames, ignore_index=True), frame)
    if part_rows == 7:
        assert max(map(len, frames)) == 7
    else:
        assert [len(part) for part in frames] == result._stored.run(count_values)


def test_dask_data_frame_has_a_partition_for_each_rank(result, graph):
    frame = result.to_dask_dataframe()
    assert frame.npartitions == graph.num_ranks
    wanted = result.to_pandas()
    assert frame.dtypes.tolist() == wanted.dtypes.tolist()
    result.close()
    with dask.config.set(scheduler="synchronous"):
        pandas.testing.assert_frame_equal(frame.compute(), wanted)


def test_files_are_written_in_batches(result, tmp_path, monkeypatch):
    wanted = result.to_pandas()
    monkeypatch.setattr("mgraph.api.tables_on_ranks.BATCH_ROWS", 10)
    for suffix, read in ((".csv", pandas.read_csv), (".parquet", pandas.read_parquet), (".arrow", pandas.read_feather)):
        result.write(tmp_path / f"a{suffix}")
        pandas.testing.assert_frame_equal(read(tmp_path / f"a{suffix}"), wanted)
    result.write(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as archive:
        for name in archive.files:
            np.testing.assert_array_equal(archive[name], wanted[name])
    pandas.testing.assert_frame_equal(result.to_pandas(), wanted)


@pytest.mark.parametrize("method", ["write", "to_parquet"])
def test_existing_file_is_replaced_only_on_request(result, tmp_path, method):
    write = getattr(result, method)
    (tmp_path / "a.parquet").write_text("mine")
    with pytest.raises(mg.UsageError, match=r"a\.parquet exists: give another name, or overwrite it"):
        write(tmp_path / "a.parquet")
    assert (tmp_path / "a.parquet").read_text() == "mine"
    write(tmp_path / "a.parquet", overwrite=True)
    pandas.testing.assert_frame_equal(pandas.read_parquet(tmp_path / "a.parquet"), result.to_pandas())
    write("memory://tables/a.parquet", overwrite=True)
    with pytest.raises(mg.UsageError, match=r"a\.parquet exists"):
        write("memory://tables/a.parquet")


def test_a_rank_that_fails_leaves_no_folder(result, tmp_path, monkeypatch):
    write = jobs.write_parquet

    def fail(file, table):
        if file.name.endswith(f"{result.graph.num_ranks - 1:05}.parquet"):
            raise OSError(28, "No space left on device")
        write(file, table)

    monkeypatch.setattr(jobs, "write_parquet", fail)
    with pytest.raises(mg.InputError, match=r"part-0000\d.parquet cannot be written by rank \d on .*: No space left"):
        result.write(tmp_path / "a")
    assert names(tmp_path) == []
    monkeypatch.undo()
    result.write(tmp_path / "a")


def test_full_disk_leaves_no_folder(tmp_path, graph):
    with mounted_disk(tmp_path / "small", "64k") as disk, mg.rmat(15, cluster=graph.cluster) as g:
        with mg.bfs(g, 0) as result, pytest.raises(mg.InputError, match=r"cannot be written.*No space left"):
            result.write(disk / "a")
        assert names(disk) == []


def test_folder_that_a_rank_does_not_see_is_refused(result, tmp_path):
    table = result._table()
    with pytest.raises(mg.UsageError, match=r"rank \d on .* does not see the folder .*: name a folder on"):
        table._stored.run(jobs.write_parts, table._rows, str(tmp_path / "none" / "a"), table._names)


def test_full_folder_is_refused_before_it_is_overwritten(result, tmp_path):
    result.write(tmp_path / "a")
    with pytest.raises(mg.UsageError, match="is not empty"):
        result.write(tmp_path / "a")
    result.write(tmp_path / "a", overwrite=True)
    result.to_parquet(f"{tmp_path}/a/", overwrite=True)


def test_forest_is_a_table_of_edges_that_can_be_read(tmp_path):
    case = ZOO["isolated"]
    with graph_of(case, None) as g, mg.minimum_spanning_forest(g) as forest:
        wanted = forest.to_pandas()
        assert list(wanted) == ["source", "target", "weight"]
        for name in ("f.npz", "f.parquet", "f.csv", "f.mtx"):
            forest.write(tmp_path / name)
            with mg.read(tmp_path / name, num_vertices=g.num_vertices) as tree:
                pandas.testing.assert_frame_equal(tree.edges.to_pandas(), wanted, check_dtype=False)
        with np.load(tmp_path / "f.npz") as archive:
            assert archive.files == ["sources", "targets", "weights", "num_vertices", "directed"]


def test_graph_without_vertices_has_empty_tables(tmp_path):
    with mg.from_edges([], [], cluster=InProcessCluster(2)) as g, mg.connected_components(g) as found:
        assert found.to_pandas().shape == (0, 2)
        for name in ("a.csv", "a.npz", "a.parquet", "a"):
            found.write(tmp_path / name)
        assert (tmp_path / "a.csv").read_text() == "vertex,labels\n"
        assert len(found.to_dask_dataframe().compute(scheduler="synchronous")) == 0
        assert [len(column) for column in g.edges.to_numpy()] == [0, 0]


@pytest.mark.ci
def test_worker_killed_while_it_writes_leaves_no_folder(tmp_path):
    marker = str(tmp_path / "m")
    (tmp_path / "out").mkdir()
    with (
        worker_processes() as workers,
        Client(workers),
        graph_of(CASE, None, "degree") as g,
        mg.connected_components(g) as found,
    ):
        g.edges.write(tmp_path / "out" / "edges")
        assert len(names(tmp_path / "out" / "edges")) == 2
        assert found.to_dask_dataframe().compute().equals(found.to_pandas())
        table = found._table()
        table._rows = LingeringRows(table._rows.columns, table._rows.ids, marker=marker)
        pid = g.cluster.run(where)[1][0]
        killer = Killer(pid, exist(f"{marker}-0", f"{marker}-1"))
        with pytest.raises(mg.GangLost):
            table.write(tmp_path / "out" / "labels")
        killer.check_prompt()
        (tmp_path / "m-over").write_text("")
        wait_until(lambda: names(tmp_path / "out") == ["edges"])


# Writes the components of a graph until it is killed.
CLIENT = """
import sys
import mgraph as mg
from rank_programs import LingeringRows
with mg.rmat(8, cluster=mg.connect(num_ranks=2, backend="cpu")) as g, mg.connected_components(g) as found:
    table = found._table()
    table._rows = LingeringRows(table._rows.columns, table._rows.ids, marker=sys.argv[2])
    table.write(sys.argv[1])
"""


@pytest.mark.ci
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_client_killed_while_it_writes_leaves_nothing_that_reads_as_a_result(tmp_path, number):
    marker = str(tmp_path / "m")
    (tmp_path / "out").mkdir()
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(tmp_path / "out" / "labels"), marker],
        env=ENVIRONMENT,
        stderr=subprocess.DEVNULL,
    )
    wait_until(exist(f"{marker}-0", f"{marker}-1"))
    client.send_signal(number)
    time.sleep(0.5)
    assert not (tmp_path / "out" / "labels").exists()
    (tmp_path / "m-over").write_text("")
    assert client.wait(30) != 0
    assert all(name.startswith(".mgraph-") for name in names(tmp_path / "out"))
    if number == signal.SIGINT:
        assert names(tmp_path / "out") == []
