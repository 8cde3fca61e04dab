"""Arrow's arrays and chunked arrays, and whatever exports them: pandas' own dtypes, Polars, and others.

Integers and floats are used where they are; strings of 32-bit offsets, views and dictionaries are converted piece by
piece.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mgraph.backends.base import Backend
from mgraph.errors import InputError
from mgraph.io.pyarrow_module import require_pyarrow
from mgraph.labels.strings import Strings


@dataclass(frozen=True, eq=False)
class ArrowColumn:
    """A chunked array of integers, floats, strings or bytes without nulls, perhaps encoded by a dictionary."""

    values: Any
    is_text: bool
    dtype: np.dtype

    def __len__(self) -> int:
        return len(self.values)

    def part(self, lo: int, hi: int, backend: Backend) -> np.ndarray | Strings:
        values = decoded(self.values.slice(lo, hi - lo))
        if self.is_text:
            return strings_of(values)
        chunks = [chunk for chunk in values.chunks if len(chunk)]
        # A copy, since Arrow's memory is read-only: kernels are compiled for writable arrays.
        return np.concatenate([np.empty(0, self.dtype), *(chunk.to_numpy(zero_copy_only=True) for chunk in chunks)])


def is_arrow(values: Any) -> bool:
    """Return whether values are Arrow's, or only Arrow can read them: pandas' dtypes other than NumPy's, and Polars."""
    if isinstance(getattr(values, "dtype", None), np.dtype):
        return False
    return any(hasattr(values, name) for name in ("__arrow_c_stream__", "__arrow_c_array__", "__arrow_array__"))


def arrow_column(values: Any, what: str) -> ArrowColumn:
    """Return a column of Arrow's; nulls are refused, and types other than numbers, strings and bytes."""
    pyarrow = require_pyarrow(f"{what} need")
    types = pyarrow.types

    try:
        if hasattr(values, "__arrow_c_stream__"):
            chunked = pyarrow.chunked_array(values)
        else:
            array = pyarrow.array(values)
            chunked = array if isinstance(array, pyarrow.ChunkedArray) else pyarrow.chunked_array([array])
    except (pyarrow.ArrowException, ValueError, TypeError) as error:
        raise InputError(f"{what} cannot be read as an Arrow column: {error}") from None
    kind = type_of_values(chunked.type)
    if kind != chunked.type and any(chunk.dictionary.null_count for chunk in chunked.chunks):
        chunked = decoded(chunked)  # a null in a dictionary is not counted
    if chunked.null_count:
        raise InputError(f"{what}[{_first_null(chunked)}] is missing: leave out such rows")
    if is_text(kind):
        return ArrowColumn(chunked, True, np.dtype(object))
    if types.is_integer(kind) or types.is_floating(kind):
        return ArrowColumn(chunked, False, np.dtype(kind.to_pandas_dtype()))
    if types.is_null(kind):
        return ArrowColumn(chunked.cast(pyarrow.int64()), False, np.dtype(np.int64))
    raise InputError(f"{what} are {chunked.type}, neither numbers nor strings: {_advice(kind)}")


def type_of_values(kind: Any) -> Any:
    """Return the type of a column's values: that in the dictionary, if there is one."""
    import pyarrow.types as types

    return kind.value_type if types.is_dictionary(kind) else kind


def is_text(kind: Any) -> bool:
    """Return whether values of a type are strings, or bytes: those are refused later where they are not UTF-8."""
    import pyarrow.types as types

    names = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
    return any(getattr(types, f"is_{name}", lambda _: False)(kind) for name in names)


def check_id_type(kind: Any, what: str) -> None:
    """Refuse a type of a column that no ids have."""
    import pyarrow.types as types

    values = type_of_values(kind)
    if not (types.is_integer(values) or is_text(values)):
        raise InputError(f"{what} is {kind}, and ids are integers or strings: {_advice(values)}")


def check_weight_type(kind: Any, what: str) -> None:
    """Refuse a type of a column that no weights have."""
    import pyarrow.types as types

    values = type_of_values(kind)
    if not (types.is_integer(values) or types.is_floating(values)):
        raise InputError(f"{what} is {kind}, and weights are integers or floats: cast the column, as to float64")


def _advice(kind: Any) -> str:
    """Return what to do with a column of another type."""
    import pyarrow.types as types

    if types.is_fixed_size_binary(kind):
        return "write its bytes as text, as value.hex() does, or str(uuid.UUID(bytes=value))"
    if types.is_floating(kind) or types.is_decimal(kind):
        return "cast the column to int64 if its numbers are whole"
    return "cast the column to int64 or to strings"


def _first_null(chunked: Any) -> int:
    first = 0
    for chunk in chunked.chunks:
        if chunk.null_count:
            return first + int(np.argmax(chunk.is_null().to_numpy(zero_copy_only=False)))
        first += len(chunk)
    raise AssertionError("no chunk has the null that Arrow counts")


def chunked(array: Any) -> Any:
    """Return an array of Arrow's as a chunked one."""
    import pyarrow

    return pyarrow.chunked_array([array])


def decoded(column: Any) -> Any:
    """Return a chunked array without a dictionary."""
    import pyarrow

    kind = type_of_values(column.type)
    if kind == column.type:
        return column
    if str(kind) == "string_view":  # as Polars has them: Arrow cannot pick views
        kind = pyarrow.large_string()
    return pyarrow.chunked_array([chunk.dictionary.cast(kind).take(chunk.indices) for chunk in column.chunks], kind)


def strings_of(column: Any) -> Strings:
    """Return a chunked array of strings or bytes, without an object for each."""
    import pyarrow

    chunks = [chunk for chunk in column.chunks if len(chunk)]
    if not chunks:
        return Strings(np.zeros(1, np.int64), np.zeros(0, np.uint8))
    array = chunks[0]
    names = ("string", "binary", "large_string", "large_binary")
    if len(chunks) > 1 or not any(getattr(pyarrow.types, f"is_{name}")(array.type) for name in names):
        array = pyarrow.concat_arrays([chunk.cast(pyarrow.large_binary()) for chunk in chunks])
    _, offsets, data = array.buffers()
    # By NumPy, since the first cast of Arrow's imports all of its functions: an eighth of a second.
    width = np.int64 if str(array.type).startswith("large") else np.int32
    ends = np.frombuffer(offsets, width)[array.offset : array.offset + len(array) + 1].astype(np.int64, copy=False)
    return Strings(ends, np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8))
