"""Write edges, and columns of results, to files: .npz, .csv, .csr and .parquet."""

from __future__ import annotations

import os
import pathlib
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.create import make_backend
from mgraph.edges import EdgeChunk, EdgeSource
from mgraph.errors import InputError, UsageError, WouldNotFit
from mgraph.formatting import readable_bytes
from mgraph.io.csr import write_csr
from mgraph.io.parquet import write_parquet_columns, write_parquet_edges
from mgraph.io.replace import replacing, require_place
from mgraph.types import vertex_dtype

# Edges in memory at a time.
CHUNK_EDGES = 1 << 22
# Rows formatted at a time.
CSV_ROWS = 1 << 14
# The least bytes of an edge in a file; in other formats parallel edges are dropped, or columns compressed.
MIN_BYTES = {".npz": 8, ".csv": 4}

Chunks = Callable[[], Iterator[EdgeChunk]]


def write_edges(path: str | os.PathLike, source: EdgeSource, *, backend: Backend | None = None) -> None:
    """Write the edges of a source to a file in the format of its suffix.

    The file is written whole or not at all. `.npz`, `.csv` and `.parquet` contain the edges as the source yields them.
    `.csr` contains rows as mkgraph writes them: without loops, with the lightest of parallel edges, undirected edges in
    both directions.

    Parameters
    ----------
    path
        The file; its suffix is one of .npz .csv .csr .parquet (which needs pyarrow). If it is a symbolic link,
        its target is replaced; a replaced file keeps its mode.
    source
        A generator or the result of a reader.
    backend
        The backend on which generators run; None means the CPU.
    """
    path = pathlib.Path(path)
    write = _writer(path, EDGE_WRITERS)
    runs_on = backend or make_backend("cpu")
    estimate = 4 * source.num_vertices if source.num_input_edges is None else source.num_input_edges
    num_chunks = max(1, -(-estimate // CHUNK_EDGES))

    def chunks() -> Iterator[EdgeChunk]:
        for k in range(num_chunks):
            chunk = source.chunk(k, num_chunks, runs_on)
            weights = None if chunk.weights is None else runs_on.to_host(chunk.weights)
            yield EdgeChunk(runs_on.to_host(chunk.sources), runs_on.to_host(chunk.targets), weights)

    try:
        with replacing(path) as temporary:
            _require_space(path, temporary, source)
            write(temporary, source, chunks)
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
        npz, csv or parquet (which needs pyarrow); None means by the suffix.
    """
    path = pathlib.Path(path)
    write = _writer(path, COLUMN_WRITERS) if format is None else COLUMN_WRITERS[f".{format}"]
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    shapes = {name: array.shape for name, array in arrays.items()}
    if any(len(shape) != 1 for shape in shapes.values()) or len(set(shapes.values())) > 1:
        raise InputError(f"columns must be one-dimensional and equally long, not {shapes}")
    with replacing(path) as temporary:
        write(temporary, arrays)


def _require_space(path: pathlib.Path, temporary: pathlib.Path, source: EdgeSource) -> None:
    """Refuse edges that the disk cannot hold.

    An unknown number of edges is written until the disk is full.
    """
    least = (source.num_input_edges or 0) * MIN_BYTES.get(path.suffix.lower(), 1)
    free = shutil.disk_usage(temporary).free
    if least > free:
        raise WouldNotFit(
            f"{path} would take {readable_bytes(least)} at least, and {readable_bytes(free)} are free there"
        )


def _writer(path: pathlib.Path, writers: dict[str, Callable[..., None]]) -> Callable[..., None]:
    if path.suffix.lower() not in writers:
        if path.is_dir():
            raise UsageError(f"{path} is a folder: name a file in it")
        fault = f"{path.suffix!r} is not" if path.suffix else "its ending must be"
        raise UsageError(f"{path}: {fault} one of {', '.join(writers)}")
    return writers[path.suffix.lower()]


def write_npz_edges(path: pathlib.Path, source: EdgeSource, chunks: Chunks) -> None:
    """Write one array after another, each in its own pass over the source: no whole array is in memory."""
    num_edges = source.num_input_edges
    if num_edges is None:
        num_edges = sum(len(chunk) for chunk in chunks())
    dtype = vertex_dtype(source.num_vertices)
    dtypes = {"sources": dtype, "targets": dtype}
    if source.weight_dtype is not None:
        dtypes["weights"] = source.weight_dtype
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for key, dtype in dtypes.items():
            with archive.open(f"{key}.npy", "w", force_zip64=True) as file:
                header = {"descr": dtype.str, "fortran_order": False, "shape": (num_edges,)}
                np.lib.format.write_array_header_1_0(file, header)
                for chunk in chunks():
                    file.write(np.ascontiguousarray(getattr(chunk, key)).data)
        for key, value in (("num_vertices", np.int64(source.num_vertices)), ("directed", np.bool_(source.directed))):
            with archive.open(f"{key}.npy", "w") as file:
                np.lib.format.write_array(file, np.asarray(value))


def write_csv_edges(path: pathlib.Path, source: EdgeSource, chunks: Chunks) -> None:
    """Write a line of names and a line per edge.

    The number of vertices and the direction are not stored.
    """
    with open(path, "w") as file:
        file.write("source,target\n" if source.weight_dtype is None else "source,target,weight\n")
        for chunk in chunks():
            columns = [chunk.sources, chunk.targets] + ([] if chunk.weights is None else [chunk.weights])
            _write_lines(file, columns)


def write_npz_columns(path: pathlib.Path, columns: dict[str, np.ndarray]) -> None:
    """Write a NumPy archive."""
    with open(path, "wb") as file:
        np.savez(file, **columns)  # type: ignore[arg-type]


def write_csv_columns(path: pathlib.Path, columns: dict[str, np.ndarray]) -> None:
    """Write a line of names and a line per row."""
    with open(path, "w") as file:
        file.write(",".join(columns) + "\n")
        _write_lines(file, list(columns.values()))


def _write_lines(file, columns: list[np.ndarray]) -> None:
    """Write rows as text.

    Floats are written with all digits that reading needs to restore them.
    """
    for lo in range(0, len(columns[0]) if columns else 0, CSV_ROWS):
        fields = (map(str, column[lo : lo + CSV_ROWS].tolist()) for column in columns)
        file.write("\n".join(map(",".join, zip(*fields, strict=True))))
        file.write("\n")


EDGE_WRITERS: dict[str, Callable[..., None]] = {
    ".npz": write_npz_edges,
    ".csv": write_csv_edges,
    ".csr": write_csr,
    ".parquet": write_parquet_edges,
}
COLUMN_WRITERS: dict[str, Callable[..., None]] = {
    ".npz": write_npz_columns,
    ".csv": write_csv_columns,
    ".parquet": write_parquet_columns,
}


def require_writable(path: str | os.PathLike, writers: dict[str, Callable[..., None]] = COLUMN_WRITERS) -> None:
    """Refuse, before any work begins, a path that these writers could not write."""
    path = pathlib.Path(path)
    _writer(path, writers)
    require_place(path)
