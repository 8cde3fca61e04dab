"""Temporary copies of what cannot be read in parts: packed files, and input that comes only once."""

from __future__ import annotations

import atexit
import functools
import gzip
import lzma
import os
import pathlib
import shutil
import struct
import sys
import tempfile
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO

from mgraph.errors import InputError, WouldNotFit
from mgraph.io.lines import bounded_lines
from mgraph.readable import readable_bytes

# Bytes that are copied at a time.
PIECE_BYTES = 1 << 20
# What a copy leaves free of its disk for others: at most so much, and a twentieth of a small disk.
RESERVE_BYTES = 64 << 20
# What the copy of standard input is called.
STDIN = "stdin"
# What the standard library raises of a packed file that is damaged, or that it cannot unpack.
DAMAGES = (
    EOFError, ValueError, RuntimeError, struct.error, gzip.BadGzipFile, lzma.LZMAError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
_lock = threading.Lock()


def spooled(write: Callable[[IO[bytes]], None], name: str) -> pathlib.Path:
    """Return a temporary file called `name` with what `write` writes; it goes when this process ends."""
    folder, owner = tempfile.mkdtemp(prefix="mgraph-"), os.getpid()
    # A forked child must not take its parent's file with it.
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == owner else None)
    path = pathlib.Path(folder, name)
    try:
        with open(path, "wb") as out:
            write(out)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return path


def spooled_stdin() -> pathlib.Path:
    """Return a copy of standard input."""
    return spooled(lambda out: _write_within_room(_pieces(sys.stdin.buffer), out, "standard input"), STDIN)


def unpacked(path: pathlib.Path) -> pathlib.Path:
    """Return a copy of a .gz file without the compression; each process makes one for each file."""
    return _copy(path, _gunzip)


def stored(path: pathlib.Path) -> pathlib.Path:
    """Return a copy of an .npz file without the compression, so that its arrays can be mapped."""
    return _copy(path, _store)


def _copy(path: pathlib.Path, how: Callable[[pathlib.Path, IO[bytes]], None]) -> pathlib.Path:
    stat = path.stat()
    with _lock:
        return _copy_once(path, how, stat.st_mtime_ns, stat.st_size)


@functools.cache
def _copy_once(
    path: pathlib.Path, how: Callable[[pathlib.Path, IO[bytes]], None], _mtime_ns: int, _size: int
) -> pathlib.Path:
    """Make the copy, anew where the file has changed."""
    return spooled(lambda out: how(path, out), path.name)


def _gunzip(path: pathlib.Path, out: IO[bytes]) -> None:
    _write_within_room(bounded_lines(path, _unzipped(path)), out, f"{path} without its compression")


def _unzipped(path: pathlib.Path) -> Iterator[bytes]:
    try:
        with gzip.open(path) as text:
            yield from _pieces(text)
    except DAMAGES as error:
        raise InputError(f"{path} is damaged or truncated: {error}") from None


def _pieces(file: IO[bytes] | gzip.GzipFile) -> Iterator[bytes]:
    while piece := file.read(PIECE_BYTES):
        yield piece


def _write_within_room(pieces: Iterable[bytes], out: IO[bytes], what: str) -> None:
    """Write a copy piece by piece, as long as the disk has room for it; `what` is what the error calls it.

    How large it becomes is not known before: a packed file may grow a thousandfold.
    """
    written = 0
    for piece in pieces:
        disk = os.fstatvfs(out.fileno())
        free = disk.f_bavail * disk.f_frsize
        # Some file systems do not say how large they are.
        if disk.f_blocks and free - len(piece) < min(disk.f_blocks * disk.f_frsize // 20, RESERVE_BYTES):
            raise WouldNotFit(
                f"{what} does not fit into {tempfile.gettempdir()}: {readable_bytes(written)} of it are there, and "
                f"{readable_bytes(free)} are left: set TMPDIR to a folder with more room"
            )
        out.write(piece)
        written += len(piece)


def _store(path: pathlib.Path, out: IO[bytes]) -> None:
    try:
        with zipfile.ZipFile(path) as packed, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as plain:
            for name in packed.namelist():
                with packed.open(name) as array, plain.open(name, "w", force_zip64=True) as copy:
                    shutil.copyfileobj(array, copy, 1 << 20)
    except DAMAGES as error:
        raise InputError(f"{path} is damaged or truncated: {error}") from None
