"""Pieces of a table go to a writer as they are: loops, parallel edges and labels stay, and errors name their place."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas
import pytest
from edge_checks import BACKEND
from odd_labels import ODD, strings

from mgraph.edges import EdgePiece
from mgraph.errors import InputError, UsageError
from mgraph.io.convert import table_of_pieces
from mgraph.io.output_tables import Table
from mgraph.io.write import EDGE_WRITERS, require_weights_as_named, write_folder, write_table


@dataclass(frozen=True)
class Pieces:
    """A table of edges in memory."""

    pieces: list[EdgePiece]
    has_weights: bool = False
    num_vertices: int | None = None
    directed: bool = False
    base: int = 0
    declared_edges: int | None = None
    labels: Any = "auto"
    name: str = "pieces"
    read: list[int] = field(default_factory=list)

    @property
    def num_pieces(self) -> int:
        return len(self.pieces)

    def piece(self, k: int, backend: Any) -> EdgePiece:
        self.read.append(k)
        return self.pieces[k]


def where(k: int) -> Callable[[int], str]:
    return lambda i: f"input, row {10 * k + i}"


def pieces(*edges: tuple, **options: Any) -> Pieces:
    """Return a table of pieces (sources, targets) or (sources, targets, weights)."""
    made = []
    for k, (sources, targets, *weights) in enumerate(edges):
        ends = [
            ids if isinstance(ids, np.ndarray) or hasattr(ids, "data") else np.array(ids) for ids in (sources, targets)
        ]
        made.append(EdgePiece(*ends, weights[0] if weights else None, where(k)))
    return Pieces(made, has_weights=len(edges[0]) == 3, **options)


def tables(edges: Pieces) -> list[Table]:
    return [table_of_pieces(edges, BACKEND, in_one_pass=one)[0] for one in (True, False)]


def test_loops_and_parallel_edges_stay_in_order(tmp_path):
    edges = pieces(([3, 3, 1], [3, 1, 3]), ([], []), ([0, 3], [7, 1]))
    for table in tables(edges):
        write_table(tmp_path / "a.csv", table, EDGE_WRITERS)
        assert (tmp_path / "a.csv").read_text() == "source,target\n3,3\n3,1\n1,3\n0,7\n3,1\n"
    write_table(tmp_path / "a.npz", tables(edges)[1], EDGE_WRITERS)
    with np.load(tmp_path / "a.npz") as archive:
        assert archive["sources"].tolist() == [3, 3, 1, 0, 3]
        assert archive["sources"].dtype == np.uint32
        assert "num_vertices" not in archive.files


def test_each_piece_is_read_once_for_text_and_twice_for_types():
    edges = pieces(([0], [1]), ([1], [2]))
    one, two = tables(edges)
    edges.read.clear()
    list(one.all_batches())
    assert sorted(edges.read) == [0, 1]
    assert two.num_rows == 2


def test_weights_take_a_dtype_that_holds_all():
    for dtypes, expected in (
        (("uint8", "int32"), "int32"),
        (("uint32", "int32"), "int64"),
        (("float32", "float32"), "float32"),
        (("int64", "float32"), "float64"),
    ):
        edges = pieces(*(([0], [1], np.array([1], dtype)) for dtype in dtypes))
        _, table = tables(edges)
        assert table.columns["weight"] == expected
        assert [batch["weight"].dtype for batch in table.all_batches()] == [expected] * 2


def test_ids_are_labels_as_they_are(tmp_path):
    large = np.array([2**63 + 5, 3], np.uint64)
    negative = np.array([-4, 2**40])
    of_one_line = [text for text in ODD if not set("\r\n") & set(text)]
    for ids, in_text in ((large, large), (negative, negative), (strings(ODD), strings(of_one_line))):
        edges = pieces((ids, ids))
        for name in ("a.parquet", "a.arrow"):
            write_table(tmp_path / name, tables(edges)[1], EDGE_WRITERS)
        write_table(tmp_path / "a.csv", tables(pieces((in_text, in_text)))[0], EDGE_WRITERS)
        expected = ids.tolist()
        # An empty id names no vertex: it is a missing one.
        assert pandas.read_parquet(tmp_path / "a.parquet")["source"].fillna("").tolist() == expected
        assert pandas.read_feather(tmp_path / "a.arrow")["target"].fillna("").tolist() == expected
        text = pandas.read_csv(tmp_path / "a.csv", keep_default_na=False)["target"].tolist()
        assert text == in_text.tolist()


@pytest.mark.parametrize("suffix", [".mtx", ".npz", ".gr", ".csr"])
def test_strings_are_refused_where_vertices_are_numbers(tmp_path, suffix):
    _, table = tables(pieces((strings(["a"]), strings(["b"]))))
    with pytest.raises(InputError, match=r"strings: write \.csv, \.parquet or \.arrow"):
        write_table(tmp_path / f"a{suffix}", table, EDGE_WRITERS)
    _, table = tables(pieces(([-1], [2])))
    if suffix != ".npz":
        with pytest.raises(InputError, match=r"numbers vertices from 0 on, and there is a vertex -1: write \.csv"):
            write_table(tmp_path / f"a{suffix}", table, EDGE_WRITERS)
    assert not list(tmp_path.iterdir())


def test_number_of_vertices_is_declared_or_found(tmp_path):
    for declared, expected in ((None, 8), (20, 20)):
        _, table = tables(pieces(([3], [7]), num_vertices=declared))
        write_table(tmp_path / "a.mtx", table, EDGE_WRITERS)
        assert (tmp_path / "a.mtx").read_text().splitlines()[1] == f"{expected} {expected} 1"
        write_table(tmp_path / "a.csr", table, EDGE_WRITERS)
        assert np.fromfile(tmp_path / "a.csr", "<u8", 3)[1:].tolist() == [expected, 2]


def test_base_becomes_zero():
    for table in tables(pieces(([1, 5], [2, 1]), base=1)):
        (batch,) = table.all_batches()
        assert (batch["source"].tolist(), batch["target"].tolist()) == ([0, 4], [1, 0])


def test_errors_name_their_place():
    def fails(edges: Pieces, message: str) -> None:
        for one in (True, False):
            with pytest.raises(InputError, match=message):
                list(table_of_pieces(edges, BACKEND, in_one_pass=one)[0].all_batches())

    fails(pieces(([1], [1]), ([4, 0], [2, 2]), base=1), "input, row 11: id 0 is below 1, the first vertex")
    fails(pieces(([1], [1]), ([4, 9], [2, 2]), num_vertices=9), "row 11: id 9 is not below the number of vertices, 9")
    fails(pieces(([1], [1]), declared_edges=2), "pieces has 1 edge where its header says 2: truncated")
    fails(pieces(([1], [1]), (strings(["a"]), strings(["b"]))), "pieces: some ids are strings, and others integers")


def test_doubt_about_integers_is_raised_unless_there_are_floats():
    doubt = InputError("weight 99999999999999999999 is beyond 64 bits")
    first = EdgePiece(np.array([0]), np.array([1]), np.array([1e20]), where(0), doubt=doubt)
    whole = EdgePiece(np.array([0]), np.array([1]), np.array([1]), where(1), doubt=doubt)
    for table in tables(Pieces([first, whole], has_weights=True)):
        assert len(list(table.all_batches())) == 2
    with pytest.raises(InputError, match="beyond 64 bits"):
        tables(Pieces([whole], has_weights=True))[0].counted_rows()
    with pytest.raises(InputError, match="beyond 64 bits"):
        table_of_pieces(Pieces([whole], has_weights=True), BACKEND, in_one_pass=False)


def test_folder_of_parts_is_cut_by_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("mgraph.io.write.PART_ROWS", 3)
    edges = pieces(*(([k, k], [1, 2]) for k in range(5)))
    write_folder(tmp_path / "a", tables(edges)[1])
    frames = [pandas.read_parquet(part) for part in sorted((tmp_path / "a").iterdir())]
    assert [len(frame) for frame in frames] == [4, 4, 2]
    assert pandas.concat(frames)["source"].tolist() == [k // 2 for k in range(10)]


@pytest.mark.parametrize(("suffix", "other"), [(".el", ".wel"), (".sg", ".wsg")])
def test_endings_that_say_otherwise_about_weights_are_refused(tmp_path, suffix, other):
    for name, weights, advice in (
        (suffix, True, f"write {other}, or leave them out"),
        (other, False, f"write {suffix}"),
    ):
        with pytest.raises(UsageError, match=re.escape(advice)):
            require_weights_as_named(tmp_path / f"a{name}", weights)
        require_weights_as_named(tmp_path / f"a{name}", not weights)
