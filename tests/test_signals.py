"""Work in another thread completes or is undone if its caller is interrupted."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest
from dask_processes import wait_until

from mgraph.signals import run_uninterrupted


def test_no_thread_is_left_after_the_work():
    before = set(threading.enumerate())
    assert run_uninterrupted(threading.current_thread).name == "mgraph-aside"
    wait_until(lambda: set(threading.enumerate()) <= before)


def test_results_and_errors_come_from_another_thread():
    assert run_uninterrupted(threading.get_ident) != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        run_uninterrupted(lambda: 1 // 0)


def test_work_of_an_interrupted_caller_completes_and_is_undone():
    begun = threading.Event()
    may_finish = threading.Event()
    undone = []

    def make() -> str:
        begun.set()
        assert may_finish.wait(30)
        return "client"

    def interrupt() -> None:
        begun.wait(30)
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        run_uninterrupted(make, undone.append)
    assert undone == []
    may_finish.set()
    wait_until(lambda: undone == ["client"])


def test_work_that_fails_after_an_interrupt_is_not_undone():
    begun = threading.Event()
    may_fail = threading.Event()
    undone = []

    def make() -> None:
        begun.set()
        assert may_fail.wait(30)
        raise OSError

    threading.Thread(target=lambda: (begun.wait(30), time.sleep(0.05), os.kill(os.getpid(), signal.SIGINT))).start()
    with pytest.raises(KeyboardInterrupt):
        run_uninterrupted(make, undone.append)
    before = threading.active_count()
    may_fail.set()
    wait_until(lambda: threading.active_count() <= before)
    assert undone == []
