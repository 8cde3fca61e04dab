"""Unnamed temporary files: their folder, and the space that they leave free on its disk.

An unnamed file is deleted with its last descriptor, however the process ends.
"""

from __future__ import annotations

import errno
import os
import tempfile
import weakref
from typing import IO

from mgraph.config import settings
from mgraph.errors import InputError, WouldNotFit
from mgraph.formatting import readable_bytes
from mgraph.signals import run_uninterrupted

# Space that a file leaves free on its disk: this, or a twentieth of a smaller disk.
RESERVE_BYTES = 64 << 20
# What chooses the folder of temporary files.
CHOICE = "TMPDIR, or the setting mgraph.spool-folder,"
# Errors of a full disk, a quota, and a limit on the size of a file.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def spool_folder(origin: str) -> str:
    """Return the folder of temporary files; the origin of their contents is what an error names."""
    try:
        return settings.folder("spool-folder") or tempfile.gettempdir()
    except OSError as error:
        raise InputError(f"{origin} needs a temporary file: {error.strerror}: {CHOICE} chooses the folder") from None


def unnamed_file(owner: object, origin: str) -> IO[bytes]:
    """Open an unnamed temporary file, which is closed with its owner."""
    folder = spool_folder(origin)
    file = run_uninterrupted(lambda: tempfile.TemporaryFile(dir=folder), undo=lambda made: made.close())  # noqa: SIM115
    weakref.finalize(owner, file.close)
    return file


def require_space(num_bytes: int, written: int, out: IO[bytes], what: str) -> None:
    """Refuse to write `num_bytes` more if less than the reserve would remain free on the disk."""
    disk = os.fstatvfs(out.fileno())
    free = disk.f_bavail * disk.f_frsize
    # Some file systems report a size of 0.
    if disk.f_blocks and free - num_bytes < min(disk.f_blocks * disk.f_frsize // 20, RESERVE_BYTES):
        raise WouldNotFit(
            f"{what} does not fit into {spool_folder(what)}: {readable_bytes(written)} of it are there, and "
            f"{readable_bytes(free)} are left: {CHOICE} chooses a folder with more room"
        )
