"""Galois binary graphs: both versions, any padding, weights of a dtype that the user names."""

from __future__ import annotations

import pytest
from binary_graphs import galois_bytes
from table_checks import rows_in, rows_of

from mgraph.errors import InputError, UsageError
from mgraph.io import pieces
from mgraph.io.formats import read_source

ARCS = [(0, 1, 5), (1, 0, 6), (1, 3, 7), (3, 1, 8), (5, 5, 2)]
PLAIN = sorted((u, v) for u, v, _ in ARCS)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("dtype", ["uint32", "int32", "float32", "int64", "float64", "uint8", "uint16", None])
@pytest.mark.parametrize("count", [4, 5])
@pytest.mark.parametrize("piece_edges", [2, 1 << 22])
def test_galois_graph_is_read(tmp_path, monkeypatch, version, dtype, count, piece_edges):
    monkeypatch.setattr(pieces, "PIECE_EDGES", piece_edges)
    path = tmp_path / "g.gr"
    path.write_bytes(galois_bytes(ARCS[:count], 7, version, dtype))
    table = read_source(path, weight=dtype)
    assert (table.num_vertices, table.directed) == (7, True)
    assert rows_of(table) == (ARCS[:count] if dtype else PLAIN[:count])
    assert rows_in(path, weight=False) == PLAIN[:count]


def test_symmetric_graph_is_undirected(tmp_path):
    path = tmp_path / "g.sgr"
    path.write_bytes(galois_bytes(ARCS, 7, 1, None))
    assert not read_source(path).directed
    assert read_source(path, directed=True).directed


def test_version_2_may_be_padded(tmp_path):
    path = tmp_path / "g.gr"
    data = galois_bytes(ARCS, 7, 2, "float64")
    path.write_bytes(data[:-40] + b"\1" * 8 + data[-40:])
    assert rows_in(path, weight="float64") == ARCS


def test_dtype_of_weights_is_asked_for(tmp_path):
    path = tmp_path / "g.gr"
    path.write_bytes(galois_bytes(ARCS, 7, 1, "float32"))
    message = "has 4 bytes with each arc, .* give weight='uint32' or weight='int32' or weight='float32', or weight=F"
    for weight in (None, True, "float64", "cost"):
        with pytest.raises(UsageError, match=message):
            read_source(path, weight=weight)
    path.write_bytes(galois_bytes(ARCS, 7, 1, None))
    for weight in (True, "float32"):
        with pytest.raises(UsageError, match="has no weights"):
            read_source(path, weight=weight)


def test_truncated_file_is_refused(tmp_path):
    path = tmp_path / "g.gr"
    data = galois_bytes(ARCS, 7, 1, "uint32")
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(InputError, match=r"g\.gr"):
            read_source(path, weight="uint32", format="galois")


def test_ends_of_rows_that_fall_are_refused(tmp_path):
    path = tmp_path / "g.gr"
    data = bytearray(galois_bytes(ARCS, 7, 1, None))
    data[32 + 8 : 32 + 16] = (9).to_bytes(8, "little")
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"g\.gr: offsets\[3\] = 3 is below .*offsets\[2\] = 9"):
        rows_in(path)
