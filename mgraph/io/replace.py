"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import pathlib
import secrets
from collections.abc import Iterator

from mgraph.errors import InputError, UsageError


@contextlib.contextmanager
def replacing(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Give a temporary name beside `path`; the file takes its place at the end, and goes after an error."""
    require_place(path)
    # Short, so that whatever name the file may have, this one may be had too.
    temporary = path.with_name(f".mgraph-{secrets.token_hex(8)}")
    try:
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def require_place(path: pathlib.Path) -> None:
    """Refuse a path at which no file can be made."""
    try:
        if path.is_dir():
            raise UsageError(f"{path} is a folder, not a file to write")
        if not path.parent.is_dir():
            raise UsageError(f"{path}: there is no folder {path.parent}")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"{path}: no file may be written in {path.parent}")
