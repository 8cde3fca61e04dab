"""METIS files: adjacency lines with every combination of weights, comments, blank lines, and wrong lines by number."""

from __future__ import annotations

import gzip

import pytest
from table_checks import rows_in, rows_of

from mgraph.errors import InputError, UsageError
from mgraph.io import metis
from mgraph.io.formats import read_source

# A path 0 - 1 - 2, vertex 3 alone, and an edge 4 - 0.
EDGES = [(0, 1, 7), (0, 4, 9), (1, 0, 7), (1, 2, 8), (2, 1, 8), (4, 0, 9)]
PLAIN = [(u, v) for u, v, _ in EDGES]


def metis_text(kinds="000", num_weights=1, comment="", end="\n"):
    rows = []
    for vertex in range(5):
        own = ["3"] * (int(kinds[0]) + int(kinds[1]) * num_weights)
        for u, v, w in EDGES:
            if u == vertex:
                own += [str(v + 1)] + ([str(w)] if kinds[2] == "1" else [])
        rows.append(comment + " ".join(own))
    head = f"5 3 {kinds}" + (f" {num_weights}" if num_weights > 1 else "")
    return end.join(["% a comment", head, *rows, ""])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "g.graph"


@pytest.mark.parametrize("kinds", ["000", "001", "010", "011", "100", "111"])
@pytest.mark.parametrize("num_weights", [1, 3])
@pytest.mark.parametrize("comment", ["", "% between\n"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("piece_bytes", [1, 9, 1 << 24])
def test_adjacency_is_read(path, monkeypatch, kinds, num_weights, comment, end, piece_bytes):
    monkeypatch.setattr(metis, "PIECE_BYTES", piece_bytes)
    path.write_bytes(metis_text(kinds, num_weights, comment, end).encode())
    table = read_source(path)
    assert (table.num_vertices, table.directed, table.declared_edges, table.base) == (5, False, 6, 1)
    assert rows_of(table) == (EDGES if kinds[2] == "1" else PLAIN)
    assert rows_in(path, weight=False) == PLAIN


def test_format_may_be_left_out_or_short(path):
    path.write_text("2 1\n2\n1\n")
    assert rows_in(path) == [(0, 1), (1, 0)]
    path.write_text("2 1 1\n2 5\n1 5")
    assert rows_in(path) == [(0, 1, 5), (1, 0, 5)]
    path.write_text("2 1 11\n1 2 5\n1 1 5\n\n\n")
    assert rows_in(path) == [(0, 1, 5), (1, 0, 5)]
    path.write_text("2 0\n\n")
    assert rows_in(path) == []
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf2 1\n2\n1\n"))
    assert rows_in(path) == [(0, 1), (1, 0)]


def test_long_line_of_a_hub_is_read(path):
    n = 400_000
    path.write_text(f"{n} {n - 1}\n" + " ".join(map(str, range(2, n + 1))) + "\n" + "1\n" * (n - 1))
    assert path.stat().st_size > 3 << 20
    for file in (path, path.with_suffix(".graph.gz")):
        if file != path:
            file.write_bytes(gzip.compress(path.read_bytes(), 1))
        piece = read_source(file).piece(0, None)
        assert piece.targets[: n - 1].tolist() == list(range(2, n + 1))
        assert piece.where(n - 2) == f"{file}:2"
        assert piece.where(n) == f"{file}:4"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "does not begin with numbers of vertices and edges, but with ''"),
        ("5\n", "does not begin with numbers"),
        ("a b\n", "does not begin with numbers of vertices and edges, but with 'a b'"),
        ("5 -3\n", "does not begin with numbers"),
        ("3 1 002\n\n\n\n", "format 002 of METIS is not three digits 0 or 1"),
        ("3 1 0001\n\n\n\n", "format 0001 of METIS"),
        ("5 1\n2\n1\n", "has 2 lines of neighbors, and its first line says 5 vertices: truncated"),
        ("% c\n2 1\n2\nx\n", r"g\.graph:4: 'x' is not a whole number"),
        ("2 1\n2\n1.5\n", r"g\.graph:3: '1\.5' is not a whole number"),
        ("2 1\n2\n1\0\n", r"g\.graph:3: '1\\x00' is not a whole number"),
        ("2 1\n2\n99999999999999999999\n", r"g\.graph:3: '99999999999999999999' is not a whole number"),
        ("2 1 1\n2 5\n1\n", r"g\.graph:3: a neighbor without a weight"),
        ("2 1 10 3\n1 1 1 2\n1 1\n", r"g\.graph:3: fewer numbers than the 3 of the vertex itself"),
        ("2 1\n2\n1\n\n2\n", r"g\.graph:5: a line more than the 2 vertices"),
    ],
)
def test_wrong_file_is_refused_by_line(path, text, message):
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        rows_in(path)


def test_absence_of_weights_is_named(path):
    path.write_text("2 1\n2\n1\n")
    with pytest.raises(UsageError, match="has no weights"):
        read_source(path, weight=True)
    with pytest.raises(UsageError, match="has 2 vertices, not 3"):
        read_source(path, num_vertices=3)


def test_endless_line_is_refused(path, monkeypatch):
    monkeypatch.setattr(metis, "PIECE_BYTES", 10)
    path.write_text("2 1\n2\n1" + " " * (1 << 17))
    with pytest.raises(InputError, match=r"at byte \d+: the line is longer than all vertices as neighbors take"):
        read_source(path)
