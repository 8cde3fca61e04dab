"""Columns of values in memory: arrays and lists of the host, Arrow's columns, arrays on a GPU; each is read in ranges.

A column is made without a pass over its values, except for lists; dtypes are checked at once, values while a rank reads
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.cpu import CpuBackend
from mgraph.errors import InputError
from mgraph.io.arrow_columns import arrow_column, is_arrow
from mgraph.io.checks import as_weights, check_weights, refuse_lazy, refuse_masked, weights_dtype
from mgraph.io.device import DeviceColumn, borrowed
from mgraph.io.indptr import sources_of_arcs
from mgraph.io.samples import ROWS, LabelSample, places
from mgraph.labels.strings import Strings
from mgraph.types import Array


class MemoryColumn(Protocol):
    """Values of all edges, read in ranges by several threads."""

    @property
    def is_text(self) -> bool:
        """Whether the values are strings."""

    @property
    def dtype(self) -> np.dtype:
        """The dtype of numbers; that of objects for strings."""

    def __len__(self) -> int: ...

    def part(self, lo: int, hi: int, backend: Backend) -> Array | Strings:
        """Return the values lo..hi, on the host or on the backend: a view where that is possible."""


@dataclass(frozen=True, eq=False)
class HostColumn:
    """Numbers of any dtype, stride and byte order."""

    values: np.ndarray
    is_text = False

    @property
    def dtype(self) -> np.dtype:
        return self.values.dtype

    def __len__(self) -> int:
        return len(self.values)

    def part(self, lo: int, hi: int, backend: Backend) -> np.ndarray:
        return plain(self.values[lo:hi])


@dataclass(frozen=True, eq=False)
class TextColumn:
    """Python's strings in a list or an array of objects, or NumPy's of a fixed length."""

    values: Sequence[str] | np.ndarray
    what: str
    is_text = True
    dtype = np.dtype(object)

    def __len__(self) -> int:
        return len(self.values)

    def part(self, lo: int, hi: int, backend: Backend) -> Strings:
        part = self.values[lo:hi]
        texts = part.tolist() if isinstance(part, np.ndarray) else part
        return encoded(texts, lambda i: f"{self.what}[{lo + i}]")


@dataclass(frozen=True, eq=False)
class RowColumn:
    """The sources of all arcs of a CSR, from its offsets."""

    indptr: np.ndarray
    is_text = False
    dtype = np.dtype(np.int64)

    def __len__(self) -> int:
        return int(self.indptr[-1])

    def part(self, lo: int, hi: int, backend: Backend) -> np.ndarray:
        return sources_of_arcs(self.indptr, lo, hi)


def sample_columns(columns: Sequence[MemoryColumn], most: int) -> LabelSample | None:
    """Return strings of two columns in at most `most` places; None if these are numbers."""
    if not all(column.is_text for column in columns):
        return None
    count = len(columns[0])
    rows = min(count, ROWS)
    starts = places(count - rows, most)
    try:
        taken = [[column.part(lo, lo + rows, CpuBackend(1)) for column in columns] for lo in starts]
    except InputError:
        return None  # found again, and reported, when the piece is read
    return LabelSample.of(taken)  # type: ignore[arg-type]


def plain(values: np.ndarray) -> np.ndarray:
    """Return values contiguous, writable and in this machine's byte order: kernels are compiled for such arrays."""
    native = values.astype(values.dtype.newbyteorder("="), copy=False)
    return native if native.flags.c_contiguous and native.flags.writeable else native.copy()


def encoded(texts: Sequence[Any], where: Callable[[int], str]) -> Strings:
    """Return Python's strings as UTF-8; anything else among them is refused."""
    if any(not issubclass(kind, str) for kind in set(map(type, texts))):
        i = next(i for i, text in enumerate(texts) if not isinstance(text, str))
        missing = texts[i] is None or texts[i] != texts[i]
        raise InputError(f"{where(i)} {'is missing' if missing else f'= {texts[i]!r:.80} is no string, as others are'}")
    joined = "".join(texts)
    try:
        data = joined.encode()
    except UnicodeEncodeError as error:
        i = int(np.searchsorted(np.cumsum(list(map(len, texts))), error.start, "right"))
        raise InputError(f"{where(i)} = {texts[i]!r:.80} has a surrogate, which UTF-8 cannot encode") from None
    if len(data) == len(joined):
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    else:
        lengths = np.fromiter((len(text.encode()) for text in texts), np.int64, len(texts))
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return Strings(offsets, np.frombuffer(data, np.uint8))


