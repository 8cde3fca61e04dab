"""Checks of ids, weights and arguments; an error names the first wrong value."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, get_args

import numpy as np

from mgraph.edges import EdgeTable, Labels
from mgraph.errors import InputError, UsageError
from mgraph.types import WEIGHT_DTYPES

# Weight dtypes other than WEIGHT_DTYPES, and the one of WEIGHT_DTYPES that holds their values exactly.
WIDER = {"int8": "int32", "int16": "int32", "float16": "float32", "uint64": "int64"}


def as_ids(values: Any, what: str) -> np.ndarray:
    """Return ids as a one-dimensional integer array; anything else is refused."""
    ids = _unmasked(values, what)
    if ids.ndim != 1:
        raise InputError(f"{what} must be one-dimensional, not of shape {ids.shape}")
    if ids.size == 0 and ids.dtype.kind == "f":
        return ids.astype(np.int64)  # NumPy converts an empty list to floats
    if ids.dtype.kind == "f":
        raise InputError(f"{what} are {ids.dtype}, not integers: convert them, as with .astype(np.int64)")
    if ids.dtype.kind not in "iu":
        raise InputError(f"{what} are {ids.dtype}, not integers: vertices are numbered 0..n-1")
    return ids if ids.dtype.isnative else ids.astype(ids.dtype.newbyteorder("="))


def as_weights(values: Any, num_edges: int, what: str = "weights") -> np.ndarray:
    """Return weights in one of WEIGHT_DTYPES, one for each edge and all finite."""
    weights = _unmasked(values, what)
    if weights.shape != (num_edges,):
        raise InputError(f"{what} must be one for each of the {num_edges} edges, not of shape {weights.shape}")
    if weights.size == 0 and weights.dtype.kind not in "iuf":
        return weights.astype(np.float64)
    if weights.dtype.kind not in "iuf" or weights.dtype.itemsize > 8:
        raise InputError(f"{what} are {weights.dtype}: use integers, float32 or float64")
    if weights.dtype.kind == "f" and isinstance(values, (list, tuple)):
        _check_whole(values, what)
    check_weights(weights, lambda i: f"{what}[{i}]")
    return weights.astype(weights_dtype(weights.dtype), copy=False)


def _check_whole(values: Sequence[Any], what: str) -> None:
    """Refuse a list of integers with one beyond int64, which NumPy converts to floats."""
    if all(isinstance(value, (int, np.integer)) for value in values):
        for i, value in enumerate(values):
            if not -(2**63) <= value < 2**63:
                raise InputError(f"{what}[{i}] = {value} is beyond 64 signed bits")


def refuse_lazy(values: Any, what: str) -> None:
    """Refuse a lazy Dask collection.

    Each collection would be computed separately, perhaps several times, and rows of two runs need not match.
    """
    if not hasattr(values, "__dask_graph__"):
        return
    from dask.base import is_dask_collection

    if is_dask_collection(values):
        kind = f"{'.'.join(type(values).__module__.split('.')[:2])}.{type(values).__name__}"
        raise InputError(
            f"{what}: a lazy {kind} is not read here: mg.from_dask reads Dask's frames and arrays; compute others "
            "first, all arguments together, as in sources, targets = dask.compute(sources, targets)"
        )


def _unmasked(values: Any, what: str) -> np.ndarray:
    """Return an array.

    Masked values are refused, as NumPy would use the data under the mask.
    """
    refuse_lazy(values, what)
    refuse_masked(values, what)
    return np.asarray(values)


def refuse_masked(values: Any, what: str) -> None:
    """Refuse an array with masked values."""
    if np.ma.is_masked(values):
        raise InputError(f"{what} are masked: leave out what is missing, as with {what}.compressed()")


def weights_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype of WEIGHT_DTYPES that holds weights of `dtype`."""
    native = np.dtype(dtype).newbyteorder("=")
    found = native if native in WEIGHT_DTYPES else np.dtype(WIDER.get(native.name, "V1"))
    if found.kind == "V":
        raise InputError(f"weights are {dtype}: use integers, float32 or float64")
    return found


