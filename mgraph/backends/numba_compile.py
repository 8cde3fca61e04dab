"""What Numba compiles: kept on disk by signature, once for all processes, and without references to its callers."""

from __future__ import annotations

import functools
import gc
import inspect
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
from numba import types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

from mgraph.signals import run_uninterrupted

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# How long a process waits for another one that compiles functions of the same file; it may be stopped.
WAIT_S = 20.0
LOOK_S = 0.01
# Names by which functions allocate arrays; one that is missing here is an error of Numba's.
ALLOCATING = frozenset(["arange", "array", "copy", "empty", "empty_like", "full", "ones", "zeros", "zeros_like"])
# Paths of the files that this process has locked; guarded by Numba's own lock.
_locked: set[str] = set()


def compiled(function: Callable) -> Any:
    """Return a function that Numba compiles for each signature at its first call.

    It counts references to arrays only if it allocates some: its caller holds all others. A helper with arrays that is
    called for each edge would take ten times as long, as all cores write the same counts. Helpers are called by their
    bare names: those that allocate are found by these.
    """
    made = numba.njit(nogil=True, cache=True, error_model="numpy", _nrt=_allocates(function))(function)
    if not isinstance(made, Dispatcher):
        return made  # NUMBA_DISABLE_JIT is set
    return _compiled_aside(_compiled_once(_kept_apart(made)))


def _allocates(function: Callable) -> bool:
    """Return whether a function allocates arrays, or calls a compiled one that does, and may return one."""
    names = function.__code__.co_names
    called = (function.__globals__.get(name) for name in names)
    of_called = (getattr(one, "targetoptions", None) for one in called)
    return not ALLOCATING.isdisjoint(names) or any(options and options.get("_nrt") for options in of_called)


def _kept_apart(made: Any) -> Any:
    """Have each signature of a compiled function kept in a file with a name of its own; return the function.

    Race: Numba numbers these files 1, 2, ... by an index that it reads before. Two processes that compile different
    signatures of a function at the same time would write one file, and later ones load the wrong code from it. They
    do so where the lock of `_compiled_once` cannot be had.
    """
    file = made._cache._cache_file
    file._data_name = lambda _: file._data_name_pattern.format(number=secrets.randbits(63))
    return made


def _compiled_once(made: Any) -> Any:
    """Have one process at a time compile functions of a file; the others then load what it has compiled."""
    compile_here = made.compile
    path = inspect.getfile(made.py_func)

    def compile_signature(signature: Any) -> Any:
        # Numba's lock first, always. Of several files the importing one is locked first: no two processes wait for
        # each other.
        with global_compiler_lock, _lock(path), _no_collection():
            entry = compile_here(signature)
        if not made.targetoptions["_nrt"]:
            _require_no_arrays(made)
        return entry

    made.compile = compile_signature
    return made


def _require_no_arrays(made: Any) -> None:
    """Raise TypeError if a function that counts no references returns an array: its caller would end one of them."""
    for overload in made.overloads.values():
        if _holds_array(overload.signature.return_type):
            raise TypeError(f"{made.py_func.__name__} returns an array, and counts no references to it")


def _holds_array(kind: Any) -> bool:
    return isinstance(kind, types.Array) or (isinstance(kind, types.BaseTuple) and any(map(_holds_array, kind)))


@contextmanager
def _no_collection() -> Iterator[None]:
    """Collect no garbage: a seventh of the time to compile, for the few objects that die in cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def _lock(path: str) -> Iterator[None]:
    """Hold the lock of a file, or none if it is not to be had within WAIT_S, or not at all on this file system."""
    if fcntl is None or path in _locked:
        yield
        return
    with open(path, "rb") as file:
        is_held = _acquire(file)
        _locked.add(path)
        try:
            yield
        finally:
            _locked.discard(path)
            if is_held:
                # Closing alone would leave it to a child forked meanwhile.
                fcntl.flock(file, fcntl.LOCK_UN)


def _acquire(file: Any) -> bool:
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(LOOK_S)
        except OSError:
            break
    return False


def _compiled_aside(made: Any) -> Any:
    """Have each signature of a compiled function compiled in another thread; return the function.

    What Numba leaves in cycles of references refers to all frames of the thread that compiles. In the caller's these
    hold arrays and results, which would live until a collection of garbage.
    """

    def compile_for(*args: Any) -> Any:
        signature = tuple(map(made.typeof_pyval, args))
        try:
            return run_uninterrupted(functools.partial(made.compile, signature))
        except RuntimeError:
            # Where no thread can start, as when the interpreter ends; other errors are raised again.
            return made.compile(signature)
        finally:
            made._types_active_call.clear()

    made._compile_for_args = compile_for
    return made
