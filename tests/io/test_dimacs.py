"""Text .gr files: DIMACS 9 and GTgraph with arcs and weights, PACE with pairs; wrong counts and lines are refused."""

from __future__ import annotations

import lzma

import pytest
from edge_checks import read_edges
from table_checks import rows_in, rows_of

from mgraph.errors import InputError, UnknownFormat, UsageError
from mgraph.io.formats import read_source

ROADS = b"c 9th DIMACS\nc\np sp 4 5\nc an arc a line\na 1 2 7\na 2 1 7\na 2 3 9\na 3 2 9\na 4 4 1\n"
ROWS = [(0, 1, 7), (1, 0, 7), (1, 2, 9), (2, 1, 9), (3, 3, 1)]
PAIRS = b"c PACE\np tw 4 3\n1 2\n2 3\n4 1\n"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "g.gr"


@pytest.mark.parametrize("change", [bytes, lzma.compress, lambda text: text.replace(b"\n", b"\r\n")])
def test_road_map_is_read(path, change):
    path.write_bytes(change(ROADS))
    table = read_source(path)
    assert (table.num_vertices, table.directed, table.declared_edges, table.base) == (4, True, 5, 1)
    assert rows_of(table) == ROWS
    assert rows_in(path, weight=False, directed=False) == [row[:2] for row in ROWS]


def test_pairs_of_pace_are_undirected(path):
    for kind in (b"tw", b"td", b"ds"):
        path.write_bytes(PAIRS.replace(b"tw", kind))
        table = read_source(path)
        assert (table.num_vertices, table.directed, table.has_weights) == (4, False, False)
        assert rows_of(table) == [(0, 1), (1, 2), (3, 0)]
    with pytest.raises(UsageError, match="has no weights"):
        read_source(path, weight=True)


def test_format_is_known_by_the_first_lines_or_the_suffix(path):
    for data, rows in ((ROADS, ROWS), (PAIRS, [(0, 1), (1, 2), (3, 0)])):
        other = path.with_suffix(".dat")
        other.write_bytes(data)
        assert rows_in(other) == rows
        path.write_bytes(b"c a long comment\n" * 1000 + data)
        assert rows_in(path) == rows
    path.write_bytes(b"p 2 1\na 1 2 5\n")
    assert rows_in(path) == [(0, 1, 5)]


def test_short_lines_between_arcs_are_comments_or_refused(path):
    lines = b"p sp 3 2\na 1 2 5\n%sa 2 3 6\n"
    for between in (b"c\n", b"cx\n", b"c\n\n", b"\n\n", b"c\r\n", b"  c\n"):
        path.write_bytes(lines % between)
        assert rows_in(path) == [(0, 1, 5), (1, 2, 6)], between
    for between in (b"a2\n", b"a\n", b"a\n\n", b"x\n\n", b"x1\n", b"a \n"):
        path.write_bytes(lines % between)
        with pytest.raises(InputError, match=r"g\.gr:3: "):
            rows_in(path)
    # The line of an edge is found beside such lines too.
    path.write_bytes(b"p sp 3 3\na 1 2 5\na 2 3 6\nc\n\na 9 3 6\n")
    with pytest.raises(InputError, match=r"g\.gr:6: vertex 9 is not in 1\.\.3"):
        read_edges(path)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (b"", InputError, "has no line `p sp VERTICES ARCS`: truncated"),
        (b"c only\n", InputError, "has no line `p sp"),
        (b"1 2\n", InputError, r"g\.gr:1: '1 2' is no line `p sp"),
        (b"c\np sp 4\n", InputError, r"g\.gr:2: .* are not the numbers of vertices and edges"),
        (b"p max 4 5\n", UnknownFormat, "is a problem of kind 'max'"),
        (b"p sp 4 -5\n", InputError, r"g\.gr:1: '4 -5' are not the numbers"),
        (b"p tw 3 1\n1 x\n", InputError, r"g\.gr:2: vertex 'x'"),
        (b"p tw 3 1\n1 4\n", InputError, r"g\.gr:2: vertex 4 is not in 1\.\.3"),
        (b"p tw 3 1\n0 1\n", InputError, r"g\.gr:2: vertex 0 "),
        (b"p tw 3 2\n1 2\n", InputError, r"1 edge where its header says 2: truncated"),
        (b"p tw 3 1\n1 2\n2 3\n", InputError, r"2 edges where its header says 1"),
        (b"p sp 3 1\na 1 2\n", InputError, r"g\.gr:2: .* field"),
        (b"p sp 3 1\na 1 2 \r\n", InputError, r"g\.gr:2: .* field"),
        (b"p tw 3 1\n1 \r\n", InputError, r"g\.gr:2: .* field"),
        (b"p sp 3 1\na 1 2 x\n", InputError, r"g\.gr:2: weight 'x' is not a number"),
    ],
)
def test_wrong_file_is_refused_by_line(path, text, error, message):
    path.write_bytes(text)
    with pytest.raises(error, match=message):
        read_edges(path)
    with pytest.raises(error):
        read_edges(path, format="dimacs")
