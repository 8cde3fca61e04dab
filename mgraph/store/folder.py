"""Put the folder of a store in its place: whole or not at all.

Files are written to a folder beside the final one, with a name from `.mgraph-` on; the manifest is written last,
and the folder is then renamed. All files are on the disk before that. A save that is cut off leaves at most the
temporary folder, without a manifest, which may be deleted.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import socket

from mgraph.errors import InputError, UsageError
from mgraph.store.manifest import MANIFEST, is_store

# Of the key of a graph, at the end of the names of temporary folders.
KEY_DIGITS = 8


def require_target(path: pathlib.Path, *, overwrite: bool) -> None:
    """Refuse a path where no store can be put, or where there is anything but a store that may be replaced."""
    target = pathlib.Path(os.path.realpath(path))
    try:
        if not target.parent.is_dir():
            raise UsageError(f"{path}: there is no folder {target.parent}")
        if not os.access(target.parent, os.W_OK | os.X_OK):
            raise UsageError(f"{path}: no folder may be made in {target.parent}")
        if not os.path.lexists(target):
            return
        if not target.is_dir():
            raise UsageError(f"{path} is a file, and a graph is saved as a folder: give another name")
        if is_store(target):
            if not overwrite:
                raise UsageError(f"{path} is a saved graph: overwrite=True (--overwrite) replaces it")
        elif any(target.iterdir()):
            raise UsageError(f"{path} is a folder with other files, which are not replaced: give another name")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error


def temporary_folder(path: pathlib.Path, token: str, graph: str) -> pathlib.Path:
    """Return the folder beside `path` where a save writes its files.

    A save that is repeated after a rebuild has the same token, and the graph another key: ranks of the first attempt
    may write still.
    """
    return pathlib.Path(os.path.realpath(path)).parent / f".mgraph-{token}{graph[-KEY_DIGITS:]}"


def temporary_folders(path: pathlib.Path, token: str) -> list[pathlib.Path]:
    """Return the folders of all attempts of a save."""
    return list(temporary_folder(path, token, "").parent.glob(f".mgraph-{token}{'?' * KEY_DIGITS}"))


def make_temporary(folder: pathlib.Path) -> None:
    """Make the folder where a save writes its files."""
    try:
        folder.mkdir()
    except OSError as error:
        raise InputError(f"{folder} cannot be made: {error.strerror or error}") from error


def require_shared(folder: pathlib.Path, path: pathlib.Path, rank: int) -> None:
    """Refuse a folder that the first rank has made and this one does not see."""
    if not folder.is_dir():
        raise InputError(
            f"rank {rank} on {socket.gethostname()} does not see {folder.parent}, where rank 0 writes: "
            f"save {path.name} to a folder that all ranks share"
        )


def put_in_place(folder: pathlib.Path, path: pathlib.Path, manifest: bytes, *, overwrite: bool) -> None:
    """Write the manifest, and rename the folder to `path`; an old store there is replaced."""
    target = pathlib.Path(os.path.realpath(path))
    require_target(path, overwrite=overwrite)
    aside = folder.with_name(f"{folder.name}-old")
    try:
        # By another name, so that a folder with a manifest is whole, wherever the process is killed.
        _write_synced(folder / f"{MANIFEST}-part", manifest)
        os.rename(folder / f"{MANIFEST}-part", folder / MANIFEST)
        _sync(folder)
        # An empty folder is replaced by the rename itself.
        replaces = is_store(target)
        if replaces:
            os.rename(target, aside)
        try:
            os.rename(folder, target)
        except BaseException:
            if replaces:
                os.rename(aside, target)
            raise
        _sync(target.parent)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error
    if replaces:
        discard(aside)


def discard(folder: pathlib.Path) -> None:
    """Delete a store: the manifest first, without which the rest does not load."""
    with contextlib.suppress(OSError):
        (folder / MANIFEST).unlink()
    shutil.rmtree(folder, ignore_errors=True)


def _write_synced(file: pathlib.Path, data: bytes) -> None:
    with open(file, "xb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())


def _sync(folder: pathlib.Path) -> None:
    """Wait until the names in a folder are on the disk; some file systems cannot."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
