"""Text is written with all digits, quoted where needed, the same values with pyarrow and without."""

from __future__ import annotations

import csv
import gzip
import io
import sys

import numpy as np
import pandas
import pytest
from odd_labels import ODD, strings

from mgraph.errors import InputError
from mgraph.io import write_text
from mgraph.io.output_tables import EdgeFacts, Table, table_of_columns
from mgraph.io.write import write_columns


@pytest.fixture(params=[True, False], ids=["pyarrow", "python"])
def formatter(request, monkeypatch):
    """Format by pyarrow, and without it."""
    if not request.param:
        monkeypatch.setitem(sys.modules, "pyarrow.compute", None)


def text_of(columns, write=write_text.write_csv) -> bytes:
    file = io.BytesIO()
    write(file, table_of_columns(columns))
    return file.getvalue()


@pytest.mark.usefixtures("formatter")
@pytest.mark.parametrize(("write", "separator"), [(write_text.write_csv, ","), (write_text.write_tsv, "\t")])
def test_labels_are_quoted_by_the_rules_of_csv(write, separator):
    written = text_of({"vertex": strings(ODD), "labels": strings(ODD[::-1])}, write).decode()
    rows = list(csv.reader(io.StringIO(written, newline=""), delimiter=separator))
    assert rows == [["vertex", "labels"], *map(list, zip(ODD, ODD[::-1], strict=True))]
    frame = pandas.read_csv(io.StringIO(written), sep=separator, keep_default_na=False, dtype=str)
    assert frame["vertex"].tolist() == ODD


def test_labels_are_written_alike_with_pyarrow_and_without(monkeypatch):
    columns = {"vertex": strings(ODD), "n": np.arange(len(ODD))}
    by_arrow = text_of(columns)
    monkeypatch.setitem(sys.modules, "pyarrow.compute", None)
    assert text_of(columns) == by_arrow


@pytest.mark.usefixtures("formatter")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_floats_keep_every_digit_and_their_kind(dtype):
    drawn = np.random.default_rng(1)
    values = drawn.random(2000) * 10.0 ** drawn.integers(-30, 30, 2000)
    values = np.concatenate([values, [0, -0.0, 1, -7, 1e15, 1e16, 1e22, 1e23, 2.0**53, np.inf, -np.inf]]).astype(dtype)
    fields = text_of({"a": values, "b": values}).decode().splitlines()[1:]
    read = [field.split(",")[0] for field in fields]
    np.testing.assert_array_equal(np.array(list(map(float, read))), values.astype(np.float64))
    assert not any(field.lstrip("-").isdigit() for field in read)


@pytest.mark.usefixtures("formatter")
def test_blocks_follow_each_other(monkeypatch):
    monkeypatch.setattr(write_text, "BLOCK_ROWS", 7)
    a = np.arange(1000)
    assert text_of({"a": a, "b": -a}) == b"a,b\n" + b"".join(b"%d,%d\n" % (i, -i) for i in range(1000))
    assert text_of({"a": a[:0]}) == b"a\n"


def test_packed_text_is_the_same_text_and_reproducible(tmp_path):
    columns = {"a": np.arange(100), "b": np.linspace(0, 1, 100)}
    for name in ("a.csv", "a.csv.gz", "b.csv.gz"):
        write_columns(tmp_path / name, columns)
    packed = (tmp_path / "a.csv.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / "a.csv").read_bytes()
    assert packed == (tmp_path / "b.csv.gz").read_bytes()


def test_failure_of_a_batch_is_raised_after_the_rows_before_it():
    def batches(names):
        yield {"a": np.arange(3)}
        raise InputError("broken")

    file = io.BytesIO()
    with pytest.raises(InputError, match="broken"):
        write_text.write_csv(file, Table({"a": np.dtype(np.int64)}, None, batches))


@pytest.mark.parametrize("sign", ["\n", "\r", "\r\n", "\0"])
def test_edges_refuse_labels_of_several_lines_and_results_quote_them(sign):
    columns = {"source": strings(["a", f"b{sign}c"]), "target": strings(["d", "e"])}
    plain = table_of_columns(columns)
    assert f'"b{sign}c",e'.encode() in text_of(columns)
    edges = Table(plain.columns, plain.num_rows, plain.batches, EdgeFacts(None, directed=True))
    for write in (write_text.write_csv, write_text.write_tsv):
        with pytest.raises(InputError, match=r"vertex 'b.*c' has the end of a line or a zero byte in it, .*: write"):
            write(io.BytesIO(), edges)


def test_plain_lines_refuse_strings():
    table = table_of_columns({"source": strings(["a"]), "target": strings(["b"])})
    with pytest.raises(InputError, match=r"plain lines holds numbers, and the vertices are strings: write \.csv"):
        write_text.write_plain(io.BytesIO(), Table(table.columns, 1, table.batches, EdgeFacts(2, True)))
