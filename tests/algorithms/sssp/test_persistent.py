"""Persistent SSSP: distances equal the oracle's to the bit, with and without lightest arcs."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from backends import BACKENDS
from emulator.backend import EmulatedBackend
from hypothesis import given
from hypothesis import strategies as st
from on_ranks import run_on_ranks
from one_rank import distances
from strategies import graphs_and_sources, orders
from sweep_checks import of_users
from tiers import examples
from traversal_checks import check_settled, lists_of_targets
from zoo import CASES, ZOO, make_case, random_case, trailing_chains, zoo_sources

from mgraph.algorithms.common.cost_model import sssp_costs
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.sssp import persistent
from mgraph.algorithms.sssp.delta_stepping import sssp_delta_stepping
from mgraph.algorithms.sssp.near_far import sssp
from mgraph.algorithms.sssp.persistent import sssp_persistent
from mgraph.algorithms.sssp.persistent_kernels import find_distances
from mgraph.api.traversal import state_dtype
from mgraph.backends.base import Allocated
from mgraph.backends.rates_file import H200
from mgraph.generate.spec import parse_spec
from mgraph.ingest.build import build
from mgraph.shard.lightest_arcs import require_lightest_arcs
from mgraph.types import unreached_of

pytestmark = pytest.mark.interleavings


def check(case, sources, order="degree", backend=None, *, delta=None, targets=(), **options):
    """Compare searches over whole rows and light arcs with the oracle, up to targets if there are any."""
    backend = backend or EmulatedBackend(block=64, blocks=3)
    wanted = oracles.sssp(case, sources, options.get("cutoff"))
    if targets:
        options["until"] = oracles.positions(case, order)[targets].tolist()
    results = []
    with pytest.MonkeyPatch.context() as patch:
        if delta is not None:
            patch.setattr(persistent, "default_delta", lambda shard, dtype, with_lightest: delta)
        for has_lightest in (False, True):
            result, shards = distances(
                sssp_persistent, case, sources, order, backend, has_lightest=has_lightest, **options
            )
            found = of_users(shards, sources, [result[0]])
            if targets:
                check_settled(found, wanted, targets)
            else:
                np.testing.assert_array_equal(found, wanted)
            results.append(result)
    return results


@pytest.mark.covering(every=3)
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", [*CASES, *(random_case(seed, 400) for seed in range(3))], ids=lambda case: case.name)
def test_distances_of_the_zoo_equal_the_oracle(case, order):
    backend = EmulatedBackend(block=32, blocks=3)
    for sources in zoo_sources(case):
        check(case, sources, order, backend)


@examples(30)
@given(graphs_and_sources(), orders)
def test_distances_of_drawn_graphs_equal_the_oracle(drawn, order):
    check(*drawn, order)


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int64"])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_distances_of_all_dtypes_equal_the_oracle(directed, dtype):
    case = random_case(0, 300, directed=directed).unweighted
    weights = np.random.default_rng(7).integers(0, 200, len(case.sources))
    # A weight that sums to more than 32 bits makes the state int64.
    weights[:2] = 2**31 if dtype == "int64" else 255
    case = type(case)(case.name, case.num_vertices, case.sources, case.targets, weights, directed)
    got = check(case.with_weights(dtype), [5, 299])[0][0]
    assert got.dtype == {"uint8": "uint32"}.get(dtype, dtype)


def hubs(seed=0, leaves=1300):
    """Return two hubs with rows so long that they are queued in parts, and lighter paths around them."""
    random = np.random.default_rng(seed)
    ends = [(hub, v, 60) for hub in (0, 1) for v in range(2, leaves) if random.random() < 0.9]
    ends += [(int(u), int(v), int(w)) for u, v, w in random.integers(1, leaves, (500, 3))]
    return make_case("hubs", leaves, ends, np.uint16)


@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("delta", [1, 40, 10_000])
def test_distances_of_long_rows_do_not_depend_on_delta(delta, order):
    # Where there are hubs, their bucket may be widened.
    methods = {"push", "split", "scan"}, {"push", "heavy", "pull", *["scan"] * (order == "degree")}
    for (got, trace), known in zip(check(hubs(), [7], order, delta=delta), methods, strict=True):
        assert sum(step["frontier"] for step in trace.supersteps) >= (got != unreached_of(got.dtype)).sum()
        assert {step["method"] for step in trace.supersteps} <= known
        assert all(step["microseconds"] >= 0 for step in trace.supersteps)


def test_far_vertices_are_in_a_queue_until_it_overflows():
    """On a path the queue stays short; all leaves of a star are far at once, and scans find them."""
    path = make_case("path", 100, [(v, v + 1, 10) for v in range(99)], np.uint8)
    star = make_case("star", 400, [(0, v, 1 + v % 200) for v in range(1, 400)], np.uint8)
    methods = [{step["method"] for step in check(case, [0], delta=5)[0][1].supersteps} for case in (path, star)]
    assert methods == [{"push", "split"}, {"push", "scan"}]


# Costs of a lookup in the far queue, of a vertex scanned, of an arc pushed and of one pulled: zero, or prohibitive.
HIGH_COST = 1 << 30
ROUND_COSTS = {
    ("split", "heavy"): (0, HIGH_COST, 0, HIGH_COST),
    ("scan", "pull"): (HIGH_COST, 0, HIGH_COST, 0),
}


@pytest.mark.parametrize("ways", ROUND_COSTS, ids="-".join)
def test_result_does_not_depend_on_the_method_of_a_round(ways, monkeypatch):
    monkeypatch.setattr(persistent, "sssp_costs", lambda *_: ROUND_COSTS[ways])
    methods = set()
    for case, sources in ((random_case(4, 300), [3, 150]), (hubs(), [7])):
        # Where there are hubs, their rows decide.
        for _, trace in check(case, sources, "natural", delta=20):
            methods |= {step["method"] for step in trace.supersteps}
    # A round without heavy arcs to push has none to pull.
    assert methods - {"heavy"} == {"push", *ways} - {"heavy"}


@pytest.fixture
def _far_distances(monkeypatch):
    """Choose rounds as if distances exceeded the cache: to push the heavy arcs of hubs costs much."""
    monkeypatch.setattr(persistent, "sssp_costs", lambda *_: sssp_costs(H200, 1 << 26, 4))


@pytest.mark.usefixtures("_far_distances")
def test_remaining_vertices_after_the_second_pull_are_one_bucket():
    """The last bucket is pushed to its end without a pull, although it is wider than delta."""
    _, (_, trace) = check(trailing_chains(), [0], delta=3)
    methods = [step["method"] for step in trace.supersteps]
    last = len(methods) - methods[::-1].index("pull")
    assert methods.count("pull") == 2 and set(methods[last:]) == {"push"}
    assert sum(step["frontier"] for step in trace.supersteps[last:]) >= 12


def test_arc_that_rounding_ends_at_the_bound_is_relaxed():
    """It is not light, as the bound less its source's distance is rounded down, and its end is the bound."""
    tiny = 0.75 * 2**-24
    arcs = [(0, 1, tiny), (1, 2, 1.0), (1, 3, 255.0), (1, 4, 255.0), (1, 5, 255.0)]
    check(make_case("rounded", 6, arcs, np.float32, directed=True), [0], "natural", delta=1.0)


