"""File systems of a given size, mounted for one test."""

from __future__ import annotations

import contextlib
import pathlib
import shutil
import subprocess
from collections.abc import Iterator

from requirements import skip_for_want_of


@contextlib.contextmanager
def mounted_disk(folder: pathlib.Path, size: str) -> Iterator[pathlib.Path]:
    """Mount a file system of this size (as in `1m`) on a new folder; skip the test where that is not allowed."""
    if shutil.which("mount") is None:
        skip_for_want_of("mount", "there is no mount command")
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    mount = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if mount.returncode:
        skip_for_want_of("mount", mount.stderr.strip())
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
