"""The layout host has the blocks of the compact layout, in order: the first on the device, the rest in parts."""

from __future__ import annotations

import numpy as np
import pytest
from builds import BACKEND, build_compact_on, shrink_passes
from host_layout import SHARES, build_host_on
from hypothesis import given
from strategies import graphs, orders, rank_counts
from tiers import examples
from zoo import ZOO, random_case

from mgraph.shard.host_blocks import parts_on_device

CASES = [random_case(0, 300), random_case(1, 300), ZOO["grid"], ZOO["isolated"], ZOO["dag"]]


def edges_in_order(backend, blocks):
    """Return starts, ends and weights of all edges in the order of the blocks."""
    columns = []
    for part in blocks.on_device():
        tiles, segments, offsets, starts, words = map(backend.to_host, part.edges)
        lengths = np.diff(offsets)
        of_unit = np.repeat(np.arange(part.num_units), np.diff(tiles))
        bits = part.shape.segment_bits
        sources = np.repeat(starts, lengths) + (words >> bits)
        targets = np.repeat(segments[of_unit], lengths) + (words & ((1 << bits) - 1))
        weights = np.zeros(len(words)) if part.weights is None else backend.to_host(part.weights)
        columns.append(np.stack([sources, targets, weights.astype(np.float64)]))
    return np.concatenate(columns, axis=1) if columns else np.zeros((3, 0))


def check(case, num_ranks, share, order="degree"):
    with pytest.MonkeyPatch.context() as patch:
        shrink_passes(patch)
        wanted = build_compact_on(case, num_ranks, order)
    shards = build_host_on(case, num_ranks, share, order)
    for shard, plain in zip(shards, wanted, strict=True):
        (blocks,) = shard.blocks.values()
        (others,) = plain.blocks.values()
        np.testing.assert_array_equal(edges_in_order(shard.backend, blocks), edges_in_order(shard.backend, others))
        np.testing.assert_array_equal(shard.degrees, plain.degrees)
        np.testing.assert_array_equal(shard.user_of_local, plain.user_of_local)
        assert (shard.info.layout, shard.info.num_edges) == ("host", plain.info.num_edges)
        assert blocks.num_edges == others.num_edges
        # The share is one of the fullest rank's edges.
        assert num_ranks > 1 or (blocks.host_bytes > 0) == (share < 1 and others.num_edges > 0)
        check_parts(blocks)
    return shards


def check_parts(blocks):
    """Check the host parts, and those of the blocks on the device, which have all of its units in order."""
    for part in blocks.parts:
        own = part.blocks_in(part.memory, blocks.shape)
        sources, targets, _ = edges_in_order(BACKEND, own).astype(np.int64)
        check_span(part, sources, targets, blocks.shape.window_bits)
    resident = blocks.resident
    parts = parts_on_device(BACKEND, resident)
    units = [unit for part in parts for unit in range(part.units.first, part.units.last)]
    assert units == list(range(resident.num_units))
    if units:
        sources, targets, _ = edges_in_order(BACKEND, resident).astype(np.int64)
        ends = np.cumsum([part.num_edges for part in parts]).tolist()
        for part, first, last in zip(parts, [0, *ends], ends, strict=False):
            check_span(part, sources[first:last], targets[first:last], blocks.shape.window_bits)


def check_span(part, sources, targets, window_bits):
    """Check that a part has the states that its edges start and end in, and lies in one window."""
    for states, span in ((sources, part.starts), (targets, part.ends)):
        assert span.start <= states.min() <= states.max() < span.stop
    assert len(set((sources >> window_bits).tolist())) == 1


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_blocks_are_those_of_the_compact_layout(case, share):
    for num_ranks in (1, 2, 3):
        for order in ("degree", "natural"):
            check(case, num_ranks, share, order)


@examples(40)
@given(graphs(), rank_counts, orders)
def test_blocks_of_random_graphs_are_those_of_the_compact_layout(case, num_ranks, order):
    check(case, num_ranks, 0.5, order)


@pytest.mark.ci
def test_all_layouts_read_the_graph_on_every_backend(backend):
    case = random_case(2, 150)
    for share in SHARES:
        plain = build_host_on(case, 2, share)
        for shard, wanted in zip(build_host_on(case, 2, share, backend=backend), plain, strict=True):
            (blocks,) = shard.blocks.values()
            (others,) = wanted.blocks.values()
            found = edges_in_order(backend, blocks)
            np.testing.assert_array_equal(found, edges_in_order(wanted.backend, others))
