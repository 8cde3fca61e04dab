"""Blocks have every edge once, in equal shares, in the order that a sweep relies on."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import oracles
import pytest
from block_checks import check_order, edges_of
from builds import build_on
from hypothesis import given
from naive_shard import build_shards, positions_of
from on_ranks import FEW_RANKS, RANKS, run_on_ranks
from strategies import graphs, orders, rank_counts
from sweep_checks import TINY, WHOLE
from tiers import by_tier, examples
from zoo import CASES, ZOO, GraphCase, random_case

from mgraph.backends.cpu import CpuBackend
from mgraph.errors import UsageError
from mgraph.shard.block_headers import choose_shape
from mgraph.shard.edge_blocks import build_blocks, require_blocks
from mgraph.shard.shard import BlockShape

SHAPES = {"tiny": TINY, "whole": WHOLE}


def blocks_on(shards, shape=TINY):
    return run_on_ranks(build_blocks, shards, shape)


def check(case, num_ranks, order, shape):
    """Compare the edges with the graph's, in user ids, and the ranks' shares with each other."""
    shards = build_shards(case, num_ranks, order)
    on_ranks = blocks_on(shards, shape)
    user_of_position = np.argsort(positions_of(shards))
    found = {}
    for blocks in on_ranks:
        edges = edges_of(blocks)
        assert len(edges) == blocks.num_edges
        for u, v, w in edges:
            ends = tuple(int(user_of_position[shards[0].partition.position(state)]) for state in (u, v))
            assert ends not in found, "an edge is there twice"
            found[ends] = w
    arcs = oracles.arcs_of(case)
    if not case.directed:
        # The end has the smaller position: the hub, in degree order.
        position = positions_of(shards)
        arcs = {(u, v): w for (u, v), w in arcs.items() if position[v] < position[u]}
    assert found == arcs
    counts = [blocks.num_edges for blocks in on_ranks]
    assert max(counts) - min(counts) <= 1
    for blocks in on_ranks:
        check_order(blocks)


@pytest.mark.widens
@pytest.mark.covering
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", [*CASES, *map(random_case, range(3))], ids=lambda case: case.name)
def test_blocks_have_every_edge_once_in_equal_shares(case, order, shape):
    for num_ranks in by_tier(FEW_RANKS, RANKS):
        check(case, num_ranks, order, SHAPES[shape])


@examples(50)
@given(graphs(), rank_counts, orders)
def test_blocks_of_random_graphs_have_every_edge_once(case, num_ranks, order):
    check(case, num_ranks, order, TINY)


@pytest.mark.parametrize("towards_hub", [False, True])
def test_shares_are_equal_if_one_rank_has_all_arcs(towards_hub):
    ends = np.zeros(200, np.uint32), np.arange(1, 201, dtype=np.uint32)
    star = GraphCase("directed-star", 201, *ends[:: -1 if towards_hub else 1], None, directed=True)
    for num_ranks in RANKS:
        check(star, num_ranks, "natural", TINY)


def test_blocks_do_not_depend_on_the_number_of_chunks():
    case = random_case(4)
    expected = blocks_on(build_on(case, 3, "degree", 1))
    for num_chunks in (2, 64):
        for blocks, wanted in zip(blocks_on(build_on(case, 3, "degree", num_chunks)), expected, strict=True):
            for got, want in zip((*blocks.edges, blocks.weights), (*wanted.edges, wanted.weights), strict=True):
                np.testing.assert_array_equal(got, want)


def test_word_may_use_all_32_bits():
    n = 1 << 9
    case = GraphCase("ends", n, np.array([n - 1, n - 1], np.uint32), np.array([0, n - 2], np.uint32), None)
    # 23 low bits of a word for the end in its segment, 9 high bits for the start in its sub-window.
    check(case, 1, "natural", BlockShape(segment_bits=23, subwindow_bits=9, window_bits=9, unit_size=4))


@pytest.mark.parametrize(
    ("state_bytes", "shared_kib", "cache_mib", "expected"),
    [
        (4, 227, 60, (15, 17, 22)),  # H200
        (8, 227, 60, (14, 18, 21)),
        (4, 163, 40, (15, 17, 22)),  # A100
        (8, 99, 72, (13, 19, 22)),  # sm_89
        (4, 64, 4, (14, 18, 19)),  # sm_75
        (8, 64, 4, (13, 18, 18)),  # a window smaller than what 19 bits reach
    ],
)
def test_shapes_fit_the_device(state_bytes, shared_kib, cache_mib, expected):
    backend = SimpleNamespace(shared_bytes=shared_kib << 10, cache_bytes=cache_mib << 20)
    shape = choose_shape(backend, state_bytes)
    assert (shape.segment_bits, shape.subwindow_bits, shape.window_bits) == expected
    assert state_bytes << shape.segment_bits <= backend.shared_bytes
    assert shape.segment_bits + shape.subwindow_bits <= 32


def test_blocks_are_cached_by_state_width_and_counted_as_memory():
    (shard,) = build_shards(ZOO["grid"], 1)
    before = shard.nbytes

    def require(shard, comm):
        return [require_blocks(shard, comm, np.dtype(t)) for t in ("uint8", "int32", "float32", "float64", "int64")]

    ((narrow, *others),) = run_on_ranks(require, [shard])
    assert all(blocks is narrow for blocks in others[:2])
    assert others[2] is others[3] is not narrow
    assert shard.nbytes == before + narrow.nbytes + others[2].nbytes
    # 4 bytes an edge, and its weight.
    assert narrow.words.nbytes + narrow.weights.nbytes == shard.info.num_edges * (4 + 8)


def test_too_many_tiles_are_refused():
    shards = build_shards(ZOO["path"], 1, backend=CpuBackend(threads=1))
    with pytest.raises(UsageError, match="too many for a sweep"):
        blocks_on(shards, BlockShape(segment_bits=0, subwindow_bits=0, window_bits=40, unit_size=5))
