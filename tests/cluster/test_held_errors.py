"""Errors that handlers of signals raise are held until the end of a block."""

from __future__ import annotations

import ctypes
import faulthandler
import itertools
import signal
import socket
import threading

import pytest
from interrupts import interrupted_at, of_package

from mgraph.cluster.caller_thread import SIGACTION_BYTES, HeldErrors


def disposition(number) -> bytes:
    """Return what the system does with a signal: the handler in C, the mask of signals, and the flags."""
    state = ctypes.create_string_buffer(SIGACTION_BYTES)
    assert ctypes.CDLL(None).sigaction(int(number), None, state) == 0
    # Linux has a mask of 64 signals, glibc room for 1024.
    return state.raw[:16] + state.raw[136:140]


def test_errors_of_handlers_are_raised_at_the_end_of_the_block():
    done = []

    def block():
        with HeldErrors(lambda: done.append("on error")) as held:
            signal.raise_signal(signal.SIGINT)
            assert isinstance(held.error, KeyboardInterrupt)
            done.append("block")

    with pytest.raises(KeyboardInterrupt):
        block()
    assert done == ["on error", "block"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_last_error_is_raised_with_the_one_before_as_its_context():
    def stop(number, frame):
        raise SystemExit

    def block():
        with HeldErrors(lambda: None):
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        with pytest.raises(SystemExit) as raised:
            block()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert isinstance(raised.value.__context__, KeyboardInterrupt)


def test_what_the_system_does_with_a_signal_stays_as_it_is():
    before = signal.signal(signal.SIGUSR1, lambda number, frame: None)
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    try:
        # As asyncio does; and a handler in C before that of Python.
        signal.siginterrupt(signal.SIGUSR1, False)
        faulthandler.register(signal.SIGUSR1, file=writer, chain=True)
        signal.set_wakeup_fd(writer.fileno())
        expected = disposition(signal.SIGUSR1)
        with HeldErrors(lambda: None):
            assert disposition(signal.SIGUSR1) == expected
        assert disposition(signal.SIGUSR1) == expected
        assert signal.set_wakeup_fd(-1) == writer.fileno()
    finally:
        signal.set_wakeup_fd(-1)
        faulthandler.unregister(signal.SIGUSR1)
        signal.signal(signal.SIGUSR1, before)
        reader.close()
        writer.close()


def test_handler_that_is_set_within_the_block_stays():
    def once(number, frame):
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)

    before = signal.signal(signal.SIGUSR1, once)
    try:
        with HeldErrors(lambda: None):
            signal.raise_signal(signal.SIGUSR1)
        assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_no_handler_is_replaced_in_another_thread():
    found = []

    def enter():
        with HeldErrors(lambda: None):
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join(30)
    assert found == [signal.default_int_handler]


def test_handlers_are_restored_after_a_signal_at_any_instruction():
    """With two handlers that raise: the first one restored may raise before the second one is."""

    def stop(number, frame):
        raise KeyboardInterrupt

    def block():
        with HeldErrors(lambda: None):
            pass

    before = signal.signal(signal.SIGTERM, stop)
    try:
        for step in itertools.count():
            was_interrupted = interrupted_at(step, block, of_package("cluster/caller_thread.py"))
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
            assert signal.getsignal(signal.SIGTERM) is stop
            if not was_interrupted:
                break
        assert step > 100
    finally:
        signal.signal(signal.SIGTERM, before)


def test_handler_that_could_not_be_restored_has_no_effect_and_is_replaced():
    held = HeldErrors(lambda: None)
    with held:
        pass
    signal.signal(signal.SIGINT, held)
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with HeldErrors(lambda: None):
            pass
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
