"""Temporary copies of what cannot be read in parts: packed files, and input that comes only once.

A copy has no name in the file system: it goes with its last descriptor, however its process ends.
"""

from __future__ import annotations

import errno
import gzip
import lzma
import os
import pathlib
import shutil
import socket
import struct
import sys
import tempfile
import threading
import weakref
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import IO, Any

from mgraph.errors import InputError, WouldNotFit
from mgraph.formatting import readable_bytes
from mgraph.io.lines import bounded_lines
from mgraph.signals import run_whole

# Bytes that are copied at a time.
PIECE_BYTES = 1 << 20
# What a copy leaves free of its disk for others: at most so much, and a twentieth of a small disk.
RESERVE_BYTES = 64 << 20
# What the copy of standard input is called.
STDIN = "stdin"
# What the standard library raises of a packed file that is damaged, or that it cannot unpack.
DAMAGES = (
    EOFError, ValueError, RuntimeError, OverflowError, struct.error, gzip.BadGzipFile, lzma.LZMAError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip
# What a disk without room says, and a quota or a limit of a file's size.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

Identity = tuple[int, int, int]


def identity(stat: os.stat_result) -> Identity:
    """Return what tells whether a file is still the one that it was."""
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


class _Copy:
    """A temporary file without a name, open as long as this object is there."""

    def __init__(self, write: Callable[[IO[bytes]], None], origin: str) -> None:
        folder = _folder(origin)
        file = run_whole(lambda: tempfile.TemporaryFile(dir=folder), undo=lambda made: made.close())  # noqa: SIM115
        weakref.finalize(self, file.close)
        try:
            write(file)
            file.flush()
        except BaseException as error:
            with suppress(OSError):  # its last bytes may find no room
                file.close()
            if not isinstance(error, OSError) or error.errno not in FULL:
                raise
            free = readable_bytes(shutil.disk_usage(folder).free)
            raise WouldNotFit(
                f"{origin} is copied to a temporary file in {folder}, where {free} are free, and that is not enough "
                f"({error.strerror}): TMPDIR chooses another folder"
            ) from None
        self.descriptor = file.fileno()

    @property
    def place(self) -> str:
        """Where this process, or a forked child of it, opens the file anew, at an offset of its own."""
        return f"/proc/self/fd/{self.descriptor}"


def _folder(origin: str) -> str:
    try:
        return tempfile.gettempdir()
    except OSError as error:
        raise InputError(f"{origin} needs a temporary file: {error.strerror}: TMPDIR chooses the folder") from None


class Stdin(os.PathLike[str]):
    """The copy of standard input; other processes of the same machine read it through this one."""

    name = stem = STDIN

    def __init__(self, copy: _Copy) -> None:
        self._copy: _Copy | None = copy
        self._place = f"/proc/{os.getpid()}/fd/{copy.descriptor}"
        self._client = f"process {os.getpid()} on {socket.gethostname()}"
        self._identity = identity(os.fstat(copy.descriptor))

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_copy": None}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stdin) and (self._place, self._identity) == (other._place, other._identity)

    def __hash__(self) -> int:
        return hash(self._identity)

    def __str__(self) -> str:
        return STDIN

    def __fspath__(self) -> str:
        if self._copy is not None:
            return self._copy.place
        # On another machine, or after that process has ended, there may be another file.
        try:
            found = identity(os.stat(self._place))
        except OSError:
            found = None
        if found != self._identity:
            raise InputError(
                f"standard input was copied by {self._client}, where this rank cannot read it: "
                "write it to a file that every rank can read"
            )
        return self._place

    def stat(self) -> os.stat_result:
        return os.stat(self)

    def open(self, mode: str = "rb", buffering: int = -1) -> Any:
        return open(self, mode, buffering)


# A file as the user names it.
InputPath = pathlib.Path | Stdin


def spooled_stdin() -> Stdin:
    """Return a copy of standard input."""
    return Stdin(
        _Copy(lambda out: _write_within_room(_pieces(sys.stdin.buffer), out, "standard input"), "standard input")
    )


class Unpacked:
    """A packed file to be read without the compression, from a copy.

    Each process makes its own on first use, and all that read the same file in a process share it. It is
    called what the user calls the packed file.
    """

    def __init__(self, path: InputPath, how: Callable[..., None], *args: Any) -> None:
        self.path = path
        self._how, self._args = how, args
        self._copy: _Copy | None = None

    def __reduce__(self) -> tuple:
        return Unpacked, (self.path, self._how, *self._args)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unpacked) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash(self.path)

    def __str__(self) -> str:
        return str(self.path)

    def open(self, mode: str = "rb", buffering: int = -1) -> Any:
        """Open the copy, at an offset of its own."""
        with _lock:  # a descriptor that is released meanwhile would be another file's
            return open(self._made().place, mode, buffering)

    def stat(self) -> os.stat_result:
        """Return the size of the copy, and when it was made."""
        with _lock:
            return os.fstat(self._made().descriptor)

    def release(self) -> None:
        """Give the disk back; the next use makes another copy."""
        with _lock:
            self._copy = None

    def _made(self) -> _Copy:
        if self._copy is None:
            stat = os.stat(self.path)
            key = self._how, self._args, stat.st_dev, identity(stat)
            copy = _copies.get(key)
            if copy is None:
                copy = _copies[key] = _Copy(lambda out: self._how(self.path, out, *self._args), str(self.path))
            self._copy = copy
        return self._copy


