"""Helpers shared by several CPU twins; prelude.cuh has their CUDA twins."""

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

# Vertices that a CPU thread collects before it appends them to the shared queue: one atomic for all of them.
BUFFER = 1024


def top_of(array: Array) -> float | int:
    """Return the state of an unreached vertex, in kernels.

    Resolved at compile time by an overload: Numba would compile both branches of a test on the dtype.
    """
    return unreached_of(array.dtype)


@overload(top_of)
def _top_of(array) -> Callable:
    if isinstance(array.dtype, types.Float):
        return lambda array: np.inf
    top = unreached_of(as_dtype(array.dtype))
    return lambda array: top


def next_of(array: Array, value: float | int) -> float | int:
    """Return the next value of the dtype of an array above one that is not the last, in kernels."""
    return np.nextafter(value, array.dtype.type(np.inf)) if array.dtype.kind == "f" else value + 1


@overload(next_of)
def _next_of(array, value) -> Callable:
    if isinstance(array.dtype, types.Float):
        return lambda array, value: np.nextafter(value, array.dtype.type(np.inf))
    return lambda array, value: value + 1


def weight_sort_key(weight: float | int) -> int:
    """Return a signed integer key with the order of weights, of 32 bits if the weight has 32 (in kernels)."""
    return _weight_sort_key(typeof(weight))(weight)


@overload(weight_sort_key)
def _weight_sort_key(weight) -> Callable:
    if isinstance(weight, types.Float):
        floating, integer = (np.float32, np.int32) if weight.bitwidth == 32 else (np.float64, np.int64)
        largest = np.iinfo(integer).max

        def from_bits(weight):
            # Negative floats order by falling magnitude: invert their bits below the sign.
            bits: Any = floating(weight).view(integer)
            return np.int64(bits if bits >= 0 else bits ^ largest)

        return from_bits
    # Shifted so that uint32 fits a signed key of 32 bits.
    middle = 2**31 if weight == types.uint32 else 0
    return lambda weight: np.int64(weight) - middle


@inline
def arcs_of(indptr, u):
    """Return where the row of a vertex begins and ends.

    Cast: of starts of 32 bits Numba's difference is unsigned, and its sum with an int64 a float.
    """
    i = np.uint64(u)
    return np.int64(indptr[i]), np.int64(indptr[i + np.uint64(1)])


@inline
def test_bit(bits, i):
    """Return bit i of a bitmap of 32-bit words, 0 or 1."""
    return (bits[i >> 5] >> (i & 31)) & 1


@inline
def has_bit(bits, i):
    """Return whether bit i is set.

    `bits` may be None, which has no bit set.
    """
    return False if bits is None else test_bit(bits, i) != 0


@inline
def joins_marked(marks, u, v, both_ways):
    """Return whether an edge from u to v leads from an active state to an open one, or back.

    Of the 64 bits for 32 states the upper half are active ones, the lower half open ones.
    """
    start = marks[u >> 5] >> (u & 31)
    end = marks[v >> 5] >> (v & 31)
    return ((start >> 32) & end & 1) != 0 or (both_ways != 0 and ((end >> 32) & start & 1) != 0)


@inline
def set_bit(bits, i):
    """Set bit i.

    Return whether it was clear, which is true for exactly one of several threads.
    """
    mask = 1 << (i & 31)
    return atomic_or(bits, i >> 5, mask) & mask == 0


@inline
def clear_bit(bits, i):
    """Clear bit i."""
    atomic_and(bits, i >> 5, ~(1 << (i & 31)))


@inline
def ones_of(word):
    """Return the number of set bits of a 32-bit word."""
    word = np.int64(word)
    word -= (word >> 1) & 0x55555555
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F
    return (word * 0x01010101 >> 24) & 0xFF


@inline
def ones_before(bits, before, i):
    """Return the number of set bits before bit i.

    `before` has the number of those before each word.
    """
    below = np.int64(bits[i >> 5]) & ((1 << (i & 31)) - 1)
    return np.int64(before[i >> 5]) + ones_of(below)


@inline
def row_of_arc(offsets, num_rows, arc):
    """Return the row of an arc: the last row with an offset not above it."""
    lo = 0
    hi = num_rows
    while hi - lo > 1:
        middle = (lo + hi) >> 1
        if offsets[middle] <= arc:
            lo = middle
        else:
            hi = middle
    return lo


@inline
def flush(buffer, length, queue, counters):
    """Append a thread's buffer to the queue of length counters[0]."""
    base = atomic_add(counters, 0, length)
    for i in range(length):
        queue[base + i] = buffer[i]


@inline
def hold(buffer, length, v, queue, counters):
    """Append v to a thread's buffer, flushing a full one first.

    Return the new length.
    """
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


# Classes of weights: class c holds the weights w with c <= w * scale < c + 1, the last class all heavier ones too.
WEIGHT_CLASSES = 256
# Row begin..end has the lightest arcs begin >> LIGHTEST_BITS .. end >> LIGHTEST_BITS, kept by class
# (shard/lightest_arcs.py); none where these are equal.
LIGHTEST_BITS = 2


@inline
def class_of(weight, scale):
    """Return the class of a weight."""
    x = np.float64(weight) * scale
    return np.int64(x) if x < WEIGHT_CLASSES - 1 else WEIGHT_CLASSES - 1


@inline
def class_edge(weight, scale):
    """Return the upper bound, in scaled weights, of the class of `weight`."""
    last = class_of(weight, scale)
    return np.float64(last + 1) if last < WEIGHT_CLASSES - 1 else np.inf


@inline
def light_end(weights, begin, end, scale, edge):
    """Return the end of the arcs with a scaled weight below `edge`, in begin..end by class."""
    while begin < end:
        middle = (begin + end) >> 1
        if np.float64(weights[middle]) * scale < edge:
            begin = middle + 1
        else:
            end = middle
    return begin
