"""Parquet and Arrow files hold the columns as they are, labels as strings, and what edges say of their graph."""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
import pytest
from odd_labels import ODD, strings

from mgraph.errors import UsageError
from mgraph.generate.rmat import Rmat
from mgraph.io.write import write_columns, write_edges


@pytest.mark.parametrize("suffix", [".parquet", ".pq", ".arrow", ".feather"])
def test_columns_keep_their_values_and_dtypes(tmp_path, suffix):
    columns = {"vertex": strings(ODD), "distances": np.arange(len(ODD), dtype=np.float32), "p": np.arange(len(ODD))}
    write_columns(tmp_path / f"a{suffix}", columns)
    read = pandas.read_parquet if suffix in (".parquet", ".pq") else pandas.read_feather
    frame = read(tmp_path / f"a{suffix}")
    # No label is empty: it is a missing one.
    assert frame["vertex"].isna().tolist() == [text == "" for text in ODD]
    assert frame["vertex"].fillna("").tolist() == ODD
    assert (frame["distances"].dtype, frame["p"].dtype) == (np.float32, np.int64)
    np.testing.assert_array_equal(frame["p"], columns["p"])


def test_part_of_a_column_of_strings_is_written(tmp_path):
    whole = strings(ODD)
    write_columns(tmp_path / "a.parquet", {"vertex": type(whole)(whole.offsets[3:7], whole.data)})
    assert pandas.read_parquet(tmp_path / "a.parquet")["vertex"].tolist() == ODD[3:6]


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_edges_say_their_graph(tmp_path, suffix):
    write_edges(tmp_path / f"a{suffix}", Rmat(5))
    read = pyarrow.parquet.read_schema if suffix == ".parquet" else lambda path: pyarrow.ipc.open_file(path).schema
    about = json.loads(read(tmp_path / f"a{suffix}").metadata[b"mgraph"])
    assert about == {"num_vertices": 32, "directed": False}


def test_arrow_without_pyarrow_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match="Arrow needs pyarrow: pip install pyarrow"):
        write_columns(tmp_path / "a.arrow", {"a": np.arange(2)})
    assert not list(tmp_path.iterdir())


def test_strings_that_do_not_shrink_are_written_uncompressed(tmp_path):
    hashes = [f"{k * 0x9E3779B97F4A7C15 % (1 << 64):016x}" for k in range(1000)]
    urls = [f"https://example.org/page/{k}" for k in range(1000)]
    columns = {"vertex": strings(hashes), "url": strings(urls), "k": np.arange(1000)}
    write_columns(tmp_path / "a.parquet", columns)
    row_group = pyarrow.parquet.ParquetFile(tmp_path / "a.parquet").metadata.row_group(0)
    found = [row_group.column(i).compression for i in range(3)]
    assert found == ["UNCOMPRESSED", "SNAPPY", "SNAPPY"]
    assert pandas.read_parquet(tmp_path / "a.parquet")["vertex"].tolist() == hashes
