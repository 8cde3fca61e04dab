"""What a compilation keeps: in memory nothing of its caller, and on disk what other processes load."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys

import numpy as np
import pytest

from mgraph.backends import numba_compile, totals
from mgraph.backends.kernel import inline


def double(x):
    return x + x


@pytest.fixture
def files(monkeypatch, tmp_path):
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    return lambda: sorted(tmp_path.rglob("*.nbc"))


def test_signatures_that_two_processes_compile_at_once_are_kept_in_two_files(files, monkeypatch):
    first = inline(double)
    second = inline(double)
    cache = second._cache._cache_file
    # As if both had read the index before either wrote it.
    before = cache._load_index()
    monkeypatch.setattr(cache, "_load_index", lambda: dict(before))
    assert first(np.int64(3)) == 6
    assert second(np.float64(2.5)) == 5.0
    assert len(files()) == 2
    # A process that comes later compiles what the index has lost, and loads no other code for it.
    for value in (np.int64(3), np.float64(2.5)):
        assert inline(double)(value) == 2 * value


# The first copy of a part of an array that Numba compiles in a process leaves cycles of references to all frames.
COMPILE = """
import gc, weakref
import numpy as np
from mgraph.algorithms.components.kernels import label_users
gc.disable()
def compile_with(result):
    roots, labels = np.zeros(4, np.uint32), np.zeros(4, np.int64)
    label_users.cpu(0, 4, None, 0, 4, 4, 1, None, 0, roots, None, labels)
    return [weakref.ref(array) for array in (result, roots, labels)]
assert [kept() for kept in compile_with(np.ones(3))] == [None] * 3
"""


@pytest.mark.ci
def test_compilation_keeps_nothing_of_its_caller(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", COMPILE], env=environment, check=True, timeout=120)
    assert list(tmp_path.rglob("*.nbc"))


@pytest.fixture
def locked():
    """Hold the lock of a file, as a process does that compiles a function of it, and return what releases it."""
    with contextlib.ExitStack() as held:

        def lock(path):
            file = held.enter_context(open(path, "rb"))
            fcntl.flock(file, fcntl.LOCK_EX)
            return lambda: fcntl.flock(file, fcntl.LOCK_UN)

        yield lock


# What a process compiles, and does not load from the cache.
COMPILED = """
import numpy as np
from mgraph.backends.totals import add_up
print("ready", flush=True)
add_up.cpu(0, 4, np.ones(4, np.int64), np.zeros(1, np.int64))
print(sum(add_up.cpu.stats.cache_misses.values()))
"""


@pytest.mark.ci
def test_processes_that_call_a_function_at_once_compile_it_once(tmp_path, locked):
    release = locked(totals.__file__)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = sys.executable, "-c", COMPILED
    started = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [each.stdout.readline() for each in started] == ["ready\n"] * 2
    release()
    assert sorted(int(each.communicate(timeout=100)[0]) for each in started) == [0, 1]


def test_function_is_compiled_beside_a_process_that_is_stopped_while_it_compiles(files, locked, monkeypatch):
    monkeypatch.setattr(numba_compile, "WAIT_S", 0.05)
    locked(__file__)
    assert inline(double)(np.int64(3)) == 6
    assert len(files()) == 1
