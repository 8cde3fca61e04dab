"""Dtypes of ids and states, their sentinels, and the sizes at which they change."""

from __future__ import annotations

import numpy as np
import pytest

from mgraph.edges import EdgeChunk
from mgraph.types import none_of, unreached_of, vertex_dtype


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, "uint32"), (1, "uint32"), (2**32 - 2, "uint32"), (2**32 - 1, "int64"), (2**32, "int64"), (2**40, "int64")],
)
def test_vertex_dtype_changes_where_the_sentinel_would_be_an_id(count, expected):
    dtype = vertex_dtype(count)
    assert dtype == np.dtype(expected)
    assert count - 1 < none_of(dtype), "the largest id is the sentinel"


@pytest.mark.parametrize("dtype", ["uint32", "int64"])
def test_none_is_larger_than_every_vertex_and_fits(dtype):
    none = none_of(np.dtype(dtype))
    assert np.array([none], dtype)[0] == none == np.iinfo(dtype).max


@pytest.mark.parametrize("dtype", ["uint8", "int32", "uint32", "int64", "float32", "float64"])
def test_unreached_is_the_top_of_its_dtype(dtype):
    for given in (dtype, np.dtype(dtype), np.dtype(dtype).type):
        top = np.array([unreached_of(given)], dtype)
        assert top[0] == unreached_of(given)
        assert np.minimum(top, top.dtype.type(100))[0] == 100
        largest = np.inf if top.dtype.kind == "f" else np.iinfo(dtype).max
        assert top[0] == largest


def test_mixing_ids_and_int64_never_gives_a_float():
    # The reason why ids are uint32 or int64: NumPy turns uint64 + int64 into float64.
    for count in (10, 2**33):
        assert (np.zeros(1, vertex_dtype(count)) + np.zeros(1, np.int64)).dtype == np.int64


def test_edge_chunk_has_the_length_of_its_sources_and_is_frozen():
    chunk = EdgeChunk(np.array([0, 1], np.uint32), np.array([1, 2], np.uint32))
    assert len(chunk) == 2
    assert chunk.weights is None
    with pytest.raises(AttributeError):
        chunk.weights = np.ones(2)
