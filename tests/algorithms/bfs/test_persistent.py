"""Persistent BFS: results equal the step variant's to the bit, for any grid and order of threads."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from emulator.backend import EmulatedBackend
from naive_shard import as_seen, build_shards
from on_ranks import run_on_ranks
from zoo import CASES, ZOO, chain_of_cliques, make_case, random_case, zoo_sources

from mgraph.algorithms.bfs import persistent
from mgraph.algorithms.bfs.persistent import bfs_persistent
from mgraph.algorithms.bfs.step import bfs
from mgraph.algorithms.common.traversal import Trace
from mgraph.backends.create import make_backend
from mgraph.errors import CommAborted
from mgraph.generate.spec import parse_spec
from mgraph.ingest.build import build
from mgraph.shard.shard import degrees
from mgraph.shard.user_ids import positions_of
from mgraph.types import LEVEL, NARROW_LEVEL

pytestmark = pytest.mark.interleavings


def search(program, case, sources, order, backend=None, limit=None, **options):
    """Search on one rank; return the result, host arrays of it, and the supersteps."""
    (shard,) = build_shards(case, 1, order, backend)
    starts = sources
    if program is not bfs_persistent:
        starts = sorted({int(p) for p in positions(shard, sources) if p < shard.partition.num_positions})

    def on_rank(shard, comm):
        trace = Trace(shard.backend, comm)
        found = program(shard, comm, starts, trace, limit, **options)
        return found, trace.supersteps

    ((found, steps),) = run_on_ranks(on_rank, [shard])
    to_host = shard.backend.to_host
    return found, as_seen(to_host(found.distances)), to_host(found.predecessors)[: shard.num_owned], steps


def positions(shard, sources):
    if shard.position_of_user is None:
        return list(sources)
    return shard.backend.to_host(shard.position_of_user)[list(sources)].tolist()


def check(case, sources, order="degree", backend=None, limit=None):
    """Compare the persistent variant with the step variant on the CPU; return the persistent one's supersteps."""
    _, levels, parents, _ = search(bfs, case, sources, order, limit=limit)
    found, persistent_levels, persistent_parents, steps = search(bfs_persistent, case, sources, order, backend, limit)
    np.testing.assert_array_equal(persistent_levels, levels)
    np.testing.assert_array_equal(persistent_parents, parents)
    reached = levels != np.iinfo(np.int32).max
    assert found.num_reached == reached.sum()
    (shard,) = build_shards(case, 1, order)
    assert found.reached_arcs == np.diff(shard.rows.indptr)[reached].sum()
    return steps


def check_until(case, sources, targets, order, backend):
    """Compare a search up to targets with the whole one: its last level is whole; return its supersteps."""
    _, levels, parents, _ = search(bfs, case, sources, order)
    (shard,) = build_shards(case, 1, order)
    ends = positions(shard, targets)
    found, until_levels, until_parents, steps = search(bfs_persistent, case, sources, order, backend, until=ends)
    reached = until_levels != np.iinfo(np.int32).max
    last = until_levels[reached].max()
    np.testing.assert_array_equal(reached, levels <= last)
    np.testing.assert_array_equal(until_levels[reached], levels[reached])
    np.testing.assert_array_equal(until_parents[reached], parents[reached])
    assert found.num_reached == reached.sum()
    assert found.reached_arcs == np.diff(shard.rows.indptr)[reached].sum()
    np.testing.assert_array_equal(reached[ends], levels[ends] != np.iinfo(np.int32).max)
    return steps


def emulators():
    """Return emulators with grids of a few blocks; chunked expansion needs several."""
    return [
        EmulatedBackend(seed=1, block=64, blocks=3),
        EmulatedBackend(seed=2, block=96, blocks=1),
        EmulatedBackend(seed=3, block=96, blocks=5),
    ]


@pytest.mark.covering(every=6)
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", [*CASES, *(random_case(seed, 300) for seed in range(4))], ids=lambda case: case.name)
def test_results_equal_the_step_variant(case, order):
    for backend in emulators():
        for sources in zoo_sources(case) if case.num_vertices else [[]]:
            check(case, sources, order, backend)


@pytest.mark.parametrize("limit", [0, 1, 3, 20, 40, 299])
def test_vertices_deeper_than_the_limit_are_unreached(limit):
    for name in ("grid", "long-chain", "unreachable-part"):
        for backend in emulators():
            check(ZOO[name], [0], "natural", backend, limit)


