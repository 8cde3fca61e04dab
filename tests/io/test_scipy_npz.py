"""SciPy's sparse arrays in files: the entries that SciPy itself gives, in every format."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from table_checks import rows_in, rows_of

from mgraph.errors import InputError, UsageError
from mgraph.io import pieces
from mgraph.io.formats import read_source

KINDS = ["csr", "csc", "coo", "bsr", "dia"]


def matrix(kind, dtype="float64", seed=1):
    found = sp.random_array((12, 12), density=0.2, rng=np.random.default_rng(seed), dtype="float64")
    if kind == "dia":
        found = sp.diags_array([np.arange(9.0), np.arange(12.0), np.arange(1.0, 9.0)], offsets=[-3, 0, 4])
    values = (found * 100).astype(dtype)
    return sp.bsr_array(values, blocksize=(3, 2)) if kind == "bsr" else values.asformat(kind)


def expected(found, weighted=True):
    entries = found.tocoo()
    columns = [entries.row.tolist(), entries.col.tolist()] + ([entries.data.tolist()] if weighted else [])
    return sorted(zip(*columns, strict=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int16"])
@pytest.mark.parametrize("piece_edges", [5, 1 << 22])
def test_saved_array_is_read(tmp_path, monkeypatch, kind, compressed, dtype, piece_edges):
    monkeypatch.setattr(pieces, "PIECE_EDGES", piece_edges)
    path = tmp_path / "a.npz"
    found = matrix(kind, dtype)
    sp.save_npz(path, found, compressed=compressed)
    table = read_source(path)
    assert (table.num_vertices, table.directed, table.name) == (12, False, "a")
    assert rows_of(table) == expected(found)
    assert rows_in(path, weight=False, directed=True) == expected(found, weighted=False)
    table.release()


@pytest.mark.parametrize("kind", KINDS)
def test_boolean_array_has_no_weights(tmp_path, kind):
    path = tmp_path / "a.npz"
    found = matrix(kind, "bool")
    sp.save_npz(path, found)
    assert rows_in(path) == expected(found, weighted=False)
    with pytest.raises(UsageError, match="has no weights"):
        read_source(path, weight=True)


def test_matrices_and_empty_arrays_are_read(tmp_path):
    path = tmp_path / "a.npz"
    sp.save_npz(path, sp.csr_matrix(matrix("csr")))
    assert rows_in(path) == expected(matrix("csr"))
    for kind in KINDS:
        sp.save_npz(path, sp.coo_array((4, 4)).asformat(kind))
        assert rows_in(path) == []
        assert read_source(path).num_vertices == 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shape": (12, 13)}, r"is of shape \(12, 13\): an adjacency matrix is square"),
        ({"shape": np.array(12.0)}, "has no array 'shape' of integers"),
        ({"format": b"lil"}, "format 'lil' is not one of csr, csc"),
        ({"format": np.array(["csr", "csr"])}, "format '' is not one of"),
        ({"format": np.array([None])}, "holds Python objects"),
        ({"indices": np.zeros(3, "f4")}, "indices is of shape"),
        ({"indptr": np.zeros(12, int)}, r"indptr is of shape \(12,\), not \(13,\)"),
        ({"indptr": np.arange(13)}, r"offsets goes from 0 to 12, not from 0 to the number of arcs"),
        ({"data": np.zeros((2, 2), complex)}, "indices is of shape|data is of shape"),
        ({"data": None}, "has no array 'data', which a sparse array in CSR has"),
    ],
)
def test_wrong_arrays_are_refused(tmp_path, changes, message):
    path = tmp_path / "a.npz"
    sp.save_npz(path, matrix("csr"))
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files} | changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(InputError, match=message):
        read_source(path)


def test_blocks_beyond_the_array_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    found = matrix("bsr")
    found.indices[4] = 6
    sp.save_npz(path, found)
    with pytest.raises(InputError, match=r"indices\[4\] = 6 is not below the number of vertices, 6"):
        rows_in(path)
