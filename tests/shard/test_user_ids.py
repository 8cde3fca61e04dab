"""Results of one CPU rank by user id: where few vertices are reached, as where all are translated."""

from __future__ import annotations

import numpy as np
import pytest
from naive_shard import build_shards
from on_ranks import run_on_ranks
from zoo import random_case

from mgraph.shard import user_ids
from mgraph.shard.user_ids import translate_results
from mgraph.types import none_of, unreached_of


@pytest.mark.covering
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("dtype", ["int32", "uint16", "uint32", "uint64", "float32", "float64"])
@pytest.mark.parametrize("num_reached", [0, 1, 20, 36])
def test_few_reached_vertices_are_translated_as_all_are(order, dtype, num_reached, monkeypatch):
    def program(shard, comm):
        # More than the half, too: the share decides what is faster alone.
        monkeypatch.setattr(user_ids, "FEW_SHARE", 1)
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
        for columns in ((distances, parents), (distances, None), (None, parents)):
            wanted = translate_results(shard, comm, *columns)
            found = translate_results(shard, comm, *columns, reached)
            assert [column.dtype for column in found] == [column.dtype for column in wanted]
            for column, other in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(column, other)

    run_on_ranks(program, build_shards(random_case(3, 40), 1, order))