def check_weights(weights: np.ndarray, where: Callable[[int], str]) -> None:
    """Refuse NaN, infinities and integers beyond int64; `where(i)` names weight i."""
    if weights.dtype.kind == "f":
        bad = ~np.isfinite(weights)
        problem = "is not a finite number"
    elif weights.dtype.newbyteorder("=") == np.uint64:
        bad = weights > np.iinfo(np.int64).max
        problem = "is beyond 64 signed bits"
    else:
        return
    if bad.any():
        i = int(np.argmax(bad))
        raise InputError(f"{where(i)} = {weights[i]} {problem}")


def check_ids(ids: np.ndarray, num_vertices: int | None, where: Callable[[int], str]) -> int:
    """Refuse ids that are negative or not below `num_vertices`.

    Return the largest, -1 if there is none.
    """
    if ids.size == 0:
        return -1
    low = int(ids.min())
    high = int(ids.max())
    if low < 0:
        raise InputError(f"{where(int(np.argmin(ids)))} = {low} is negative: vertices are numbered from 0")
    if num_vertices is not None and high >= num_vertices:
        i = int(np.argmax(ids))
        raise InputError(f"{where(i)} = {high} is not below the number of vertices, {num_vertices}")
    if high >= np.iinfo(np.int64).max:
        raise InputError(f"{where(int(np.argmax(ids)))} = {high} is beyond 63 bits")
    return high


def check_num_vertices(num_vertices: Any) -> int | None:
    """Return a number of vertices as an int; None is passed through."""
    if num_vertices is None:
        return None
    refuse_lazy(num_vertices, "num_vertices")
    count = as_integer(num_vertices, "num_vertices")
    if count < 0:
        raise UsageError(f"num_vertices {count} is not a count of vertices")
    if count > np.iinfo(np.int64).max:
        raise UsageError(f"num_vertices {count} is beyond 63 bits")
    return count


def check_vertices(num_vertices: int, vertices: Iterable[Any], name: str) -> tuple[int, ...]:
    """Return arguments that must be vertices.

    `name` is the name of one of them in the error.
    """
    ids = tuple([as_integer(vertex, name) for vertex in vertices])
    for index in ids:
        if not 0 <= index < num_vertices:
            known = f"ids are 0..{num_vertices - 1}" if num_vertices else "the graph has none"
            raise UsageError(f"{name} {index} is not a vertex: {known}")
    return ids


def as_flag(value: Any, name: str) -> bool:
    """Return an argument that must be True or False.

    Any string, even "no", would count as true.
    """
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise UsageError(f"{name} {value!r} is not True or False")


def as_integer(value: Any, name: str) -> int:
    """Return an argument of any integer type as an int.

    `name` is its name in the error.
    """
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise UsageError(f"{name} {value!r} is not an integer")


def as_column(value: Any, name: str) -> str | int:
    """Return an argument that is the name or the number of a column."""
    if isinstance(value, str):
        return value
    try:
        return as_integer(value, name)
    except UsageError:
        raise UsageError(f"{name} {value!r} is neither the name nor the number of a column") from None


def mixed_kinds(where: str) -> InputError:
    """Return the error of an input that has both strings and integers; `where` has a string."""
    return InputError(
        f"{where}: some ids are strings, and others integers: give one kind (of text, labels='string' reads strings)"
    )


def check_labels(labels: Any) -> Labels:
    """Return how ids are read: one of "auto", "string", True and False."""
    known: Labels
    for known in get_args(Labels):
        if labels is known or (isinstance(labels, str) and labels == known):
            return known
    raise UsageError(f"labels {labels!r} is not one of 'auto', 'string', True, False")


def check_base(base: Any) -> int:
    """Return the id of the first vertex, which is not negative."""
    if as_integer(base, "base") < 0:
        raise UsageError(f"base {base} is negative: it is the id of the first vertex")
    return int(base)


def check_not_empty(table: EdgeTable, num_edges: int, num_vertices: int) -> None:
    """Refuse a file without edges that says nothing of vertices: it is cut, or another than was meant."""
    is_declared = table.num_vertices is not None or getattr(table, "declared_edges", None) is not None
    if not (num_edges or num_vertices or is_declared or getattr(table, "may_be_empty", False)):
        raise InputError(
            f"{getattr(table, 'path', table.name)} has no edges, and does not say how many vertices: "
            "give num_vertices= (--num-vertices) if it is meant to be empty"
        )
