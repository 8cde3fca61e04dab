"""Results of one CPU rank by user id: made when they are read, of all vertices or the few that are reached."""

from __future__ import annotations

import numpy as np
import pytest
from naive_shard import build_shards
from on_ranks import run_on_ranks
from zoo import random_case

from mgraph.shard import user_ids
from mgraph.shard.user_ids import translate_results, translate_when_read
from mgraph.types import none_of, unreached_of


@pytest.mark.covering(ci=1)
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("dtype", ["int32", "uint16", "uint32", "uint64", "float32", "float64"])
@pytest.mark.parametrize("num_reached", [0, 1, 20, 36])
def test_columns_made_when_they_are_read_are_those_of_all_ranks(order, dtype, num_reached, monkeypatch):
    def program(shard, comm):
        # More than the half, too: the share decides what is faster alone.
        monkeypatch.setattr(user_ids, "SMALL_SHARE", 1)
        n = shard.num_owned
        random = np.random.default_rng(num_reached)
        reached = random.permutation(n)[: min(num_reached, n - 1)].astype(shard.partition.dtype)
        distances = np.full(n, unreached_of(np.dtype(dtype)), dtype)
        parents = np.full(n, none_of(shard.partition.dtype), shard.partition.dtype)
        distances[reached] = random.integers(0, 1000, len(reached))
        parents[reached] = random.permutation(reached)
        if dtype == "int32":
            # A level may be found from that of the parent.
            distances[reached] = 1
            distances[reached[:1]] = 0
            parents[reached] = reached[:1]
        wanted = translate_results(shard, comm, distances, parents)
        words = None
        if dtype == "int32":
            words = distances.astype(np.int64) << 32 | parents
        for listed in (None, reached):
            for of_words in (None, words):
                columns = translate_when_read(shard, distances, parents, listed, of_words)
                assert list(translate_when_read(shard, distances, None, listed, of_words)) == ["distances"]
                for name, column in zip(("distances", "predecessors"), wanted, strict=True):
                    found = columns[name]()
                    assert found.dtype == column.dtype
                    np.testing.assert_array_equal(found, column)

    run_on_ranks(program, build_shards(random_case(3, 40), 1, order))
