"""A barrier of threads that run the same compiled loop at once, one on each core.

A thread that waits spins on a word, and yields now and then. If one thread never arrives the others would spin forever:
a thread that fails sets STOPPED, which ends all waiting.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.extending import intrinsic

from mgraph.backends.kernel import inline
from mgraph.backends.numba_atomics import atomic_add_ordered, atomic_load

# Words of a barrier, on cache lines of their own: cores that have arrived, barriers that are passed, and whether a
# core has failed.
ARRIVED, PASSED, STOPPED = range(0, 24, 8)
NUM_WORDS = 24
# Reads of a word between two yields: some microseconds.
SPINS = 1 << 11

# Its type says nothing of the function that it makes, which loses its first parameter.
_intrinsic: Callable[[Callable], Any] = intrinsic


@_intrinsic
def yield_core(_context) -> Any:
    """Let another thread run on this core, if one waits for it."""

    def codegen(context, builder, _signature, _args):
        if os.name == "posix":
            function = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(ir.IntType(32), []), "sched_yield"
            )
            builder.call(function, [])
        return context.get_dummy_value()

    return types.void(), codegen


def new_barrier() -> np.ndarray:
    """Return the words of a barrier."""
    return np.zeros(NUM_WORDS, np.int64)


@inline
def wait_for_all(barrier, num_cores):
    """Pass the barrier once all cores have arrived; return False if one of them has failed."""
    passed = atomic_load(barrier, PASSED)
    if atomic_add_ordered(barrier, ARRIVED, 1) == num_cores - 1:
        barrier[ARRIVED] = 0
        atomic_add_ordered(barrier, PASSED, 1)
    spins = 0
    while atomic_load(barrier, PASSED) == passed:
        if atomic_load(barrier, STOPPED) != 0:
            return False
        spins += 1
        if spins == SPINS:
            spins = 0
            yield_core()
    return atomic_load(barrier, STOPPED) == 0


@inline
def wait_often(barrier, num_cores, count):
    """Pass the barrier `count` times; return False if a core has failed."""
    is_running = True
    for _ in range(count):
        is_running = is_running and wait_for_all(barrier, num_cores)
    return is_running
