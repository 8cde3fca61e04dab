"""Matrix Market files: the entries that SciPy reads, for every field and symmetry."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from edge_checks import read_edges
from emulator.backend import EmulatedBackend
from table_checks import rows_in, rows_of

from mgraph.errors import InputError, UnknownFormat, UsageError
from mgraph.io.formats import read_source


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.mtx"


def save(path, matrix, **options):
    with open(path, "wb") as file:
        scipy.io.mmwrite(file, matrix, **options)


def entries_by_scipy(path):
    """Return the entries of both triangles, as SciPy expands them."""
    found = scipy.io.mmread(path, spmatrix=False).tocoo()
    return sorted(zip(found.row.tolist(), found.col.tolist(), found.data.tolist(), strict=True))


def square(seed, dtype):
    entries = sp.random_array((15, 15), density=0.2, rng=np.random.default_rng(seed))
    return (entries * 100).astype(dtype).tocoo()


@pytest.mark.parametrize("dtype", ["float64", "int64"])
@pytest.mark.parametrize("seed", range(3))
def test_general_matrix_has_the_entries_that_scipy_reads(path, dtype, seed):
    save(path, square(seed, dtype), symmetry="general")
    table = read_source(path)
    assert (table.directed, table.num_vertices, table.base) == (True, 15, 1)
    assert rows_of(table) == entries_by_scipy(path)
    assert rows_in(path, weight=False) == [row[:2] for row in entries_by_scipy(path)]


@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_symmetric_matrix_is_undirected(path, dtype):
    half = square(1, dtype)
    save(path, half + half.T, symmetry="symmetric")
    assert not read_source(path).directed
    rows = rows_in(path)
    both = {(u, v, w) for u, v, w in rows} | {(v, u, w) for u, v, w in rows}
    assert sorted(both) == entries_by_scipy(path)
    with pytest.raises(UsageError, match="is symmetric and holds one of both directions"):
        read_source(path, directed=True)


@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_skew_symmetric_matrix_has_both_signs(path, dtype):
    half = sp.tril(square(2, dtype), -1)
    save(path, half - half.T, symmetry="skew-symmetric")
    table = read_source(path)
    assert table.directed
    assert rows_of(table) == entries_by_scipy(path)
    assert read_edges(path).num_input_edges == len(entries_by_scipy(path))
    assert rows_in(path, weight=False) == [(u, v) for u, v, _ in entries_by_scipy(path) if u > v]
    assert not read_source(path, weight=False).directed
    with pytest.raises(UsageError, match="each edge has two weights, so read it as directed, or weight=False"):
        read_source(path, directed=False)


def test_skew_symmetric_matrix_is_read_for_a_gpu(path):
    half = sp.tril(square(2, "float64"), -1)
    save(path, half - half.T, symmetry="skew-symmetric")
    piece = read_source(path).piece(0, EmulatedBackend(seed=1))
    columns = (piece.sources - 1, piece.targets - 1, piece.weights)
    assert sorted(zip(*(column.tolist() for column in columns), strict=True)) == entries_by_scipy(path)


def test_skew_symmetric_entry_is_named_by_its_line(path):
    head = "%%MatrixMarket matrix coordinate integer skew-symmetric\n3 3 2\n"
    path.write_text(f"{head}2 1 5\n3 1 {-(2**63)}\n")
    with pytest.raises(InputError, match=r"a\.mtx:4: the opposite of the weight is beyond 64 bits"):
        read_edges(path)
    path.write_text(f"{head}2 1 5\n4 1 6\n")
    with pytest.raises(InputError, match=r"a\.mtx:4: vertex 4 is not in 1\.\.3"):
        read_edges(path)


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
def test_pattern_has_no_weights(path, symmetry):
    path.write_text(f"%%MatrixMarket matrix coordinate pattern {symmetry}\n% a comment\n\n3 3 2\n2 1\n3 2\n")
    assert rows_in(path) == [(1, 0), (2, 1)]
    with pytest.raises(UsageError, match="has no weights"):
        read_source(path, weight=True)


@pytest.mark.parametrize(
    ("lines", "error", "message"),
    [
        ("array real general\n2 2\n1\n0\n0\n1\n", UnknownFormat, "is a dense array: only coordinate is a graph"),
        ("coordinate complex general\n2 2 0\n", InputError, "has complex values"),
        ("coordinate complex hermitian\n2 2 0\n", InputError, "has complex values"),
        ("coordinate real general\n2 3 0\n", InputError, "is 2 x 3: an adjacency matrix is square"),
        ("coordinate real general\n2 2 2\n1 2 3\n", InputError, "1 edge where its header says 2: truncated"),
        ("coordinate real general\n2 2 1\n1 2 3\n2 1 4\n", InputError, "2 edges where its header says 1"),
        ("coordinate real general\n2 2 1\n1 2\n", InputError, r"a\.mtx:3: "),
        ("coordinate real general\n2 2 1\n1 2 nan\n", InputError, r"a\.mtx:3: weight 'nan' is not a finite number"),
        ("coordinate real general\n2 2 1\n0 2 1\n", InputError, r"a\.mtx:3: vertex 0 "),
        ("coordinate real general\n", InputError, "has no line of rows, columns and entries"),
    ],
)
def test_wrong_file_is_refused(path, lines, error, message):
    path.write_text("%%MatrixMarket matrix " + lines)
    with pytest.raises(error, match=message):
        read_edges(path)
