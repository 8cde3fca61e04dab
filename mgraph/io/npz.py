"""Edges in a NumPy archive: arrays `sources`, `targets`, and optionally `weights`, `num_vertices`, `directed`.

The reader checks every byte of these arrays once, by the archive's CRC-32. Chunks of uncompressed arrays are
read from the archive; compressed ones from a decompressed copy that is made once.
"""

from __future__ import annotations

import contextlib
import functools
import io
import math
import os
import struct
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from mgraph.backends.base import Backend
from mgraph.edges import EdgeChunk
from mgraph.errors import InputError, MgraphError, UsageError
from mgraph.io import spool
from mgraph.io.arrays import on_backend
from mgraph.io.checks import as_ids, as_weights, check_ids, check_num_vertices, check_weights
from mgraph.io.ranges import PIECE_BYTES, InputFile, changed, opened, read_range
from mgraph.partition import chunk_range
from mgraph.types import vertex_dtype

# The local header of a member in a zip archive: 30 bytes, of which the last four are the lengths of the name and of
# the extra field.
_LOCAL_HEADER = struct.Struct("<26xHH")
# The record at the end of an archive: 22 bytes and a comment. Its number of members saturates at MANY_MEMBERS.
MAX_END_BYTES = 22 + 0xFFFF
MANY_MEMBERS = 0xFFFF
# A bound for headers of arrays, which have some 100 bytes.
MAX_HEADER_BYTES = 1 << 16


@dataclass(frozen=True)
class NpzArray:
    """The location and type of an array in an archive, from its header."""

    member: str
    shape: tuple[int, ...]
    dtype: np.dtype
    header_bytes: int
    num_bytes: int  # with the header
    crc: int

    @property
    def size(self) -> int:
        """The number of values."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class NpzEdges:
    """An archive with checked arrays."""

    path: spool.InputPath
    packed: spool.Unpacked | None
    identity: spool.Identity
    arrays: tuple[NpzArray, ...]  # sources, targets, and the weights if there are any
    num_vertices: int
    directed: bool
    weight_dtype: np.dtype | None

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def num_input_edges(self) -> int:
        return self.arrays[0].size

    def chunk(self, k: int, num_chunks: int, backend: Backend) -> EdgeChunk:
        lo, hi = chunk_range(self.num_input_edges, k, num_chunks)
        file = self.packed or self.path
        with opened(file) as raw:
            begins = _begins(file, raw, self.arrays)
            ids = vertex_dtype(self.num_vertices)
            # Converted one by one: only one array at a time is in memory twice.
            sources, targets, *weights = (
                read_range(file, raw, array.dtype, begin + lo * array.dtype.itemsize, hi - lo).astype(dtype, copy=False)
                for array, begin, dtype in zip(self.arrays, begins, (ids, ids, self.weight_dtype), strict=False)
            )
            # Compared last, so that a change before or during the reads is detected.
            found = spool.identity(os.fstat(raw.fileno()))
        if self.packed is None and found != self.identity:
            _require_same(self.path, found, self.arrays)
        return on_backend(sources, targets, weights[0] if weights else None, self.num_vertices, backend)

    def release(self) -> None:
        """Delete the decompressed copy; the next chunk makes another."""
        if self.packed is not None:
            self.packed.release()


def read_npz(
    path: spool.InputPath,
    *,
    weight: str | int | bool | None = None,
    directed: bool | None = None,
    num_vertices: int | None = None,
) -> NpzEdges:
    """Check the arrays of an archive and return it as a source.

    `weight` names another array than `weights`.
    """
    n = check_num_vertices(num_vertices)
    with _archive(path) as archive:
        found = spool.identity(os.fstat(archive.fp.fileno()))  # type: ignore[union-attr]
        members = _members(path, archive)
        for end in ("sources", "targets"):
            if end not in members:
                raise InputError(f"{path} has no array {end!r}, only {', '.join(sorted(members)) or 'none at all'}")
        key = _weights_key(path, members, weight)
        if n is None and "num_vertices" in members:
            n = _scalar(path, archive, members["num_vertices"])
            if not 0 <= n <= np.iinfo(np.int64).max:
                raise InputError(f"{path}: num_vertices is {n}, which is not a count of vertices")
        if directed is None:
            directed = "directed" in members and bool(_scalar(path, archive, members["directed"]))
        keys = ["sources", "targets"] + ([] if key is None else [key])
        arrays = tuple(_described(path, archive, members[key]) for key in keys)
        top, dtype = _check(path, archive, arrays, n)
        is_packed = any(members[key].compress_type != zipfile.ZIP_STORED for key in keys)
    names = tuple(dict.fromkeys(array.member for array in arrays))
    packed = spool.stored(path, names) if is_packed else None
    return NpzEdges(path, packed, found, arrays, top + 1 if n is None else n, directed, dtype)


@contextlib.contextmanager
def _archive(path: spool.InputPath) -> Iterator[zipfile.ZipFile]:
    """Open an archive; damage that is found while it is read raises InputError."""
    try:
        with path.open("rb") as raw, zipfile.ZipFile(raw) as archive:
            yield archive
    except MgraphError:
        raise
    except spool.DAMAGES as error:
        raise InputError(f"{path} is no NumPy archive, or truncated or damaged: {error}") from None


def _members(path: spool.InputPath, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Return the members that are arrays, by array name."""
    members: dict[str, zipfile.ZipInfo] = {}
    # With a damaged directory a member may be lost or misnamed, and an optional array would be silently ignored.
    if _declared_members(archive.fp) not in (len(archive.infolist()), MANY_MEMBERS):
        raise InputError(f"{path}: its directory does not list all members: damaged?")
    for member in archive.infolist():
        archive.open(member).close()  # compares the name with that in the member's local header
        if member.filename.endswith(".npy"):
            name = member.filename.removesuffix(".npy")
            if name in members:
                raise InputError(f"{path} has two arrays {name!r}: which is meant?")
            members[name] = member
    return members


