"""Memory of arrays that is used again: only when no view is left, by size, and not more than the limit."""

from __future__ import annotations

import numpy as np
import pytest

from mgraph.backends import recycled
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.recycled import FILLED_PER_RESTORED, MIN_BYTES, RecycledMemory, owns_memory, restore_later

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


def test_memory_that_was_not_used_again_for_long_makes_room_for_other_sizes(monkeypatch):
    monkeypatch.setattr(recycled, "MAX_BYTES", 2 * MIN_BYTES)
    memory = RecycledMemory()
    arrays = [memory.empty(COUNT, WORD) for _ in range(2)]
    del arrays
    kept = []
    for _ in range(recycled.STALE + 3):
        memory.empty(COUNT + 1, WORD)
        kept.append(memory._unused_bytes)
    assert set(kept[: recycled.STALE - 3]) == {2 * MIN_BYTES}
    assert kept[-1] == (COUNT + 1) * WORD.itemsize


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
    assert not any(memory._unused.values())


def test_arrays_in_the_memory_of_one_are_aligned_apart_and_kept_together():
    memory = RecycledMemory()
    shapes = (4 * COUNT + 3, np.dtype(np.uint16)), (5, WORD), (0, WORD), (COUNT, np.dtype(np.uint8))
    arrays = memory.empty_arrays(*shapes)
    assert [(len(array), array.dtype) for array in arrays] == list(shapes)
    for k, array in enumerate(arrays):
        assert array.flags.aligned
        array[:] = k
    assert [set(array.tolist()) for array in arrays] == [{0}, {1}, set(), {3}]
    where = address(arrays[0])
    del array
    last = arrays.pop()
    arrays.clear()
    assert address(memory.empty_arrays(*shapes)[0]) != where
    del last
    assert address(memory.empty_arrays(*shapes)[0]) == where


def test_entries_that_were_written_are_restored_and_the_array_need_not_be_filled_again():
    memory = RecycledMemory()
    array, is_filled = memory.restored(COUNT, WORD, -5)
    assert not is_filled
    array[:] = -5
    where = address(array)
    array[[3, COUNT - 1]] = 7
    restore_later(array, np.array([3, COUNT - 1], np.uint32))
    view = array[::2]
    del array
    assert memory.restored(COUNT, WORD, -5)[1] is False, "a view is left"
    del view
    again, is_filled = memory.restored(COUNT, WORD, -5)
    assert is_filled
    assert address(again) == where
    assert (again == -5).all()
    assert not owns_memory(again)


def test_array_is_filled_again_after_unknown_or_many_writes_or_for_another_value():
    memory = RecycledMemory()
    for written in (None, np.arange(COUNT // FILLED_PER_RESTORED + 1)):
        array, _ = memory.restored(COUNT, WORD, 1)
        if written is not None:
            restore_later(array, written)
        del array
        assert not memory.restored(COUNT, WORD, 1)[1]
    array, _ = memory.restored(COUNT, WORD, 1)
    array[:] = 1
    restore_later(array, np.empty(0, np.int64))
    del array
    assert not memory.restored(COUNT, WORD, 2)[1]
    assert not memory.restored(COUNT, np.dtype(np.uint64), 1)[1]
    assert memory.restored(COUNT, WORD, 1)[1]


def test_small_array_is_never_taken_to_be_filled():
    memory = RecycledMemory()
    array, _ = memory.restored(3, WORD, 1)
    restore_later(array, np.array([0]))
    del array
    assert not memory.restored(3, WORD, 1)[1]


def test_filled_array_has_one_value_whatever_was_in_its_memory():
    backend = CpuBackend(1)
    for written in (slice(None), [3], [3, 5]):
        array = backend.filled(COUNT, WORD, -5)
        assert (array == -5).all()
        array[written] = 7
        if isinstance(written, list):
            restore_later(array, np.array(written))
        del array
    assert (backend.filled(COUNT, WORD, -5) == -5).all()
