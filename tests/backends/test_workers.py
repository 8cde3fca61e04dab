"""Threads that share items: an error ends them, and holds nothing of the failed call."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

from mgraph.backends.cpu import CpuBackend
from mgraph.backends.thread_pool import Helpers
from mgraph.backends.workers import Workers


@pytest.mark.parametrize("threads", [1, 3])
def test_failed_call_is_freed_without_the_garbage_collector(threads):
    class Table:
        pass

    def call():
        table = Table()
        failed.append(weakref.ref(table))

        def read(piece):
            raise ValueError(f"{table}: piece {piece} is wrong")

        with pytest.raises(ValueError, match="piece 0 is wrong"):
            workers.map(read, range(5))

    failed = []
    workers = Workers(CpuBackend(threads))
    gc.collect()
    gc.disable()
    try:
        call()
        # A helper drops its work after it has reported its end.
        workers.map(lambda _: threading.Event().wait(0.01), range(9))
        assert failed[0]() is None
    finally:
        gc.enable()
        workers.close()


def test_error_of_a_helper_alone_is_freed_without_the_garbage_collector():
    class Table:
        pass

    def call():
        table = Table()
        failed.append(weakref.ref(table))
        caller = threading.get_ident()

        def work():
            if threading.get_ident() != caller:
                raise ValueError(f"{table} is wrong")

        with pytest.raises(ValueError, match="is wrong"):
            helpers.run(work)

    failed = []
    helpers = Helpers(1)
    gc.collect()
    gc.disable()
    try:
        call()
        # A helper drops its work after it has reported its end.
        helpers.run(lambda: threading.Event().wait(0.01))
        assert failed[0]() is None
    finally:
        gc.enable()
        helpers.close()
