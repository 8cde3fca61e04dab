"""Arrays in a NumPy archive, as savez and savez_compressed write them, read in ranges.

Every byte of the arrays that are read is checked once, by the archive's CRC-32. Ranges of uncompressed arrays are read
from the archive; compressed ones from a decompressed copy that is made once. Pickled objects are never loaded.
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
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from mgraph.backends.cpu import available_cores
from mgraph.errors import InputError, MgraphError
from mgraph.io.compression import DAMAGES
from mgraph.io.input_file import Identity, InputFile, Unpacked, identity, release
from mgraph.io.ranges import PIECE_BYTES, ReadValues, changed, opened, read_range
from mgraph.io.spool import stored

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
    by_columns: bool  # Fortran's order
    dtype: np.dtype
    header_bytes: int
    num_bytes: int  # with the header
    crc: int

    @property
    def size(self) -> int:
        """The number of values."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class NpzArrays:
    """Some arrays of an archive, checked; a protocol StoredArrays."""

    file: InputFile
    copy: Unpacked | None  # where compressed arrays are read
    identity: Identity
    arrays: tuple[tuple[str, NpzArray], ...]

    @contextlib.contextmanager
    def opened(self) -> Iterator[ReadValues]:
        """Open the archive; a changed one raises InputError when it is closed, if not before."""
        file = self.copy or self.file
        with opened(file) as raw:
            begins = dict(zip(self.names, _begins(file, raw, [array for _, array in self.arrays]), strict=True))
            dtypes = {name: array.dtype for name, array in self.arrays}

            def read(name: str, lo: int, hi: int) -> np.ndarray:
                dtype = dtypes[name]
                return read_range(file, raw, dtype, begins[name] + lo * dtype.itemsize, hi - lo)

            yield read
        if self.copy is None and _identity(self.file) != self.identity:
            _require_same(self.file, _identity(self.file), tuple(array for _, array in self.arrays))

    @property
    def names(self) -> tuple[str, ...]:
        """The names under which arrays are read."""
        return tuple(name for name, _ in self.arrays)

    def release(self) -> None:
        """Delete the decompressed copies; the next reading makes others."""
        release(self.copy)
        release(self.file)


class Archive:
    """An open archive: its arrays by name, and their headers."""

    def __init__(self, file: InputFile, zipped: zipfile.ZipFile) -> None:
        self.file = file
        self._zipped = zipped
        self.members = _members(file, zipped)

    def array(self, name: str) -> NpzArray:
        """Return the place and type of an array."""
        return _described(self.file, self._zipped, self.members[name])

    def values(self, name: str) -> np.ndarray:
        """Return all values of a small array, flat."""
        array = self.array(name)
        with self._zipped.open(array.member) as file:
            file.read(array.header_bytes)
            return np.frombuffer(file.read(), array.dtype)

    def scalar(self, name: str) -> int:
        """Return an array that must be one integer."""
        array = self.array(name)
        if array.size != 1 or array.dtype.kind not in "iub":
            raise InputError(f"{self.file}: {name} must be one integer, not {array.dtype} of shape {array.shape}")
        return int(self.values(name)[0])

    def checked(self, arrays: dict[str, NpzArray]) -> NpzArrays:
        """Check the CRCs of arrays, and return them to be read by the keys of the dict."""
        names = tuple(dict.fromkeys(array.member for array in arrays.values()))
        is_packed = any(self._zipped.getinfo(name).compress_type != zipfile.ZIP_STORED for name in names)
        copy = stored(self.file, names) if is_packed else None
        if copy is not None:
            copy.stat()  # unpacks, which compares the CRCs
        else:
            _check_crcs(self.file, self._zipped, tuple(arrays.values()))
        return NpzArrays(self.file, copy, _identity(self.file), tuple(arrays.items()))


@contextlib.contextmanager
def open_archive(file: InputFile) -> Iterator[Archive]:
    """Open an archive; damage that is found while it is read raises InputError."""
    with _archive(file) as zipped:
        yield Archive(file, zipped)


def _identity(file: InputFile) -> Identity:
    return identity(file.stat())


@contextlib.contextmanager
def _archive(path: InputFile) -> Iterator[zipfile.ZipFile]:
    """Open an archive; damage that is found while it is read raises InputError."""
    try:
        with path.open("rb") as raw, zipfile.ZipFile(raw) as archive:
            yield archive
    except MgraphError:
        raise
    except DAMAGES as error:
        raise InputError(f"{path} is no NumPy archive, or truncated or damaged: {error}") from None


