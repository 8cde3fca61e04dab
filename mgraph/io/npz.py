"""Edges in a NumPy archive: arrays `sources`, `targets`, and optionally `weights`, `num_vertices`, `directed`.

An archive with an array `format` is one of SciPy's sparse arrays, which `mgraph.io.scipy_npz` reads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mgraph.backends.base import Backend
from mgraph.edges import EdgePiece, EdgeTable, Labels
from mgraph.errors import InputError, UsageError
from mgraph.io.archive import Archive, NpzArray, NpzArrays, open_archive
from mgraph.io.checks import as_ids, as_weights, check_num_vertices
from mgraph.io.input_file import InputFile
from mgraph.io.pieces import edge_piece, edges_of_piece, num_pieces
from mgraph.io.scipy_npz import scipy_table


@dataclass(frozen=True)
class NpzTable:
    """An archive with checked arrays."""

    arrays: NpzArrays
    max_edges: int
    num_vertices: int | None
    directed: bool
    has_weights: bool
    labels: Labels = "auto"
    base: int = 0

    @property
    def name(self) -> str:
        return self.arrays.file.stem

    @property
    def num_pieces(self) -> int:
        return num_pieces(self.max_edges)

    def piece(self, k: int, backend: Backend) -> EdgePiece:
        lo, hi = edges_of_piece(k, self.max_edges)
        with self.arrays.opened() as read:
            sources, targets = (read(end, lo, hi) for end in ("sources", "targets"))
            weights = read("weights", lo, hi) if self.has_weights else None
        if self.max_edges == 0:  # NumPy converts an empty list to floats
            sources, targets = (ids.astype(np.int64) for ids in (sources, targets))
        return edge_piece(sources, targets, weights, lambda i: f"{self.arrays.file}: edge {lo + i}")

    def release(self) -> None:
        self.arrays.release()


def read_npz(
    file: InputFile,
    *,
    weight: str | int | bool | None = None,
    directed: bool | None = None,
    num_vertices: int | None = None,
    labels: Labels = "auto",
) -> EdgeTable:
    """Check the arrays of an archive and return it as a table.

    `weight` names another array than `weights`.
    """
    n = check_num_vertices(num_vertices)
    with open_archive(file) as archive:
        if "format" in archive.members and "sources" not in archive.members:
            return scipy_table(archive, weight, directed, n, labels)
        for end in ("sources", "targets"):
            if end not in archive.members:
                raise InputError(
                    f"{file} has no array {end!r}, only {', '.join(sorted(archive.members)) or 'none at all'}"
                )
        key = _weights_key(archive, weight)
        if n is None and "num_vertices" in archive.members:
            n = archive.scalar("num_vertices")
            if not 0 <= n <= np.iinfo(np.int64).max:
                raise InputError(f"{file}: num_vertices is {n}, which is not a count of vertices")
        if directed is None:
            directed = "directed" in archive.members and bool(archive.scalar("directed"))
        described = {end: archive.array(end) for end in ("sources", "targets")}
        if key is not None:
            described["weights"] = archive.array(key)
        _check(file, described)
        arrays = archive.checked(described)
    return NpzTable(arrays, described["sources"].size, n, directed, key is not None, labels)


def _weights_key(archive: Archive, weight: str | int | bool | None) -> str | None:
    """Return the name of the array of weights, None for none."""
    if weight is False or (weight is None and "weights" not in archive.members):
        return None
    key = "weights" if weight is None or weight is True else str(weight)
    if key not in archive.members:
        raise UsageError(f"{archive.file} has no array {key!r} of weights, only {', '.join(sorted(archive.members))}")
    return key


def _check(file: InputFile, arrays: dict[str, NpzArray]) -> None:
    """Check shapes and dtypes."""
    sources, targets, *weights = arrays.values()
    for array in (sources, targets):
        name = f"{file}: {array.member.removesuffix('.npy')}"
        if len(array.shape) != 1:
            raise InputError(f"{name} must be one-dimensional, not of shape {array.shape}")
        # Checks the dtype with no value; with one for floats, which are accepted only if empty.
        as_ids(np.zeros(min(array.size, 1) if array.dtype.kind == "f" else 0, array.dtype), name)
    if sources.size != targets.size:
        raise InputError(f"{file} has {sources.size} sources and {targets.size} targets")
    for array in weights:
        name = f"{file}: {array.member.removesuffix('.npy')}"
        if array.shape != sources.shape:
            raise InputError(f"{name} must be one for each of the {sources.size} edges, not of shape {array.shape}")
        as_weights(np.zeros(min(sources.size, 1), array.dtype), min(sources.size, 1), name)