def ids_column(values: Any, what: str) -> MemoryColumn:
    """Return ids of integers or strings as a column; other kinds are refused."""
    column = _column(values, what)
    if column.is_text:
        return column
    if len(column) == 0 and column.dtype.kind == "f" and isinstance(values, (list, tuple)):
        return HostColumn(np.empty(0, np.int64))  # NumPy converts an empty list to floats
    if column.dtype.kind == "f":
        raise InputError(f"{what} are {column.dtype}, not integers: convert them, as with .astype(np.int64)")
    if column.dtype.kind not in "iu":
        raise InputError(f"{what} are {column.dtype}, neither integers nor strings")
    return column


def weights_column(values: Any, num_edges: int, what: str = "weights") -> MemoryColumn:
    """Return weights as a column, one for each edge; dtypes that are no numbers of 64 bits are refused."""
    if isinstance(values, (list, tuple)):
        return HostColumn(as_weights(values, num_edges, what))
    column = _column(values, what)
    if len(column) != num_edges:
        raise InputError(f"{what} must be one for each of the {num_edges} edges, not of shape ({len(column)},)")
    if len(column) == 0 and column.dtype.kind == "O":
        return HostColumn(np.empty(0, np.float64))
    if column.is_text or column.dtype.kind not in "iuf" or column.dtype.itemsize > 8:
        raise InputError(f"{what} are {column.dtype}: use integers, float32 or float64")
    return column


def weights_of(column: MemoryColumn, lo: int, hi: int, backend: Backend, what: str = "weights") -> Array:
    """Return the weights lo..hi in a dtype of WEIGHT_DTYPES, all finite."""
    weights = column.part(lo, hi, backend)
    assert not isinstance(weights, Strings)
    check_weights(weights, lambda i: f"{what}[{lo + i}]")
    return weights.astype(weights_dtype(weights.dtype), copy=False)


def _column(values: Any, what: str) -> MemoryColumn:
    """Return values of any kind as a column."""
    refuse_lazy(values, what)
    refuse_masked(values, what)
    on_device = borrowed(values, what)
    if on_device is not None:
        if on_device.ndim != 1:
            raise InputError(f"{what} must be one-dimensional, not of shape {on_device.shape}")
        return HostColumn(on_device) if isinstance(on_device, np.ndarray) else DeviceColumn(on_device)
    if is_arrow(values):
        return arrow_column(values, what)
    array = values.to_numpy() if _holds_numpy(values) else _array(values, what)
    if array.ndim != 1:
        raise InputError(f"{what} must be one-dimensional, not of shape {array.shape}")
    if array.dtype.kind == "O":
        _require_text(array, what)
    if array.dtype.kind in "UTO":
        return TextColumn(values if isinstance(values, (list, tuple)) else array, what)
    return HostColumn(array)


def _array(values: Any, what: str) -> np.ndarray:
    try:
        array = np.asarray(values)
        # NumPy converts a list with integers beyond int64 to floats or objects.
        is_converted = (
            isinstance(values, (list, tuple)) and array.ndim == 1 and array.dtype.kind in ("f", "O") and len(values)
        )
        if is_converted and all(type(value) is int or isinstance(value, np.integer) for value in values):
            return np.array(values, np.uint64 if min(values) >= 0 else np.int64)
        return array
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{what} are no array: {error}") from None


def _holds_numpy(values: Any) -> bool:
    """Return whether this is a pandas Series or Index of a NumPy dtype."""
    return hasattr(values, "to_numpy") and isinstance(getattr(values, "dtype", None), np.dtype)


def _require_text(array: np.ndarray, what: str) -> None:
    """Refuse objects of which the first that is not missing is no string."""
    is_there = [value is not None and value == value for value in array]
    if len(array) and not any(is_there):
        raise InputError(f"{what}[0] is missing, as are all others")
    i = is_there.index(True) if is_there else None
    if i is not None and not isinstance(array[i], str):
        if not all(is_there):
            raise InputError(f"{what}[{is_there.index(False)}] is missing: leave out such rows")
        kind = type(array[i]).__name__
        raise InputError(f"{what} are objects, and {what}[{i}] is of type {kind}: convert them to numbers or strings")
