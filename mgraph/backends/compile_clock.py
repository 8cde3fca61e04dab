"""The time that this process has spent on compiling or loading kernels, which is no part of a search's time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

from mgraph.backends.progress import Phase

# Numba holds this lock while it compiles, and while it loads what is kept on disk.
NUMBA_LOCK = "numba:compiler_lock"
NUMBA_COMPILES = "numba:compile"


class CompileClock(event.Listener):
    """Adds up the time in which at least one thread compiles.

    Attributes
    ----------
    seconds
        The sum, up to the last moment at which no thread compiled; a plain number, as searches read it often.
    phase
        What the process is seen doing while a thread compiles, None while none does.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.phase: Phase | None = None
        self._lock = threading.Lock()
        self._compiling = 0
        self._began = 0.0

    def now(self) -> float:
        """Return seconds that do not pass while a kernel is compiled."""
        return time.perf_counter() - self.seconds

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time of a block."""
        self.on_start()
        try:
            yield
        finally:
            self.on_end()

    def on_start(self, event: Any = None) -> None:
        """Begin, for one thread."""
        with self._lock:
            if not self._compiling:
                self._began = time.perf_counter()
                self.phase = Phase("compile")
            self._compiling += 1

    def on_end(self, event: Any = None) -> None:
        """End, for one thread."""
        with self._lock:
            self._compiling -= 1
            if not self._compiling:
                self.seconds += time.perf_counter() - self._began
                self.phase = None


CLOCK = CompileClock()
event.register(NUMBA_LOCK, CLOCK)

_said: set[str] = set()


def say_once(target: str, folder: str) -> None:
    """Log that kernels are compiled for a target, and where they are kept; once in this process."""
    if target not in _said:
        _said.add(target)
        where = {"rank": None, "job": "compile"}
        logging.getLogger("mgraph").info("compiling kernels for %s, kept in %s", target, folder, extra=where)


class _SaysOnce(event.Listener):
    """Says that Numba compiles kernels for the CPU, as against loading them."""

    def on_start(self, event: Any) -> None:
        dispatcher = event.data["dispatcher"]
        if dispatcher.py_func.__module__.startswith("mgraph."):
            say_once("the CPU", dispatcher.stats.cache_path)

    def on_end(self, event: Any) -> None:
        """Do nothing."""


event.register(NUMBA_COMPILES, _SaysOnce())