def _members(path: InputFile, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
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


def _described(path: InputFile, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NpzArray:
    """Read the header of an array.

    Refuse one that does not agree with the size of its member.
    """
    name = member.filename
    with archive.open(member) as file:
        try:
            shape, by_columns, dtype, header_bytes = _read_header(file)
        except Exception as error:  # whatever Python's parser raises of a damaged header
            raise InputError(f"{path}: {name} is no NumPy array, or damaged: {error}") from None
    if dtype.hasobject:
        raise InputError(f"{path}: {name} holds Python objects, which are not read from files")
    array = NpzArray(name, shape, by_columns and len(shape) > 1, dtype, header_bytes, member.file_size, member.CRC)
    expected = header_bytes + array.size * dtype.itemsize
    if expected != member.file_size:
        raise InputError(
            f"{path}: {name} is to be {dtype} of shape {shape}, which takes {expected} bytes with its header, "
            f"and is {member.file_size} bytes: truncated or damaged?"
        )
    return array


def _read_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype, int]:
    """Return the shape, whether it is by columns, the dtype and the length of an array's header."""
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
        shape, by_columns, dtype = read(text)
    return shape, by_columns, dtype, np.lib.format.MAGIC_LEN + text.tell()


def _check_crcs(file: InputFile, zipped: zipfile.ZipFile, arrays: tuple[NpzArray, ...]) -> None:
    """Compare the CRCs of uncompressed members, by several threads."""
    for array in arrays:
        member = zipped.getinfo(array.member)
        if member.compress_size != member.file_size:
            raise zipfile.BadZipFile(f"{array.member} is stored, and its two sizes differ")
    with opened(file) as raw:
        begins = _begins(file, raw, list(arrays))
    parts = []
    for array, begin in zip(arrays, begins, strict=True):
        ends = range(begin - array.header_bytes, begin - array.header_bytes + array.num_bytes, PIECE_BYTES)
        parts.append([(at, min(PIECE_BYTES, ends.stop - at)) for at in ends])

    def crc(part: tuple[int, int]) -> int:
        with opened(file) as raw:
            return zlib.crc32(read_range(file, raw, np.uint8, *part).data)

    with ThreadPoolExecutor(available_cores()) as pool:
        found = [list(pool.map(crc, pieces)) for pieces in parts]
    for array, pieces, crcs in zip(arrays, parts, found, strict=True):
        whole = 0
        for (_, num_bytes), own in zip(pieces, crcs, strict=True):
            whole = _joined(whole, own, num_bytes)
        if whole != array.crc:
            raise zipfile.BadZipFile(f"Bad CRC-32 for file {array.member!r}")


def _joined(left: int, right: int, num_bytes: int) -> int:
    """Return the CRC-32 of two strings of bytes, the second of `num_bytes`, from theirs.

    A zero bit appended multiplies a CRC by x modulo the polynomial, so that zeros are appended by powers of a matrix.
    """
    operator = [0xEDB88320] + [1 << bit for bit in range(31)]  # one zero bit: the image of each bit of a CRC
    num_bits = 8 * num_bytes
    while num_bits:
        if num_bits & 1:
            left = _applied(operator, left)
        operator = [_applied(operator, image) for image in operator]
        num_bits >>= 1
    return left ^ right


def _applied(operator: list[int], value: int) -> int:
    """Return the sum over GF(2) of the images of the bits of a value."""
    return functools.reduce(lambda total, bit: total ^ (operator[bit] if value >> bit & 1 else 0), range(32), 0)


def _begins(file: InputFile, raw: Any, arrays: list[NpzArray]) -> list[int]:
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
    except DAMAGES as error:
        raise changed(file, str(error)) from None
    return begins


@functools.lru_cache(maxsize=16)
def _require_same(file: InputFile, _identity: Identity, arrays: tuple[NpzArray, ...]) -> None:
    """Refuse a file if its arrays differ from those checked: another machine may have another copy."""
    try:
        with _archive(file) as zipped:
            for array in arrays:
                if array.crc != zipped.getinfo(array.member).CRC:
                    raise changed(file, f"{array.member} is another")
            _check_crcs(file, zipped, arrays)
    except (InputError, KeyError) as error:
        raise changed(file, str(error)) from None
