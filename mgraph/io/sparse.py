"""SciPy's sparse arrays and matrices as tables, and those of CuPy on the GPU."""

from __future__ import annotations

from typing import Any

from mgraph.errors import InputError
from mgraph.io.checks import refuse_lazy
from mgraph.io.device import is_on_device
from mgraph.io.memory import MemoryTable, columns_table, csr_table, id_options

# Formats that store zeros of their own in addition to the entries.
FILLED = ("bsr", "dia")


def scipy_table(matrix: Any, *, directed: bool = False, name: str = "scipy") -> MemoryTable:
    """Return a sparse array or matrix of any format as a table.

    Entry (u, v) is an edge, its value the weight. Entries stored twice are parallel edges, of which the lightest is
    used; SciPy's own conversions would add them. Stored zeros are edges of weight zero, but not in the formats bsr and
    dia, which fill blocks and diagonals with zeros. Boolean entries make an unweighted graph.
    """
    refuse_lazy(matrix, "matrix")
    kind = getattr(matrix, "format", None)
    if kind is None or not hasattr(matrix, "tocoo"):
        raise InputError(
            f"{type(matrix).__name__} is not a SciPy sparse array: scipy.sparse.coo_array(x) makes one, "
            "where zeros are no edges"
        )
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"the array is of shape {matrix.shape}: an adjacency matrix is square")
    weighted = matrix.dtype != bool
    if kind in ("csr", "csc") and not is_on_device(matrix.indptr):
        weights = matrix.data if weighted else None
        return csr_table(matrix.indptr, matrix.indices, weights, directed=directed, by_target=kind == "csc", name=name)
    # The copy is of indices and values alone where SciPy has them; all other formats convert.
    entries = matrix.tocoo()
    columns = [entries.row, entries.col, entries.data]
    if kind in FILLED:
        stored = entries.data != 0
        columns = [column[stored] for column in columns]
    how = id_options(matrix.shape[0], directed, False)
    row, col, data = columns
    return columns_table(
        row, col, data if weighted else None, names=("rows", "columns", "entries"), name=name, row="entry", how=how
    )
