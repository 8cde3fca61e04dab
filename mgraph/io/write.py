"""Write tables, edges and columns of results to files, in the format of their suffix."""

from __future__ import annotations

import contextlib
import itertools
import os
import pathlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from mgraph.backends.base import Backend
from mgraph.backends.create import make_backend
from mgraph.edges import EdgeChunk, EdgeSource
from mgraph.errors import UsageError, WouldNotFit
from mgraph.formatting import readable_bytes
from mgraph.io.csr import write_csr
from mgraph.io.numbered import require_edge_facts
from mgraph.io.output_tables import Batch, Table, num_rows, table_of_columns, table_of_source
from mgraph.io.parts_folder import new_folder, new_part
from mgraph.io.remote import is_url
from mgraph.io.replace import replacing, require_place
from mgraph.io.replace_folder import names_folder, require_folder_place
from mgraph.io.upload import require_empty_url, uploaded_bytes, uploading
from mgraph.io.write_arrow import write_arrow, write_parquet
from mgraph.io.write_graph_binary import (
    write_gap,
    write_graph500,
    write_graph500_weights,
    write_graph500_wide,
)
from mgraph.io.write_graph_text import write_gr, write_metis, write_mtx
from mgraph.io.write_npz import write_npz
from mgraph.io.write_text import compressed, write_csv, write_plain, write_tsv

Write = Callable[[BinaryIO, Table], None]


def _write_csr(file: BinaryIO, table: Table) -> None:
    """Write a .csr file: the whole graph is in memory."""

    def chunks() -> Iterator[EdgeChunk]:
        for batch in table.all_batches():
            yield EdgeChunk(batch["source"], batch["target"], batch.get("weight"))

    write_csr(pathlib.Path(f"/proc/self/fd/{file.fileno()}"), _CsrFacts(table), chunks)  # type: ignore[arg-type]


class _CsrFacts:
    """The facts of a table that `write_csr` needs."""

    def __init__(self, table: Table) -> None:
        facts, _ = require_edge_facts(table, ".csr")
        self.num_vertices = facts.num_vertices
        self.directed = facts.directed
        self.weight_dtype = table.columns.get("weight")


