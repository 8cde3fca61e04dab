"""GAP's serialized graphs: rows with and without weights, undirected and directed."""

from __future__ import annotations

import pytest
from binary_graphs import gap_bytes
from table_checks import rows_in, rows_of

from mgraph.errors import InputError, UsageError
from mgraph.io import pieces
from mgraph.io.formats import read_source

ARCS = [(0, 1, 5), (1, 0, 5), (1, 3, -7), (3, 1, -7), (5, 5, 2)]
PLAIN = sorted((u, v) for u, v, _ in ARCS)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("piece_edges", [1, 2, 1 << 22])
def test_serialized_graph_is_read(tmp_path, monkeypatch, directed, weighted, piece_edges):
    monkeypatch.setattr(pieces, "PIECE_EDGES", piece_edges)
    path = tmp_path / ("g.wsg" if weighted else "g.sg")
    path.write_bytes(gap_bytes(ARCS, 7, directed=directed, weighted=weighted))
    table = read_source(path)
    assert (table.name, table.num_vertices, table.directed, table.max_edges) == ("g", 7, directed, 5)
    assert rows_of(table) == (sorted(ARCS) if weighted else PLAIN)
    assert rows_in(path, weight=False) == PLAIN


def test_length_tells_of_weights_where_the_name_does_not(tmp_path):
    path = tmp_path / "g.dat"
    path.write_bytes(gap_bytes(ARCS, 7, directed=False, weighted=True))
    assert rows_in(path, format="gap") == sorted(ARCS)
    path.write_bytes(gap_bytes([], 7, directed=False, weighted=False))
    assert rows_in(path, format="gap") == []


def test_truncated_file_is_refused(tmp_path):
    path = tmp_path / "g.sg"
    data = gap_bytes(ARCS, 7, directed=False, weighted=False)
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(InputError, match=r"g\.sg (is \d+ bytes|does not begin)"):
            read_source(path)


def test_options_that_contradict_the_file_are_refused(tmp_path):
    path = tmp_path / "g.sg"
    path.write_bytes(gap_bytes(ARCS, 7, directed=False, weighted=False))
    for options, message in (
        ({"weight": True}, "g.sg has no weights"),
        ({"weight": "cost"}, "no column 'cost'"),
        ({"num_vertices": 8}, "has 7 vertices, not 8"),
    ):
        with pytest.raises(UsageError, match=message):
            read_source(path, **options)
