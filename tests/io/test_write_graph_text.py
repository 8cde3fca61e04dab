"""Graphs written as text of other projects are what their readers, and ours, read."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.io
from edge_checks import edges_source

import mgraph as mg
from mgraph.errors import InputError
from mgraph.io.write import GRAPH_WRITERS, write_edges, write_table

EDGES = [0, 3, 3, 1], [1, 2, 2, 1]
WEIGHTS = [5, 3, 4, 1]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weights", [None, WEIGHTS, [0.5, 1.0, 1e-30, 2.5]])
@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz"])
def test_matrix_market_files_are_read_by_scipy(tmp_path, directed, weights, suffix):
    path = tmp_path / f"a{suffix}"
    write_edges(path, edges_source(*EDGES, weights, num_vertices=6, directed=directed))
    matrix = scipy.io.mmread(path, spmatrix=False)
    assert matrix.shape == (6, 6)
    expected = np.zeros((6, 6))
    for u, v, w in zip(*EDGES, weights or [1] * 4, strict=True):
        expected[u, v] += w
        if not directed and u != v:
            expected[v, u] += w
    np.testing.assert_array_equal(matrix.toarray(), expected)
    with mg.read(path) as g:
        assert (g.info.directed, g.num_vertices) == (directed, 6)


def test_dimacs_has_both_arcs_of_an_undirected_edge(tmp_path):
    write_edges(tmp_path / "a.gr", edges_source([0, 3], [1, 2], [5.0, 7.0], num_vertices=6))
    assert (tmp_path / "a.gr").read_text().splitlines() == ["p sp 6 4", "a 1 2 5", "a 2 1 5", "a 4 3 7", "a 3 4 7"]
    write_edges(tmp_path / "a.gr", edges_source([0], [1], [5], directed=True))
    assert (tmp_path / "a.gr").read_text().splitlines() == ["p sp 2 1", "a 1 2 5"]


def test_pace_lists_undirected_edges_without_weights(tmp_path):
    write_edges(tmp_path / "a.gr", edges_source([0, 3], [1, 2], num_vertices=6))
    assert (tmp_path / "a.gr").read_text().splitlines() == ["p tw 6 2", "1 2", "4 3"]
    with pytest.raises(InputError, match="file of directed edges has a weight for each"):
        write_edges(tmp_path / "a.gr", edges_source([0], [1], directed=True))


@pytest.mark.parametrize("without", ["pyarrow.compute", "nothing"])
def test_metis_has_a_line_for_each_vertex(tmp_path, monkeypatch, without):
    monkeypatch.setitem(sys.modules, without, None)
    with mg.from_edges([1, 1, 4], [0, 3, 1], [7, 8, 9], num_vertices=7) as g:
        write_table(tmp_path / "a.graph", g.edges._numbered(both=True), GRAPH_WRITERS)
    lines = (tmp_path / "a.graph").read_text().splitlines()
    assert lines == ["7 3 001", "2 7", "1 7 4 8 5 9", "", "2 8", "2 9", "", ""]


@pytest.mark.parametrize(("weight", "what"), [(0.5, "0.5 is no integer, which .graph"), (0, "0 is below 1, the least")])
def test_weights_that_metis_does_not_hold_are_refused(tmp_path, weight, what):
    with mg.from_edges([0], [1], [weight]) as g, pytest.raises(InputError, match=what):
        write_table(tmp_path / "a.graph", g.edges._numbered(both=True), GRAPH_WRITERS)
    with mg.from_edges([0], [1], directed=True) as g, pytest.raises(InputError, match="METIS file is undirected"):
        write_table(tmp_path / "a.graph", g.edges._numbered(both=True), GRAPH_WRITERS)
    assert not list(tmp_path.iterdir())
