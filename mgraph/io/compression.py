"""Compressed files: known by their first bytes, and read as a stream of what they unpack to."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import importlib
import lzma
import pathlib
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Any

from mgraph.errors import InputError, MgraphError
from mgraph.io.input_file import InputFile
from mgraph.io.pyarrow_module import require_pyarrow

FIRST_BYTES = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
}
SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".zip")
# Exceptions of the standard library for a compressed file that is damaged, or of an unknown kind.
DAMAGES: tuple[type[Exception], ...] = (
    EOFError, ValueError, RuntimeError, OverflowError, KeyError, struct.error, gzip.BadGzipFile, lzma.LZMAError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip
# From Python 3.14 on the standard library reads zstd too.
with contextlib.suppress(ImportError):
    DAMAGES += (importlib.import_module("compression.zstd").ZstdError,)
# Bytes of a file that tell its format.
HEAD_BYTES = 1 << 12


def plain_name(name: str) -> str:
    """Return the name of a file without the suffix of a compression."""
    found = next((suffix for suffix in SUFFIXES if name.lower().endswith(suffix)), "")
    return name[: len(name) - len(found)] or name


def compression_of(file: InputFile) -> str | None:
    """Return how a file is compressed, None if it is not.

    An archive of NumPy arrays is read as it is.
    """
    with file.open("rb") as raw:
        first = raw.read(max(map(len, FIRST_BYTES)))
    kind = next((kind for magic, kind in FIRST_BYTES.items() if first.startswith(magic)), None)
    return None if kind == "zip" and not _is_one_file(file) else kind


def first_bytes(file: InputFile, kind: str | None) -> bytes:
    """Return the first bytes of a file, decompressed."""
    with decompressed(file, kind) as plain:
        return plain.read(HEAD_BYTES)


@contextlib.contextmanager
def decompressed(file: InputFile, kind: str | None) -> Iterator[IO[bytes]]:
    """Open a file to be read decompressed; damage that is found while it is read raises InputError."""
    with contextlib.ExitStack() as stack:
        raw = stack.enter_context(file.open("rb"))
        try:
            yield stack.enter_context(_reader(file, raw, kind)) if kind else raw
        except MgraphError:
            raise
        except DAMAGES as error:
            raise InputError(f"{file} is damaged or truncated: {error}") from None
        except OSError as error:
            if error.errno is not None:  # of the file system
                raise
            raise InputError(f"{file} is damaged or truncated: {error}") from None


def _reader(file: InputFile, raw: Any, kind: str) -> Any:
    if kind == "gzip":
        return gzip.GzipFile(fileobj=raw)
    if kind == "bzip2":
        return bz2.BZ2File(raw)
    if kind == "xz":
        return lzma.LZMAFile(raw)
    if kind == "zip":
        return _only_member(raw)
    return _zstd(file, raw)


@contextlib.contextmanager
def _only_member(raw: Any) -> Iterator[IO[bytes]]:
    with zipfile.ZipFile(raw) as archive, archive.open(_files(archive)[0]) as member:
        yield member


def _zstd(file: InputFile, raw: Any) -> Any:
    """Return a reader that notices a truncated stream, as that of the package zstandard does not."""
    with contextlib.suppress(ImportError):
        return importlib.import_module("compression.zstd").ZstdFile(raw)  # Python 3.14
    pyarrow = require_pyarrow(f"{file} is packed by zstd, which needs Python 3.14 or")
    return pyarrow.CompressedInputStream(pyarrow.PythonFile(raw, mode="r"), "zstd")


def _is_one_file(file: InputFile) -> bool:
    """Return whether a zip archive is one compressed file; False for NumPy's archives, damaged ones included."""
    if file.name.lower().endswith(".npz"):
        return False
    try:
        with file.open("rb") as raw, zipfile.ZipFile(raw) as archive:
            members = _files(archive)
    except DAMAGES as error:
        raise InputError(f"{file} is no zip archive, or truncated or damaged: {error}") from None
    if any(member.filename.endswith(".npy") for member in members):
        return False
    if len(members) != 1:
        raise InputError(f"{file} is an archive of {len(members)} files, and only one would be read: unpack it first")
    return True


def name_of_member(file: InputFile) -> str:
    """Return the name of the only file in a zip archive, without folders."""
    with file.open("rb") as raw, zipfile.ZipFile(raw) as archive:
        return pathlib.PurePosixPath(_files(archive)[0].filename).name


def _files(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    return [member for member in archive.infolist() if not member.is_dir()]
