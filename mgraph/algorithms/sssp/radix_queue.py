"""A priority queue of distances for one core: the nearest entries in a heap, all others in buckets by their bits.

A key is an integer with the order of the distances (weight_sort_key). A vertex has an entry for each time it was
lowered; one whose distance is no longer the vertex's is dropped sooner or later.

    near: a heap of the entries with keys below `limit`
    an entry with a key below `limit` is pushed to near, others are inserted in far
    where far is empty and near short, the limit rises to the new key; where near was empty, the base to the settled one
    far: bucket b has the keys that agree with `base` but for the lowest b bits, the highest of which differs
    where near has become long: its entries are inserted in far
    where near is empty: the first bucket, if it has few entries, becomes near; else its least key becomes the base,
        and its entries are dealt to the buckets before it

The first bucket has the least keys of all. No entry moves to a later one, and on weights of any kind most move a few
times only (a radix heap: Ahuja, Mehlhorn, Orlin, Tarjan, 1990). So the heap is short, and in the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.extending import intrinsic

from mgraph.backends.kernel import inline
from mgraph.backends.numba_helpers import weight_sort_key

# Words of `state`: entries in near and far, the first unused entry of far (a list, then all from an end on), the least
# key of far's buckets, and the end of near's; the first entry of each bucket, and the number of its entries.
NEAR, FAR, FREE, USED, BASE, LIMIT, HEADS = range(7)
NUM_BUCKETS = 65
COUNTS = HEADS + NUM_BUCKETS
# Further words are those of a search.
NUM_WORDS = COUNTS + NUM_BUCKETS
NONE = -1
# Few entries: a heap of as many takes no longer than their buckets would.
FEW = 16
# A near of more entries than this, most of which came later, is dealt to buckets again.
MANY = 4 * FEW


class RadixQueue(NamedTuple):
    """The arrays of a queue; `nexts` links the entries of a bucket.

    Kernels take them one by one: they would count references to parts of a tuple.
    """

    keys: np.ndarray
    vertices: np.ndarray
    far_keys: np.ndarray
    far_vertices: np.ndarray
    nexts: np.ndarray
    state: np.ndarray


def queue_shapes(capacity: int, dtype: np.dtype, vertex: np.dtype) -> tuple[tuple[int, np.dtype], ...]:
    """Return lengths and dtypes of all arrays but the state; near and far have at most `capacity` entries in all."""
    link = np.dtype(np.int32 if capacity < 2**31 else np.int64)
    return (capacity, dtype), (capacity, vertex), (capacity, dtype), (capacity, vertex), (capacity, link)


def queue_bytes(capacity: int, state: int, vertex: int) -> int:
    """Return the bytes of a queue."""
    return (2 * (state + vertex) + (4 if capacity < 2**31 else 8)) * capacity


# Its type says nothing of the function that it makes, which loses its first parameter.
_intrinsic: Callable[[Callable], Any] = intrinsic


@_intrinsic
def leading_zeros(_context, word) -> Any:
    """Return the number of leading zeros of a word of 64 bits."""

    def codegen(context, builder, signature, args):
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.int64), codegen


@inline
def push(keys, vertices, size, key, vertex):
    """Push an entry to a heap of `size` entries."""
    i = size
    while i > 0:
        above = (i - 1) >> 2
        if keys[above] <= key:
            break
        keys[i] = keys[above]
        vertices[i] = vertices[above]
        i = above
    keys[i] = key
    vertices[i] = vertex


@inline
def pop(keys, vertices, size):
    """Remove the first entry of a heap of `size` entries."""
    last = size - 1
    key = keys[last]
    i = 0
    while True:
        first = 4 * i + 1
        if first >= last:
            break
        least = first
        for child in range(first + 1, min(first + 4, last)):
            if keys[child] < keys[least]:
                least = child
        if keys[least] >= key:
            break
        keys[i] = keys[least]
        vertices[i] = vertices[least]
        i = least
    keys[i] = key
    vertices[i] = vertices[last]


@inline
def link(nexts, state, entry, bits):
    """Put an entry of far into the bucket of its key."""
    bucket = 64 - leading_zeros(bits ^ state[BASE])
    nexts[entry] = state[HEADS + bucket]
    state[HEADS + bucket] = entry
    state[COUNTS + bucket] += 1
    state[FAR] += 1


@inline
def raise_limit(state, settled, bits):
    """Make room in near for a new key where far is empty and near short; `settled` is the key that left last."""
    if state[FAR] == 0 and state[NEAR] < FEW:
        if state[NEAR] == 0:
            state[BASE] = settled
        state[LIMIT] = max(state[LIMIT], bits + 1)


@inline
def insert_far(far_keys, far_vertices, nexts, state, key, vertex):
    """Insert an entry with a key that is not below the limit."""
    entry = state[FREE]
    if entry == NONE:
        entry = state[USED]
        state[USED] += 1
    else:
        state[FREE] = nexts[entry]
    far_keys[entry] = key
    far_vertices[entry] = vertex
    bucket = 64 - leading_zeros(weight_sort_key(key) ^ state[BASE])
    nexts[entry] = state[HEADS + bucket]
    state[HEADS + bucket] = entry
    state[COUNTS + bucket] += 1
    state[FAR] += 1


@inline
def take_bucket(keys, vertices, far_keys, far_vertices, nexts, state, dist, bucket, to_near):
    """Take the entries out of a bucket, those that were lowered for good, and insert the others into near or far."""
    entry = state[HEADS + bucket]
    state[HEADS + bucket] = NONE
    state[FAR] -= state[COUNTS + bucket]
    state[COUNTS + bucket] = 0
    while entry != NONE:
        following = np.int64(nexts[entry])
        far_key = far_keys[entry]
        far_vertex = far_vertices[entry]
        is_last = dist[far_vertex] == far_key
        if is_last and not to_near:
            link(nexts, state, entry, weight_sort_key(far_key))
        else:
            if is_last:
                push(keys, vertices, state[NEAR], far_key, far_vertex)
                state[NEAR] += 1
            nexts[entry] = state[FREE]
            state[FREE] = entry
        entry = following


@inline
def refill(keys, vertices, far_keys, far_vertices, nexts, state, dist):
    """Move the entries of least keys to near, which is empty, unless none is left in far."""
    while state[NEAR] == 0 and state[FAR] > 0:
        first = 0
        while state[COUNTS + first] == 0:
            first += 1
        item = state[HEADS + first]
        least = weight_sort_key(far_keys[item])
        most = least
        while item != NONE:
            bits = weight_sort_key(far_keys[item])
            least = min(least, bits)
            most = max(most, bits)
            item = np.int64(nexts[item])
        # The buckets before this one are empty, and to all after it the new base is what the old one was.
        state[BASE] = least
        is_few = state[COUNTS + first] <= FEW or least == most
        state[LIMIT] = most + 1 if is_few else least
        take_bucket(keys, vertices, far_keys, far_vertices, nexts, state, dist, first, is_few)


@inline
def begin_queue(far_keys, far_vertices, nexts, state, waiting, dist):
    """Make a queue of vertices with their distances."""
    state[:] = 0
    state[FREE] = NONE
    # No key is less: those of 32-bit distances without a sign begin far below 0.
    state[BASE] = state[LIMIT] = np.iinfo(np.int64).min
    state[HEADS:COUNTS] = NONE
    for i in range(len(waiting)):
        insert_far(far_keys, far_vertices, nexts, state, dist[waiting[i]], waiting[i])


@inline
def spill(keys, vertices, far_keys, far_vertices, nexts, state):
    """Deal near to the buckets again."""
    num = state[NEAR]
    state[NEAR] = 0
    state[LIMIT] = state[BASE]
    for i in range(num):
        insert_far(far_keys, far_vertices, nexts, state, keys[i], vertices[i])


@inline
def drop_lowered(keys, vertices, far_keys, far_vertices, nexts, state, dist):
    """Drop the entries of vertices that were lowered since; then there is one a vertex at most."""
    num = state[NEAR]
    state[NEAR] = 0
    for i in range(num):
        key = keys[i]
        vertex = vertices[i]
        if dist[vertex] == key:
            push(keys, vertices, state[NEAR], key, vertex)
            state[NEAR] += 1
    for bucket in range(NUM_BUCKETS):
        take_bucket(keys, vertices, far_keys, far_vertices, nexts, state, dist, bucket, False)


def queue_capacity(num_vertices: int) -> int:
    """Return the capacity of a queue; a full one is left with at most one entry a vertex."""
    return num_vertices + num_vertices // 2 + 1
