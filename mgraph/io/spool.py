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
from collections.abc import Callable
from typing import IO

from mgraph.errors import InputError

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
    return spooled(lambda out: shutil.copyfileobj(sys.stdin.buffer, out, 1 << 20), STDIN)


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
    try:
        with gzip.open(path) as text:
            shutil.copyfileobj(text, out, 1 << 20)
    except DAMAGES as error:
        raise InputError(f"{path} is damaged or truncated: {error}") from None


def _store(path: pathlib.Path, out: IO[bytes]) -> None:
    try:
        with zipfile.ZipFile(path) as packed, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as plain:
            for name in packed.namelist():
                with packed.open(name) as array, plain.open(name, "w", force_zip64=True) as copy:
                    shutil.copyfileobj(array, copy, 1 << 20)
    except DAMAGES as error:
        raise InputError(f"{path} is damaged or truncated: {error}") from None
