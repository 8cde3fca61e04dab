"""Sparse arrays that scipy.sparse.save_npz has written: entry (u, v) is an edge, its value the weight.

Entries are as SciPy's `tocoo` gives them: stored zeros are edges of weight zero, but those of DIA are not stored.
Values of True and False make an unweighted graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mgraph.backends.base import Backend
from mgraph.edges import EdgePiece, EdgeTable, Labels
from mgraph.errors import InputError, UsageError
from mgraph.io.archive import Archive, NpzArray, NpzArrays
from mgraph.io.checks import as_weights, check_ids
from mgraph.io.csr_table import CsrTable, check_stored, csr_table
from mgraph.io.indptr import check_indptr, sources_of_arcs
from mgraph.io.pieces import edge_piece, edges_of_piece, native, num_pieces

Read = Callable[[str, int, int], np.ndarray]
# Arrays of a format in addition to `data`; COO has `coords` in place of `row` and `col` if it is no matrix.
LAYOUTS = {
    "csr": ("indptr", "indices"),
    "csc": ("indptr", "indices"),
    "bsr": ("indptr", "indices"),
    "coo": ("row", "col"),
    "dia": ("offsets",),
}


@dataclass(frozen=True)
class EntriesTable:
    """An archive of a sparse array in coordinates, blocks or diagonals."""

    arrays: NpzArrays
    format: str
    num_vertices: int
    shape: tuple[int, ...]  # of `data`
    directed: bool
    has_weights: bool
    labels: Labels = "auto"
    base: int = 0

    @property
    def name(self) -> str:
        return self.arrays.file.stem

    @property
    def max_edges(self) -> int:
        return int(np.prod(self.shape))

    @property
    def num_pieces(self) -> int:
        return num_pieces(self.max_edges)

    def piece(self, k: int, backend: Backend) -> EdgePiece:
        lo, hi = edges_of_piece(k, self.max_edges)
        with self.arrays.opened() as read:
            sources, targets = {"coo": self._coordinates, "bsr": self._blocks, "dia": self._diagonals}[self.format](
                read, lo, hi
            )
            values = read("data", lo, hi)
        numbers = np.arange(lo, hi)
        if self.format == "dia":
            inside = (sources >= 0) & (sources < self.num_vertices) & (targets < self.num_vertices) & (values != 0)
            sources, targets, values, numbers = (part[inside] for part in (sources, targets, values, numbers))
        weights = values if self.has_weights else None
        return edge_piece(sources, targets, weights, lambda i: f"{self.arrays.file}: entry {numbers[i]}")

    def release(self) -> None:
        self.arrays.release()

    def _coordinates(self, read: Read, lo: int, hi: int) -> tuple[np.ndarray, np.ndarray]:
        if "coords" in self.arrays.names:
            return read("coords", lo, hi), read("coords", self.max_edges + lo, self.max_edges + hi)
        return read("row", lo, hi), read("col", lo, hi)

    def _blocks(self, read: Read, lo: int, hi: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of values lo..hi of blocks that follow one another, each by rows."""
        num_blocks, height, width = self.shape
        size = height * width
        first = lo // size
        last = -(-hi // size)
        indptr = native(read("indptr", 0, self.num_vertices // height + 1))
        check_indptr(indptr, num_blocks, f"{self.arrays.file}: indptr")
        rows = sources_of_arcs(indptr, first, last)
        columns = native(read("indices", first, last)).astype(np.int64)
        check_ids(columns, self.num_vertices // width, lambda i: f"{self.arrays.file}: indices[{first + i}]")
        at = np.arange(lo, hi)
        block = at // size - first
        return rows[block] * height + at % size // width, columns[block] * width + at % width

    def _diagonals(self, read: Read, lo: int, hi: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of values lo..hi of diagonals that follow one another, each by columns."""
        at = np.arange(lo, hi)
        offsets = native(read("offsets", 0, self.shape[0])).astype(np.int64)
        columns = at % self.shape[1]
        return columns - offsets[at // self.shape[1]], columns


def scipy_table(
    archive: Archive,
    weight: str | int | bool | None,
    directed: bool | None,
    num_vertices: int | None,
    labels: Labels,
) -> EdgeTable:
    """Return a sparse array as a table."""
    file = archive.file
    format = _format(archive)
    n = _order(archive)
    has_coords = format == "coo" and "coords" in archive.members
    names = (("coords",) if has_coords else LAYOUTS[format]) + ("data",)
    if missing := [name for name in names if name not in archive.members]:
        raise InputError(f"{file} has no array {missing[0]!r}, which a sparse array in {format.upper()} has")
    described = {name: archive.array(name) for name in names}
    _check_shapes(archive, format, n, described)
    kind = described["data"].dtype
    weighted = check_stored(file, weight, num_vertices, has=n, weighted=kind.kind != "b")
    if weighted:
        as_weights(np.zeros(1, kind), 1, f"{file}: data")
    elif weight is True:
        raise UsageError(f"{file} has values of True and False, no weights")
    if format in ("csr", "csc"):
        keys = {"offsets": "indptr", "targets": "indices"} | ({"weights": "data"} if weighted else {})
        arrays = archive.checked({key: described[name] for key, name in keys.items()})
        num_arcs = described["indices"].size
        table = CsrTable(arrays, n, num_arcs, bool(directed), weighted, labels, by_target=format == "csc")
        return csr_table(table)
    arrays = archive.checked(described)
    return EntriesTable(arrays, format, n, described["data"].shape, bool(directed), weighted, labels)


def _format(archive: Archive) -> str:
    array = archive.array("format")
    found = archive.values("format").tolist() if array.size == 1 and array.dtype.kind in "SU" else [""]
    format = found[0].decode(errors="replace") if isinstance(found[0], bytes) else str(found[0])
    if format not in LAYOUTS:
        raise InputError(f"{archive.file}: format {format[:20]!r} is not one of {', '.join(LAYOUTS)}")
    return format


def _order(archive: Archive) -> int:
    """Return the number of rows of a square array."""
    if "shape" not in archive.members or archive.array("shape").dtype.kind not in "iu":
        raise InputError(f"{archive.file} has no array 'shape' of integers")
    shape = tuple(archive.values("shape").tolist())
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 0:
        raise InputError(f"{archive.file} is of shape {shape}: an adjacency matrix is square")
    return shape[0]


def _check_shapes(archive: Archive, format: str, n: int, arrays: dict[str, NpzArray]) -> None:
    """Refuse arrays that are not of the shapes and kinds that the format needs."""
    shapes = {name: array.shape for name, array in arrays.items()}
    data = shapes["data"]
    if format == "bsr" and (len(data) != 3 or 0 in data[1:] or n % data[1] or n % data[2]):
        raise InputError(f"{archive.file}: data of shape {data} are no blocks that divide {n} rows and columns")
    if format == "dia" and len(data) != 2:
        raise InputError(f"{archive.file}: data of shape {data} are no diagonals")
    count = data[0] if data else -1
    height = data[1] if format == "bsr" else 1
    rows: dict[str, tuple[int, ...]] = {"indptr": (n // height + 1,), "indices": (count,), "data": data}
    entries: dict[str, tuple[int, ...]] = {"row": (count,), "col": (count,), "coords": (2, count), "data": (count,)}
    diagonals: dict[str, tuple[int, ...]] = {"offsets": (count,), "data": data}
    expected = {"bsr": rows, "coo": entries, "dia": diagonals}.get(format, rows | {"data": (count,)})
    for name, shape in shapes.items():
        if shape != expected[name]:
            raise InputError(f"{archive.file}: {name} is of shape {shape}, not {expected[name]}")
        if arrays[name].by_columns:
            raise InputError(f"{archive.file}: {name} is stored by columns: save numpy.ascontiguousarray of it")
        if name != "data" and arrays[name].dtype.kind not in "iu":
            raise InputError(f"{archive.file}: {name} is {arrays[name].dtype}, not integers")