def grid_with_holes(width, height, seed):
    """Return a grid with a tenth of its edges missing, and a vertex with a long row."""
    rng = np.random.default_rng(seed)
    at = np.arange(width * height).reshape(height, width)
    edges = np.concatenate([np.c_[at[:, 1:].ravel(), at[:, :-1].ravel()], np.c_[at[1:].ravel(), at[:-1].ravel()]])
    edges = edges[rng.random(len(edges)) < 0.9].tolist()
    # A star with one leaf on the grid: its center is a long row in a narrow frontier.
    hub = width * height
    leaves = rng.choice(hub, 5, replace=False).tolist() + list(range(hub + 1, hub + 200))
    edges += [(hub, leaf) for leaf in leaves]
    return make_case(f"holes-{seed}", hub + 200, [tuple(edge) for edge in edges])


@pytest.mark.parametrize("capacity", [1024, 40], ids=["large", "too-short"])
@pytest.mark.parametrize("seed", range(3))
def test_deep_graph_uses_chunked_expansion(seed, capacity, monkeypatch):
    """A queue that overflows drops the vertices found in a chunk, which is then repeated."""
    monkeypatch.setattr(persistent, "queue_capacity", lambda num, sources: max(capacity, sources))
    sources, limit = [([0], None), ([5], 60), ([3, 4], None)][seed]
    steps = check(grid_with_holes(150, 3, seed), sources, "natural", emulators()[seed], limit)
    assert "chunked" in {step["method"] for step in steps}


def test_search_pulls_and_then_rebuilds_the_queue_from_the_bitmap():
    """Search a dense core with a chain behind it: push, pull, and push at the end."""
    core = random_case(5, 400)
    edges = [*zip(core.sources.tolist(), core.targets.tolist(), strict=True)]
    edges += [(u, u + 1) for u in range(399, 500)]
    case = make_case("tailed", 501, edges)
    for backend in emulators():
        for order in ("natural", "degree"):
            methods = [step["method"] for step in check(case, [7], order, backend)]
            assert "pull" in methods and methods[-1] != "pull"


# The number of parts, then COSTS: one variant of a level costs next to nothing, the others more than all else.
HIGH_COST = 1 << 34
VARIANT_COSTS = {
    "queue": (1, HIGH_COST, 0, HIGH_COST, HIGH_COST, HIGH_COST, HIGH_COST, HIGH_COST),
    "candidates": (3, 0, HIGH_COST, 0, 0, 1, HIGH_COST, HIGH_COST),
    "pull": (1, 0, HIGH_COST, HIGH_COST, HIGH_COST, 1, 1, 1),
}


@pytest.mark.covering(every=2)
@pytest.mark.parametrize(("variant", "ratio"), [("queue", 4), ("candidates", 0), ("candidates", 1000), ("pull", 4)])
def test_every_variant_of_a_level_gives_the_same_result(variant, ratio, monkeypatch):
    """Also with a depth limit: a push of candidates does not count the arcs of the last level."""
    monkeypatch.setattr(persistent, "bfs_costs", lambda *_: VARIANT_COSTS[variant])
    monkeypatch.setattr(persistent, "UNIFORM_DEGREE_RATIO", ratio)
    for backend in emulators():
        check(random_case(1, 400), [3], "degree", backend, 2)
    methods = set()
    for case in (random_case(1, 400), random_case(2, 300, directed=True), *CASES[::4]):
        for backend in emulators():
            methods |= {step["method"] for step in check(case, zoo_sources(case)[0], "degree", backend)}
    assert ("pull" in methods) == (variant != "queue")


@pytest.mark.parametrize("limit", [None, 6])
def test_one_block_finds_few_unreached_vertices(limit, monkeypatch):
    """Search a dense core with a chain; another component is not reached."""
    monkeypatch.setattr(persistent, "bfs_costs", lambda *_: VARIANT_COSTS["pull"])
    core = random_case(5, 700)
    edges = [*zip(core.sources.tolist(), core.targets.tolist(), strict=True)]
    edges += [(9, 700), *((u, u + 1) for u in range(700, 706)), (3, 706), (707, 708)]
    for backend in emulators():
        for order in ("natural", "degree"):
            steps = check(make_case("few-unreached", 709, edges), [7], order, backend, limit)
            # Listed vertices stay listed: every level scans the same arcs.
            assert [(step["method"], step["arcs"]) for step in steps[-2:]] == [("pull", 8)] * 2


