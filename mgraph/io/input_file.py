"""An input file, as all readers of this folder take it: a path, a file at a URL, or an unnamed copy of one.

Standard input and compressed files cannot be read in ranges, and are read from copies. `spool.py` makes them.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import socket
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from mgraph.errors import InputError, WouldNotFit
from mgraph.formatting import readable_bytes
from mgraph.io.remote import RemoteFile
from mgraph.io.temporary import CHOICE, FULL, spool_folder, unnamed_file

# The name of the copy of standard input.
STDIN = "stdin"

Identity = tuple[int, int, int]


def identity(stat: os.stat_result) -> Identity:
    """Return inode, size and time of change, which identify one state of a file."""
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


class UnnamedCopy:
    """An unnamed temporary file, open as long as this object is referenced."""

    def __init__(self, write: Callable[[IO[bytes]], None], origin: str) -> None:
        file = unnamed_file(self, origin)
        try:
            write(file)
            file.flush()
        except BaseException as error:
            with suppress(OSError):  # closing flushes, which fails on a full disk
                file.close()
            if not isinstance(error, OSError) or error.errno not in FULL:
                raise
            folder = spool_folder(origin)
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


class Stdin(os.PathLike[str]):
    """The copy of standard input.

    Other processes of the same machine read it through this process's /proc/fd.
    """

    name = stem = STDIN

    def __init__(self, copy: UnnamedCopy) -> None:
        self._copy: UnnamedCopy | None = copy
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
        self._copy: UnnamedCopy | None = None

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

    def _made(self) -> UnnamedCopy:
        copy = self._copy
        if copy is None:
            stat = self.path.stat()
            key = self._unpack, self._args, str(self.path), stat.st_dev, identity(stat)
            with _lock:
                making = _making.setdefault(key, threading.Lock())
            with making:  # of one file: several files are unpacked side by side
                copy = _copies.get(key)
                if copy is None:
                    copy = UnnamedCopy(lambda out: self._unpack(self.path, out, *self._args), str(self.path))
                    _copies[key] = copy
            self._copy = copy
        return copy


# A file to be read, compressed or not.
InputFile = InputPath | Unpacked

_lock = threading.Lock()
# The decompressed copies in use in this process, and the locks under which they are made.
_copies: weakref.WeakValueDictionary[tuple, UnnamedCopy] = weakref.WeakValueDictionary()
_making: weakref.WeakValueDictionary[tuple, Any] = weakref.WeakValueDictionary()


def _unlock_in_child() -> None:
    """Replace the locks: a thread that does not exist in the child may hold one."""
    global _lock, _making
    _lock = threading.Lock()
    _making = weakref.WeakValueDictionary()


os.register_at_fork(after_in_child=_unlock_in_child)


def release(file: InputFile | None) -> None:
    """Delete the copy from which a file is read, if there is one."""
    if isinstance(file, Unpacked):
        file.release()
