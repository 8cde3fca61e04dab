"""The work items of a compiled function, shared by threads that take ranges of them in compiled code.

    the calling thread and each helper that is free:
        while work items are left: take a range of them; call the function

To take a range in Python a thread needs the interpreter's lock: with 16 threads that alone took a millisecond, for work
that takes one thread a third of it. The caller waits for the helpers that have begun, and for no other: one that wakes
up late finds nothing left.
"""

from __future__ import annotations

import functools
import time
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from mgraph.backends.kernel import inline
from mgraph.backends.numba_atomics import atomic_add_ordered, atomic_load
from mgraph.backends.numba_barrier import SPINS, yield_core
from mgraph.backends.thread_pool import Helpers

# The word with the next work item that no thread has taken. On further cache lines each thread has a word, which is 1
# while it works.
NEXT_ITEM = 0
LINE = 8
# Beyond every work item; the additions of all threads do not overflow it.
NO_ITEM = 1 << 62
# A caller that waits for a helper yields this often before it sleeps.
YIELDS = 64
SLEEP_S = 50e-6


def share_ranges(
    helpers: Helpers,
    num_threads: int,
    function: Callable[..., object],
    items: tuple[int, int, int],
    stop_word: np.ndarray,
    args: tuple,
) -> bool:
    """Call function(lo, hi, *args) with ranges of the work items, in up to `num_threads` threads.

    `items` has the first work item, the end, and the length of a range. No further range is taken once the stop word is
    set: then the result is False.
    """
    first, end, step = items
    words = np.zeros((1 + num_threads) * LINE, np.int64)
    words[NEXT_ITEM] = first
    take_ranges = _ranges_of(function)
    own, *others = range(LINE, len(words), LINE)
    lines = iter(others)
    # Empty once the work is done: a helper that begins later keeps no array alive.
    work = [(words, end, step, stop_word, *args)]
    errors: list[BaseException] = []

    def help_out() -> None:
        line = next(lines)
        words[line] = 1
        try:
            # A copy: the caller may clear the list meanwhile.
            for arguments in tuple(work):
                take_ranges(line, *arguments)
        except BaseException as error:
            errors.append(error)
        finally:
            words[line] = 0

    try:
        helpers.offer(help_out, num_threads - 1)
        take_ranges(own, *work[0])
        all_taken = bool(words[NEXT_ITEM] >= end)
    finally:
        # After an error, or an interrupt, items may be left.
        words[NEXT_ITEM] = NO_ITEM
        while not _have_ended(words, own):
            time.sleep(SLEEP_S)
        work.clear()
        failed = errors[:1]
        # Their tracebacks refer to a frame that refers to the list.
        errors.clear()
    if failed:
        try:
            raise failed[0]
        finally:
            # The error's traceback refers to this frame.
            del failed
    return all_taken


@functools.cache
def _ranges_of(function: Any) -> Any:
    """Return `_take_ranges` for a compiled function, kept on disk beside it.

    Numba compiles the globals of a function into its code: a copy of the function has a global of its own.
    """
    of_function = function.py_func
    code = _take_ranges.__code__.replace(
        co_filename=of_function.__code__.co_filename, co_firstlineno=of_function.__code__.co_firstlineno
    )
    copied = types.FunctionType(code, {**globals(), "called": function})
    copied.__module__ = of_function.__module__
    copied.__qualname__ = f"{of_function.__qualname__}.ranges"
    return inline(copied)


# The compiled function, in a copy of `_take_ranges`.
called: Any = None


def _take_ranges(line: int, words: np.ndarray, end: int, step: int, stop_word: np.ndarray, *args: Any) -> None:
    while atomic_load(stop_word, 0) == 0:
        # Ordered: a caller that finds no item left sees that the threads that took them are at work.
        start = atomic_add_ordered(words, NEXT_ITEM, step)
        if start >= end:
            break
        called(start, min(start + step, end), *args)
    # What this thread has written is seen by the caller, which waits for it.
    atomic_add_ordered(words, line, -1)


@inline
def _have_ended(words, own):
    """Return whether all helpers that began have ended, after a short wait."""
    for line in range(own + LINE, len(words), LINE):
        yields = 0
        while atomic_load(words, line) > 0:
            for _ in range(SPINS):
                if atomic_load(words, line) <= 0:
                    break
            else:
                yields += 1
                if yields > YIELDS:
                    return False
                yield_core()
    return True
