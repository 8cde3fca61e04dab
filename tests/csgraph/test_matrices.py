"""Test what of a matrix is an edge, and that matrices are left as they are."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse import csgraph as scipys

from mgraph import csgraph


def entries(*values):
    """Return a matrix of three vertices with an entry for each (row, column, value)."""
    rows, columns, data = zip(*values, strict=True)
    return sp.csr_array((data, (np.array(rows, np.int32), np.array(columns, np.int32))), shape=(3, 3))


def test_zeros_are_edges_where_they_are_stored_and_no_edges_in_dense_matrices():
    stored = entries((0, 1, 0.0), (1, 2, 4.0))
    assert csgraph.dijkstra(stored, indices=0).tolist() == [0, 0, 4]
    assert csgraph.dijkstra(stored.toarray(), indices=0).tolist() == [0, np.inf, np.inf]
    hidden = np.ma.masked_array(stored.toarray(), [[1, 0, 1], [1, 1, 0], [1, 1, 1]])
    assert csgraph.dijkstra(hidden, indices=0).tolist() == [0, 0, 4]


def test_zeros_that_fill_blocks_are_no_edges():
    pairs = np.kron(np.eye(2), [[0, 1], [1, 0]])
    blocks = sp.bsr_array(pairs, blocksize=(4, 4))
    assert blocks.nnz == 16
    assert csgraph.connected_components(blocks)[1].tolist() == [0, 0, 1, 1]
    assert blocks.nnz == 16


def test_entries_of_one_place_are_added_by_conversions_and_are_parallel_edges_of_a_csr():
    twice = sp.coo_array(([2.0, 3.0], ([0, 0], [1, 1])), shape=(2, 2))
    assert csgraph.dijkstra(twice, indices=0).tolist() == [0, 5]
    kept = sp.csr_array(([3.0, 2.0], [1, 1], [0, 2, 2]), shape=(2, 2))
    assert csgraph.dijkstra(kept, indices=0).tolist() == [0, 2]
    assert csgraph.minimum_spanning_tree(kept).toarray().tolist() == [[0, 2], [0, 0]]


def test_of_two_directions_the_shorter_is_taken_where_edges_have_none():
    both = entries((0, 1, 5.0), (1, 0, 2.0), (1, 2, 1.0))
    assert csgraph.dijkstra(both, directed=False, indices=0).tolist() == [0, 2, 3]
    assert csgraph.dijkstra(both, indices=0).tolist() == [0, 5, 6]
    assert csgraph.minimum_spanning_tree(both).toarray().tolist() == [[0, 0, 0], [2, 0, 1], [0, 0, 0]]


def test_infinities_and_nan_are_no_way_for_weights_and_edges_for_hops():
    far = entries((0, 1, np.inf), (0, 2, 1.0), (2, 1, np.nan))
    assert csgraph.dijkstra(far, indices=0).tolist() == [0, np.inf, 1]
    assert csgraph.dijkstra(far, indices=0, unweighted=True).tolist() == [0, 1, 1]
    assert csgraph.breadth_first_order(far, 0)[0].tolist() == [0, 1, 2]
    assert csgraph.connected_components(far, return_labels=False) == 1
    with pytest.raises(ValueError, match="inf is not a finite number"):
        csgraph.minimum_spanning_tree(far)


def test_edges_of_weight_zero_connect_and_are_left_out_of_a_spanning_tree():
    zero = entries((0, 1, 0.0), (1, 2, 3.0), (0, 2, 5.0))
    assert csgraph.minimum_spanning_tree(zero).nnz == 1
    assert scipys.minimum_spanning_tree(zero).nnz == 1


@pytest.mark.parametrize("empty", [np.zeros((0, 0)), np.zeros((3, 3)), sp.csr_array((3, 3)), sp.csc_matrix((1, 1))])
def test_matrices_without_edges_are_searched(empty):
    num_vertices = empty.shape[0]
    number, labels = csgraph.connected_components(empty)
    assert (number, labels.tolist()) == (num_vertices, list(range(num_vertices)))
    np.testing.assert_array_equal(csgraph.dijkstra(empty), scipys.dijkstra(empty))
    assert csgraph.minimum_spanning_tree(empty).nnz == 0
    if num_vertices:
        assert csgraph.breadth_first_order(empty, 0)[0].tolist() == [0]


def test_other_integers_and_lists_are_read():
    assert csgraph.dijkstra([[0, 3], [1, 0]]).tolist() == [[0, 3], [1, 0]]
    assert csgraph.dijkstra(np.array([[0, 2**60], [0, 0]]), indices=0).tolist() == [0, 2.0**60]
    assert csgraph.dijkstra(np.array([[False, True], [False, False]]), indices=0).tolist() == [0, 1]


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array, np.array, np.ma.masked_invalid])
def test_matrices_are_left_as_they_are(make):
    matrix = make(np.array([[np.nan if make is np.ma.masked_invalid else 0, 2.0], [1.0, 0]]))
    before = matrix.copy()
    buffers = [matrix.data, matrix.indices, matrix.indptr] if sp.issparse(matrix) else [matrix]
    for buffer in buffers:
        buffer.flags.writeable = False
    for directed in (True, False):
        csgraph.breadth_first_tree(matrix, 0, directed)
        csgraph.dijkstra(matrix, directed)
        csgraph.connected_components(matrix, directed)
    csgraph.minimum_spanning_tree(matrix, overwrite=True)
    csgraph.shortest_path(matrix, "FW", overwrite=True)
    assert str(matrix) == str(before)
