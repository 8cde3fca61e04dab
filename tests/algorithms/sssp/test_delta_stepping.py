"""Delta-stepping over light arcs: distances equal the oracle's to the bit."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from emulator.backend import EmulatedBackend
from hypothesis import given
from one_rank import distances
from strategies import graphs_and_sources, orders
from sweep_checks import of_users
from tiers import examples
from zoo import CASES, ZOO, dense_behind_gap, make_case, random_case, trailing_chains, zoo_sources

from mgraph.algorithms.sssp.delta_stepping import sssp_delta_stepping
from mgraph.backends.cpu import CpuBackend


def check(case, sources, order="degree", backend=None, delta=None, **options):
    """Compare with the oracle; return the trace."""
    backend = backend or CpuBackend(2)
    with pytest.MonkeyPatch.context() as patch:
        if delta is not None:
            patch.setattr(
                "mgraph.algorithms.sssp.delta_stepping.default_delta", lambda shard, dtype, mean_weight: delta
            )
        found, shards = distances(sssp_delta_stepping, case, sources, order, backend, has_lightest=True, **options)
    got, trace = found
    np.testing.assert_array_equal(of_users(shards, sources, [got]), oracles.sssp(case, sources, options.get("cutoff")))
    return trace


@pytest.mark.covering(every=6)
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", [*CASES, *map(random_case, range(6))], ids=lambda case: case.name)
def test_distances_of_the_zoo_equal_the_oracle(case, order):
    for sources in zoo_sources(case):
        check(case, sources, order)


@examples(60)
@given(graphs_and_sources(), orders)
def test_distances_of_drawn_graphs_equal_the_oracle(drawn, order):
    check(*drawn, order)


@pytest.mark.covering
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "uint16", "int64"])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("delta", [None, 1, 3, 20])
def test_distances_of_all_dtypes_do_not_depend_on_delta(directed, dtype, delta):
    case = random_case(1, 300, directed=directed).unweighted
    # Weights of one class and of neighboring ones, sums on a bound, and one large weight that widens the classes.
    weights = np.random.default_rng(3).integers(0, 40, len(case.sources))
    weights[:2] = {"int64": 2**33, "uint16": 60_000}.get(dtype, 255)
    case = type(case)(case.name, case.num_vertices, case.sources, case.targets, weights, directed)
    check(case.with_weights(dtype), [5, 299], delta=delta)


@pytest.mark.parametrize("name", ["grid", "dag", "rounding", "large-weights"])
def test_vertices_beyond_the_cutoff_are_unreached(name):
    case = ZOO[name]
    farthest = oracles.sssp(case, [0]).max()
    for cutoff in (0, farthest // 2, farthest):
        check(case, [0], cutoff=cutoff)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_distance_may_be_the_largest_float(dtype):
    most = np.finfo(dtype).max
    check(make_case("largest", 4, [(0, 1, most), (1, 2, 1), (2, 3, most)], dtype), [0])


def test_heavy_arcs_are_pushed_before_the_peak_and_pulled_behind_it():
    """Search a path to a hub with heavy arcs to many vertices of few arcs."""
    ends = [(v, v + 1, 1) for v in range(30)] + [(v % 10 + 20, v, 100 + v % 50) for v in range(31, 400)]
    trace = check(make_case("hubs", 400, ends, np.uint8), [0], delta=8)
    methods = [step["method"] for step in trace.supersteps]
    assert methods.index("heavy") < methods.index("pull")
    arcs = sum(step["arcs"] for step in trace.supersteps)
    assert arcs <= 3 * len(ends), "rows of fewer than four arcs, without lightest ones, are read whole twice"


def test_gap_before_a_dense_region_makes_no_more_arcs_light():
    """A bucket that is pulled from begins at the lowest distance in it, not at the bound before a gap."""
    pulled = []
    for weight in (130, 250):
        trace = check(dense_behind_gap(weight), [200], delta=60)
        pulled.append([step["arcs"] for step in trace.supersteps if step["method"] == "pull"])
    assert pulled[0] == pulled[1] and pulled[0][0] > 0


def test_remaining_vertices_after_the_second_pull_are_one_bucket():
    """The last bucket is pushed to its end without a pull, although it is wider than delta."""
    trace = check(trailing_chains(), [0], delta=12)
    methods = [step["method"] for step in trace.supersteps]
    last = len(methods) - methods[::-1].index("pull")
    assert methods.count("pull") == 2 and set(methods[last:]) == {"push"}
    assert sum(step["frontier"] for step in trace.supersteps[last:]) >= 12


def test_distances_in_the_emulator_equal_the_oracle():
    for seed in range(3):
        check(random_case(seed, 150), [3, 100], backend=EmulatedBackend(seed=seed, block=64, blocks=2))


def test_search_ends_with_the_bucket_of_its_target():
    case = ZOO["long-chain"]
    dist = oracles.sssp(case, [0])
    target = int(np.flatnonzero(dist == 100)[0])
    (got, _), shards = distances(
        sssp_delta_stepping, case, [0], "natural", CpuBackend(2), has_lightest=True, until=[target]
    )
    found = of_users(shards, [0], [got])
    np.testing.assert_array_equal(found[dist <= 100], dist[dist <= 100])
    assert np.isinf(found[dist > 200]).all()
