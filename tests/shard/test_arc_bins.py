"""Arc bins hold every arc once, in the tile of its ends; they are made where they pay and have room."""

from __future__ import annotations

import itertools
import weakref
from dataclasses import replace

import numpy as np
import pytest
from naive_shard import build_shards
from on_ranks import run_on_ranks
from zoo import random_case

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.pagerank import bins as variant
from mgraph.algorithms.pagerank.bins import ARC_BINS, VARIANT, score_by_bins
from mgraph.algorithms.pagerank.fixed_point import ONE, ScoreSpec
from mgraph.algorithms.pagerank.pull import score_by_pull
from mgraph.algorithms.variant import Conditions
from mgraph.backends.cpu import CpuBackend
from mgraph.comm.threads import SoleRank
from mgraph.shard import arc_bins as structure
from mgraph.shard.arc_bins import SLOT_BYTES, TILE_BYTES, arc_bins, make_arc_bins
from mgraph.shard.arc_bins_kernels import NO_END, STRIPE

VALUE_BYTES = 5
SUM_BYTES = 8
SPEC = ScoreSpec(int(0.85 * ONE), None, 3, weighted=False)


@pytest.fixture
def shard(monkeypatch):
    """Return a shard on a backend with shared memory for 16 sources, or eight targets."""
    monkeypatch.setattr(CpuBackend, "shared_bytes", 80)
    monkeypatch.setattr(structure, "UNIT_STRIPES", 3)
    (shard,) = build_shards(random_case(1, 300), 1, "degree")
    return shard


