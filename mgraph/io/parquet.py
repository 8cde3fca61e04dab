"""Parquet files, written by pyarrow, which the extra `io` installs."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mgraph.errors import UsageError
from mgraph.types import EdgeChunk, EdgeSource, vertex_dtype


def write_parquet_edges(path: pathlib.Path, source: EdgeSource, chunks: Callable[[], Iterator[EdgeChunk]]) -> None:
    """Write the columns source, target and weight, a row group a chunk; metadata `mgraph` tells the rest."""
    pyarrow, parquet = _pyarrow()
    ids = pyarrow.from_numpy_dtype(vertex_dtype(source.num_vertices))
    fields = [("source", ids), ("target", ids)]
    if source.weight_dtype is not None:
        fields.append(("weight", pyarrow.from_numpy_dtype(source.weight_dtype)))
    about = json.dumps({"num_vertices": source.num_vertices, "directed": source.directed})
    schema = pyarrow.schema(fields, metadata={"mgraph": about})
    with parquet.ParquetWriter(path, schema) as writer:
        for chunk in chunks():
            columns = [chunk.sources, chunk.targets] + ([] if chunk.weights is None else [chunk.weights])
            writer.write_table(pyarrow.table(columns, schema=schema))


def write_parquet_columns(path: pathlib.Path, columns: dict[str, np.ndarray]) -> None:
    """Write one table."""
    pyarrow, parquet = _pyarrow()
    parquet.write_table(pyarrow.table(columns), path)


def _pyarrow() -> tuple[Any, Any]:
    """Return pyarrow and its parquet module, or say where they come from."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UsageError("Parquet needs pyarrow: pip install 'mgraph[io]'") from None
    return pyarrow, pyarrow.parquet
