"""The queue of the serial search: entries leave in order, whatever is inserted meanwhile."""

from __future__ import annotations

import heapq

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiers import examples

from mgraph.algorithms.sssp.radix_queue import (
    BASE,
    FAR,
    LIMIT,
    MANY,
    NEAR,
    NUM_WORDS,
    RadixQueue,
    begin_queue,
    drop_lowered,
    insert_far,
    pop,
    push,
    queue_shapes,
    raise_limit,
    refill,
    spill,
)
from mgraph.backends.kernel import inline
from mgraph.backends.numba_helpers import weight_sort_key


def make_queue(capacity, dtype):
    shapes = queue_shapes(capacity, np.dtype(dtype), np.dtype(np.uint32))
    return RadixQueue(*(np.empty(*shape) for shape in shapes), np.empty(NUM_WORDS, np.int64))


@inline
def insert_one(queue, key, vertex, settled, dist):
    """Insert an entry as settle_nearest() does, where it is no function."""
    keys, vertices, far_keys, far_vertices, nexts, state = queue
    if state[NEAR] + state[FAR] == len(queue.keys):
        drop_lowered(keys, vertices, far_keys, far_vertices, nexts, state, dist)
    bits = weight_sort_key(key)
    raise_limit(state, weight_sort_key(settled), bits)
    if bits < state[LIMIT]:
        push(keys, vertices, state[NEAR], key, vertex)
        state[NEAR] += 1
    else:
        insert_far(far_keys, far_vertices, nexts, state, key, vertex)
    if state[NEAR] > MANY and state[LIMIT] > state[BASE] + 1:
        spill(keys, vertices, far_keys, far_vertices, nexts, state)


@inline
def remove_first(queue, dist):
    """Remove the entry of the least key, and return the key; that of no entry is -1, of all bits."""
    keys, vertices, far_keys, far_vertices, nexts, state = queue
    if state[NEAR] == 0:
        refill(keys, vertices, far_keys, far_vertices, nexts, state, dist)
    if state[NEAR] == 0:
        return dist.dtype.type(-1)
    key = keys[0]
    pop(keys, vertices, state[NEAR])
    state[NEAR] -= 1
    return key


def run(dtype, starts, steps, size=400):
    """Insert and remove by turns; compare what leaves with the entries of heapq."""
    dist = np.zeros(size, dtype)
    dist[: len(starts)] = starts
    queue = make_queue(size, dtype)
    begin_queue(*queue[2:], np.arange(len(starts), dtype=np.uint32), dist)
    wanted = dist[: len(starts)].tolist()
    heapq.heapify(wanted)
    vertex = len(starts)
    settled = dtype(0)
    for step in steps:
        if step is None:
            key = remove_first(queue, dist)
            if not wanted:
                assert key == np.array(-1).astype(dtype)
                continue
            assert key == heapq.heappop(wanted)
            settled = key
        elif vertex < size:
            dist[vertex] = settled + dtype(step)
            insert_one(queue, dist[vertex], vertex, settled, dist)
            heapq.heappush(wanted, dist[vertex].item())
            vertex += 1
        assert queue.state[NEAR] + queue.state[FAR] == len(wanted)
        assert queue.state[BASE] <= queue.state[LIMIT]
    while wanted:
        assert remove_first(queue, dist) == heapq.heappop(wanted)


lengths = st.one_of(st.none(), st.integers(0, 3), st.integers(0, 10**6), st.just(0))


@examples(100)
@given(st.lists(st.integers(0, 1000), min_size=1, max_size=60), st.lists(lengths, max_size=300))
def test_integers_leave_in_order(starts, steps):
    run(np.int64, starts, steps)


@examples(100)
@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=60), st.lists(st.one_of(st.none(), st.floats(0, 1e300))))
def test_floats_leave_in_order(starts, steps):
    run(np.float64, starts, steps)


@pytest.mark.covering(ci=1)
@pytest.mark.parametrize("dtype", [np.uint32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("most", [1, 50, 10**6])
def test_long_queues_are_dealt_to_buckets(dtype, most):
    random = np.random.default_rng(most)
    steps = [
        None if remove else int(step)
        for remove, step in zip(random.random(600) < 0.4, random.integers(0, most, 600), strict=True)
    ]
    run(dtype, random.integers(0, most, 30), steps)


def test_keys_of_32_bits_without_a_sign_leave_in_order():
    middle = 2**31
    starts = [middle - 2, middle + 5, 3, middle, 2 * middle - 10**6]
    run(np.uint32, starts, [None, 7, None, middle, 0, None, 3] * 3)


def test_entries_of_lowered_vertices_are_dropped_from_a_full_queue():
    dist = np.full(100, 1000, np.int64)
    queue = make_queue(100, dist.dtype)
    begin_queue(*queue[2:], np.arange(10, dtype=np.uint32), dist)
    for k in range(1, 500):
        vertex = k % 10
        dist[vertex] -= 1
        insert_one(queue, dist[vertex], vertex, dist.dtype.type(0), dist)
        assert queue.state[NEAR] + queue.state[FAR] <= 100
    left = []
    while (key := remove_first(queue, dist)) != -1:
        left.append(key)
    assert left == sorted(left)
    assert set(dist[:10].tolist()) <= set(left)
