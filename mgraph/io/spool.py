"""Temporary copies of inputs that cannot be read in ranges: compressed files and standard input.

A copy has no name in the file system: it is deleted with its last descriptor, however the process ends.
"""

from __future__ import annotations

import errno
import os
import pathlib
import shutil
import socket
import sys
import tempfile
import threading
import weakref
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import IO, Any

from mgraph import config
from mgraph.errors import InputError, WouldNotFit
from mgraph.formatting import readable_bytes
from mgraph.io.compression import DAMAGES, SUFFIXES, compression_of, decompressed, plain_name
from mgraph.io.lines import bounded_lines
from mgraph.io.remote import RemoteFile
from mgraph.signals import run_uninterrupted

# Bytes copied at a time.
PIECE_BYTES = 1 << 20
# Space that a copy leaves free on its disk: this, or a twentieth of a smaller disk.
RESERVE_BYTES = 64 << 20
# The name of the copy of standard input.
STDIN = "stdin"
# What chooses the folder of temporary files.
CHOICE = "TMPDIR, or the setting mgraph.spool-folder,"
# Errors of a full disk, a quota, and a limit on the size of a file.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

Identity = tuple[int, int, int]


def identity(stat: os.stat_result) -> Identity:
    """Return inode, size and time of change, which identify one state of a file."""
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


class _Copy:
    """An unnamed temporary file, open as long as this object is referenced."""

    def __init__(self, write: Callable[[IO[bytes]], None], origin: str) -> None:
        folder = spool_folder(origin)
        file = run_uninterrupted(lambda: tempfile.TemporaryFile(dir=folder), undo=lambda made: made.close())  # noqa: SIM115
        weakref.finalize(self, file.close)
        try:
            write(file)
            file.flush()
        except BaseException as error:
            with suppress(OSError):  # closing flushes, which fails on a full disk
                file.close()
            if not isinstance(error, OSError) or error.errno not in FULL:
                raise
            free = readable_bytes(shutil.disk_usage(folder).free)
            raise WouldNotFit(
                f"{origin} is copied to a temporary file in {folder}, where {free} are free, and that is not enough "
                f"({error.strerror}): {CHOICE} chooses another folder"
            ) from None
        self.descriptor = file.fileno()

    @property
    def place(self) -> str:
        """The path by which this process, or a forked child, opens the file again, with a separate offset."""
        return f"/proc/self/fd/{self.descriptor}"


def spool_folder(origin: str) -> str:
    """Return the folder of temporary files; the origin of their contents is what an error names."""
    try:
        return config.folder("spool-folder") or tempfile.gettempdir()
    except OSError as error:
        raise InputError(f"{origin} needs a temporary file: {error.strerror}: {CHOICE} chooses the folder") from None


class Stdin(os.PathLike[str]):
    """The copy of standard input.

    Other processes of the same machine read it through this process's /proc/fd.
    """

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
        # On another machine, or after that process has ended, the path may lead to another file.
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


# An input file as the user named it.
InputPath = pathlib.Path | Stdin | RemoteFile


def spooled_stdin() -> Stdin:
    """Return a copy of standard input."""
    return Stdin(
        _Copy(lambda out: _write_within_space(_pieces(sys.stdin.buffer), out, "standard input"), "standard input")
    )


class Unpacked:
    """A file that is read from a decompressed copy.

    Each process makes its own copy on first use; all readers of the same file in a process share it. Its name in
    messages is that of the compressed file; `name` tells its format.
    """

    def __init__(self, path: InputFile, name: str, unpack: Callable[..., None], *args: Any) -> None:
        self.path = path
        self.name = name
        self.stem: str = pathlib.PurePath(self.name).stem
        self._unpack = unpack
        self._args = args
        self._copy: _Copy | None = None

    def __reduce__(self) -> tuple:
        return Unpacked, (self.path, self.name, self._unpack, *self._args)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unpacked) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash(self.path)

    def __str__(self) -> str:
        return str(self.path)

    def open(self, mode: str = "rb", buffering: int = -1) -> Any:
        """Open the copy, with a separate offset."""
        # A copy released meanwhile stays open as long as it is referenced here.
        copy = self._made()
        return open(copy.place, mode, buffering)

    def stat(self) -> os.stat_result:
        """Return the file status of the copy."""
        copy = self._made()
        return os.fstat(copy.descriptor)

    def release(self) -> None:
        """Delete the copy; the next use makes another."""
        self._copy = None
        if isinstance(self.path, Unpacked):
            self.path.release()

    def _made(self) -> _Copy:
        copy = self._copy
        if copy is None:
            stat = self.path.stat()
            key = self._unpack, self._args, str(self.path), stat.st_dev, identity(stat)
            with _lock:
                making = _making.setdefault(key, threading.Lock())
            with making:  # of one file: several files are unpacked side by side
                copy = _copies.get(key)
                if copy is None:
                    copy = _copies[key] = _Copy(lambda out: self._unpack(self.path, out, *self._args), str(self.path))
            self._copy = copy
        return copy


