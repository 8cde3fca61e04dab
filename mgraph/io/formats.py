"""Read a file of edges: choose the reader by the file's suffix and its first bytes."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from typing import Any

from mgraph.edges import EdgeSource, EdgeTable
from mgraph.errors import InputError, UnknownFormat, UsageError
from mgraph.io import spool
from mgraph.io.checks import as_flag, as_integer
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
FIRST_BYTES = {MAGIC: "csr", b"PK\x03\x04": "npz", BANNER.encode(): "mtx", b"PAR1": "parquet"}


def read_source(
    path: str | os.PathLike,
    *,
    weight: str | int | bool | None = None,
    directed: bool | None = None,
    num_vertices: int | None = None,
    format: str | None = None,
) -> EdgeSource | EdgeTable:
    """Return the edges of a file, checked as far as that needs no pass over it.

    Parameters
    ----------
    path
        A file, or "-" for standard input, which is copied first.
    weight
        The column of the weights (by name, or by number from 0) or the array; None means the usual one if
        there is one, False means none. Required for a table with columns besides the ends of its edges of
        which none is called weight.
    directed
        Whether (u, v) and (v, u) are two arcs; None means as the file declares, else undirected.
    num_vertices
        None means as the file declares, else one more than the largest id.
    format
        One of text, npz, mtx, csr, parquet (which needs pyarrow); None means by the first bytes, else by
        the suffix.
    """
    if format is not None and format not in READERS:
        raise UsageError(f"format {format!r} is not one of {', '.join(READERS)}")
    directed = None if directed is None else as_flag(directed, "directed")
    if weight is not None and not isinstance(weight, (str, bool)):
        weight = as_integer(weight, "weight")
    options = {"weight": weight, "directed": directed, "num_vertices": num_vertices}
    try:
        if os.fspath(path) == "-":
            return _read(spool.spooled_stdin(), format, options)
        path = pathlib.Path(path).expanduser().absolute()
        if not path.is_file():
            hint = ", nor a spec such as rmat:20" if ":" in path.name else ""
            raise InputError(f"{path} is not a file" if path.exists() else f"{path}: no such file{hint}")
        return _read(path, format, options)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error


def _read(path: spool.InputPath, format: str | None, options: dict[str, Any]) -> EdgeSource | EdgeTable:
    """Choose the reader and call it: first bytes take precedence over the suffix.

    Standard input is text.
    """
    by_name = "text" if isinstance(path, spool.Stdin) else SUFFIXES.get(_suffix(path))
    found = format or _by_first_bytes(path) or by_name
    if found is None:
        raise UnknownFormat(f"{path} is of no format known by name ({', '.join(SUFFIXES)}) or by its first bytes")
    if found not in ("text", "mtx") and is_packed(path):
        raise UnknownFormat(f"{path} is packed by gzip: unpack it first, only text and .mtx are read packed")
    return READERS[found](path, **options)


def _suffix(path: spool.InputPath) -> str:
    """Return a file's suffix in lower case, ignoring .gz."""
    return pathlib.PurePath(path.name.removesuffix(".gz")).suffix.lower()


def _by_first_bytes(path: spool.InputPath) -> str | None:
    """Return the format that begins with the file's first bytes, or None."""
    with open(path, "rb") as file:
        first = file.read(max(map(len, FIRST_BYTES)))
    return next((format for magic, format in FIRST_BYTES.items() if first.startswith(magic)), None)