def _declared_members(raw: Any) -> int:
    """Return the number of members that the record at the end of an archive declares."""
    size = raw.seek(0, os.SEEK_END)
    raw.seek(max(0, size - MAX_END_BYTES))
    tail = raw.read()
    at = tail.rfind(b"PK\x05\x06")
    return int.from_bytes(tail[at + 10 : at + 12], "little")


def _weights_key(
    path: spool.InputPath, members: dict[str, zipfile.ZipInfo], weight: str | int | bool | None
) -> str | None:
    """Return the name of the array of weights, None for none."""
    if weight is False or (weight is None and "weights" not in members):
        return None
    key = "weights" if weight is None or weight is True else str(weight)
    if key not in members:
        raise UsageError(f"{path} has no array {key!r} of weights, only {', '.join(sorted(members))}")
    return key


def _scalar(path: spool.InputPath, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    array = _described(path, archive, member)
    if array.size != 1 or array.dtype.kind not in "iub":
        name = array.member.removesuffix(".npy")
        raise InputError(f"{path}: {name} must be one integer, not {array.dtype} of shape {array.shape}")
    ((_, values),) = _pieces(archive, array)
    return int(values[0])


def _check(
    path: spool.InputPath, archive: zipfile.ZipFile, arrays: tuple[NpzArray, ...], num_vertices: int | None
) -> tuple[int, np.dtype | None]:
    """Read and check all arrays once.

    Return the largest id and the dtype of the weights.
    """
    names = [f"{path}: {array.member.removesuffix('.npy')}" for array in arrays]
    for array, name in zip(arrays[:2], names, strict=False):
        if len(array.shape) != 1:
            raise InputError(f"{name} must be one-dimensional, not of shape {array.shape}")
        # Checks the dtype with no value; with one for floats, which are accepted only if empty.
        as_ids(np.zeros(min(array.size, 1) if array.dtype.kind == "f" else 0, array.dtype), name)
    sources, targets, *weights = arrays
    if sources.size != targets.size:
        raise InputError(f"{path} has {sources.size} sources and {targets.size} targets")
    dtype = None
    if weights:
        if weights[0].shape != sources.shape:
            raise InputError(
                f"{names[2]} must be one for each of the {sources.size} edges, not of shape {weights[0].shape}"
            )
        dtype = as_weights(np.zeros(min(sources.size, 1), weights[0].dtype), min(sources.size, 1), names[2]).dtype
    top = -1
    for array, name in zip(arrays, names, strict=True):
        for first, piece in _pieces(archive, array):
            values = piece.astype(array.dtype.newbyteorder("="), copy=False)

            def place(i: int, name: str = name, first: int = first) -> str:
                return f"{name}[{first + i}]"

            if array in weights:
                check_weights(values, place)
            else:
                top = max(top, check_ids(values, num_vertices, place))
    return top, dtype


def _described(path: spool.InputPath, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NpzArray:
    """Read the header of an array.

    Refuse one that does not agree with the size of its member.
    """
    name = member.filename
    with archive.open(member) as file:
        try:
            shape, dtype, header_bytes = _read_header(file)
        except Exception as error:  # whatever Python's parser raises of a damaged header
            raise InputError(f"{path}: {name} is no NumPy array, or damaged: {error}") from None
    if dtype.hasobject:
        raise InputError(f"{path}: {name} holds Python objects, which are not read from files")
    array = NpzArray(name, shape, dtype, header_bytes, member.file_size, member.CRC)
    expected = header_bytes + array.size * dtype.itemsize
    if expected != member.file_size:
        raise InputError(
            f"{path}: {name} is to be {dtype} of shape {shape}, which takes {expected} bytes with its header, "
            f"and is {member.file_size} bytes: truncated or damaged?"
        )
    return array


def _read_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype, int]:
    """Return the shape, the dtype and the length of an array's header."""
    version = np.lib.format.read_magic(file)
    length = file.read(2 if version == (1, 0) else 4)
    size = int.from_bytes(length, "little")
    if size > MAX_HEADER_BYTES:
        raise ValueError(f"its header is to be {size} bytes long")
    text = io.BytesIO(length + file.read(size))
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    with warnings.catch_warnings():
        # Parsing a damaged header may emit warnings.
        warnings.simplefilter("ignore")
        shape, _, dtype = read(text)
    return shape, dtype, np.lib.format.MAGIC_LEN + text.tell()


def _pieces(archive: zipfile.ZipFile, array: NpzArray) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (index of the first value, values) piece by piece.

    The CRC is compared after the last piece.
    """
    step = max(1, PIECE_BYTES // max(1, array.dtype.itemsize))
    with archive.open(array.member) as file:
        file.read(array.header_bytes)
        for first in range(0, array.size, step):
            data = file.read(min(step, array.size - first) * array.dtype.itemsize)
            yield first, np.frombuffer(data, array.dtype)
        if file.read(1):
            raise zipfile.BadZipFile(f"{array.member} is longer than its header says")


def _begins(file: InputFile, raw: Any, arrays: tuple[NpzArray, ...]) -> list[int]:
    """Return the offsets of the values of uncompressed arrays.

    Refuse arrays that are not those checked before.
    """
    begins = []
    try:
        with zipfile.ZipFile(raw) as archive:
            for array in arrays:
                member = archive.getinfo(array.member)
                if (member.CRC, member.file_size, member.compress_size) != (
                    array.crc,
                    array.num_bytes,
                    array.num_bytes,
                ):
                    raise changed(file, f"{array.member} is another")
                raw.seek(member.header_offset)
                name_bytes, extra_bytes = _LOCAL_HEADER.unpack(raw.read(_LOCAL_HEADER.size))
                begins.append(member.header_offset + _LOCAL_HEADER.size + name_bytes + extra_bytes + array.header_bytes)
    except MgraphError:
        raise
    except (*spool.DAMAGES, KeyError) as error:
        raise changed(file, str(error)) from None
    return begins


@functools.lru_cache(maxsize=16)
def _require_same(path: spool.InputPath, _identity: spool.Identity, arrays: tuple[NpzArray, ...]) -> None:
    """Refuse a file if its arrays differ from those checked: another machine may have another copy."""
    try:
        with _archive(path) as archive:
            for array in arrays:
                if array.crc != archive.getinfo(array.member).CRC:
                    raise changed(path, f"{array.member} is another")
                for _ in _pieces(archive, array):
                    pass
    except (InputError, KeyError) as error:
        raise changed(path, str(error)) from None
