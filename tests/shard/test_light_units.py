"""Divided blocks have the same edges, light or heavy ones a unit, and stay whole when a division fails."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from block_checks import edges_of
from naive_shard import build_shards
from on_ranks import run_on_ranks
from sweep_checks import TINY
from zoo import ZOO, make_case, random_case

from mgraph.errors import CommAborted
from mgraph.shard import light_units
from mgraph.shard.edge_blocks import build_blocks
from mgraph.shard.light_units import groups_of, require_light_units


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch):
    monkeypatch.setattr(light_units, "BATCH_EDGES", 16)


def blocks_of(case, backend=None):
    shards = build_shards(case, 1, "degree", backend)
    (blocks,) = run_on_ranks(build_blocks, shards, TINY)
    return shards[0], blocks


def unit_edges(blocks, to_host=np.asarray):
    """Return the first edge of each unit, and the number of edges."""
    return to_host(blocks.tile_edges)[to_host(blocks.unit_tiles)]


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_each_group_has_units_of_its_weights_in_order(backend, dtype):
    shard, blocks = blocks_of(random_case(3, 300).with_weights(dtype), backend)
    to_host = shard.backend.to_host
    before = edges_of(blocks, to_host)
    segments = to_host(blocks.unit_segments)
    assert require_light_units(shard, blocks)
    after = edges_of(blocks, to_host)
    assert sorted(after) == sorted(before)
    light, heavy = blocks.groups
    is_light = to_host(light.units).astype(bool)
    assert (to_host(heavy.units).astype(bool) == ~is_light).all()
    weights = to_host(blocks.weights)
    bounds = unit_edges(blocks, to_host)
    assert blocks.num_units == len(is_light) > len(segments)
    for unit, (first, last) in enumerate(itertools.pairwise(bounds)):
        assert first < last
        assert ((weights[first:last] <= heavy.least_weight) == is_light[unit]).all()
        # Starts rise within a unit, as sweeps rely on.
        starts = [start for start, _, _ in after[first:last]]
        assert starts == sorted(starts)
    assert light.least_weight == weights.min()
    share = sum(np.diff(bounds)[is_light]) / blocks.num_edges
    assert 0 < share < 0.5


def test_blocks_are_divided_once():
    shard, blocks = blocks_of(random_case(3, 300))
    require_light_units(shard, blocks)
    words = blocks.words.copy()
    groups = blocks.groups
    assert require_light_units(shard, blocks)
    assert blocks.groups is groups
    assert (blocks.words == words).all()


@pytest.mark.parametrize("case", [ZOO["grid"].unweighted, make_case("empty", 5, [])], ids=["no-weights", "no-edges"])
def test_edges_without_weights_are_one_group(case):
    shard, blocks = blocks_of(case)
    assert require_light_units(shard, blocks)
    assert [units for units, _ in blocks.groups] == [None]


def test_equal_weights_are_one_group():
    shard, blocks = blocks_of(random_case(1, 100))
    blocks.weights[:] = 7
    before = edges_of(blocks)
    assert require_light_units(shard, blocks)
    assert [units for units, _ in blocks.groups] == [None]
    assert edges_of(blocks) == before


def test_without_memory_there_is_one_group_until_there_is_some(monkeypatch):
    shard, blocks = blocks_of(random_case(1, 100))
    with monkeypatch.context() as short:
        short.setattr(shard.backend, "free_bytes", lambda: 1000)
        assert not require_light_units(shard, blocks)
        assert [units for units, _ in groups_of(shard, blocks)] == [None]
    assert require_light_units(shard, blocks)
    assert len(blocks.groups) == 2


class Failing:
    """The kernel, which fails in a launch after the first ones, when it has written some of its output."""

    def __init__(self, error: type[Exception]) -> None:
        self.kernel = light_units.place_light_first
        self.error = error
        self.launches = 0

    def __getitem__(self, backend):
        def launch(lo, hi, *args):
            self.launches += 1
            fails = self.launches == 3
            self.kernel[backend](lo, (lo + hi) // 2 if fails else hi, *args)
            if fails:
                raise self.error

        return launch


@pytest.mark.parametrize("error", [MemoryError, CommAborted])
def test_blocks_stay_whole_where_a_division_fails(error, monkeypatch):
    shard, blocks = blocks_of(random_case(3, 300))
    before = sorted(edges_of(blocks))
    num_units = blocks.num_units
    with monkeypatch.context() as failing:
        failing.setattr(light_units, "place_light_first", Failing(error))
        if error is MemoryError:
            assert not require_light_units(shard, blocks)
        else:
            with pytest.raises(error):
                require_light_units(shard, blocks)
    assert blocks.num_units > num_units
    assert sorted(edges_of(blocks)) == before
    assert not blocks.groups
    assert require_light_units(shard, blocks)
    assert sorted(edges_of(blocks)) == before
