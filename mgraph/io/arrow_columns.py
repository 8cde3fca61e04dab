"""Arrow's arrays and chunked arrays, and whatever exports them: pandas' own dtypes, Polars, and others.

Integers and floats are used where they are; strings of 32-bit offsets, views and dictionaries are converted piece by
piece.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mgraph.backends.base import Backend
from mgraph.errors import InputError, UsageError
from mgraph.labels.strings import Strings


@dataclass(frozen=True, eq=False)
class ArrowColumn:
    """A chunked array of integers, floats or strings without nulls, perhaps encoded by a dictionary."""

    values: Any
    is_text: bool
    dtype: np.dtype

    def __len__(self) -> int:
        return len(self.values)

    def part(self, lo: int, hi: int, backend: Backend) -> np.ndarray | Strings:
        chunks = [decoded(chunk) for chunk in self.values.slice(lo, hi - lo).chunks if len(chunk)]
        if self.is_text:
            return _strings(chunks)
        # A copy, since Arrow's memory is read-only: kernels are compiled for writable arrays.
        return np.concatenate([np.empty(0, self.dtype), *(chunk.to_numpy(zero_copy_only=True) for chunk in chunks)])


def is_arrow(values: Any) -> bool:
    """Return whether values are Arrow's, or only Arrow can read them: pandas' dtypes beside NumPy's, and Polars."""
    if isinstance(getattr(values, "dtype", None), np.dtype):
        return False
    return any(hasattr(values, name) for name in ("__arrow_c_stream__", "__arrow_c_array__", "__arrow_array__"))


def arrow_column(values: Any, what: str) -> ArrowColumn:
    """Return a column of Arrow's; nulls are refused, and types other than numbers and strings."""
    pyarrow = require_pyarrow(what)
    import pyarrow.types as types

    try:
        if hasattr(values, "__arrow_c_stream__"):
            chunked = pyarrow.chunked_array(values)
        else:
            array = pyarrow.array(values)
            chunked = array if isinstance(array, pyarrow.ChunkedArray) else pyarrow.chunked_array([array])
    except (pyarrow.ArrowException, ValueError, TypeError) as error:
        raise InputError(f"{what} cannot be read as an Arrow column: {error}") from None
    if chunked.null_count:
        raise InputError(f"{what}[{_first_null(chunked)}] is missing: leave out such rows")
    kind = chunked.type.value_type if types.is_dictionary(chunked.type) else chunked.type
    is_view = getattr(types, "is_string_view", lambda _: False)
    if types.is_string(kind) or types.is_large_string(kind) or is_view(kind):
        return ArrowColumn(chunked, True, np.dtype(object))
    if types.is_integer(kind) or types.is_floating(kind):
        return ArrowColumn(chunked, False, np.dtype(kind.to_pandas_dtype()))
    if types.is_null(kind):
        return ArrowColumn(chunked.cast(pyarrow.int64()), False, np.dtype(np.int64))
    raise InputError(f"{what} are {chunked.type}, neither numbers nor strings: convert them first")


def require_pyarrow(what: str) -> Any:
    """Return pyarrow, or refuse with how to install it."""
    try:
        import pyarrow
    except ImportError:
        raise UsageError(f"{what} need pyarrow: pip install pyarrow") from None
    return pyarrow


def _first_null(chunked: Any) -> int:
    first = 0
    for chunk in chunked.chunks:
        if chunk.null_count:
            return first + int(np.argmax(chunk.is_null().to_numpy(zero_copy_only=False)))
        first += len(chunk)
    raise AssertionError("no chunk has the null that Arrow counts")


def decoded(chunk: Any) -> Any:
    """Return an array of Arrow without a dictionary."""
    import pyarrow

    if not isinstance(chunk, pyarrow.DictionaryArray):
        return chunk
    values = chunk.dictionary
    if str(values.type) == "string_view":  # as Polars has them: Arrow cannot pick views
        values = values.cast(pyarrow.large_string())
    return values.take(chunk.indices)


def _strings(chunks: list[Any]) -> Strings:
    """Return chunks of strings as one."""
    import pyarrow

    wide = [chunk.cast(pyarrow.large_string()) for chunk in chunks]
    if not wide:
        return Strings(np.zeros(1, np.int64), np.zeros(0, np.uint8))
    array = wide[0] if len(wide) == 1 else pyarrow.concat_arrays(wide)
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    return Strings(ends, np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8))
