"""A graph that is loaded on any number of ranks equals the graph that is built on them, array by array."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from backends import BACKENDS
from on_ranks import FEW_RANKS, RANKS, run_on_ranks
from stores import assert_same_shards, build_shards, load_rank, load_shards, save_shards
from tiers import by_tier
from zoo import ZOO, make_case, random_case

from mgraph import types
from mgraph.errors import UsageError
from mgraph.store import files, manifest, save
from mgraph.store.load import require_as_saved
from mgraph.types import WEIGHT_DTYPES

CASES = [*ZOO.values(), *(random_case(seed, num_vertices=150) for seed in range(3))]
ISOLATED = make_case("isolated at the ends", 400, [(7, 200, 3), (200, 8, 1), (7, 8, 2), (390, 7, 9)], np.int32)


@pytest.fixture
def small_pieces(monkeypatch):
    """Make chunks of 64 bytes and pieces of 8 arcs, so that small graphs have many."""
    monkeypatch.setattr(manifest, "CHUNK_BYTES", 64)
    monkeypatch.setattr(files, "PIECE_CHUNKS", 2)
    monkeypatch.setattr(save, "PIECE_ARCS", 64)
    monkeypatch.setattr("mgraph.store.deal.PIECE_ARCS", 64)
    monkeypatch.setattr("mgraph.store.rows.PIECE_ARCS", 64)


def check(case, order, folder, ranks=RANKS, layout="rows"):
    """Save on each number of ranks, load on each, and compare with builds."""
    built = {p: build_shards(case, p, order, layout) for p in ranks}
    for p in ranks:
        store = save_shards(built[p], folder / f"on {p}")
        for q in ranks:
            assert_same_shards(load_shards(store, q), built[q])


@pytest.mark.covering(every=3, ci=1)
@pytest.mark.widens
@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", [*CASES, ISOLATED], ids=lambda case: case.name)
def test_load_equals_build_on_any_number_of_ranks(case, order, tmp_path):
    check(case, order, tmp_path, by_tier(FEW_RANKS, FEW_RANKS, RANKS))


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("directed", [False, True])
def test_every_pair_of_numbers_of_ranks(order, directed, tmp_path):
    check(replace(random_case(3, num_vertices=300), directed=directed), order, tmp_path)


@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("dtype", [*WEIGHT_DTYPES, None], ids=str)
def test_every_dtype_of_weights(dtype, order, tmp_path):
    case = random_case(2, num_vertices=200)
    case = case.unweighted if dtype is None else case.with_weights(dtype)
    check(case, order, tmp_path, (1, 2, 3))


@pytest.mark.ci
@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("order", ["degree", "natural"])
def test_ids_of_64_bits(order, tmp_path, monkeypatch):
    # 200 vertices pass the limit on some numbers of ranks only, where states have more padding.
    monkeypatch.setattr(types, "_SMALL_NONE", 260)
    check(random_case(4, num_vertices=200), order, tmp_path)
    monkeypatch.setattr(types, "_SMALL_NONE", 1)
    check(random_case(4, num_vertices=200), order, tmp_path / "all")


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("name", ["cpu", "emulated"])
@pytest.mark.parametrize(("saved", "loaded"), [(1, 1), (1, 3), (3, 2), (2, 2)])
def test_backends_read_what_others_saved(name, saved, loaded, tmp_path):
    backend = BACKENDS[name].make()
    case = random_case(5, num_vertices=150)
    store = save_shards(build_shards(case, saved, backend=backend), tmp_path / "store")
    assert_same_shards(load_shards(store, loaded), build_shards(case, loaded))
    store = save_shards(build_shards(case, saved), tmp_path / "other")
    assert_same_shards(load_shards(store, loaded, backend), build_shards(case, loaded, backend=backend))


def test_choices_of_a_build_are_refused(tmp_path):
    store = save_shards(build_shards(ZOO["star"], 1), tmp_path / "store")
    require_as_saved(store, "auto", None, "rows")
    require_as_saved(store, "degree", None, "auto")
    for given in [("natural", None, "rows"), ("auto", 3, "rows"), ("auto", None, "compact")]:
        with pytest.raises(UsageError, match=r"applies to a build, and .* is a saved graph, in degree order"):
            require_as_saved(store, *given)


def test_abandoned_call_ends_a_load(tmp_path):
    store = save_shards(build_shards(ZOO["star"], 1), tmp_path / "store")
    backend = BACKENDS["cpu"].make()
    backend.stopped = "abandoned"
    with pytest.raises(Exception, match="abandoned"):
        run_on_ranks(lambda _, comm: load_rank(store, backend, comm), [None])
