"""Blocks are copied onto as many ranks of such a device, and built again from their edges otherwise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from block_checks import edges_of
from builds import BACKEND, build_compact_on, shrink_passes
from host_layout import RANKS_AND_SHARES, build_host_on, resident_share
from on_ranks import FEW_RANKS, RANKS
from stores import assert_same_shards, build_shards, load_shards, save_shards
from sweep_checks import TINY
from tiers import by_tier
from zoo import ZOO, random_case

from mgraph.shard.block_headers import UNIT_SIZE, choose_shape
from mgraph.shard.host_blocks import HostBlocks
from mgraph.store import blocks, files, manifest

CASES = [*ZOO.values(), *(random_case(seed, num_vertices=150) for seed in range(3))]


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(manifest, "CHUNK_BYTES", 64)
    monkeypatch.setattr(files, "PIECE_CHUNKS", 2)


@pytest.mark.covering(every=3, ci=1)
@pytest.mark.widens
@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_compact_load_equals_build_on_any_number_of_ranks(case, order, tmp_path):
    ranks = by_tier(FEW_RANKS, FEW_RANKS, RANKS)
    built = {p: build_shards(case, p, order, "compact") for p in ranks}
    for p in ranks:
        store = save_shards(built[p], tmp_path / f"on {p}")
        for q in ranks:
            assert_same_shards(load_shards(store, q), built[q])


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("order", ["degree", "natural"])
def test_blocks_of_another_shape_are_built_again(order, directed, tmp_path, monkeypatch):
    shrink_passes(monkeypatch)
    case = replace(random_case(1, num_vertices=300), directed=directed)
    wanted = {p: build_shards(case, p, order, "compact") for p in (1, 2, 3)}
    for p in wanted:
        store = save_shards(build_compact_on(case, p, order, TINY), tmp_path / f"on {p}")
        assert store.parts[0].shape == TINY != choose_shape(BACKEND, 8)
        for q, expected in wanted.items():
            assert_same_shards(load_shards(store, q), expected)


def test_blocks_of_this_shape_are_not_built(tmp_path, monkeypatch):
    shards = build_shards(ZOO["grid"], 2, layout="compact")
    store = save_shards(shards, tmp_path / "store")
    monkeypatch.setattr(blocks, "build_compact", None)
    assert_same_shards(load_shards(store, 2), shards)


def store_of_units(case, unit_size, folder):
    """Save a graph in units of this size; return the store and the shards."""
    (width,) = build_compact_on(case, 1)[0].blocks
    shape = replace(choose_shape(BACKEND, width), unit_size=unit_size)
    shards = build_compact_on(case, 2, "degree", shape)
    return save_shards(shards, folder / "store"), shards


@pytest.mark.parametrize("layout", ["compact", "host"])
def test_blocks_of_larger_units_are_not_built(layout, tmp_path, monkeypatch):
    store, shards = store_of_units(random_case(1, num_vertices=300), 2 * UNIT_SIZE, tmp_path)
    monkeypatch.setattr(blocks, "build_compact", None)
    monkeypatch.setattr(blocks, "build_host", None)
    loaded = load_shards(store, 2, layout=layout)
    assert_same_blocks(loaded, shards, layout)
    (of_shard,) = loaded[0].blocks.values()
    assert of_shard.shape.unit_size == 2 * UNIT_SIZE


def test_blocks_of_units_too_large_for_sweeps_are_built_again(tmp_path):
    """A pair of an edge and its end would not fit 32 bits."""
    case = random_case(1, num_vertices=300)
    store, _ = store_of_units(case, 1 << 32, tmp_path)
    assert_same_shards(load_shards(store, 2), build_shards(case, 2, "degree", "compact"))


@pytest.mark.covering(every=3, ci=1)
@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(("num_ranks", "share"), RANKS_AND_SHARES)
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_blocks_in_host_memory_are_saved_and_loaded(case, order, num_ranks, share, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "EDGES_AT_ONCE", 7)
    built = build_host_on(case, num_ranks, share, order)
    store = save_shards(built, tmp_path / "store")
    with resident_share(share):
        elsewhere = load_shards(store, num_ranks + 1)
        compact = load_shards(store, num_ranks + 1, layout="compact")
        monkeypatch.setattr(blocks, "choose_shape", lambda backend, state_bytes: TINY)
        monkeypatch.setattr(blocks, "build_host", None)
        loaded = load_shards(store, num_ranks)
    assert_same_blocks(loaded, built)
    for shard in loaded:
        (of_shard,) = shard.blocks.values()
        assert isinstance(of_shard, HostBlocks)
        if share != 0.4 and of_shard.num_edges:
            assert (bool(of_shard.resident.num_edges), bool(of_shard.parts)) == (share == 1, share == 0)
    assert_same_blocks(load_shards(store, num_ranks, layout="compact"), built, "compact")
    assert_same_blocks(elsewhere, build_host_on(case, num_ranks + 1, share, order))
    assert_same_blocks(compact, elsewhere, "compact")


def assert_same_blocks(shards, expected, layout="host"):
    """Compare the edges of shards in their order, wherever units begin, and all that is not blocks."""
    for shard, wanted in zip(shards, expected, strict=True):
        assert edges_of_all(shard) == edges_of_all(wanted)
        np.testing.assert_array_equal(shard.degrees, wanted.degrees)
        facts = {**vars(wanted.info), "layout": layout, "sum_weights": shard.info.sum_weights}
        assert vars(shard.info) == facts


def edges_of_all(shard):
    """Return the edges of a shard, wherever their blocks are."""
    (of_shard,) = shard.blocks.values()
    return [edge for piece in of_shard.in_place() for edge in edges_of(piece)]


def test_edges_of_stored_blocks_are_the_edges_of_the_graph(tmp_path):
    case = replace(random_case(1, num_vertices=300), directed=False)
    store = save_shards(build_compact_on(case, 3), tmp_path / "store")
    edges = blocks.StoredEdges(store)
    chunks = [edges.chunk(k, 7, BACKEND) for k in range(7)]
    ends = np.concatenate([np.sort(np.stack([chunk.sources, chunk.targets]), axis=0) for chunk in chunks], axis=1)
    assert len(np.unique(ends, axis=1).T) == edges.num_input_edges == store.info.num_edges
    assert sum(float(chunk.weights.sum()) for chunk in chunks) == pytest.approx(store.info.sum_weights / 2)
