"""Read a file of edges: choose the reader by the file's suffix and its first bytes."""

from __future__ import annotations

import inspect
import os
import pathlib
from collections.abc import Callable
from typing import Any

from mgraph.edges import EdgeSource, EdgeTable
from mgraph.errors import InputError, UnknownFormat, UsageError
from mgraph.io import spool
from mgraph.io.checks import as_flag, as_integer
from mgraph.io.columns import Columns
from mgraph.io.csr import MAGIC, read_csr
from mgraph.io.mtx import BANNER, read_mtx
from mgraph.io.npz import read_npz
from mgraph.io.parquet import read_parquet
from mgraph.io.text import is_packed, read_text

READERS: dict[str, Callable[..., EdgeSource | EdgeTable]] = {
    "text": read_text,
    "npz": read_npz,
    "mtx": read_mtx,
    "csr": read_csr,
    "parquet": read_parquet,
}
SUFFIXES = {
    ".txt": "text",
    ".el": "text",
    ".wel": "text",
    ".csv": "text",
    ".tsv": "text",
    ".npz": "npz",
    ".mtx": "mtx",
    ".csr": "csr",
    ".parquet": "parquet",
}
OPTIONS = ("source", "target", "weight", "directed", "num_vertices", "labels", "base", "sep")
LABELS = ("auto", "string")
FIRST_BYTES = {MAGIC: "csr", b"PK\x03\x04": "npz", BANNER.encode(): "mtx", b"PAR1": "parquet"}


def read_source(path: str | os.PathLike, *, format: str | None = None, **options: Any) -> EdgeSource | EdgeTable:
    """Return the edges of a file, checked as far as that needs no pass over it.

    Parameters
    ----------
    path
        A file, or "-" for standard input, which is copied first.
    format
        One of text, npz, mtx, csr, parquet (which needs pyarrow); None means by the first bytes, else by
        the suffix.
    source, target
        The columns of the ends, by name or by number from 0; None means a known pair of names such as source and
        target, or the first two of columns without names.
    weight
        The column of the weights (by name, or by number from 0) or the array; None means the usual one if
        there is one, False means none. Required for a table with columns besides the ends of its edges of
        which none is called weight.
    directed
        Whether (u, v) and (v, u) are two arcs; None means as the file declares, else undirected.
    num_vertices
        None means as the file declares, else one more than the largest id.
    labels
        "auto" (the default) maps strings, and integers if any is negative or the largest is more than twice the number
        of distinct ids; "string" reads ids of a text as strings; True maps all, False refuses what is not 0..n-1.
    base
        The id of the first vertex in the file, 0 by default.
    sep
        The character between fields of a text; None means a comma if the first line has one, else blanks.
    """
    if format is not None and format not in READERS:
        raise UsageError(f"format {format!r} is not one of {', '.join(READERS)}")
    given = _checked(options)
    try:
        if os.fspath(path) == "-":
            return _read(spool.spooled_stdin(), format, given)
        path = pathlib.Path(path).expanduser().absolute()
        if not path.is_file():
            hint = ", nor a spec such as rmat:20" if ":" in path.name else ""
            raise InputError(f"{path} is not a file" if path.exists() else f"{path}: no such file{hint}")
        return _read(path, format, given)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that the user gives, without those that are None; refuse unknown ones and wrong values."""
    if unknown := [name for name in options if name not in OPTIONS]:
        raise UsageError(f"{unknown[0]!r} is no option of reading a file: {', '.join(OPTIONS)} are")
    given = {name: value for name, value in options.items() if value is not None}
    for name in ("source", "target", "weight"):
        if name in given and not isinstance(given[name], str) and not (name == "weight" and given[name] is False):
            given[name] = given[name] if given[name] is True and name == "weight" else as_integer(given[name], name)
    if "directed" in given:
        given["directed"] = as_flag(given["directed"], "directed")
    if "base" in given and as_integer(given["base"], "base") < 0:
        raise UsageError(f"base {given['base']} is negative: it is the id of the first vertex")
    if "labels" in given and not (isinstance(given["labels"], bool) or given["labels"] in LABELS):
        raise UsageError(f"labels {given['labels']!r} is not one of {', '.join(map(repr, LABELS))}, True, False")
    return given


def reader_options(read: Callable[..., Any], given: dict[str, Any], path: object) -> dict[str, Any]:
    """Return the options for a reader, its columns as one; refuse those that its format does not have."""
    accepted = inspect.signature(read).parameters
    options = dict(given)
    if "columns" in accepted:
        options["columns"] = Columns(*(options.pop(name, None) for name in ("source", "target", "weight")))
    if unknown := [name for name in options if name not in accepted]:
        raise UsageError(f"{path} is of a format in which {unknown[0]}= cannot be chosen")
    return options


def _read(path: spool.InputPath, format: str | None, given: dict[str, Any]) -> EdgeSource | EdgeTable:
    """Choose the reader and call it: first bytes take precedence over the suffix.

    Standard input is text.
    """
    by_name = "text" if isinstance(path, spool.Stdin) else SUFFIXES.get(_suffix(path))
    found = format or _by_first_bytes(path) or by_name
    if found is None:
        raise UnknownFormat(f"{path} is of no format known by name ({', '.join(SUFFIXES)}) or by its first bytes")
    if found not in ("text", "mtx") and is_packed(path):
        raise UnknownFormat(f"{path} is packed by gzip: unpack it first, only text and .mtx are read packed")
    return READERS[found](path, **reader_options(READERS[found], given, path))


def _suffix(path: spool.InputPath) -> str:
    """Return a file's suffix in lower case, ignoring .gz."""
    return pathlib.PurePath(path.name.removesuffix(".gz")).suffix.lower()


def _by_first_bytes(path: spool.InputPath) -> str | None:
    """Return the format that begins with the file's first bytes, or None."""
    with open(path, "rb") as file:
        first = file.read(max(map(len, FIRST_BYTES)))
    return next((format for magic, format in FIRST_BYTES.items() if first.startswith(magic)), None)
