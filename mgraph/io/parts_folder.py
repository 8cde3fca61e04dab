"""Folders of Parquet parts, local or at a URL, which ranks write side by side."""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Iterator
from typing import BinaryIO

from mgraph.io.remote import is_url
from mgraph.io.replace_folder import part_name, replacing_folder
from mgraph.io.upload import uploaded_bytes, uploading, uploading_folder


@contextlib.contextmanager
def new_folder(path: str | os.PathLike, *, overwrite: bool = False) -> Iterator[str]:
    """Yield the folder in which parts are to be made; at the end they are at `path`, after an error nowhere."""
    if is_url(path):
        with uploading_folder(os.fspath(path)) as url:
            yield url
    else:
        with replacing_folder(path, overwrite=overwrite) as temporary:
            yield str(temporary)


@contextlib.contextmanager
def new_part(folder: str, k: int) -> Iterator[BinaryIO]:
    """Yield the file of part k to write to; one at a URL is uploaded at the end."""
    if is_url(folder):
        with uploading(part_path(folder, k)) as local, open(local, "r+b") as file:
            yield file
            file.flush()
    else:
        with open(part_path(folder, k), "xb") as file:
            yield file


def part_path(folder: str, k: int) -> str:
    """Return the path of part k."""
    return f"{folder}/{part_name(k)}"


def num_bytes_of(path: str) -> int:
    """Return the size of a part, -1 if there is none."""
    if is_url(path):
        return uploaded_bytes(path)
    part = pathlib.Path(path)
    return part.stat().st_size if part.exists() else -1
