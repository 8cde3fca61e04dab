"""Edges in a NumPy archive: arrays `sources`, `targets`, and if wanted `weights`, `num_vertices`, `directed`.

The arrays of an archive that is not compressed are mapped, so that a part costs only itself; a
compressed one is copied once without the compression.
"""

from __future__ import annotations

import pathlib
import struct
import zipfile
from dataclasses import dataclass

import numpy as np

from mgraph.errors import InputError, UsageError
from mgraph.io import spool
from mgraph.io.arrays import on_backend
from mgraph.io.checks import as_ids, as_weights, check_ids, check_num_vertices
from mgraph.kernels.backend import Backend
from mgraph.partition import chunk_range
from mgraph.types import EdgeChunk

# A local header of a zip archive: 30 bytes, the last four of them the lengths of the name and of the extra field.
_LOCAL_HEADER = struct.Struct("<26xHH")


@dataclass(frozen=True)
class NpzEdges:
    """An archive whose arrays have been checked."""

    path: pathlib.Path
    weights_key: str | None
    num_vertices: int
    directed: bool
    weight_dtype: np.dtype | None
    num_input_edges: int

    @property
    def name(self) -> str:
        return self.path.stem

    def chunk(self, k: int, num_chunks: int, backend: Backend) -> EdgeChunk:
        lo, hi = chunk_range(self.num_input_edges, k, num_chunks)
        arrays = mapped_arrays(self.path)
        weights = None
        if self.weights_key is not None:
            weights = arrays[self.weights_key][lo:hi].astype(self.weight_dtype, copy=False)
        return on_backend(arrays["sources"][lo:hi], arrays["targets"][lo:hi], weights, self.num_vertices, backend)


def read_npz(
    path: pathlib.Path,
    *,
    weight: str | int | bool | None = None,
    directed: bool | None = None,
    num_vertices: int | None = None,
) -> NpzEdges:
    """Check the arrays of an archive and return it as a source; `weight` names another array than `weights`."""
    arrays = mapped_arrays(path)
    for end in ("sources", "targets"):
        if end not in arrays:
            raise InputError(f"{path} has no array {end!r}, only {', '.join(sorted(arrays)) or 'none at all'}")
    key = _weights_key(path, arrays, weight)
    n = check_num_vertices(num_vertices)
    if n is None and "num_vertices" in arrays:
        n = _scalar(path, arrays, "num_vertices")
        if not 0 <= n <= np.iinfo(np.int64).max:
            raise InputError(f"{path}: num_vertices is {n}, which is not a count of vertices")
    if directed is None:
        directed = "directed" in arrays and bool(_scalar(path, arrays, "directed"))
    sources, targets = (as_ids(arrays[end], f"{path}: {end}") for end in ("sources", "targets"))
    if len(sources) != len(targets):
        raise InputError(f"{path} has {len(sources)} sources and {len(targets)} targets")
    top = check_ids(sources, n, lambda i: f"{path}: sources[{i}]")
    top = max(top, check_ids(targets, n, lambda i: f"{path}: targets[{i}]"))
    dtype = None if key is None else as_weights(arrays[key], len(sources), f"{path}: {key}").dtype
    return NpzEdges(path, key, top + 1 if n is None else n, directed, dtype, len(sources))


def _weights_key(path: pathlib.Path, arrays: dict[str, np.ndarray], weight: str | int | bool | None) -> str | None:
    """Return which array holds the weights, None for none."""
    if weight is False or (weight is None and "weights" not in arrays):
        return None
    key = "weights" if weight is None or weight is True else str(weight)
    if key not in arrays:
        raise UsageError(f"{path} has no array {key!r} of weights, only {', '.join(sorted(arrays))}")
    return key


def _scalar(path: pathlib.Path, arrays: dict[str, np.ndarray], key: str) -> int:
    if arrays[key].size != 1 or arrays[key].dtype.kind not in "iub":
        raise InputError(f"{path}: {key} must be one integer, not {arrays[key].dtype} of shape {arrays[key].shape}")
    return int(arrays[key].item())


def mapped_arrays(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Return the arrays of an archive, mapped from the file."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except spool.DAMAGES:
        raise InputError(f"{path} is no NumPy archive, or truncated") from None
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        return mapped_arrays(spool.stored(path))
    arrays = {}
    with open(path, "rb") as file:
        for member in members:
            if not member.filename.endswith(".npy"):
                continue
            file.seek(member.header_offset)
            header = file.read(_LOCAL_HEADER.size)
            if len(header) < _LOCAL_HEADER.size:
                raise InputError(f"{path}: {member.filename} is not where the archive says: damaged?")
            name_bytes, extra_bytes = _LOCAL_HEADER.unpack(header)
            file.seek(member.header_offset + _LOCAL_HEADER.size + name_bytes + extra_bytes)
            arrays[member.filename.removesuffix(".npy")] = _mapped(path, file, member.filename)
    return arrays


def _mapped(path: pathlib.Path, file, name: str) -> np.ndarray:
    """Return the array that begins where `file` stands."""
    try:
        version = np.lib.format.read_magic(file)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(file)
    except Exception as error:  # whatever Python's parser raises of a damaged header
        raise InputError(f"{path}: {name} is no NumPy array: {error}") from None
    if dtype.hasobject:
        raise InputError(f"{path}: {name} holds Python objects, which are not read from files")
    if 0 in shape or shape == ():
        return np.frombuffer(file.read(dtype.itemsize if shape == () else 0), dtype).reshape(shape)
    try:
        return np.memmap(path, dtype, "r", file.tell(), shape)
    except (ValueError, OverflowError):
        raise InputError(f"{path}: {name} is to be {dtype} of shape {shape}, which is not there: truncated?") from None