@pytest.mark.ci
@pytest.mark.parametrize("limit", [None, 6])
def test_all_blocks_find_many_unreached_vertices(limit, monkeypatch):
    """Search a dense core with a wide tail; the unreached component is too large for one block."""
    monkeypatch.setattr(persistent, "bfs_costs", lambda *_: VARIANT_COSTS["pull"])
    core = random_case(5, 3000)
    width = 7
    depth = 8
    tail = np.arange(3000, 3000 + width * depth).reshape(depth, width)
    ring = np.arange(3000 + width * depth, 3000 + width * depth + 290)
    edges = [
        *zip(core.sources.tolist(), core.targets.tolist(), strict=True),
        *((9 + i, v) for i, v in enumerate(tail[0])),
    ]
    edges += [(u, v) for above, below in itertools.pairwise(tail) for u, v in zip(above, below[::-1], strict=True)]
    edges += zip(ring, np.roll(ring, 1), strict=True)
    case = make_case("more-unreached", int(ring[-1]) + 1, [(int(u), int(v)) for u, v in edges])
    for backend in emulators():
        for order in ("natural", "degree"):
            steps = check(case, [7], order, backend, limit)
            assert {step["method"] for step in steps[-4:]} == {"pull"}


def test_levels_beyond_the_trace_are_added_to_its_last_record(monkeypatch):
    # The number of arcs that chunked expansion scans depends on the order of threads.
    monkeypatch.setattr(persistent, "may_exceed_uint8_levels", lambda _: False)
    case = ZOO["grid"]
    whole = check(case, [0], "degree", EmulatedBackend())
    monkeypatch.setattr(persistent, "TRACE_RECORDS", 2)
    short = check(case, [0], "degree", EmulatedBackend())
    assert len(whole) > len(short) == 2
    for name in ("arcs", "frontier", "levels"):
        assert sum(step[name] for step in short) == sum(step[name] for step in whole)


@pytest.mark.ci
def test_wide_state_indices(monkeypatch):
    from mgraph.partition import Partition

    monkeypatch.setattr(Partition, "dtype", property(lambda self: np.dtype(np.int64)))
    for case, backend in zip((random_case(1, 300), random_case(2, 300, directed=True)), emulators(), strict=False):
        assert check(case, [3], "natural", backend)


def test_aborted_search_raises_and_the_next_one_succeeds(monkeypatch):
    backend = EmulatedBackend(blocks=3, block=32)
    with monkeypatch.context() as patch:
        # As if every block had seen the abort word: nothing is written.
        patch.setattr(persistent, "search_levels", {backend: lambda *args: None})
        backend.arrived[:] = 5
        with pytest.raises(CommAborted):
            check(random_case(0, 300), [3], backend=backend)
    check(random_case(0, 300), [3], backend=backend)


