"""Binary graphs are written as the GAP Benchmark Suite and Graph500's reference code read them."""

from __future__ import annotations

import contextlib
import itertools
import os
import pathlib
import struct
import tempfile

import numpy as np
import pytest
import scipy.sparse
import tiers
from edge_checks import BACKEND, edges_source
from hypothesis import given
from strategies import graphs
from table_checks import rows_in
from user_graphs import graph_of

import mgraph as mg
from mgraph.errors import InputError, UsageError
from mgraph.io.output_tables import table_of_source
from mgraph.io.write import GRAPH_WRITERS, write_graph500_files, write_table


def gap_matrices(data: bytes) -> list[scipy.sparse.csr_array]:
    """Return the rows of a .wsg file, and the in-rows of a directed graph."""
    directed, m, n = struct.unpack_from("<Bqq", data)
    at = 17
    matrices = []
    for _ in range(1 + directed):
        offsets = np.frombuffer(data, "<i8", n + 1, at)
        entries = np.frombuffer(data, "<i4", 2 * m, at + 8 * (n + 1)).reshape(m, 2)
        at += 8 * (n + 1) + 8 * m
        matrices.append(scipy.sparse.csr_array((entries[:, 1] + 1, entries[:, 0], offsets), (n, n)))
    assert at == len(data)
    return matrices


@tiers.examples(20)
@given(case=graphs(dtypes=("uint8",)))
def test_gap_graphs_have_rows_and_in_rows(case):
    with tempfile.TemporaryDirectory() as folder, graph_of(case, None) as g:
        path = pathlib.Path(folder, "a.wsg")
        write_table(path, g.edges._numbered(both=True), GRAPH_WRITERS)
        rows, *in_rows = gap_matrices(path.read_bytes())
        sources, targets, weights = (column.astype(np.int64) for column in g.edges.to_numpy())
        expected = np.zeros((g.num_vertices,) * 2)
        expected[sources, targets] = weights + 1
        if not case.directed:
            expected[targets, sources] = weights + 1
        np.testing.assert_array_equal(rows.toarray(), expected)
        assert len(in_rows) == case.directed
        for matrix in in_rows:
            np.testing.assert_array_equal(matrix.toarray(), expected.T)
            assert matrix.has_sorted_indices


def test_unweighted_gap_graph_is_written_byte_for_byte(tmp_path):
    with mg.from_edges([0, 2], [1, 1], num_vertices=3) as g:
        write_table(tmp_path / "a.sg", g.edges._numbered(both=True), GRAPH_WRITERS)
    expected = struct.pack("<Bqq4q4i", 0, 4, 3, 0, 1, 3, 4, 1, 0, 2, 1)
    assert (tmp_path / "a.sg").read_bytes() == expected


def test_weights_that_gap_does_not_hold_are_refused(tmp_path):
    for weight, what in ((0.5, "0.5 is no int32"), (2**31, "2147483648 is no int32")):
        with mg.from_edges([0], [1], [weight]) as g, pytest.raises(InputError, match=what):
            write_table(tmp_path / "a.wsg", g.edges._numbered(both=True), GRAPH_WRITERS)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "layout"), [("graph500-12", "<IIHH"), ("graph500-16", "<qq")])
def test_graph500_edges_are_packed_and_weights_beside(tmp_path, name, layout):
    large = 5 * 2**32 + 7
    source = edges_source([0, large], [large, 3], np.array([0.5, 0.25], np.float32), num_vertices=large + 1)
    write_graph500_files(tmp_path / "edges", table_of_source(source, BACKEND), name)
    fields = [(0, 7, 0, 5), (7, 3, 5, 0)] if name == "graph500-12" else [(0, large), (large, 3)]
    assert (tmp_path / "edges").read_bytes() == b"".join(struct.pack(layout, *edge) for edge in fields)
    assert np.fromfile(tmp_path / "edges.weights", "<f4").tolist() == [0.5, 0.25]
    # Old weights would be read as those of edges that have none.
    with pytest.raises(UsageError, match=r"edges.weights would be read as the weights of .*delete it first"):
        write_graph500_files(tmp_path / "edges", table_of_source(edges_source([0], [1]), BACKEND), name)
    inexact = edges_source([0], [1], [0.1])
    with pytest.raises(InputError, match=r"weight 0.1 is no float32, which Graph500 files hold"):
        write_graph500_files(tmp_path / "other", table_of_source(inexact, BACKEND), name)


@pytest.mark.parametrize("step", range(8))
def test_interrupted_graph500_files_never_mix_old_and_new(tmp_path, monkeypatch, step):
    path = tmp_path / "edges"
    old, new = (
        edges_source(ends, [1, 2], np.array(weights, np.float32), num_vertices=9)
        for ends, weights in (([3, 4], [0.5, 0.25]), ([5, 6], [8, 9]))
    )
    write_graph500_files(path, table_of_source(old, BACKEND), "graph500-16")
    calls = itertools.count()

    def interrupted(function):
        def call(*args, **options):
            if next(calls) == step:
                raise KeyboardInterrupt
            found = function(*args, **options)
            if next(calls) == step:
                raise KeyboardInterrupt
            return found

        return call

    for name in ("link", "replace", "unlink"):
        monkeypatch.setattr(os, name, interrupted(getattr(os, name)))
    with contextlib.suppress(KeyboardInterrupt):
        write_graph500_files(path, table_of_source(new, BACKEND), "graph500-16")
    monkeypatch.undo()
    if path.exists():
        assert rows_in(path, format="graph500-16") in ([(3, 1, 0.5), (4, 2, 0.25)], [(5, 1, 8), (6, 2, 9)])
    assert {file.name for file in tmp_path.iterdir()} <= {"edges", "edges.weights"}
