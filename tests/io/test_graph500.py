"""Graph500's edge lists of 12 and of 16 bytes an edge, with a file of weights beside."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from binary_graphs import graph500_bytes
from table_checks import rows_in, rows_of

from mgraph.errors import InputError, UsageError
from mgraph.io import pieces
from mgraph.io.formats import read_source

EDGES = [(0, 1, 0.5), (2**32 - 1, 2**32, 0.25), (7, 2**47 - 1, 1.0), (3, 3, 0.0), (1, 0, 2.0)]
PLAIN = sorted((u, v) for u, v, _ in EDGES)
FORMATS = {"graph500-12": False, "graph500-16": True}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("piece_edges", [1, 2, 1 << 22])
def test_edges_are_read_with_weights_beside(tmp_path, monkeypatch, format, piece_edges):
    monkeypatch.setattr(pieces, "PIECE_EDGES", piece_edges)
    path = tmp_path / "edges"
    path.write_bytes(graph500_bytes(EDGES, wide=FORMATS[format]))
    table = read_source(path, format=format)
    assert (table.num_vertices, table.directed, table.max_edges) == (None, False, 5)
    assert rows_of(table) == PLAIN
    (tmp_path / "edges.weights").write_bytes(np.array([w for *_, w in EDGES], "<f4").tobytes())
    assert rows_in(path, format=format) == sorted(EDGES)
    assert rows_in(path, format=format, weight=False) == PLAIN
    assert rows_in(tmp_path, format=format) == sorted(EDGES)
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert rows_in(path, format=format) == sorted(EDGES)


def test_negative_ends_stay_negative(tmp_path):
    path = tmp_path / "edges"
    path.write_bytes(graph500_bytes([(-1, 5)], wide=False))
    assert rows_in(path, format="graph500-12") == [(-1, 5)]


@pytest.mark.parametrize("format", FORMATS)
def test_lengths_that_do_not_agree_are_refused(tmp_path, format):
    path = tmp_path / "edges"
    data = graph500_bytes(EDGES, wide=FORMATS[format])
    for length in range(1, len(data)):
        path.write_bytes(data[:length])
        if length % (16 if FORMATS[format] else 12):
            with pytest.raises(InputError, match=rf"edges is {length} bytes, no multiple of 1[26]"):
                read_source(path, format=format)
    path.write_bytes(data)
    (tmp_path / "edges.weights").write_bytes(b"\0" * 16)
    with pytest.raises(InputError, match=r"edges\.weights is 16 bytes, but 5 weights of 32 bits need 20"):
        read_source(path, format=format)
    (tmp_path / "edges.weights").write_bytes(np.array([1, 2, 3, np.inf, 5], "<f4").tobytes())
    with pytest.raises(InputError, match=r"edges: edge 3: weight = inf is not a finite number"):
        rows_in(path, format=format)


def test_options_that_contradict_the_file_are_refused(tmp_path):
    path = tmp_path / "edges"
    path.write_bytes(graph500_bytes(EDGES, wide=True))
    with pytest.raises(UsageError, match=r"there is no .*edges\.weights"):
        read_source(path, format="graph500-16", weight=True)
    with pytest.raises(UsageError, match="no columns by name, and no 2"):
        read_source(path, format="graph500-16", weight=2)