def test_arcs_as_long_as_a_gap_are_not_light():
    """A hub behind a heavy edge pushes its light arcs alone, those shorter than the bucket is wide."""
    leaves = [(1, v, 1 + v % 255) for v in range(2, 3000)]
    _, (_, trace) = check(make_case("gap", 3000, [(0, 1, 250), *leaves], np.uint8), [0], delta=8)
    _, of_hub, *_ = (step["arcs"] for step in trace.supersteps if step["method"] == "push")
    assert 0 < of_hub < len(leaves) // 8


@pytest.mark.usefixtures("_far_distances")
def test_bucket_of_hubs_is_widened_until_a_pull_pays():
    """Heavy arcs of the hubs are never pushed; without hubs a bucket is not widened."""
    _, (_, by_degree) = check(hubs(), [7], "degree", delta=40)
    _, (_, natural) = check(hubs(), [7], "natural", delta=40)
    methods, known = ([step["method"] for step in trace.supersteps] for trace in (by_degree, natural))
    assert "scan" not in known and methods.index("scan") < methods.index("pull")
    assert set(methods[methods.index("scan") :]) == {"scan", "push", "pull"}


@pytest.mark.parametrize("order", ["degree", "natural"])
def test_buckets_before_a_dense_region_are_no_tail(order):
    """They have few arcs, one fewer than another; the region still takes many buckets."""
    random = np.random.default_rng(5)
    ends = [(v, v + 1, 200) for v in range(6)]
    ends += [(int(u), int(v), int(w)) for u, v, w in random.integers((6, 6, 20), (306, 306, 200), (4000, 3))]
    _, (_, trace) = check(make_case("path to a dense region", 306, ends, np.uint8), [0], order, delta=2)
    assert max(step["frontier"] for step in trace.supersteps if step["method"] == "push") < 30


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("block", "blocks"), [(32, 1), (32, 7), (128, 2)])
def test_distances_do_not_depend_on_grid_or_order_of_threads(block, blocks, seed):
    backend = EmulatedBackend(seed=seed, block=block, blocks=blocks)
    check(random_case(seed, 200), [3, 150], backend=backend)
    check(hubs(seed, 400), [9], backend=backend)


