"""Threads that take ranges of work items in compiled code."""

from __future__ import annotations

import gc
import threading
import time
import weakref

import numpy as np
import pytest

from mgraph.backends import cpu, numba_ranges
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.kernel import inline
from mgraph.backends.numba_atomics import atomic_add, atomic_load
from mgraph.errors import CommAborted

NUM_ITEMS = 1000


@inline
def count(lo, hi, times):
    for i in range(lo, hi):
        times[i] += 1


@inline
def fail_at(lo, hi, item, times):
    for i in range(lo, hi):
        if i == item:
            raise ValueError("item is wrong")
        times[i] += 1


@inline
def count_and_wait(lo, hi, counter, may_end):
    atomic_add(counter, 0, hi - lo)
    while atomic_load(may_end, 0) == 0:
        pass


@inline
def take_nothing(lo, hi, times):
    """Do nothing with any item."""


@pytest.fixture
def cores(request):
    cores = CpuBackend(getattr(request, "param", 3))
    yield cores
    cores.close()


@pytest.mark.parametrize("cores", [1, 2, 5], indirect=True)
@pytest.mark.parametrize("num_items", [1, 2, 3, 7, 64, NUM_ITEMS])
def test_every_item_is_taken_once(cores, num_items):
    for _ in range(20):
        times = np.zeros(num_items, np.int64)
        cores.run_ranges(count, num_items, times)
        assert (times == 1).all()


@pytest.mark.parametrize("item", [0, NUM_ITEMS // 2, NUM_ITEMS - 1])
def test_error_of_any_thread_is_raised(cores, item):
    for _ in range(20):
        times = np.zeros(NUM_ITEMS, np.int64)
        with pytest.raises(ValueError, match="item is wrong"):
            cores.run_ranges(fail_at, NUM_ITEMS, item, times)
        assert times[item] == 0
        times[:] = 0
        cores.run_ranges(count, NUM_ITEMS, times)
        assert (times == 1).all()


def test_call_that_failed_in_every_thread_is_freed_without_the_garbage_collector(cores, monkeypatch):
    begun = threading.Barrier(cores.threads)

    def fail(*args):
        begun.wait(10)
        raise ValueError("item is wrong")

    def call():
        times = np.zeros(NUM_ITEMS, np.int64)
        with pytest.raises(ValueError, match="item is wrong"):
            cores.run_ranges(count, NUM_ITEMS, times)
        return weakref.ref(times)

    # Not in compiled code: Numba keeps the arguments of a function that fails.
    monkeypatch.setattr(numba_ranges, "_ranges_of", lambda function: fail)
    gc.collect()
    gc.disable()
    try:
        reference = call()
        # A helper drops its work after it has reported its end.
        cores.helpers.run(lambda: time.sleep(0.01))
        assert reference() is None
    finally:
        gc.enable()


def test_abort_leaves_the_ranges_that_are_not_taken(cores):
    counter = np.zeros(1, np.int64)
    may_end = np.zeros(1, np.int64)

    def abort_once_begun():
        while counter[0] == 0:
            time.sleep(1e-3)
        cores.stopped = "the call was ended"
        may_end[0] = 1

    aborts = threading.Thread(target=abort_once_begun)
    aborts.start()
    with pytest.raises(CommAborted, match="the call was ended"):
        cores.run_ranges(count_and_wait, NUM_ITEMS, counter, may_end)
    aborts.join()
    assert 0 < counter[0] < NUM_ITEMS


def test_call_waits_for_no_helper_that_has_not_begun_and_is_freed_at_once(cores):
    helpers_may_end = threading.Event()
    cores.helpers.offer(helpers_may_end.wait, cores.threads - 1)
    times = np.zeros(NUM_ITEMS, np.int64)
    cores.run_ranges(count, NUM_ITEMS, times)
    assert (times == 1).all()
    reference = weakref.ref(times)
    del times
    assert reference() is None
    helpers_may_end.set()
    # The helpers find the work done, and then take part in other work.
    times = np.zeros(NUM_ITEMS, np.int64)
    cores.run_ranges(count, NUM_ITEMS, times)
    assert (times == 1).all()


@pytest.mark.parametrize(("items", "threads"), [(4096, 1), (3 * 4096, 2), (64 * 4096, 8), (1 << 30, 16)])
def test_more_work_wakes_more_helpers(monkeypatch, items, threads):
    monkeypatch.setattr(cpu, "ITEMS_PER_HELPER", 4096)
    offered = []
    cores = CpuBackend(16)
    monkeypatch.setattr(cores.helpers, "offer", lambda work, num_helpers: offered.append(num_helpers))

    cores.run_ranges(take_nothing, items, np.zeros(1))

    cores.close()
    assert sum(offered) + 1 == threads