# Suffix -> writer of any table.
TABLE_WRITERS: dict[str, Write] = {
    ".npz": write_npz,
    ".csv": write_csv,
    ".csv.gz": compressed(write_csv),
    ".tsv": write_tsv,
    ".tsv.gz": compressed(write_tsv),
    ".parquet": write_parquet,
    ".pq": write_parquet,
    ".arrow": write_arrow,
    ".feather": write_arrow,
}
# Suffix -> writer of a table of edges, as they come.
EDGE_WRITERS: dict[str, Write] = TABLE_WRITERS | {
    ".txt": write_plain,
    ".txt.gz": compressed(write_plain),
    ".el": write_plain,
    ".wel": write_plain,
    ".mtx": write_mtx,
    ".mtx.gz": compressed(write_mtx),
    ".gr": write_gr,
    ".csr": _write_csr,
}
# Suffix -> writer of the arcs of a built graph, sorted by source.
GRAPH_WRITERS: dict[str, Write] = {".sg": write_gap, ".wsg": write_gap, ".graph": write_metis, ".metis": write_metis}
# Formats that no suffix names.
NAMED_WRITERS: dict[str, Write] = {"graph500-12": write_graph500, "graph500-16": write_graph500_wide}
# Suffixes of files that hold strings.
HOLD_STRINGS = {".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".pq", ".arrow", ".feather"}
# Whether files of a suffix have weights, where that is fixed.
HAVE_WEIGHTS = {".el": False, ".sg": False, ".wel": True, ".wsg": True}
# Writers of text, which need no types before the first row.
IN_ONE_PASS = {".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz", ".el", ".wel"}
# Rows of a part of a folder that this process writes.
PART_ROWS = 1 << 24
# The least bytes of an edge in a file; in other formats parallel edges are dropped, or columns compressed.
MIN_BYTES = {".npz": 8, ".csv": 4, ".tsv": 4, ".txt": 4, ".el": 4, ".wel": 4, ".arrow": 8, ".feather": 8}


def write_table(path: str | os.PathLike, table: Table, writers: Mapping[str, Write] = TABLE_WRITERS) -> None:
    """Write a table to a file in the format of its suffix; the file is written whole or not at all."""
    write_to(path, table, _writer(path, writers))


def write_to(path: str | os.PathLike, table: Table, write: Write) -> None:
    """Write a table to a file, or a URL, by this writer, whole or not at all."""
    with _written(path, table, write):
        pass


@contextlib.contextmanager
def _written(path: str | os.PathLike, table: Table, write: Write) -> Iterator[None]:
    """Yield when a table is written; at the end it gets its name."""
    with whole_file(path) as temporary:
        _require_space(path, temporary, table)
        with open(temporary, "r+b") as file:
            write(file, table)
        yield


def whole_file(path: str | os.PathLike) -> contextlib.AbstractContextManager[pathlib.Path]:
    """Return a `with` block that yields a path to write to: a file, or a URL, is there whole or not at all."""
    return uploading(os.fspath(path)) if is_url(path) else replacing(pathlib.Path(path))


def write_folder(path: str | os.PathLike, table: Table, *, overwrite: bool = False) -> None:
    """Write a table to a folder of Parquet parts, each of about 16 million rows."""
    batches = table.all_batches()
    ends = False

    def part(_: Sequence[str]) -> Iterator[Batch]:
        nonlocal ends
        rows = 0
        while rows < PART_ROWS:
            batch = next(batches, None)
            if batch is None:
                ends = True
                return
            rows += num_rows(batch)
            yield batch

    with new_folder(path, overwrite=overwrite) as folder:
        for k in itertools.count():
            with new_part(folder, k) as file:
                write_parquet(file, Table(table.columns, None, part, table.edges))
            if ends:
                break


def write_graph500_files(path: pathlib.Path, table: Table, name: str) -> None:
    """Write edges as Graph500's reference code does, and their weights into a file beside.

    Edges are never beside weights of other edges: old edges are deleted when both files are written, and the new ones
    get their name last.
    """
    beside = path.with_name(f"{path.name}.weights")
    if "weight" not in table.columns:
        if beside.exists():
            raise UsageError(f"{beside} would be read as the weights of {path}, which has none: delete it first")
        return write_to(path, table, NAMED_WRITERS[name])
    with _written(path, table, NAMED_WRITERS[name]), _written(beside, table, write_graph500_weights):
        pathlib.Path(os.path.realpath(path)).unlink(missing_ok=True)


def require_weights_as_named(path: pathlib.Path, has_weights: bool) -> None:
    """Refuse a name that says otherwise about weights."""
    suffix = suffix_of(path)
    if HAVE_WEIGHTS.get(suffix, has_weights) != has_weights:
        other = {".el": ".wel", ".sg": ".wsg", ".wel": ".el", ".wsg": ".sg"}[suffix]
        advice = f"write {other}" + (", or leave them out (--weight none)" if has_weights else "")
        raise UsageError(f"{path}: a {suffix} file has {'no' if has_weights else 'a'} weight for each edge: {advice}")


def write_edges(path: str | os.PathLike, source: EdgeSource, *, backend: Backend | None = None) -> None:
    """Write the edges of a source to a file in the format of its suffix.

    The file is written whole or not at all. It contains the edges as the source yields them; a `.csr` file contains
    rows as mkgraph writes them: without self-loops, with the lightest of parallel edges, undirected edges in both
    directions.

    Parameters
    ----------
    path
        The file; its suffix is one of EDGE_WRITERS (.parquet, .arrow and .feather need pyarrow). If it is a symbolic
        link, its target is replaced; a replaced file keeps its mode.
    source
        A generator or the result of a reader.
    backend
        The backend on which generators run; None means the CPU.
    """
    write = _writer(path, EDGE_WRITERS)
    runs_on = backend or make_backend("cpu")
    try:
        write_to(path, table_of_source(source, runs_on), write)
    finally:
        if backend is None:
            runs_on.close()


def write_columns(path: str | os.PathLike, columns: Mapping[str, Any], *, format: str | None = None) -> None:
    """Write columns of equal length to a file.

    The file is written whole or not at all.

    Parameters
    ----------
    path
        The file.
    columns
        Name -> one-dimensional array.
    format
        A suffix without its dot, such as parquet; None means by the suffix of the file.
    """
    write = _writer(path, TABLE_WRITERS) if format is None else TABLE_WRITERS[f".{format}"]
    write_to(path, table_of_columns(columns), write)


def _require_space(path: str | os.PathLike, temporary: pathlib.Path, table: Table) -> None:
    """Refuse rows that the disk cannot hold.

    An unknown number of rows is written until the disk is full.
    """
    least = (table.num_rows or 0) * MIN_BYTES.get(suffix_of(path), 1) if table.edges else 0
    free = shutil.disk_usage(temporary).free
    if least > free:
        raise WouldNotFit(
            f"{path} would take {readable_bytes(least)} at least, and {readable_bytes(free)} are free there"
        )


def suffix_of(path: str | os.PathLike) -> str:
    """Return the suffix that names the format, in lower case: that before .gz too."""
    name = pathlib.PurePath(path)
    return "".join(name.suffixes[-2:] if name.suffix.lower() == ".gz" else name.suffixes[-1:]).lower()


def _writer(path: str | os.PathLike, writers: Mapping[str, Write]) -> Write:
    suffix = suffix_of(path)
    if suffix not in writers:
        if os.path.isdir(path):
            raise UsageError(f"{path} is a folder: name a file in it")
        fault = f"{suffix!r} is not" if suffix else "its ending must be"
        raise UsageError(f"{path}: {fault} one of {', '.join(writers)}")
    return writers[suffix]


def require_writable(
    path: str | os.PathLike, writers: Mapping[str, Write] = TABLE_WRITERS, *, overwrite: bool = False
) -> None:
    """Refuse, before any work begins, a path that these writers could not write; it may be a folder of parts."""
    if names_folder(path):
        require_folder(path, overwrite=overwrite)
        return
    _writer(path, writers)
    require_file(path, overwrite=overwrite)


def require_file(path: str | os.PathLike, *, overwrite: bool = False) -> None:
    """Refuse, before any work begins, a file that could not be written, and one that exists unless `overwrite`."""
    if is_url(path):
        exists = uploaded_bytes(os.fspath(path)) >= 0
    else:
        require_place(pathlib.Path(path))
        exists = os.path.exists(path)
    if exists and not overwrite:
        raise UsageError(f"{path} exists: give another name, or overwrite it (overwrite=True, --overwrite)")


def require_holds_strings(path: str | os.PathLike) -> None:
    """Refuse a file that holds numbers, for vertices that are strings."""
    if not names_folder(path) and suffix_of(path) not in HOLD_STRINGS:
        raise UsageError(
            f"{path}: a {suffix_of(path)} file holds numbers, and the vertices are strings: write .csv, .tsv, .parquet "
            "or .arrow instead"
        )


def require_folder(path: str | os.PathLike, *, overwrite: bool = False) -> None:
    """Refuse, before any work begins, a folder that could not be written."""
    if is_url(path):
        require_empty_url(os.fspath(path))
    else:
        require_folder_place(path, overwrite=overwrite)
