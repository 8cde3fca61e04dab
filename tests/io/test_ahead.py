"""Items are mapped by several threads in their order, a few ahead, and the first failure is raised."""

from __future__ import annotations

import threading
import time

import pytest

from mgraph.io import ahead
from mgraph.io.ahead import mapped_ahead


def test_results_are_in_the_order_of_items():
    def late(i):
        time.sleep(0.002 * (i % 3))
        return i

    assert list(mapped_ahead(late, range(50), threads=4)) == list(range(50))
    assert list(mapped_ahead(late, [])) == []


@pytest.mark.parametrize(("threads", "per_thread"), [(1, 1), (2, 1), (3, 2)])
def test_few_items_are_made_ahead(threads, per_thread):
    made = 0

    def items():
        nonlocal made
        for i in range(100):
            made += 1
            yield i

    for taken, _ in enumerate(mapped_ahead(lambda i: i, items(), threads=threads, per_thread=per_thread)):
        assert made - taken <= threads * per_thread


def test_items_are_made_by_the_caller():
    caller = threading.get_ident()

    def items():
        for _ in range(10):
            assert threading.get_ident() == caller
            yield None

    mapped = list(mapped_ahead(lambda _: threading.get_ident(), items(), threads=2))
    assert caller not in mapped


def test_first_failure_ends_the_others():
    begun = []

    def fail(i):
        begun.append(i)
        if i == 3:
            raise ValueError("broken")
        return i

    results = mapped_ahead(fail, range(1000), threads=2)
    with pytest.raises(ValueError, match="broken"):
        list(results)
    assert max(begun) <= 3 + 2 * 2
    before = threading.active_count()
    next(results := mapped_ahead(fail, range(1000), threads=2))
    results.close()
    assert threading.active_count() <= before
    assert ahead.MAX_THREADS >= 2
