"""Translate between vertices as users name them, by labels or by ids, and ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mgraph.errors import UsageError
from mgraph.io.checks import as_integer
from mgraph.io.output_tables import as_objects, joined
from mgraph.rank_jobs.labels import ids_of_labels, labels_of_vertices
from mgraph.shard.shard import GraphInfo

MAX_INT64 = int(np.iinfo(np.int64).max)
# Runs a job on what the ranks store of a graph or a result.
Run = Callable[..., list]


class Vertices(NamedTuple):
    """Vertices by their ids, and as the user names them: the same without labels."""

    ids: tuple[int, ...]
    names: tuple[Any, ...]


def vertices_of_labels(info: GraphInfo, run: Run, given: Iterable[Any], what: str) -> Vertices:
    """Return arguments that must be labels of vertices.

    `what` is the name of one of them in an error.
    """
    as_label = _as_string if info.labels == "string" else as_integer
    labels = [as_label(vertex, what) for vertex in given]
    ids = tuple(run(ids_of_labels, labels)[0])
    if -1 in ids:
        raise UsageError(f"{what} {labels[ids.index(-1)]!r} is not a vertex: no vertex has this label")
    return Vertices(ids, tuple(labels))


def names_of(info: GraphInfo, run: Run, ids: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return vertices as the user names them: an array of str or of integers."""
    vertices = np.asarray(ids, np.int64)
    return as_objects(joined(run(labels_of_vertices, vertices))) if info.labels else vertices


def dtype_of_vertices(info: GraphInfo) -> np.dtype:
    """Return the dtype of columns of vertices."""
    if info.labels == "string":
        return np.dtype(object)
    return np.dtype(np.uint64 if info.missing_label > MAX_INT64 else np.int64)


def _as_string(label: Any, what: str) -> str:
    if not isinstance(label, str):
        raise UsageError(f"{what} {label!r} is not a string, and the labels of the vertices are strings")
    try:
        label.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{what} {label!r} is not a vertex: no vertex has this label") from None
    return str(label)
