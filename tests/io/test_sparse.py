"""Sparse arrays of SciPy in every format: entries are edges, and stored zeros are edges where the user stored them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
import tiers
from hypothesis import given
from hypothesis import strategies as st
from memory_checks import read_back

from mgraph.errors import InputError
from mgraph.io.formats import read_source
from mgraph.io.sparse import scipy_table

FORMATS = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")


def from_file(matrix, folder):
    """Return the table of a sparse array that SciPy has saved."""
    scipy.sparse.save_npz(folder / "matrix.npz", matrix)
    return read_source(folder / "matrix.npz")


@tiers.examples(40)
@given(st.data(), st.sampled_from(FORMATS), st.sampled_from(("int32", "int64")), st.sampled_from((1, 3)))
def test_entries_of_every_format_are_edges(data, kind, index, num_ranks):
    n = data.draw(st.integers(1, 9))
    entry = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))
    entries = sorted(data.draw(st.dictionaries(entry, st.integers(1, 9), max_size=20)).items())
    u, v, w = np.array([(*ends, w) for ends, w in entries], index).reshape(-1, 3).T
    make = data.draw(st.sampled_from((scipy.sparse.coo_array, scipy.sparse.coo_matrix)))
    matrix = make((w, (u, v)), shape=(n, n)).asformat(kind)
    expected = [(*ends, w) for ends, w in entries]
    assert read_back(scipy_table(matrix, directed=True), num_ranks) == (n, expected)
    assert read_back(scipy_table(matrix.astype(bool))) == (n, [(u, v) for u, v, _ in expected])


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok"])
def test_stored_zeros_are_edges(kind):
    matrix = scipy.sparse.csr_array((np.array([0.0, 2.0]), np.array([1, 2]), np.array([0, 1, 2, 2]))).asformat(kind)
    assert read_back(scipy_table(matrix))[1] == [(0, 1, 0.0), (1, 2, 2.0)]


@pytest.mark.parametrize("make", [scipy_table, from_file])
@pytest.mark.parametrize("kind", ["coo", "csr", "csc", "bsr"])
def test_entries_stored_twice_are_parallel_edges_in_every_format_that_stores_them(kind, make, tmp_path):
    ends = np.array([0, 0, 1]), np.array([1, 1, 2])
    weights = np.array([5.0, 2.0, 3.0])
    by_rows = ends[1], np.array([0, 2, 3, 3, 3])
    matrix = {
        "coo": lambda: scipy.sparse.coo_array((weights, ends), shape=(4, 4)),
        "csr": lambda: scipy.sparse.csr_array((weights, *by_rows), shape=(4, 4)),
        "csc": lambda: scipy.sparse.csc_array((weights, ends[0], np.array([0, 0, 2, 3, 3])), shape=(4, 4)),
        "bsr": lambda: scipy.sparse.bsr_array((weights.reshape(-1, 1, 1), *by_rows), shape=(4, 4)),
    }[kind]()
    table = make(matrix) if make is scipy_table else make(matrix, tmp_path)
    assert read_back(table) == (4, [(0, 1, 2.0), (0, 1, 5.0), (1, 2, 3.0)])
    # SciPy adds them where it converts, and where it is asked to.
    matrix = matrix.tocsr()
    matrix.sum_duplicates()
    assert read_back(scipy_table(matrix)) == (4, [(0, 1, 7.0), (1, 2, 3.0)])


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.eye(3), r"ndarray is not a SciPy sparse array: scipy.sparse.coo_array\(x\)"),
        (scipy.sparse.coo_array((2, 3)), r"of shape \(2, 3\): an adjacency matrix is square"),
        (scipy.sparse.eye_array(3, dtype=complex, format="csr"), "weights are complex128"),
        (scipy.sparse.eye_array(3, format="csr") * np.inf, r"weights\[0\] = inf is not a finite number"),
    ],
)
def test_wrong_array_is_refused(matrix, message):
    with pytest.raises(InputError, match=message):
        read_back(scipy_table(matrix))
