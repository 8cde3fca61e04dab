"""Compiled functions count references to arrays only where some are allocated, and free these."""

from __future__ import annotations

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

from mgraph.backends.kernel import inline


@inline
def first_of(values):
    return values[0]


@inline
def fresh(count):
    return np.full(count, 7)


@inline
def first_of_fresh(count):
    return first_of(fresh(count))


@inline
def halves_of(values):
    return values[: len(values) // 2], values[len(values) // 2 :]


def test_functions_that_allocate_nothing_count_no_references():
    counting = {made.__name__: made.targetoptions["_nrt"] for made in (first_of, fresh, first_of_fresh)}
    assert counting == {"first_of": False, "fresh": True, "first_of_fresh": True}
    assert first_of(np.array([3])) == 3


def test_function_that_counts_none_returns_no_array():
    with pytest.raises(TypeError, match="halves_of returns an array, and counts no references to it"):
        halves_of(np.arange(4))


def test_array_that_a_helper_returns_is_freed_by_its_caller():
    assert first_of_fresh(5) == 7
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats()
        for _ in range(10):
            first_of_fresh(1000)
        after = rtsys.get_allocation_stats()
    finally:
        _nrt_python.memsys_disable_stats()
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free == 10
