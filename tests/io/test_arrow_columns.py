"""Columns of Arrow: every type of numbers and strings, chunks and slices, and what only the protocol offers."""

from __future__ import annotations

import numpy as np
import pyarrow
import pytest
from memory_checks import ArrowStream

from mgraph.errors import InputError
from mgraph.io.arrow_columns import arrow_column, is_arrow

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_of_every_type_in_chunks(dtype):
    chunks = [np.arange(3, dtype=dtype), np.empty(0, dtype), np.arange(3, 7, dtype=dtype)]
    column = arrow_column(pyarrow.chunked_array([pyarrow.array(chunk) for chunk in chunks]), "x")
    assert (len(column), column.is_text, column.dtype) == (7, False, np.dtype(dtype))
    for lo, hi in ((0, 7), (1, 2), (2, 5), (3, 3)):
        part = column.part(lo, hi, None)
        assert part.tolist() == list(range(lo, hi))
        assert part.dtype == dtype
        assert part.flags.writeable


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "binary", "binary_view", "dictionary"])
def test_strings_of_every_type_in_chunks(kind):
    names = ["a", "", "ç", "dd", "a"]
    make = pyarrow.string() if kind == "dictionary" else getattr(pyarrow, kind)()
    chunks = [pyarrow.array(part, make) for part in (names[:2], [], names[2:])]
    if kind == "dictionary":
        chunks = [chunk.dictionary_encode() for chunk in chunks]
    column = arrow_column(pyarrow.chunked_array(chunks), "x")
    assert column.is_text
    for lo, hi in ((0, 5), (1, 4), (3, 5), (2, 2)):
        assert column.part(lo, hi, None).tolist() == names[lo:hi]


def test_exported_columns_are_read_by_the_protocol():
    for values in (pyarrow.chunked_array([[1, 2], [3]]), pyarrow.chunked_array([["x"], ["y"]])):
        exported = ArrowStream(values)
        assert is_arrow(exported)
        part = arrow_column(exported, "x").part(0, len(values), None)
        assert part.tolist() == values.to_pylist()


@pytest.mark.parametrize("values", [[1, 2, None], ["a", None]])
def test_nulls_are_refused_with_their_row(values):
    with pytest.raises(InputError, match=rf"^x\[{values.index(None) + 1}\] is missing"):
        arrow_column(pyarrow.chunked_array([values[:1], values]), "x")


def test_null_of_a_dictionary_is_refused_with_its_row():
    values = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0, 0, 1]), pyarrow.array(["a", None]))
    with pytest.raises(InputError, match=r"^x\[2\] is missing"):
        arrow_column(values, "x")
    assert len(arrow_column(values[:2], "x")) == 2


@pytest.mark.parametrize(
    "values",
    [
        pyarrow.array([True]),
        pyarrow.array([b"x"], pyarrow.binary(1)),
        pyarrow.array([[1]]),
        pyarrow.array([0], pyarrow.date32()),
        pyarrow.array([True]).dictionary_encode(),
    ],
)
def test_other_types_are_refused(values):
    with pytest.raises(
        InputError, match=rf"x are .*{str(values.type)[:4]}.*, neither numbers nor strings: (cast|write)"
    ):
        arrow_column(values, "x")
