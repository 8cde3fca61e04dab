"""Memory of arrays that is used again: only when no view is left, by size, and not more than the limit."""

from __future__ import annotations

import numpy as np
import pytest

from mgraph.backends import recycled
from mgraph.backends.recycled import MIN_BYTES, RecycledMemory, owns_memory

WORD = np.dtype(np.int64)
COUNT = MIN_BYTES // WORD.itemsize


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_memory_is_used_again_when_the_last_view_is_gone():
    memory = RecycledMemory()
    first = memory.empty(COUNT, WORD)
    first[:] = 7
    view = first.view(np.int32)[::2]
    where = address(first)
    del first
    second = memory.empty(COUNT, WORD)
    assert address(second) != where
    assert (view == 7).all()
    del view
    assert address(memory.empty(COUNT, WORD)) == where
    assert address(memory.empty(2 * COUNT, WORD)) != where


@pytest.mark.parametrize("count", [3, COUNT])
def test_array_owns_its_memory_and_a_view_does_not(count):
    array = RecycledMemory().empty(count, WORD)
    assert array.dtype == WORD
    assert owns_memory(array)
    assert not any(owns_memory(view) for view in (array[:], array[1:], array.view(np.uint64), array[:][:]))


@pytest.mark.parametrize("count", [0, COUNT - 1])
def test_small_arrays_are_not_kept(count):
    memory = RecycledMemory()
    assert memory.empty(count, WORD).flags.owndata


def test_no_more_is_kept_than_the_limit_and_nothing_once_it_is_cleared(monkeypatch):
    monkeypatch.setattr(recycled, "MAX_BYTES", 2 * MIN_BYTES)
    memory = RecycledMemory()
    arrays = [memory.empty(COUNT, WORD) for _ in range(3)]
    places = [address(array) for array in arrays]
    # Those that are kept are listed, so that the others, which are freed, are not seen in their place.
    del arrays
    kept = [address(block) for blocks in memory._unused.values() for block in blocks]
    assert len(kept) == 2
    assert set(kept) < set(places)
    memory.clear()
    assert not memory._unused
