"""Partitions: all small ones exhaustively, and the arithmetic at the limit of 32 bits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mgraph.partition import ALIGNMENT, Partition, common_locals, own_states
from mgraph.types import none_of

SIZES = [0, 1, 2, 3, 6, 7, 8, 63, 64, 65, 127, 128, 129, 191, 192, 193, 448, 449, 1000]
RANKS = [1, 2, 3, 4, 7, 8]
PARTITIONS = [Partition(n, p, cyclic) for n, p, cyclic in itertools.product(SIZES, RANKS, [True, False])]
# Small enough to list, large for what they count: the arithmetic near 2^32 and beyond.
LARGE = [
    Partition(n, p, cyclic)
    for n, p, cyclic in itertools.product(
        [2**31, 2**32 - 2 - 64 * 7, 2**32 - 64, 2**32 - 2, 2**32 - 1, 2**32, 2**33 + 1, 2**40 + 12345],
        [1, 2, 3, 7],
        [True, False],
    )
]


def describe(partition: Partition) -> str:
    return f"{partition.num_positions}-{partition.num_ranks}-{'cyclic' if partition.cyclic else 'ranges'}"


@pytest.mark.parametrize("partition", PARTITIONS, ids=describe)
def test_states_are_a_bijection_and_each_owner_has_a_contiguous_slice(partition):
    n = partition.num_positions
    p = partition.num_ranks
    stride = partition.stride
    positions = np.arange(n)
    states = partition.state(positions)
    owners = partition.owner(positions)
    locals_ = partition.local(positions)

    assert np.array_equal(states, owners * stride + locals_)
    assert np.array_equal(partition.position(states), positions), "position() is not the inverse of state()"
    assert sum(partition.num_owned(rank) for rank in range(p)) == n
    for rank in range(p):
        owned = partition.num_owned(rank)
        assert 0 <= owned <= stride
        assert np.array_equal(np.sort(states[owners == rank]), rank * stride + np.arange(owned))
        # Positions rise with the state index within a slice: the smallest position is the first.
        by_local = partition.offset(rank) + np.arange(owned) * partition.multiplier
        assert np.array_equal(partition.position(rank * stride + np.arange(owned)), by_local)
        assert np.array_equal(partition.owner(by_local), np.full(owned, rank))


@pytest.mark.parametrize("num", SIZES)
def test_common_locals_are_those_of_the_positions_that_both_ranks_own(num):
    for one, other in itertools.product([p for p in PARTITIONS if p.num_positions == num], repeat=2):
        positions = np.arange(num)
        for rank, other_rank in itertools.product(range(one.num_ranks), range(other.num_ranks)):
            both = positions[(one.owner(positions) == rank) & (other.owner(positions) == other_rank)]
            found = common_locals(one, rank, other, other_rank)
            for partition, own, locals_ in ((one, rank, found[0]), (other, other_rank, found[1])):
                listed = np.arange(partition.num_owned(own))[locals_]
                assert np.array_equal(listed, partition.local(both)), (one, rank, other, other_rank)
                assert len(listed) == len(range(locals_.start, locals_.stop, locals_.step))


@pytest.mark.parametrize("partition", PARTITIONS, ids=describe)
def test_slices_are_whole_bitmap_words_and_no_longer_than_needed(partition):
    share = -(-partition.num_positions // partition.num_ranks)
    assert partition.stride % ALIGNMENT == 0
    assert max(share, 1) <= partition.stride < max(share, 1) + ALIGNMENT
    assert partition.num_states == partition.stride * partition.num_ranks


@pytest.mark.parametrize("partition", PARTITIONS, ids=describe)
def test_results_do_not_depend_on_the_id_dtype(partition):
    positions = range(0, partition.num_positions, 13)
    for function in (partition.owner, partition.local, partition.state):
        expected = [function(position) for position in positions]
        assert all(isinstance(value, int) for value in expected)
        for dtype in (np.uint32, np.int64):
            got = function(np.array(positions, dtype))
            assert got.dtype == dtype
            assert got.tolist() == expected
    states = [partition.state(position) for position in positions]
    assert [partition.position(state) for state in states] == list(positions)
    assert partition.position(np.array(states, np.uint32)).tolist() == list(positions)


@pytest.mark.parametrize("partition", [p for p in PARTITIONS if p.cyclic], ids=describe)
def test_cyclic_shares_differ_by_at_most_one(partition):
    shares = [partition.num_owned(rank) for rank in range(partition.num_ranks)]
    assert max(shares) - min(shares) <= 1
    assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize("partition", [p for p in PARTITIONS if not p.cyclic], ids=describe)
def test_ranges_keep_neighbors_together(partition):
    positions = np.arange(partition.num_positions)
    assert np.array_equal(partition.state(positions), positions)
    assert (np.diff(partition.owner(positions)) >= 0).all()


@pytest.mark.parametrize("partition", LARGE, ids=describe)
def test_arithmetic_does_not_overflow_its_dtype(partition):
    # The dtype must hold every state index below its sentinel; arrays of it must agree with Python's integers.
    n = partition.num_positions
    dtype = partition.dtype
    assert partition.num_states - 1 < none_of(dtype)
    assert dtype == (np.uint32 if partition.num_states < 2**32 - 1 else np.int64)
    edges = [0, 1, n // 3, n // 2, n - 2, n - 1, *(partition.offset(r) for r in range(partition.num_ranks))]
    positions = [position for position in edges if position < n]
    states = [partition.state(position) for position in positions]
    assert partition.state(np.array(positions, dtype)).tolist() == states
    assert partition.position(np.array(states, dtype)).tolist() == positions
    assert partition.owner(np.array(positions, dtype)).tolist() == [partition.owner(q) for q in positions]
    assert max(states) < partition.num_states
    assert sum(partition.num_owned(rank) for rank in range(partition.num_ranks)) == n


def test_dtype_depends_on_the_padded_length():
    # 2^32 - 64 positions fit 32 bits on one rank; padded over 7 ranks they no longer do.
    n = 2**32 - 64
    assert Partition(n, 1, cyclic=True).dtype == np.uint32
    assert Partition(n, 7, cyclic=True).dtype == np.int64


@pytest.mark.parametrize("partition", PARTITIONS, ids=describe)
def test_no_rank_owns_what_is_no_position(partition):
    """Not even in the padding after its last state, for which there is no row."""
    n = partition.num_positions
    asked = [*range(min(n, 200)), *range(n, n + 200)]
    for rank in range(partition.num_ranks):
        first = rank * partition.stride
        own = own_states(partition, rank, [*asked, *asked]).tolist()
        assert all(first <= state < first + partition.num_owned(rank) for state in own)
        assert {q for q in asked if q < n and partition.owner(q) == rank} <= {partition.position(s) for s in own}
