"""Distances from many sources to many targets, against the oracle's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracles
import pandas
import pytest
from emulator.backend import EmulatedBackend
from on_ranks import FEW_RANKS, RANKS
from tiers import by_tier
from user_graphs import ORDERS, graph_of
from zoo import ZOO, make_case, random_case

import mgraph as mg
from mgraph.api.graph import Graph
from mgraph.cluster.in_process import InProcessCluster

pytestmark = pytest.mark.ci  # the quick tier ends within eight minutes

SOURCES = [3, 69, 3, 0]
TARGETS = [5, 69, 3, 41, 5]
CROWD = make_case("crowd", 13, [(u, v, 1 + (u * v) % 7) for u in range(13) for v in range(u)], np.float32)


def distances_of(case, sources, *, weighted, limit=None):
    """Return a row of the oracle's distances for each source."""
    search = oracles.sssp if weighted else oracles.bfs
    return np.array([search(case, [source], limit) for source in sources])


@pytest.mark.covering(every=2, ci=1)
@pytest.mark.widens
@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_distances_equal_the_oracle_for_any_number_of_ranks_and_order(directed, dtype, clusters):
    random = np.random.default_rng(7)
    # Some vertices have no edges.
    case = random_case(4, 70, directed=directed)
    heaviest = 1 if np.dtype(dtype).kind == "f" else 50
    case = replace(case, weights=(heaviest * random.random(len(case.sources))).astype(dtype))
    for weighted in (False, True):
        rows = distances_of(case, SOURCES, weighted=weighted)
        near = distances_of(case, SOURCES, weighted=weighted, limit=1)
        digests = set()
        for num_ranks in by_tier(FEW_RANKS, FEW_RANKS, RANKS):
            for order in ORDERS:
                with graph_of(case, clusters[num_ranks], order=order) as g:
                    found = mg.distance_matrix(g, SOURCES, TARGETS, weighted=weighted)
                    np.testing.assert_array_equal(found, rows[:, TARGETS], strict=False)
                    np.testing.assert_array_equal(found.row(-1), rows[-1, TARGETS])
                    mg.validate(found)
                    digests.add(found.distances.digest())
                    with mg.distance_matrix(g, SOURCES, weighted=weighted) as whole:
                        assert whole.shape == (4, 70)
                        assert whole.dtype == whole.to_numpy().dtype
                        np.testing.assert_array_equal(whole, rows)
                    np.testing.assert_array_equal(mg.distance_matrix(g, SOURCES, cutoff=1, weighted=weighted), near)
        assert len(digests) == 1


@pytest.mark.parametrize(
    ("case", "by_weights", "by_hops"),
    [(ZOO["grid"], "per_block", "per_block"), (CROWD, "one_by_one", "multi_source_bitmaps")],
    ids=["deep", "crowded"],
)
def test_distances_on_an_emulated_gpu_equal_the_oracle(case, by_weights, by_hops):
    sources = [0, 7, 3]
    with (
        InProcessCluster(1, make_backend=lambda: EmulatedBackend(seed=3, block=32)) as cluster,
        graph_of(case, cluster) as g,
    ):
        for weighted, variant in ((True, by_weights), (False, by_hops)):
            rows = distances_of(case, sources, weighted=weighted)
            for targets in (None, [4, 0, 11]):
                found = mg.distance_matrix(g, sources, targets, weighted=weighted)
                assert found.stats.variant == f"distance_matrix.{variant}"
                np.testing.assert_array_equal(found, rows if targets is None else rows[:, targets])


@pytest.mark.parametrize(
    ("case", "variant"), [(ZOO["grid"], "near_far"), (CROWD, "one_by_one")], ids=["deep", "crowded"]
)
def test_distances_by_weights_on_cpu_ranks_of_a_process_equal_the_oracle(case, variant, clusters):
    """They share an address space, but no launch searches on all of them."""
    sources = [0, 7, 3]
    with graph_of(case, clusters[3]) as g, mg.distance_matrix(g, sources) as found:
        assert found.stats.variant == f"distance_matrix.{variant}"
        np.testing.assert_array_equal(found, distances_of(case, sources, weighted=True))