# A file to be read, compressed or not.
InputFile = InputPath | Unpacked

_lock = threading.Lock()
# The decompressed copies in use in this process, and the locks under which they are made.
_copies: weakref.WeakValueDictionary[tuple, _Copy] = weakref.WeakValueDictionary()
_making: weakref.WeakValueDictionary[tuple, Any] = weakref.WeakValueDictionary()


def _unlock_in_child() -> None:
    """Replace the locks: a thread that does not exist in the child may hold one."""
    global _lock, _making
    _lock = threading.Lock()
    _making = weakref.WeakValueDictionary()


os.register_at_fork(after_in_child=_unlock_in_child)


def unpacked(path: InputFile, kind: str = "gzip", *, is_text: bool = True, name: str = "") -> Unpacked:
    """Return a compressed file to be read decompressed, by default under its name without the compression.

    Of text, a line that is too long is refused before the rest is unpacked.
    """
    return Unpacked(path, name or plain_name(path.name), _unpack, kind, is_text)


def downloaded(file: RemoteFile) -> Unpacked:
    """Return a remote file that cannot be read in ranges, to be read from a copy."""
    return Unpacked(file, plain_name(file.name), _download)


def stored(path: InputFile, members: tuple[str, ...]) -> Unpacked:
    """Return members of an .npz file to be read decompressed, in ranges."""
    return Unpacked(path, plain_name(path.name), _store, members)


def sibling(file: InputFile, name: str) -> InputFile | None:
    """Return the file of this name beside another, packed or not, None if there is none."""
    origin: Any = file
    while isinstance(origin, Unpacked):
        origin = origin.path
    for suffix in ("", *SUFFIXES):
        found = _beside(origin, name + suffix)
        if found is not None:
            kind = compression_of(found)
            return found if kind is None else unpacked(found, kind, is_text=False)
    return None


def _beside(file: InputPath, name: str) -> InputPath | None:
    if isinstance(file, Stdin):
        return None
    if isinstance(file, RemoteFile):
        return file.sibling(name)
    beside = file.with_name(name)
    return beside if beside.is_file() else None


def release(file: InputFile | None) -> None:
    """Delete the copy from which a file is read, if there is one."""
    if isinstance(file, Unpacked):
        file.release()


def _unpack(path: InputFile, out: IO[bytes], kind: str, is_text: bool) -> None:
    with decompressed(path, kind) as plain:
        pieces = bounded_lines(path, _pieces(plain)) if is_text else _pieces(plain)
        _write_within_space(pieces, out, f"{path} without its compression")


def _download(file: RemoteFile, out: IO[bytes]) -> None:
    with file.stream() as remote:
        _write_within_space(_pieces(remote), out, f"{file}")


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(PIECE_BYTES):
        yield piece


def _write_within_space(pieces: Iterable[bytes], out: IO[bytes], what: str) -> None:
    """Write a copy piece by piece while the disk has space for it.

    `what` is its name in the error. Its size is not known in advance: decompression may expand a file a thousandfold.
    """
    written = 0
    for piece in pieces:
        _require_space(len(piece), written, out, what)
        out.write(piece)
        written += len(piece)


def _require_space(num_bytes: int, written: int, out: IO[bytes], what: str) -> None:
    """Refuse to write `num_bytes` more if less than the reserve would remain free on the disk."""
    disk = os.fstatvfs(out.fileno())
    free = disk.f_bavail * disk.f_frsize
    # Some file systems report a size of 0.
    if disk.f_blocks and free - num_bytes < min(disk.f_blocks * disk.f_frsize // 20, RESERVE_BYTES):
        raise WouldNotFit(
            f"{what} does not fit into {spool_folder(what)}: {readable_bytes(written)} of it are there, and "
            f"{readable_bytes(free)} are left: {CHOICE} chooses a folder with more room"
        )


def _store(path: InputFile, out: IO[bytes], members: tuple[str, ...]) -> None:
    try:
        with (
            path.open("rb") as raw,
            zipfile.ZipFile(raw) as packed,
            zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as plain,
        ):
            taken = sum(packed.getinfo(name).file_size for name in members)
            _require_space(taken, 0, out, f"{path} without its compression")
            for name in members:
                with packed.open(name) as array, plain.open(name, "w", force_zip64=True) as copy:
                    shutil.copyfileobj(array, copy, 1 << 20)
    except DAMAGES as error:
        raise InputError(f"{path} is damaged or truncated: {error}") from None
    except KeyError:
        raise InputError(f"{path} has changed while being read") from None
