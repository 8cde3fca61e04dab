"""Write files atomically: a file exists whole or not at all.

A file is written unnamed (O_TMPFILE) and linked to its name when it is whole: a process that is killed while
writing leaves nothing. On file systems without unnamed files (NFS, some overlays), and for an instant when an
old file is replaced, it has a temporary name that begins with `.mgraph-`; such leftovers may be deleted.
There is no fsync: after a loss of power a new file may be incomplete.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import pathlib
import secrets
import stat
from collections.abc import Iterator

from mgraph.errors import InputError, UsageError
from mgraph.signals import run_uninterrupted

# Errors of a file system without unnamed files.
_NO_UNNAMED = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL, errno.ENOSYS)


@contextlib.contextmanager
def replacing(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yield a path to write to.

    The file replaces `path` at the end, and is deleted after an error. If `path` is a symbolic link, its target is
    replaced. A replaced file keeps its mode, and its owner and group if permitted; other hard links to it keep the old
    contents.
    """
    target = require_place(path)
    named: pathlib.Path | None = None
    try:
        file, named = run_uninterrupted(lambda: _opened(target.parent), undo=_discard)
        try:
            descriptor = file.fileno()
            mode = _copy_owner(target, descriptor)
            # Writers open the file again by its path in /proc: readable and writable whatever the umask.
            os.fchmod(descriptor, 0o600)
            yield pathlib.Path(f"/proc/self/fd/{descriptor}")
            os.fchmod(descriptor, mode)
            if named is None and not _link(descriptor, target):
                # Set before the file has the name, so that an interrupt right after the system call leaves no file.
                named = temporary_name(target.parent)
                _link(descriptor, named)
        finally:
            file.close()
        if named is not None:
            os.replace(named, target)
            named = None
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        if named is not None:
            named.unlink(missing_ok=True)


def _opened(folder: pathlib.Path) -> tuple[io.FileIO, pathlib.Path | None]:
    """Open a new file in a folder.

    Return it, and its name if it could not be unnamed.
    """
    try:
        return io.FileIO(os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666), "r+"), None
    except OSError as error:
        if error.errno not in _NO_UNNAMED:
            raise
    named = temporary_name(folder)
    return io.FileIO(os.open(named, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o666), "r+"), named


def _discard(opened: tuple[io.FileIO, pathlib.Path | None]) -> None:
    """Undo `_opened`."""
    file, named = opened
    file.close()
    if named is not None:
        named.unlink(missing_ok=True)


def temporary_name(folder: pathlib.Path) -> pathlib.Path:
    """Return a new name for something unfinished in a folder."""
    return folder / f".mgraph-{secrets.token_hex(8)}"


def _copy_owner(target: pathlib.Path, descriptor: int) -> int:
    """Copy owner and group of the old file to the new one, if permitted.

    Return the mode for the new file.
    """
    try:
        old = os.stat(target)
    except FileNotFoundError:
        return stat.S_IMODE(os.fstat(descriptor).st_mode)
    for owner in ((old.st_uid, old.st_gid), (-1, old.st_gid)):
        with contextlib.suppress(OSError):
            os.fchown(descriptor, *owner)
            break
    return stat.S_IMODE(old.st_mode)


def _link(descriptor: int, name: pathlib.Path) -> bool:
    """Link an unnamed file to a name; return False if the name exists."""
    try:
        # src_dir_fd is ignored for an absolute path, but without it Python does not follow the link in /proc.
        os.link(f"/proc/self/fd/{descriptor}", name, src_dir_fd=descriptor, follow_symlinks=True)
    except FileExistsError:
        return False
    return True


def require_place(path: pathlib.Path) -> pathlib.Path:
    """Refuse a path at which no file can be written.

    Return it with all symbolic links resolved.
    """
    try:
        if path.is_dir():
            raise UsageError(f"{path} is a folder, not a file to write")
        target = pathlib.Path(os.path.realpath(path))
        for folder in (path.parent, target.parent):
            if not folder.is_dir():
                raise UsageError(f"{path}: there is no folder {folder}")
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISREG(os.stat(path).st_mode):
                raise UsageError(f"{path} is a device or a pipe, not a file to write")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
    if not os.access(target.parent, os.W_OK | os.X_OK):
        folder = path.parent if path.parent.samefile(target.parent) else target.parent
        raise UsageError(f"{path}: no file may be written in {folder}")
    return target
