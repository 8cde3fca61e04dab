"""Result routing: the indices of vertices' values on their way to the ranks that serve their user ids."""

from __future__ import annotations

import numpy as np
import pytest
from naive_shard import build_shards
from on_ranks import run_on_ranks
from zoo import make_case, random_case

from mgraph.shard.result_routing import PART_ALIGNMENT, aligned_starts, require_result_routing


def test_parts_begin_at_aligned_starts():
    assert aligned_starts([0, 1, 16, 17, 0]) == [0, 0, 16, 32, 64, 64]


def places(bits, before):
    """Return the set bits, and for each the index of its value."""
    states = np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little"))
    in_front = [int(bits[s >> 5]) & ((1 << (s & 31)) - 1) for s in states.tolist()]
    return states, before[states >> 5] + [word.bit_count() for word in in_front]


@pytest.mark.parametrize("num_ranks", [2, 3, 4])
@pytest.mark.parametrize("case", [random_case(5), make_case("few", 40, [(0, 39), (7, 8)])], ids=lambda case: case.name)
def test_every_vertex_has_an_index_in_the_part_of_its_server(case, num_ranks):
    shards = build_shards(case, num_ranks, "degree")
    routings = run_on_ranks(require_result_routing, shards)
    for r, (shard, own) in enumerate(zip(shards, routings, strict=True)):
        stride = shard.partition.stride
        for bits, before, nums in (
            (own.send_bits, own.send_before, own.send_counts),
            (own.recv_bits, own.recv_before, own.recv_counts),
        ):
            states, at = places(bits, before)
            starts = aligned_starts(nums)
            assert all(start % PART_ALIGNMENT == 0 for start in starts)
            assert at.tolist() == [start + k for start, num in zip(starts, nums, strict=False) for k in range(num)]
            assert np.bincount(states // stride, minlength=num_ranks).tolist() == nums
        # Every rank receives as many values as are sent to it.
        assert own.send_counts == [routings[to].recv_counts[r] for to in range(num_ranks)]
        states, _ = places(own.send_bits, own.send_before)
        home_of = shard.user_of_local.astype(np.int64) // shard.user_stride
        assert (states % stride).tolist() == np.argsort(home_of, kind="stable").tolist()
