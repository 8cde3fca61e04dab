"""Identify the files that input edges are read from, so that a change of them is found."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any

from mgraph.io.input_file import Identity, InputFile, Stdin, Unpacked, identity
from mgraph.io.paths import SAVED
from mgraph.io.remote import RemoteFile, remote_files


def identities(edges: Any) -> dict[pathlib.Path | Stdin | RemoteFile, Identity | None]:
    """Return size and time of change, or version, of each file that a table reads; a generator reads none."""
    return {file: _identity(file) for file in _files(edges)}


def changed_file(known: dict[pathlib.Path | Stdin | RemoteFile, Identity | None]) -> object | None:
    """Return the first file that is not what it was, or None."""
    return next((file for file, before in known.items() if _identity(file, now=True) != before), None)


def _files(part: object) -> Iterator[Any]:
    """Yield the files in the fields of a table, and of the tables and arrays in it."""
    if isinstance(part, InputFile):
        while isinstance(part, Unpacked):
            part = part.path
        # A saved graph is written whole, its manifest last; a load compares its other files with the checksums there.
        yield part / SAVED if isinstance(part, pathlib.Path) and part.is_dir() else part
    elif isinstance(part, tuple):
        for one in part:
            yield from _files(one)
    elif dataclasses.is_dataclass(part):
        for field in dataclasses.fields(part):
            yield from _files(getattr(part, field.name))


def _identity(file: Any, *, now: bool = False) -> Identity | None:
    """Return the identity of a file, None if it is not there."""
    try:
        if isinstance(file, RemoteFile) and now:
            (file,) = remote_files(file.url)
        return identity(file.stat())
    except (OSError, ValueError):
        return None
