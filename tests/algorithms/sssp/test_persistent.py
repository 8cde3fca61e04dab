"""Shortest paths in one launch: equal to the step form, to the bit."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from backends import BACKENDS
from emulator.backend import EmulatedBackend
from hypothesis import given
from on_ranks import run_on_ranks
from one_rank import distances
from strategies import graphs_and_sources, orders
from sweep_checks import of_users
from tiers import examples
from zoo import CASES, ZOO, make_case, random_case, trailing_chains, zoo_sources

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.sssp import persistent
from mgraph.algorithms.sssp.delta_stepping import sssp_delta_stepping
from mgraph.algorithms.sssp.near_far import sssp
from mgraph.algorithms.sssp.persistent import sssp_persistent
from mgraph.api.traversal import state_dtype
from mgraph.generate.spec import parse_spec
from mgraph.ingest.build import build
from mgraph.shard.weight_sorted_rows import require_weight_sorted_rows
from mgraph.types import unreached_of

pytestmark = pytest.mark.interleavings


def check(case, sources, order="degree", backend=None, **options):
    """Compare both forms with the oracle, which every other form is compared with."""
    backend = backend or EmulatedBackend(block=64, blocks=3)
    wanted = oracles.sssp(case, sources, options.get("cutoff"))
    answers = []
    for weight_sorted in (False, True):
        answer, shards = distances(
            sssp_persistent, case, sources, order, backend, weight_sorted=weight_sorted, **options
        )
        np.testing.assert_array_equal(of_users(shards, sources, [answer[0]]), wanted)
        answers.append(answer)
    return answers


@pytest.mark.covering
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", [*CASES, *(random_case(seed, 400) for seed in range(3))], ids=lambda case: case.name)
def test_the_zoo(case, order):
    backend = EmulatedBackend(block=32, blocks=3)
    for sources in zoo_sources(case):
        check(case, sources, order, backend)


@examples(30)
@given(graphs_and_sources(), orders)
def test_drawn_graphs(drawn, order):
    check(*drawn, order)


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int64"])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_all_widths(directed, dtype):
    case = random_case(0, 300, directed=directed).unweighted
    weights = np.random.default_rng(7).integers(0, 200, len(case.sources))
    # A weight that sums to more than 32 bits makes the state int64.
    weights[:2] = 2**31 if dtype == "int64" else 255
    case = type(case)(case.name, case.num_vertices, case.sources, case.targets, weights, directed)
    got = check(case.with_weights(dtype), [5, 299])[0][0]
    assert got.dtype == {"uint8": "uint32"}.get(dtype, dtype)


def hubs(seed=0, leaves=1300):
    """Two vertices with rows so long that they are queued in parts, and light ways around."""
    random = np.random.default_rng(seed)
    ends = [(hub, v, 60) for hub in (0, 1) for v in range(2, leaves) if random.random() < 0.9]
    ends += [(int(u), int(v), int(w)) for u, v, w in random.integers(1, leaves, (500, 3))]
    return make_case("hubs", leaves, ends, np.uint16)


@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("delta", [1, 40, 10_000])
def test_long_rows_and_any_delta(delta, order):
    methods = {"push", "split", "scan"}, {"push", "heavy", "pull"}
    for (got, trace), known in zip(check(hubs(), [7], order, delta=delta), methods, strict=True):
        assert sum(step["frontier"] for step in trace.supersteps) >= (got != unreached_of(got.dtype)).sum()
        assert {step["method"] for step in trace.supersteps} <= known
        assert all(step["microseconds"] >= 0 for step in trace.supersteps)


def test_far_is_a_queue_first_and_then_found_by_scans():
    """On a path the queue is short all the time; a star's leaves all wait at once."""
    path = make_case("path", 100, [(v, v + 1, 10) for v in range(99)], np.uint8)
    star = make_case("star", 400, [(0, v, 1 + v % 200) for v in range(1, 400)], np.uint8)
    methods = [{step["method"] for step in check(case, [0], delta=5)[0][1].supersteps} for case in (path, star)]
    assert methods == [{"push", "split"}, {"push", "scan"}]


# As if to look up a vertex that waits, to pass over one, to push an arc or to pull it cost nothing, or more than all.
DEAR = 1 << 30
FORMS = {
    ("split", "heavy"): (0, DEAR, 0, DEAR),
    ("scan", "pull"): (DEAR, 0, DEAR, 0),
}


@pytest.mark.parametrize("form", FORMS, ids="-".join)
def test_result_does_not_depend_on_the_way_of_a_round(form, monkeypatch):
    monkeypatch.setattr(persistent, "sssp_costs", lambda *_: FORMS[form])
    methods = set()
    for case, sources in ((random_case(4, 300), [3, 150]), (hubs(), [7])):
        for _, trace in check(case, sources, delta=20):
            methods |= {step["method"] for step in trace.supersteps}
    # Where nothing is left to push nothing is pulled instead.
    assert methods - {"heavy"} == {"push", *form} - {"heavy"}


def test_remaining_vertices_after_the_second_pull_are_one_bucket():
    """It is pushed to its end with no pull in between, though it is longer than a bucket is wide."""
    _, (_, trace) = check(trailing_chains(), [0], delta=3)
    methods = [step["method"] for step in trace.supersteps]
    last = len(methods) - methods[::-1].index("pull")
    assert methods.count("pull") == 2 and set(methods[last:]) == {"push"}
    assert sum(step["frontier"] for step in trace.supersteps[last:]) >= 12


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("block", "blocks"), [(32, 1), (32, 7), (128, 2)])
def test_any_grid_and_order_of_threads(block, blocks, seed):
    backend = EmulatedBackend(seed=seed, block=block, blocks=blocks)
    check(random_case(seed, 200), [3, 150], backend=backend)
    check(hubs(seed, 400), [9], backend=backend)


@pytest.mark.parametrize("name", ["grid", "dag", "rounding", "large-weights"])
def test_vertices_beyond_the_cutoff_are_unreached(name):
    case = ZOO[name]
    farthest = oracles.sssp(case, [0]).max()
    for cutoff in (0, farthest // 2, farthest):
        check(case, [0], cutoff=cutoff)


@pytest.mark.gpu
@pytest.mark.parametrize("spec", ["rmat:16", "rmat:14,weights=float32", "uniform:2^16:16", "grid:300x300", "ssca2:14"])
@pytest.mark.parametrize("order", ["degree", "natural"])
def test_large_graphs_on_a_gpu(spec, order):
    """The step forms and the fused ones, from several sources, with a cutoff and without."""
    backend = BACKENDS["cuda"].make()

    def both(_, comm):
        shard = build(parse_spec(spec), backend, comm, order=order)
        starts = ([17], None), ([3, 1000], None), ([5], 150)

        def all_of(form):
            dtype = state_dtype(shard.info)
            return [form(shard, comm, own, Trace(backend, comm), dtype, cutoff).distances for own, cutoff in starts]

        found = [all_of(sssp), all_of(sssp_persistent)]
        require_weight_sorted_rows(shard)
        found += [all_of(sssp_delta_stepping), all_of(sssp_persistent)]
        for expected, *others in zip(*found, strict=True):
            assert all(bool((other == expected).all()) for other in others)

    run_on_ranks(both, [None])