@pytest.mark.covering(every=3, ci=1)
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize(
    "case",
    [ZOO["grid"], ZOO["unreachable-part"], ZOO["long-chain"], *(random_case(seed, 300) for seed in range(4))],
    ids=lambda case: case.name,
)
def test_search_up_to_a_target_has_its_level_whole(case, order):
    sources = zoo_sources(case)[-1]
    ends = np.unique([case.sources, case.targets])
    targets = [target for target in (sources[0], *ends[:: 1 + len(ends) // 4].tolist()) if target in ends]
    for several in (*([target] for target in targets), targets[:3], targets):
        for backend in emulators():
            check_until(case, sources, several, order, backend)


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("variant", VARIANT_COSTS)
def test_every_variant_of_a_level_ends_at_a_target(variant, monkeypatch):
    """A list of few unreached vertices, which one block scans, ends there too."""
    monkeypatch.setattr(persistent, "bfs_costs", lambda *_: VARIANT_COSTS[variant])
    core = random_case(5, 700)
    edges = [*zip(core.sources.tolist(), core.targets.tolist(), strict=True)]
    edges += [(9, 700), *((u, u + 1) for u in range(700, 730)), (3, 730), (731, 732)]
    for backend, order in zip(emulators(), ("natural", "degree", "natural"), strict=True):
        near, far, whole, both = (
            len(check_until(make_case("tailed", 733, edges), [7], targets, order, backend))
            for targets in ([703], [708], [731], [703, 708])
        )
        assert near < far == both < whole


@pytest.mark.parametrize("seed", range(3))
def test_chunked_expansion_ends_at_a_target(seed):
    ladder = [end for v in range(700) for end in ((2 * v, 2 * v + 1), (2 * v, 2 * v + 2), (2 * v + 1, 2 * v + 3))]
    case = make_case("ladder", 1402, ladder)
    levels = [
        sum(step["levels"] for step in check_until(case, [0], targets, "natural", emulators()[seed]))
        for targets in ([2 * 200], [2 * 600], [2 * 200, 2 * 190])
    ]
    assert 200 <= levels[0] == levels[2] < 400 and 600 <= levels[1] < 700


@pytest.mark.gpu
@pytest.mark.parametrize(
    "spec", ["rmat:16", "rmat:19", "uniform:2^18:16", "uniform:2^18:3", "grid:700x300", "grid:64x5000"]
)
def test_larger_graphs_on_a_gpu(spec):
    source = parse_spec(spec)
    backend = make_backend("cuda")
    backend.competes_with_host = False  # the long grid would be left to the CPU cores
    rng = np.random.default_rng(5)

    def on_rank(_, comm):
        shard = build(source, backend, comm)
        for count, limit in ((1, None), (1, None), (5, None), (1, 3)):
            users = rng.integers(0, shard.info.num_vertices, count).tolist()
            sources = [p for p in positions_of(shard, comm, users) if p < shard.num_owned]
            wanted = bfs(shard, comm, sources, Trace(backend, comm), limit)
            found = bfs_persistent(shard, comm, users, Trace(backend, comm), limit)
            levels = as_seen(backend.to_host(found.distances))
            np.testing.assert_array_equal(levels, backend.to_host(wanted.distances))
            assert bool((found.predecessors == wanted.predecessors[: shard.num_owned]).all())
            reached = wanted.distances != np.iinfo(np.int32).max
            assert found.num_reached == int(reached.sum())
            assert found.reached_arcs == int(degrees(shard.rows)[reached].sum())
            for num_targets in (1, 40) if limit is None else ():
                targets = rng.integers(0, shard.num_owned, num_targets).tolist()
                near = bfs_persistent(shard, comm, users, Trace(backend, comm), until=targets)
                levels = as_seen(backend.to_host(near.distances))
                whole = backend.to_host(wanted.distances)
                is_near = whole <= whole[targets].max()
                np.testing.assert_array_equal(levels[is_near], whole[is_near])
                kept = backend.to_device(levels != np.iinfo(np.int32).max)
                assert bool((near.predecessors == wanted.predecessors[: shard.num_owned])[kept].all())

    run_on_ranks(on_rank, [None])
    backend.close()


@pytest.mark.parametrize("limit", [None, 253, 254, 255])
def test_search_repeats_where_levels_exceed_uint8(limit):
    """Later searches of the graph begin with wide levels."""
    (shard,) = build_shards(chain_of_cliques(), 1, "degree", EmulatedBackend(block=32))

    def search_twice(shard, comm):
        traces = [Trace(shard.backend, comm) for _ in range(2)]
        return [(bfs_persistent(shard, comm, [0], trace, limit), len(trace.supersteps)) for trace in traces]

    ((first, again),) = run_on_ranks(search_twice, [shard])
    wide = limit is None or limit > 254
    assert first[1] - again[1] == (254 if wide else 0)
    _, levels, parents, _ = search(bfs, chain_of_cliques(), [0], "degree", limit=limit)
    for found, _ in (first, again):
        assert found.distances.dtype == (LEVEL if wide else NARROW_LEVEL)
        np.testing.assert_array_equal(as_seen(found.distances), levels)
        np.testing.assert_array_equal(found.predecessors, parents)


def test_graph_of_few_arcs_uses_wide_levels():
    found, *_ = search(bfs_persistent, ZOO["grid"], [0], "degree", EmulatedBackend())
    assert found.distances.dtype == LEVEL


def test_chunked_expansion_counts_as_several_levels():
    """Isolated vertices lower the mean degree of a deep graph with many arcs per connected vertex."""
    case = chain_of_cliques(num_isolated=300)
    for order in ("natural", "degree"):
        check(case, [0], order, EmulatedBackend(), limit=None)
