"""A barrier of cores that run the same compiled loop at once, each in a thread of its own.

A core that waits reads a word again and again, and lets other threads run now and then. Where one never comes the
others would wait forever: a thread that fails sets STOPPED, which ends all waiting.
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

# Words of a barrier, on cache lines of their own: cores that have arrived, barriers that are passed, and whether a
# core has failed.
ARRIVED, PASSED, STOPPED = range(0, 24, 8)
NUM_WORDS = 24
# Reads of a word before a core lets others run: some microseconds.
SPINS = 1 << 11
WORD_BYTES = 8

# Its type says nothing of the function that it makes, which loses its first parameter.
_intrinsic: Callable[[Callable], Any] = intrinsic


@_intrinsic
def atomic_load(_context, array, index) -> Any:
    """Return array[index], of 64-bit words, as another core has written it."""

    def codegen(context, builder, signature, args) -> ir.Value:
        array_type, index_type = signature.args
        struct = context.make_array(array_type)(context, builder, args[0])
        position = context.cast(builder, args[1], index_type, types.intp)
        pointer = cgutils.get_item_pointer(context, builder, array_type, struct, [position])
        return builder.load_atomic(pointer, "acquire", WORD_BYTES)

    return array.dtype(array, index), codegen


@_intrinsic
def add_and_publish(_context, array, index, value) -> Any:
    """Add to array[index], and return what it was: what this core has written before is seen by who reads the sum."""

    def codegen(context, builder, signature, args) -> ir.Value:
        array_type, index_type, value_type = signature.args
        struct = context.make_array(array_type)(context, builder, args[0])
        position = context.cast(builder, args[1], index_type, types.intp)
        pointer = cgutils.get_item_pointer(context, builder, array_type, struct, [position])
        # Atomics of numba_atomics.py order nothing else: some processors would let the sum be seen first.
        return builder.atomic_rmw(
            "add", pointer, context.cast(builder, args[2], value_type, array_type.dtype), "acq_rel"
        )

    return array.dtype(array, index, value), codegen


@_intrinsic
def leave_core(_context) -> Any:
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
    """Wait until all cores are here; return False if one of them has failed."""
    passed = atomic_load(barrier, PASSED)
    if add_and_publish(barrier, ARRIVED, 1) == num_cores - 1:
        barrier[ARRIVED] = 0
        add_and_publish(barrier, PASSED, 1)
    spins = 0
    while atomic_load(barrier, PASSED) == passed:
        if atomic_load(barrier, STOPPED) != 0:
            return False
        spins += 1
        if spins == SPINS:
            spins = 0
            leave_core()
    return atomic_load(barrier, STOPPED) == 0


@inline
def wait_often(barrier, num_cores, count):
    """Wait for all cores so many times; return False if one of them has failed."""
    is_running = True
    for _ in range(count):
        is_running = is_running and wait_for_all(barrier, num_cores)
    return is_running