_lock = threading.Lock()
# The copies of packed files that are in use in this process.
_copies: weakref.WeakValueDictionary[tuple, _Copy] = weakref.WeakValueDictionary()


def _unlock_in_child() -> None:
    """Replace the lock, which a thread that the child lacks may hold."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_unlock_in_child)


def unpacked(path: InputPath) -> Unpacked:
    """Return a .gz file without the compression."""
    return Unpacked(path, _gunzip)


def stored(path: InputPath, members: tuple[str, ...]) -> Unpacked:
    """Return members of an .npz file without the compression, so that parts of them can be read."""
    return Unpacked(path, _store, members)


def _gunzip(path: InputPath, out: IO[bytes]) -> None:
    _write_within_room(bounded_lines(path, _unzipped(path)), out, f"{path} without its compression")


def _unzipped(path: InputPath) -> Iterator[bytes]:
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
        _require_room(len(piece), written, out, what)
        out.write(piece)
        written += len(piece)


def _require_room(num_bytes: int, written: int, out: IO[bytes], what: str) -> None:
    """Refuse to write so much more of a copy where the disk would have less than the reserve."""
    disk = os.fstatvfs(out.fileno())
    free = disk.f_bavail * disk.f_frsize
    # Some file systems do not say how large they are.
    if disk.f_blocks and free - num_bytes < min(disk.f_blocks * disk.f_frsize // 20, RESERVE_BYTES):
        raise WouldNotFit(
            f"{what} does not fit into {tempfile.gettempdir()}: {readable_bytes(written)} of it are there, and "
            f"{readable_bytes(free)} are left: set TMPDIR to a folder with more room"
        )


def _store(path: InputPath, out: IO[bytes], members: tuple[str, ...]) -> None:
    try:
        with zipfile.ZipFile(path) as packed, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as plain:
            taken = sum(packed.getinfo(name).file_size for name in members)
            _require_room(taken, 0, out, f"{path} without its compression")
            for name in members:
                with packed.open(name) as array, plain.open(name, "w", force_zip64=True) as copy:
                    shutil.copyfileobj(array, copy, 1 << 20)
    except DAMAGES as error:
        raise InputError(f"{path} is damaged or truncated: {error}") from None
    except KeyError:
        raise InputError(f"{path} has changed while being read") from None
