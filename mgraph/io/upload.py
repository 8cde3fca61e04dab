"""Write files and folders of parts to URLs, through fsspec.

A file is made in an unnamed temporary file of the folder TMPDIR and uploaded when it is whole: object stores show it
when all of it is there. They have no folder that could be renamed: parts are uploaded as they are made, and
deleted after an error; a process that is killed meanwhile leaves those that it had uploaded.
"""

from __future__ import annotations

import contextlib
import pathlib
import tempfile
from collections.abc import Iterator

from mgraph.errors import InputError, MgraphError, UsageError
from mgraph.io.remote import file_system
from mgraph.io.temporary import spool_folder


@contextlib.contextmanager
def uploading(url: str) -> Iterator[pathlib.Path]:
    """Yield a path to write to; the file is uploaded at the end, and nothing after an error."""
    system, path = file_system(url)
    with _explained(url), tempfile.TemporaryFile(dir=spool_folder(url)) as local:
        name = f"/proc/self/fd/{local.fileno()}"
        yield pathlib.Path(name)
        system.put_file(name, path)


@contextlib.contextmanager
def uploading_folder(url: str) -> Iterator[str]:
    """Yield the URL of an empty folder to upload parts to; they are deleted after an error."""
    require_empty_url(url)
    system, path = file_system(url)
    try:
        yield url.rstrip("/")
    except BaseException:
        with contextlib.suppress(Exception):
            for name in system.find(path):
                system.rm_file(name)
        raise


def require_empty_url(url: str) -> None:
    """Refuse a folder at a URL that has files, or is on a file system that cannot be used."""
    system, path = file_system(url)
    with _explained(url):
        held = system.find(path)
    if held:
        raise UsageError(f"{url} has files, such as {held[0]}: delete them, or give another folder")


def uploaded_bytes(url: str) -> int:
    """Return the size of a file at a URL, -1 if there is none."""
    system, path = file_system(url)
    with _explained(url):
        return int(system.info(path)["size"]) if system.exists(path) else -1


@contextlib.contextmanager
def _explained(url: str) -> Iterator[None]:
    """Turn any failure of a remote file system into an InputError: each has errors of its own."""
    try:
        yield
    except MgraphError:
        raise
    except Exception as error:
        raise InputError(f"{url} cannot be written: {error or type(error).__name__}") from error
