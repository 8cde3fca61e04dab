"""Result routing: the indices of vertices' values on their way to the ranks that serve their user ids."""

from __future__ import annotations

import numpy as np
import pytest
from naive_shard import build_shards
from on_ranks import run_on_ranks
from zoo import make_case, random_case

from mgraph.shard.result_routing import PART_ALIGNMENT, aligned_starts, bits_of_range, require_result_routing


def test_parts_begin_at_aligned_starts():
    assert aligned_starts([0, 1, 32, 33, 0]) == [0, 0, 32, 64, 128, 128]


def places(bits, before):
    """Return the set bits, and for each the index of its value."""
    ids = np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little"))
    in_front = [int(bits[i >> 5]) & ((1 << (i & 31)) - 1) for i in ids.tolist()]
    return ids, before[ids >> 5] + [word.bit_count() for word in in_front]


@pytest.mark.parametrize("num_ranks", [2, 3, 4])
@pytest.mark.parametrize("case", [random_case(5), make_case("few", 40, [(0, 39), (7, 8)])], ids=lambda case: case.name)
def test_every_value_has_an_index_in_the_order_of_user_ids(case, num_ranks):
    shards = build_shards(case, num_ranks, "degree")
    routings = run_on_ranks(require_result_routing, shards)
    counts = routings[0].counts
    for r, (shard, own) in enumerate(zip(shards, routings, strict=True)):
        assert (own.counts == counts).all()
        # The owned vertices by user id, each part at an aligned start.
        starts = aligned_starts(counts[r].tolist())
        assert all(start % PART_ALIGNMENT == 0 for start in starts)
        assert len(own.order) == starts[-1]
        sent = [own.order[start : start + num] for start, num in zip(starts, counts[r], strict=False)]
        assert np.concatenate(sent).tolist() == np.argsort(shard.user_of_local).tolist()
        served = [np.unique(shard.user_of_local[part] // shard.user_stride).tolist() for part in sent]
        assert served == [[to] if num else [] for to, num in enumerate(counts[r].tolist())]
        # The values received, by rank and user id.
        ids, at = places(own.recv_bits, own.recv_before)
        nums = counts[:, r].tolist()
        starts = aligned_starts(nums)
        assert at.tolist() == [start + k for start, num in zip(starts, nums, strict=False) for k in range(num)]
        stride = bits_of_range(shard)
        for source, other in enumerate(shards):
            users = ids[ids // stride == source] % stride + r * shard.user_stride
            wanted = other.user_of_local[other.user_of_local // shard.user_stride == r]
            assert users.tolist() == sorted(wanted.tolist())
