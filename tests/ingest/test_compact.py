"""The compact layout has the same blocks as from rows, for any number of passes and ranks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracles
import pytest
from block_checks import check_order, edges_of
from builds import CaseEdges, build_compact_on, shrink_passes
from hypothesis import given
from naive_shard import build_shards, positions_of
from on_ranks import FEW_RANKS, RANKS, run_on_ranks
from strategies import graphs, orders, rank_counts
from sweep_checks import TINY, WHOLE
from tiers import by_tier, examples
from zoo import CASES, ZOO, random_case

from mgraph.backends.cpu import CpuBackend
from mgraph.ingest.keys import Pass, plan_passes
from mgraph.shard.edge_blocks import build_blocks

BACKEND = CpuBackend(threads=1)
GRAPHS = [*CASES, *map(random_case, range(4))]


@pytest.fixture(params=["one-pass", "many-passes"])
def few_keys(request, monkeypatch):
    """Build small graphs in one pass, and in several as large ones."""
    if request.param == "many-passes":
        shrink_passes(monkeypatch)


def check_positions(shard, plain):
    """Compare positions; for vertices without one any value that is not a position is accepted."""
    if plain.position_of_user is None:
        assert shard.position_of_user is None
        return
    n = plain.partition.num_positions
    assert shard.position_of_user.dtype == plain.partition.dtype
    np.testing.assert_array_equal(np.minimum(shard.position_of_user, n), np.minimum(plain.position_of_user, n))


def check(case, num_ranks, order, shape=TINY):
    """Compare tables, facts, degrees and edges with those of a naively built shard."""
    shards = build_compact_on(case, num_ranks, order, shape)
    naive = build_shards(case, num_ranks, order)
    user_of_position = np.argsort(positions_of(naive))
    found = {}
    for shard, plain in zip(shards, naive, strict=True):
        assert shard.partition == plain.partition
        assert replace(shard.info, sum_weights=0, layout="rows") == replace(plain.info, sum_weights=0)
        assert np.isclose(shard.info.sum_weights, plain.info.sum_weights, rtol=1e-12, atol=0)
        np.testing.assert_array_equal(shard.user_of_local, plain.user_of_local)
        check_positions(shard, plain)
        np.testing.assert_array_equal(shard.degrees, plain.degrees)
        (blocks,) = shard.blocks.values()
        check_order(blocks)
        if blocks.weights is not None:
            assert blocks.weights.dtype == plain.rows.weights.dtype
        for u, v, w in edges_of(blocks):
            ends = tuple(int(user_of_position[shard.partition.position(state)]) for state in (u, v))
            assert ends not in found, "an edge is there twice"
            assert shard.partition.owner(shard.partition.position(u)) == shard.rank
            found[ends] = w
    arcs = oracles.arcs_of(case)
    if not case.directed:
        # In natural order on several ranks either end may be the start; else the larger position is.
        position = positions_of(naive)
        either = order == "natural" and num_ranks > 1
        assert either or all(position[v] < position[u] for u, v in found)
        found |= {(v, u): w for (u, v), w in found.items()}
        assert len(found) == 2 * sum(blocks.num_edges for shard in shards for blocks in shard.blocks.values())
    assert found == arcs
    return shards, naive


@pytest.mark.widens
@pytest.mark.covering
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", GRAPHS, ids=lambda case: case.name)
def test_compact_blocks_have_every_edge_once_for_any_passes(case, order, few_keys):
    for num_ranks in by_tier(FEW_RANKS, RANKS):
        check(case, num_ranks, order)


@examples(60)
@given(graphs(), rank_counts, orders)
def test_compact_blocks_of_random_graphs_have_every_edge_once(case, num_ranks, order):
    with pytest.MonkeyPatch.context() as patch:
        shrink_passes(patch)
        check(case, num_ranks, order)


@pytest.mark.covering
@pytest.mark.parametrize("shape", [TINY, WHOLE], ids=["tiny", "whole"])
@pytest.mark.parametrize("case", GRAPHS, ids=lambda case: case.name)
def test_compact_blocks_equal_blocks_from_rows_on_one_rank(case, shape, few_keys):
    (shard,), naive = check(case, 1, "degree", shape)
    (blocks,) = shard.blocks.values()
    (wanted,) = run_on_ranks(build_blocks, naive, shape)
    for got, want in zip((*blocks.edges, blocks.weights), (*wanted.edges, wanted.weights), strict=True):
        np.testing.assert_array_equal(got, want)


def test_compact_blocks_are_equal_on_every_backend(backend, few_keys):
    case = random_case(2, 150)
    for num_ranks in (1, 2):
        plain = build_compact_on(case, num_ranks)
        for shard, wanted in zip(build_compact_on(case, num_ranks, backend=backend), plain, strict=True):
            (blocks,) = shard.blocks.values()
            (others,) = wanted.blocks.values()
            for got, want in zip((*blocks.edges, blocks.weights), (*others.edges, others.weights), strict=True):
                np.testing.assert_array_equal(backend.to_host(got), want)
            np.testing.assert_array_equal(backend.to_host(shard.degrees), wanted.degrees)


def test_shares_are_about_equal():
    case = random_case(2, directed=False)
    for order in ("degree", "natural"):
        shares = [blocks.num_edges for s in build_compact_on(case, 4, order) for blocks in s.blocks.values()]
        assert max(shares) < 1.3 * sum(shares) / 4


def test_space_of_parallel_edges_is_freed():
    case = random_case(1, 300, directed=False)
    twice = replace(
        case,
        sources=np.concatenate([case.sources, case.targets]),
        targets=np.concatenate([case.targets, case.sources]),
        weights=np.concatenate([case.weights, case.weights]),
    )
    (once,) = build_compact_on(case, 1)
    (both,) = build_compact_on(twice, 1)
    (blocks,) = once.blocks.values()
    (others,) = both.blocks.values()
    np.testing.assert_array_equal(blocks.words, others.words)
    assert others.words.base is None or others.words.base.nbytes < 1.2 * others.words.nbytes
    assert both.info.num_parallel == once.info.num_edges + 2 * once.info.num_parallel


@pytest.mark.parametrize(
    ("sizes", "buffer", "batch", "expected"),
    [
        ([], 4, 4, []),
        ([0, 0, 0], 4, 4, []),
        # All keys are in the buffer if it is large enough; else a pass has half of the remaining edges, and the buffer.
        ([3, 3, 2], 100, 8, [Pass(0, 1, 3)]),
        ([4, 4, 4, 4], 1, 8, None),
        ([4, 4, 4, 4], 4, 8, [Pass(0, 2, 3), Pass(3, 3, 4)]),
        # A bucket of more than a batch reserves its words; one that fits nowhere needs a larger buffer (None).
        ([6, 2, 2, 2], 4, 8, [Pass(0, 1, 3), Pass(3, 3, 4)]),
        ([6, 2, 2, 2], 6, 4, [Pass(0, 0, 1), Pass(1, 2, 4)]),
        ([6, 2, 2, 2], 4, 4, None),
        ([2, 2, 9], 5, 20, None),
    ],
)
def test_passes_fill_the_available_memory(sizes, buffer, batch, expected):
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    assert plan_passes(ends, buffer, batch) == expected


def test_build_reads_the_input_once_per_pass(monkeypatch):
    shrink_passes(monkeypatch)
    reads = []
    chunk = CaseEdges.chunk
    monkeypatch.setattr(CaseEdges, "chunk", lambda self, k, *args: reads.append(k) or chunk(self, k, *args))
    build_compact_on(ZOO["grid"], 1)
    # One read for the degrees, one for the buckets, then each pass has half of the remaining edges: of 126 60, 30, ...
    assert 6 <= len(reads) / 5 <= 9
