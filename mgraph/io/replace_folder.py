"""Write folders atomically: a folder exists with all of its files or not at all.

The files are written into a folder beside it, with a name from `.mgraph-` on, which is renamed when all are
there. A process that is killed while writing leaves such a folder, which may be deleted.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import shutil
import stat
from collections.abc import Iterator

from mgraph.errors import InputError, UsageError
from mgraph.io.remote import is_url
from mgraph.io.replace import temporary_name

# The files of a folder that may be replaced.
PART = re.compile(r"part-\d{5,}\.parquet")
# How often the deletion of a temporary folder is tried: a rank may be writing to it still.
DELETIONS = 5


def part_name(k: int) -> str:
    """Return the file name of part k."""
    return f"part-{k:05}.parquet"


def names_folder(path: str | os.PathLike) -> bool:
    """Return whether an output of this name is a folder: it is one, it has no suffix, or a slash at its end."""
    text = os.fspath(path)
    if is_url(text):
        return text.endswith("/") or not pathlib.PurePosixPath(text).suffix
    return text.endswith(os.sep) or not pathlib.Path(text).suffix or os.path.isdir(text)


@contextlib.contextmanager
def replacing_folder(path: str | os.PathLike, *, overwrite: bool = False) -> Iterator[pathlib.Path]:
    """Yield a new folder to write to.

    It is renamed to `path` at the end, and deleted after an error. If `path` is a symbolic link, its target is
    replaced.
    """
    target = require_folder_place(path, overwrite=overwrite)
    temporary = temporary_name(target.parent)
    try:
        temporary.mkdir()
        yield temporary
        with contextlib.suppress(FileNotFoundError):
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        _take_place(temporary, target, overwrite=overwrite)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        for _ in range(DELETIONS):
            if not temporary.exists():
                break
            _delete(temporary)


def _take_place(temporary: pathlib.Path, target: pathlib.Path, *, overwrite: bool) -> None:
    """Rename the new folder; it replaces one that has only old parts, if that is permitted."""
    try:
        # An empty folder is replaced in the same step.
        temporary.rename(target)
    except OSError:
        if not overwrite:
            raise
        require_folder_place(target, overwrite=True)
        old = temporary_name(target.parent)
        try:
            target.rename(old)
            temporary.rename(target)
        except BaseException:
            # An interrupt may come after each of the two.
            if not temporary.exists():
                _delete(old)
            elif old.exists():
                old.rename(target)
            raise
        _delete(old)


def _delete(folder: pathlib.Path) -> None:
    """Delete a folder as far as that is possible, to the end if an interrupt comes meanwhile."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def require_folder_place(path: str | os.PathLike, *, overwrite: bool = False) -> pathlib.Path:
    """Refuse a path at which no folder can be written; return it with all symbolic links resolved."""
    target = pathlib.Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_dir():
            raise UsageError(f"{path} is a file, not a folder: give another name, or an ending such as .parquet")
        if not target.parent.is_dir():
            raise UsageError(f"{path}: there is no folder {target.parent}")
        held = sorted(os.listdir(target)) if target.exists() else []
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
    if held and not overwrite:
        raise UsageError(
            f"{path} is not empty: delete it, give another folder, or overwrite it (overwrite=True, --overwrite)"
        )
    if other := [name for name in held if not PART.fullmatch(name)]:
        raise UsageError(
            f"{path} has other files than parts, such as {other[0]}, and is not overwritten: give another folder"
        )
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise UsageError(f"{path}: no folder may be made in {target.parent}")
    return target
