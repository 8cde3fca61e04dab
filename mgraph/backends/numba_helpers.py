"""What several CPU twins share; prelude.cuh has the same for CUDA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import typeof, types
from numba.extending import overload
from numba.np.numpy_support import as_dtype

from mgraph.backends.kernel import inline
from mgraph.backends.numba_atomics import atomic_add, atomic_and, atomic_or
from mgraph.types import Array, unreached_of

# Vertices a CPU thread collects before it takes room in the shared queue: one atomic for many.
BUFFER = 1024


def top_of(array: Array) -> float | int:
    """Return the value of a state not reached, in kernels: Numba compiles both sides of a test on a dtype."""
    return unreached_of(array.dtype)


@overload(top_of)
def _top_of(array) -> Callable:
    if isinstance(array.dtype, types.Float):
        return lambda array: np.inf
    top = unreached_of(as_dtype(array.dtype))
    return lambda array: top


def order_of(weight: float | int) -> int:
    """Return an integer of the weight's order, of 32 bits where the weight has no more (in kernels)."""
    return _order_of(typeof(weight))(weight)


@overload(order_of)
def _order_of(weight) -> Callable:
    if isinstance(weight, types.Float):
        floating, integer = (np.float32, np.int32) if weight.bitwidth == 32 else (np.float64, np.int64)
        largest = np.iinfo(integer).max

        def from_bits(weight):
            # Of negative floats, more magnitude is less.
            bits: Any = floating(weight).view(integer)
            return np.int64(bits if bits >= 0 else bits ^ largest)

        return from_bits
    # The middle of an unsigned word becomes 0.
    middle = 2**31 if weight == types.uint32 else 0
    return lambda weight: np.int64(weight) - middle


@inline
def test_bit(bits, i):
    """Return whether bit i of a bitmap of 32-bit words is set."""
    return (bits[i >> 5] >> (i & 31)) & 1


@inline
def has_bit(bits, i):
    """Return whether bit i is set, where there are bits; None has none."""
    return False if bits is None else test_bit(bits, i) != 0


@inline
def set_bit(bits, i):
    """Set bit i; return whether it was clear before, so that of many threads one sees it."""
    mask = 1 << (i & 31)
    return atomic_or(bits, i >> 5, mask) & mask == 0


@inline
def clear_bit(bits, i):
    """Clear bit i."""
    atomic_and(bits, i >> 5, ~(1 << (i & 31)))


@inline
def ones_of(word):
    """Return how many bits of a 32-bit word are set."""
    word = np.int64(word)
    word -= (word >> 1) & 0x55555555
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F
    return (word * 0x01010101 >> 24) & 0xFF


@inline
def ones_before(bits, before, i):
    """Return what `before` has for the word of bit i, and how many bits are set in front of it there."""
    below = np.int64(bits[i >> 5]) & ((1 << (i & 31)) - 1)
    return np.int64(before[i >> 5]) + ones_of(below)


@inline
def row_of_arc(offsets, num_rows, arc):
    """Return the row that holds `arc`: the last whose offset is not above it."""
    lo, hi = 0, num_rows
    while hi - lo > 1:
        middle = (lo + hi) >> 1
        if offsets[middle] <= arc:
            lo = middle
        else:
            hi = middle
    return lo


@inline
def flush(buffer, length, queue, counters):
    """Append a thread's buffer to the queue whose length is counters[0]."""
    base = atomic_add(counters, 0, length)
    for i in range(length):
        queue[base + i] = buffer[i]


@inline
def hold(buffer, length, v, queue, counters):
    """Put v into a thread's buffer, which is flushed where it is full; return its new length."""
    if length == len(buffer):
        flush(buffer, length, queue, counters)
        length = 0
    buffer[length] = v
    return length + 1


@inline
def position_of(state, stride, multiplier):
    """Return the position of a state index, as Partition.position does."""
    if multiplier == 1:
        return state
    return state % stride * multiplier + state // stride


@inline
def state_of(position, stride, multiplier):
    """Return the state index of a position, as Partition.state does."""
    if multiplier == 1:
        return position
    return position % multiplier * stride + position // multiplier


# Weights in classes, heavier ones in higher ones: class c is up to the edge c + 1, the last has no edge.
WEIGHT_CLASSES = 256


@inline
def class_of(weight, scale):
    """Return the class of a weight."""
    x = np.float64(weight) * scale
    return np.int64(x) if x < WEIGHT_CLASSES - 1 else WEIGHT_CLASSES - 1


@inline
def class_edge(room, scale):
    """Return the edge of the class of what weighs `room`."""
    last = class_of(room, scale)
    return np.float64(last + 1) if last < WEIGHT_CLASSES - 1 else np.inf


@inline
def light_end(weights, begin, end, scale, edge):
    """Return where the arcs below an edge end, in a row by weight."""
    while begin < end:
        middle = (begin + end) >> 1
        if np.float64(weights[middle]) * scale < edge:
            begin = middle + 1
        else:
            end = middle
    return begin