def test_shared_memory_of_a_launch_is_known_before_its_distances_are_allocated():
    args = dict.fromkeys(find_distances.parameters) | {"dist": Allocated(100, np.dtype(np.uint16))}
    assert find_distances.shared_bytes(tuple(args.values())) == 200


@pytest.mark.parametrize("name", ["grid", "dag", "rounding", "large-weights"])
def test_vertices_beyond_the_cutoff_are_unreached(name):
    case = ZOO[name]
    farthest = oracles.sssp(case, [0]).max()
    for cutoff in (0, farthest // 2, farthest):
        check(case, [0], cutoff=cutoff)


@pytest.mark.covering(every=3, ci=1)
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize(
    "case", [hubs(0, 500), trailing_chains(), *(random_case(seed, 200) for seed in range(6))], ids=lambda c: c.name
)
def test_search_up_to_a_target_settles_all_that_is_as_near(case, order):
    for seed, ends in enumerate(lists_of_targets(case, 3)):
        check(case, [3], order, EmulatedBackend(seed=seed, block=32 << seed % 2, blocks=1 + seed % 3), targets=ends)


@examples(30)
@given(graphs_and_sources(), orders, st.lists(st.integers(0, 11), min_size=1, max_size=4))
def test_searches_of_drawn_graphs_end_at_targets(drawn, order, vertices):
    case, sources = drawn
    # A search is asked for no target without arcs; loops are dropped.
    keeps = case.sources != case.targets
    ends = [*case.sources[keeps].tolist(), *case.targets[keeps].tolist()]
    if ends:
        check(case, sources, order, targets=[ends[vertex % len(ends)] for vertex in vertices])


@pytest.mark.parametrize("ways", ROUND_COSTS, ids="-".join)
def test_search_ends_after_the_bucket_of_a_target(ways, monkeypatch):
    monkeypatch.setattr(persistent, "sssp_costs", lambda *_: ROUND_COSTS[ways])
    by_target = [
        [len(trace.supersteps) for _, trace in check(trailing_chains(), [0], delta=3, targets=targets)]
        for targets in ([0], [4], [7], [512], [4, 7, 0, 4], [7, 4])
    ]
    # Over whole rows, and over light arcs.
    for *one, several, fewer in zip(*by_target, strict=True):
        assert one == sorted({*one})
        assert several == fewer == one[2]


@pytest.mark.gpu
@pytest.mark.parametrize("spec", ["rmat:16", "rmat:14,weights=float32", "uniform:2^16:16", "grid:300x300", "ssca2:14"])
@pytest.mark.parametrize("order", ["degree", "natural"])
def test_large_graphs_on_a_gpu(spec, order):
    compare_searches_of_one_shard(BACKENDS["cuda"].make(), spec, order, [([17], None), ([3, 1000], None), ([5], 150)])


@pytest.mark.parametrize("spec", ["rmat:6", "rmat:6,weights=float32"])
def test_searches_of_one_shard_do_not_depend_on_earlier_ones(spec):
    starts = [([17], 40), ([17], None), ([3, 30], None), ([5], 150), ([], None)]
    compare_searches_of_one_shard(EmulatedBackend(block=64, blocks=3), spec, "degree", starts)


def compare_searches_of_one_shard(backend, spec, order, starts):
    """Compare step and persistent variants, from positions and with cutoffs, before and after rows are sorted."""

    def both(_, comm):
        shard = build(parse_spec(spec), backend, comm, order=order)

        def search_all(variant):
            dtype = state_dtype(shard.info)
            return [variant(shard, comm, own, Trace(backend, comm), dtype, cutoff).distances for own, cutoff in starts]

        found = [search_all(sssp), search_all(sssp_persistent)]
        require_lightest_arcs(shard)
        found += [search_all(sssp_delta_stepping), search_all(sssp_persistent)]
        for expected, *others in zip(*found, strict=True):
            assert all(bool((other == expected).all()) for other in others)
        # The first search again, up to a vertex at each of some distances.
        own, cutoff = starts[0]
        whole = backend.to_host(found[0][0])
        none = unreached_of(whole.dtype)
        by_distance = np.argsort(whole, kind="stable")[: (whole != none).sum()]
        some = by_distance[:: 1 + len(by_distance) // 5].tolist()
        for targets in (*([target] for target in some), some[::-1], some[:3]):
            trace = Trace(backend, comm)
            ended = sssp_persistent(shard, comm, own, trace, whole.dtype, cutoff, targets).distances
            ended = backend.to_host(ended)
            is_near = whole <= whole[targets].max()
            assert (ended[is_near] == whole[is_near]).all()
            assert ((ended == whole) | (ended == none)).all()

    run_on_ranks(both, [None])