@pytest.mark.parametrize("num_ranks", [1, 3])
def test_pairs_are_read_and_written_as_tables(num_ranks, clusters, tmp_path):
    with mg.from_edges(["a", "b", "c"], ["b", "c", "d"], [2, 2, 5], cluster=clusters[num_ranks]) as g:
        found = mg.distance_matrix(g, ["d", "a"], ["b", "d", "c"])
        assert (found.sources, found.targets) == (("d", "a"), ("b", "d", "c"))
        wanted = pandas.DataFrame(
            {"source": ["d"] * 3 + ["a"] * 3, "target": ["b", "d", "c"] * 2, "distance": [7, 0, 5, 2, 9, 4]}
        )
        pandas.testing.assert_frame_equal(found.to_pandas(), wanted, check_dtype=False)
        found.to_parquet(tmp_path / "parts/")
        found.write(tmp_path / "pairs.csv")
        pandas.testing.assert_frame_equal(pandas.read_csv(tmp_path / "pairs.csv"), wanted, check_dtype=False)
        parts = pandas.read_parquet(tmp_path / "parts")
        pandas.testing.assert_frame_equal(parts, wanted, check_dtype=False)
        whole = mg.distance_matrix(g, ["d"])
        assert whole.to_pandas()["target"].tolist() == ["a", "b", "c", "d"]
        assert whole.targets is None
        assert repr(whole).startswith("<distances of ")
        assert np.asarray(whole, np.float32).tolist() == [[9.0, 7.0, 5.0, 0.0]]
        whole.close()
        assert repr(whole).endswith(", 1 x 4: closed>")


def test_matrix_becomes_a_dask_array(clusters):
    with graph_of(random_case(2, 40), clusters[3]) as g:
        found = mg.distance_matrix(g, [4, 1], [2, 8, 30])
        lazy = found.to_dask_array()
        assert (lazy.shape, lazy.dtype) == ((2, 3), found.dtype)
        np.testing.assert_array_equal(lazy.compute(scheduler="synchronous"), found)


def test_validation_names_a_wrong_distance():
    with mg.from_edges([0, 1], [1, 2], [4, 4]) as g:
        found = mg.distance_matrix(g, [0, 2], [2, 1])

        def spoil(rank, key):
            rank.objects[key].columns["distance"][1] += 1

        found._stored.run(spoil)
        with pytest.raises(mg.ValidationFailed, match=r"differs .* 1 of them, first vertex 1"):
            mg.validate(found)


def test_paths_longer_than_all_floats_are_refused():
    case = make_case("far", 4, [(0, 1, 3e38), (1, 2, 3e38), (2, 3, 1)], np.float32)
    with graph_of(case, None) as g:
        with pytest.raises(mg.InputError, match="longer than the largest float32"):
            mg.distance_matrix(g, [0], [1])
        assert mg.distance_matrix(g, [0], [1, 3], cutoff=3.2e38).to_numpy().tolist() == [[np.float32(3e38), np.inf]]


def test_bad_arguments_are_refused_before_a_search(monkeypatch):
    with mg.rmat(5) as g, mg.rmat(5, weights=None) as unweighted, mg.rmat(5, layout="compact") as compact:
        monkeypatch.setattr(Graph, "_run", None)
        for refused, text in (
            (lambda: mg.distance_matrix(unweighted, [1], weighted=True), "the graph has no weights"),
            (lambda: mg.distance_matrix(g, [1], weighted=1), "weighted 1 is not True or False"),
            (lambda: mg.distance_matrix(compact, [1]), "needs rows"),
            (lambda: mg.distance_matrix(3, [1]), "is not a graph"),
            (lambda: mg.distance_matrix(g, []), "there is no source"),
            (lambda: mg.distance_matrix(g, [1], []), "there is no target"),
            (lambda: mg.distance_matrix(g, 1), "sources 1 are not a list"),
            (lambda: mg.distance_matrix(g, [1], "ab"), "targets 'ab' are not a list"),
            (lambda: mg.distance_matrix(g, [1], [32]), "target 32 is not a vertex"),
            (lambda: mg.distance_matrix(g, [1], cutoff=-1), "cutoff is -1"),
            (lambda: mg.distance_matrix(unweighted, [1], cutoff=-1), "depth_limit is -1"),
        ):
            with pytest.raises(mg.UsageError, match=text):
                refused()
