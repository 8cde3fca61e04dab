"""Files and folders at URLs are there with all they have, or not at all."""

from __future__ import annotations

import fsspec
import numpy as np
import pandas
import pytest

import mgraph as mg
from mgraph.cluster.in_process import InProcessCluster
from mgraph.errors import InputError, UsageError
from mgraph.io import upload
from mgraph.io.write import TABLE_WRITERS, require_writable, write_columns
from mgraph.rank_jobs import table_rows as jobs

COLUMNS = {"vertex": np.arange(5), "distance": np.arange(5.0)}


@pytest.fixture
def memory():
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()


@pytest.fixture(scope="module")
def result():
    with InProcessCluster(3) as cluster, mg.rmat(6, cluster=cluster, order="degree") as g, mg.bfs(g, 0) as result:
        yield result


@pytest.mark.parametrize("suffix", TABLE_WRITERS)
def test_files_of_every_format_are_uploaded(memory, tmp_path, suffix):
    write_columns(tmp_path / f"a{suffix}", COLUMNS)
    write_columns(f"memory://out/a{suffix}", COLUMNS)
    assert memory.cat_file(f"/out/a{suffix}") == (tmp_path / f"a{suffix}").read_bytes()


def test_failed_write_uploads_nothing(memory, result, monkeypatch):
    calls = []

    def fail(rank, key, rows, lo, hi, names):
        calls.append(lo)
        if hi > 10:
            raise InputError("broken")
        return rows.shared(rank, key, lo, hi, names)

    monkeypatch.setattr("mgraph.api.tables_on_ranks.make_rows", fail)
    monkeypatch.setattr("mgraph.api.tables_on_ranks.BATCH_ROWS", 10)
    with pytest.raises(InputError, match="broken"):
        result.write("memory://out/a.csv")
    assert calls
    assert memory.find("/") == []


def test_ranks_upload_their_parts(memory, result):
    for url in ("memory://out/parts", "memory://out/a.b/"):
        result.write(url)
        found = memory.find(url.removeprefix("memory:/"))
        assert [name.rpartition("/")[2] for name in found] == [f"part-0000{k}.parquet" for k in range(3)]
        frames = [pandas.read_parquet(memory.open(name)) for name in found]
        pandas.testing.assert_frame_equal(pandas.concat(frames, ignore_index=True), result.to_pandas())
        with pytest.raises(UsageError, match=r"has files, such as .*part-00000.parquet: delete them"):
            result.write(url, overwrite=True)
        with pytest.raises(UsageError, match="has files"):
            require_writable(url)


def test_failed_part_uploads_nothing(memory, result, monkeypatch):
    write = jobs.write_parquet

    def fail(file, table):
        write(file, table)
        if fail.count == 2:
            raise OSError(28, "No space left on device")
        fail.count += 1

    fail.count = 0
    monkeypatch.setattr(jobs, "write_parquet", fail)
    with pytest.raises(InputError, match=r"cannot be written.*No space left"):
        result.write("memory://out/parts")
    assert memory.find("/") == []


def test_failed_upload_deletes_what_is_there(memory, result, monkeypatch):
    put = type(memory).put_file

    def fail(self, local, path, **options):
        if path.endswith("2.parquet"):
            raise ConnectionError("the network is down")
        return put(self, local, path, **options)

    monkeypatch.setattr(type(memory), "put_file", fail)
    with pytest.raises(InputError, match=r"part-00002.parquet cannot be written: the network is down"):
        result.write("memory://out/parts")
    assert memory.find("/") == []


def test_unknown_file_system_is_refused_before_any_work():
    with pytest.raises(UsageError, match="cannot be opened"):
        require_writable("nonsense://out/a.csv")
    assert upload.uploaded_bytes("memory://none") == -1
