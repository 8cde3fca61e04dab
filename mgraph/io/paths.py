"""Find the files that a path means: a file, a list, a folder, a glob, a URL, or "-" for standard input."""

from __future__ import annotations

import glob
import os
import pathlib
import re
from collections.abc import Iterable
from typing import Any

from mgraph.errors import InputError, UsageError
from mgraph.io.compression import plain_name
from mgraph.io.input_file import InputFile
from mgraph.io.remote import can_read_ranges, is_url, remote_files
from mgraph.io.spool import downloaded, spooled_stdin

# Files that belong to another one of the same stem, or name, beside them.
COMPANIONS = {".v": ".e", ".properties": ".e"}
APPENDED = ".weights"
# The file by which a folder is known as a saved graph.
SAVED = "mgraph.json"


def input_files(path: Any) -> list[InputFile]:
    """Return the files that a path, or a list of them, means; of a folder or glob sorted by name."""
    if isinstance(path, (str, os.PathLike)):
        return _files(path)
    if not isinstance(path, Iterable) or isinstance(path, (bytes, dict)):
        raise UsageError(f"path {path!r} is neither a file name nor a list of them")
    parts = list(path)
    if not parts:
        raise UsageError("the list of files is empty")
    if wrong := [part for part in parts if not isinstance(part, (str, os.PathLike))]:
        raise UsageError(f"{wrong[0]!r} in the list of files is no file name")
    if any(os.fspath(part) == "-" for part in parts):
        raise UsageError("standard input is read by itself, not in a list of files")
    return [file for part in parts for file in _files(part)]


def _files(path: str | os.PathLike[str]) -> list[InputFile]:
    text = os.fspath(path)
    if text == "-":
        return [spooled_stdin()]
    if is_url(text):
        return [file if can_read_ranges(file) else downloaded(file) for file in remote_files(text)]
    local = pathlib.Path(text).expanduser().absolute()
    if local.is_file():
        return [local]
    if local.is_dir():
        return _in_folder(local)
    if local.exists():
        raise InputError(f"{local} is not a file")
    if re.search(r"[*?\[]", text):
        return _matching(local)
    # A spec without its scale has no colon.
    hint = ", nor a spec such as rmat:20" if ":" in local.name or local.name.isalnum() else ""
    raise InputError(f"{local}: no such file{hint}")


def name_of(path: Any, files: list[InputFile]) -> str | None:
    """Return the name of the folder that a path means, or in which its pattern finds files; None for files."""
    if not isinstance(path, (str, os.PathLike)):
        return None
    text = os.fspath(path)
    local = pathlib.Path(text).expanduser().absolute()
    if text in ("-", str(files[0])) or local.is_file():
        return None
    whole = pathlib.PurePath(text.rstrip("/")) if is_url(text) else local
    return whole.parent.name if re.search(r"[*?\[]", whole.name) else whole.name


def _in_folder(folder: pathlib.Path) -> list[InputFile]:
    """Return the files of a folder as Spark and Dask write one: hidden ones and marks such as _SUCCESS are skipped."""
    if (folder / SAVED).is_file():
        raise InputError(f"{folder} is a saved graph: mg.load({str(folder)!r}) reads it")
    entries = [entry for entry in sorted(folder.iterdir()) if not entry.name.startswith((".", "_"))]
    if folders := [entry for entry in entries if entry.is_dir()]:
        raise InputError(f"{folders[0]} is a folder in a folder of files: name files by a pattern, as {folder}/*/*")
    if not entries:
        raise InputError(f"{folder} is a folder without files")
    return _without_companions(entries)


def _matching(pattern: pathlib.Path) -> list[InputFile]:
    found = [pathlib.Path(name) for name in sorted(glob.glob(str(pattern), recursive=True))]
    files = [path for path in found if path.is_file() and not path.name.startswith("_")]
    if not files:
        raise InputError(f"{pattern}: no file has such a name")
    return _without_companions(files)


def _without_companions(paths: list[pathlib.Path]) -> list[InputFile]:
    """Leave out files that the reader of another one reads, and empty ones beside others."""
    names = {plain_name(str(path)) for path in paths}
    kept = []
    for path in paths:
        plain = pathlib.PurePath(plain_name(str(path)))
        owner = COMPANIONS.get(plain.suffix)
        if (owner and str(plain.with_suffix(owner)) in names) or (
            plain.suffix == APPENDED and str(plain.with_suffix("")) in names
        ):
            continue
        kept.append(path)
    return [*(path for path in kept if path.stat().st_size)] or [*kept[:1]]