def bytes_of_tiles(shard):
    """Return the temporary bytes while bins are made."""
    return TILE_BYTES * -(-shard.num_owned // 8) * -(-shard.partition.num_states // 16)


def made(shard, **how):
    limits = {"max_slots": 1 << 30, "beside": 0} | how
    return make_arc_bins(shard, VALUE_BYTES, SUM_BYTES, **limits)


def arcs_of(bins, stripes, segment_of):
    """Return the arcs of some stripes, given the segment of each."""
    slots = (STRIPE * stripes[:, None] + np.arange(STRIPE)).ravel()
    bin_of = np.searchsorted(bins.bin_stripes, slots // STRIPE, side="right") - 1
    sources = (np.repeat(segment_of, STRIPE) << bins.segment_bits) + bins.starts[slots]
    targets = (bin_of << bins.bin_bits) + bins.ends[slots]
    return sorted(zip(sources[bins.ends[slots] != NO_END], targets[bins.ends[slots] != NO_END], strict=True))


@pytest.mark.parametrize("room", [1 << 40, 40 * VALUE_BYTES * STRIPE])
def test_every_arc_is_in_the_tile_of_its_ends(shard, monkeypatch, room):
    rows = shard.incoming
    assert made(shard)
    whole = arc_bins(shard)
    fixed = int(SLOT_BYTES * len(whole.starts)) + bytes_of_tiles(shard)
    shard.kept.clear()
    monkeypatch.setattr(CpuBackend, "free_bytes", lambda self: room + fixed)
    assert made(shard)
    bins = arc_bins(shard)
    assert (bins.segment_bits, bins.bin_bits, bins.num_bins) == (4, 3, -(-shard.num_owned // 8))
    units = itertools.pairwise(bins.deal.stripes)
    segment_of = np.concatenate([np.full(end - begin, s) for (begin, end), s in zip(units, bins.deal.of, strict=True)])
    sources = rows.targets.tolist()
    targets = np.repeat(np.arange(shard.num_owned), np.diff(rows.indptr)).tolist()
    assert arcs_of(bins, bins.stripes.astype(np.int64), segment_of) == sorted(zip(sources, targets, strict=True))
    assert len(bins.groups) > 1 if room < 1 << 40 else len(bins.groups) == 1
    for group in bins.groups:
        own = range(group.first_stripe, group.first_stripe + group.num_stripes)
        assert sorted(bins.stripes[own.start : own.stop].tolist()) == list(own)
        for units, (first, end) in (bins.deal, group.deal), (bins.collect, group.collect):
            assert (units.stripes[first], units.stripes[end]) == (own.start, own.stop)
            assert (np.diff(units.stripes[first : end + 1]) <= 3).all()
    ends = bins.bin_stripes
    for (begin, end), one in zip(itertools.pairwise(bins.collect.stripes), bins.collect.of, strict=True):
        assert ends[one] <= begin < end <= ends[one + 1]


def test_scores_in_groups_equal_those_of_a_pull(shard, monkeypatch):
    comm = SoleRank()
    cuts = structure._cuts
    pulled = score_by_pull(shard, comm, Trace(shard.backend, comm), SPEC)
    for most in (1 << 30, 20):
        shard.kept.clear()
        monkeypatch.setattr(structure, "_cuts", lambda of, _, most=most: cuts(of, most))
        assert made(shard)
        assert (len(arc_bins(shard).groups) > 3) == (most == 20)
        found = score_by_bins(shard, comm, Trace(shard.backend, comm), SPEC)
        np.testing.assert_array_equal(found.owned, pulled.owned)


def test_bins_are_not_made_where_most_slots_are_empty_or_there_is_no_room(shard, monkeypatch):
    num_arcs = len(shard.incoming.targets)
    assert not made(shard, max_slots=num_arcs)
    assert not made(shard), "what does not pay is not tried again"
    shard.kept.clear()
    assert not made(shard, beside=shard.backend.free_bytes())
    shard.kept.clear()
    monkeypatch.setattr(CpuBackend, "free_bytes", lambda self: bytes_of_tiles(shard) + 5 * num_arcs)
    assert not made(shard)
    shard.kept.clear()
    assert not ARC_BINS.make(shard, SoleRank(), np.dtype(np.int64))


def test_bins_stay_where_as_much_memory_as_the_graph_takes_is_free(shard, monkeypatch):
    comm = SoleRank()
    for free, stays in ((shard.nbytes, True), (shard.nbytes - 1, False)):
        made(shard)
        monkeypatch.setattr(CpuBackend, "free_bytes", lambda self, free=free: free)
        score_by_bins(shard, comm, Trace(shard.backend, comm), SPEC)
        assert (structure._KEY in shard.kept) == stays
        monkeypatch.undo()
        monkeypatch.setattr(CpuBackend, "shared_bytes", 80)


def test_kept_bins_are_made_anew_with_smaller_groups_where_those_have_no_room(shard, monkeypatch):
    assert made(shard)
    before = arc_bins(shard)
    monkeypatch.setattr(CpuBackend, "free_bytes", lambda self: VALUE_BYTES * before.slots_at_once + 100)
    assert made(shard, beside=100)
    assert arc_bins(shard) is before
    fixed = int(SLOT_BYTES * len(before.starts)) + bytes_of_tiles(shard)
    left = VALUE_BYTES * before.slots_at_once - 1
    # What is free grows by what is dropped.
    monkeypatch.setattr(CpuBackend, "free_bytes", lambda self: left if structure._KEY in shard.kept else left + fixed)
    assert made(shard)
    assert 2 * arc_bins(shard).slots_at_once <= before.slots_at_once
    monkeypatch.setattr(CpuBackend, "free_bytes", lambda self: 0)
    assert not made(shard)


def test_slots_are_free_when_it_is_decided_whether_bins_stay(shard, monkeypatch):
    comm = SoleRank()
    assert made(shard)
    gathers = []
    alive = []

    def iterate(*args):
        gathers.append(weakref.ref(args[-1].gather))
        return iterated(*args)

    def free_bytes(_):
        alive.append(gathers[0]() is not None)
        return shard.nbytes

    iterated = variant.iterate
    monkeypatch.setattr(variant, "iterate", iterate)
    monkeypatch.setattr(CpuBackend, "free_bytes", free_bytes)
    score_by_bins(shard, comm, Trace(shard.backend, comm), SPEC)
    assert alive == [False]


@pytest.mark.parametrize("error", [None, MemoryError("no room")])
def test_no_rank_keeps_bins_that_another_cannot_make(error, monkeypatch):
    monkeypatch.setattr(variant, "MAX_SLOTS", 1 << 20)
    make = structure._made

    def made_on_two_ranks(shard, *args):
        if shard.rank == 1:
            if error is not None:
                raise error
            return None
        return make(shard, *args)

    def program(shard, comm):
        return ARC_BINS.make(shard, comm, np.dtype(np.int64)), dict(shard.kept)

    shards = build_shards(random_case(1, 300), 3, "degree")
    assert all(is_made for is_made, _ in run_on_ranks(program, shards))
    for shard in shards:
        shard.kept.clear()
    monkeypatch.setattr(structure, "_made", made_on_two_ranks)
    assert run_on_ranks(program, shards) == [(False, {})] * 3


def test_variant_applies_to_many_arcs_without_weights_on_a_gpu():
    fits = Conditions("auto", "rows", 1, 1 << 24, True, False, False, 8.0, False, by_hops=True)
    assert VARIANT.applies(fits)
    for change in (
        {"stride": 1 << 23}, {"arcs_per_vertex": 7.0}, {"by_hops": False}, {"has_persistent_kernels": False},
        {"layout": "compact"},
    ):  # fmt: skip
        assert not VARIANT.applies(replace(fits, **change)), change
    assert variant.MIN_ARCS == 1 << 27
