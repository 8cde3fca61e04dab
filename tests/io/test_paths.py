"""What a path may be: a file, a list, a folder, a pattern; all of its files are one table."""

from __future__ import annotations

import gzip

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from binary_graphs import gap_bytes
from table_checks import rows_in, rows_of

from mgraph.errors import InputError, UnknownFormat, UsageError
from mgraph.io.formats import read_source


def save(path, edges, **more):
    """Write one part of a graph."""
    sources, targets = np.array(edges, np.int64).reshape(-1, 2).T
    np.savez(path, sources=sources, targets=targets, **more)
    return path


@pytest.fixture
def parts(tmp_path):
    folder = tmp_path / "pairs"
    folder.mkdir()
    for k in range(3):
        save(folder / f"part-{k}.npz", [(k, k + 1), (k, 9)])
    return folder


ROWS = sorted((k, v) for k in range(3) for v in (k + 1, 9))


def test_folder_is_one_table_without_hidden_files_and_marks(parts):
    for name in ("_SUCCESS", ".part-0.npz.crc", "_metadata"):
        (parts / name).write_bytes(b"?")
    (parts / "part-9.npz").write_bytes(b"")
    table = read_source(parts)
    assert (table.name, table.num_pieces, table.max_edges, table.has_weights) == ("pairs", 3, 6, False)
    assert rows_of(table) == ROWS
    assert rows_in(f"{parts}/") == ROWS
    assert [table.piece(k, None).sources[0] for k in range(3)] == [0, 1, 2]
    assert table.piece(1, None).where(1) == f"{parts}/part-1.npz: edge 1"


def test_name_of_a_folder_does_not_depend_on_the_number_of_its_files(parts, monkeypatch):
    for name in ("part-2.npz", "part-1.npz"):
        assert [read_source(path).name for path in (parts, f"{parts}/", f"{parts}/part-*.npz")] == ["pairs"] * 3
        (parts / name).unlink()
    assert [read_source(path).name for path in (parts, f"{parts}/", f"{parts}/part-*.npz")] == ["pairs"] * 3
    assert rows_in(parts) == [(0, 1), (0, 9)]
    monkeypatch.chdir(parts)
    assert [read_source(path).name for path in (".", "part-*.npz", "part-0.npz")] == ["pairs", "pairs", "part-0"]


def test_list_and_pattern_are_one_table(parts, monkeypatch):
    files = sorted(parts.iterdir())
    assert rows_in(files) == rows_in([str(file) for file in files]) == rows_in(tuple(files)) == ROWS
    assert rows_in(f"{parts}/part-*.npz") == rows_in(parts / "part-[0-2].npz") == ROWS
    assert rows_in(f"{parts.parent}/**/part-?.npz") == ROWS
    assert rows_in([files[0], f"{parts}/part-[12].npz"]) == ROWS
    assert read_source(files[:1]).name == "part-0"
    monkeypatch.chdir(parts)
    assert rows_in("part-*.npz") == rows_in(".") == ROWS


def test_file_with_signs_of_a_pattern_in_its_name_is_read(parts):
    path = save(parts.parent / "a[1]*.npz", [(0, 1)])
    assert rows_in(path) == [(0, 1)]
    assert read_source(path).name == "a[1]*"


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_files_may_be_packed(parts, pack):
    for file in list(parts.iterdir()):
        file.with_suffix(".npz.gz").write_bytes(pack(file.read_bytes()))
        file.unlink()
    table = read_source(parts)
    assert rows_of(table) == ROWS
    table.release()
    assert rows_of(table) == ROWS


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": [1, 2]}, r"part-1\.npz differs from .*part-0\.npz in its weights \(yes, not no\)"),
        ({"directed": True}, r"part-1\.npz differs from .*part-0\.npz in its direction \(yes, not no\)"),
        ({"num_vertices": 12}, r"part-1\.npz differs .* in its number of vertices \(12, not none declared\)"),
    ],
)
def test_file_that_differs_is_refused_by_name(parts, change, message):
    save(parts / "part-1.npz", [(1, 2), (1, 9)], **change)
    with pytest.raises(InputError, match=message):
        read_source(parts)


def test_columns_of_another_name_are_refused(tmp_path):
    pyarrow.parquet.write_table(pyarrow.table({"src": [0], "dst": [1]}), tmp_path / "a.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"from": [0], "to": [1]}), tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b\.parquet differs from .* in its columns \(from to, not src dst\)"):
        read_source(tmp_path)


def test_file_of_another_format_is_refused_by_name(parts):
    (parts / "part-3.sg").write_bytes(gap_bytes([(0, 1, 0)], 2, directed=False, weighted=False))
    with pytest.raises(InputError, match=r"part-3\.sg is gap, and .*part-0\.npz is npz: all files of a graph"):
        read_source(parts)
    (parts / "part-3.sg").rename(parts / "README")
    with pytest.raises(UnknownFormat, match="README is of no format known by name"):
        read_source(parts)


def test_wrong_paths_are_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "outer" / "inner").mkdir(parents=True)
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "mgraph.json").write_text("{}")
    for path, error, message in (
        (tmp_path / "none.npz", InputError, r"none\.npz: no such file"),
        (tmp_path / "none*.npz", InputError, r"none\*\.npz: no file has such a name"),
        (tmp_path / "empty", InputError, "empty is a folder without files"),
        (tmp_path / "outer", InputError, r"outer/inner is a folder in a folder of files: name files by a pattern"),
        (tmp_path / "saved", InputError, r"saved is a saved graph: mg\.load\('.*saved'\) reads it"),
        ("/dev/null", InputError, "/dev/null is not a file"),
        ([], UsageError, "the list of files is empty"),
        ([1], UsageError, "1 in the list of files is no file name"),
        (["-", "a.csv"], UsageError, "standard input is read by itself"),
        (5, UsageError, "path 5 is neither a file name nor a list of them"),
        (b"a.csv", UsageError, "is neither a file name nor a list"),
    ):
        with pytest.raises(error, match=message):
            read_source(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("g.graphml", r"g\.graphml: mg\.from_networkx\(networkx\.read_graphml\('.*g\.graphml'\)\) reads it"),
        ("g.gml", r"mg\.from_networkx\(networkx\.read_gml\("),
        ("g.gexf.gz", r"mg\.from_networkx\(networkx\.read_gexf\("),
        ("g.gpickle", "pickles can run any code and are not loaded"),
        ("g.xlsx", r"mg\.from_pandas\(pandas\.read_excel\("),
    ],
)
def test_formats_of_other_libraries_name_the_reader(tmp_path, name, message):
    path = tmp_path / name
    path.write_bytes(b"?")
    with pytest.raises(UnknownFormat, match=message):
        read_source(path)
