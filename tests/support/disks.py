"""File systems of a given size, mounted for one test."""

from __future__ import annotations

import contextlib
import pathlib
import shutil
import subprocess
from collections.abc import Iterator

import pytest


@contextlib.contextmanager
def mounted_disk(folder: pathlib.Path, size: str) -> Iterator[pathlib.Path]:
    """Mount a file system of this size (as in `1m`) on a new folder; skip the test where that is not allowed."""
    if shutil.which("mount") is None:
        pytest.skip("no file system can be mounted here: there is no mount command")
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    mount = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if mount.returncode:
        pytest.skip(f"no file system can be mounted here: {mount.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
