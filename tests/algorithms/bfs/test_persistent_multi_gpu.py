"""Persistent multi-GPU BFS: results equal the step variant's to the bit, on any number of ranks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracles
import pytest
from comm_ranks import check
from emulator.backend import EmulatedBackend
from hypothesis import given
from naive_shard import as_seen, build_shards, distance_parts, positions_of
from on_ranks import run_on_ranks
from strategies import graphs_and_sources, orders
from tiers import examples
from zoo import CASES, ZOO, chain_of_cliques, make_case, random_case, zoo_sources

import mgraph as mg
from mgraph.algorithms.bfs import persistent_multi_gpu as module
from mgraph.algorithms.bfs.persistent_multi_gpu import bfs_multi_gpu, require_bfs_buffers
from mgraph.algorithms.bfs.step import bfs
from mgraph.algorithms.common import multi_gpu_search as multi_gpu_search
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.run_variant import with_arcs
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.create import make_backend
from mgraph.cluster.in_process import InProcessCluster
from mgraph.generate.spec import parse_spec
from mgraph.ingest.build import build
from mgraph.types import LEVEL, NARROW_LEVEL, unreached_of

pytestmark = pytest.mark.interleavings

# Every level has two barriers over emulated ranks: thousands take minutes.
SHORT = [case for case in CASES if "chain" not in case.name] + [random_case(seed, 300) for seed in range(4)]


DENSE = random_case(2, 60)


def search_by_steps(shard, comm, sources, limit, until=()):
    return bfs(shard, comm, sources, Trace(shard.backend, comm), limit, until)


def search_twice_in_peer_buffers(shard, comm, sources, limit, seed, until=()):
    """Search twice in the same peer buffers; data of the first search must not affect the second."""
    block = 32 << seed % 2
    blocks = 1 + (seed + comm.rank) % 3
    backend = EmulatedBackend(seed=10 * seed + comm.rank, block=block, blocks=blocks)
    shard = replace(shard, backend=backend)
    trace = Trace(backend, comm)
    assert require_bfs_buffers(shard, comm)
    for k, others in enumerate((sources[-1:], sources)):
        trace = Trace(backend, comm)
        result = bfs_multi_gpu(shard, comm, others, trace, limit if k else None, until if k else ())
    return result, trace


def search(case, sources, num_ranks, order, limit=None, seed=0, targets=()):
    """Return the shards, and each rank's result and trace, after a comparison with the step variant."""
    shards = build_shards(case, num_ranks, order)
    starts = with_arcs(shards[0], positions_of(shards)[sources].tolist())
    until = positions_of(shards)[list(targets)].tolist()
    expected = run_on_ranks(search_by_steps, shards, starts, limit, until)
    users = list(dict.fromkeys(sources))
    results = run_on_ranks(search_twice_in_peer_buffers, shards, users, limit, seed, until) if users else []
    for shard, (result, _), wanted in zip(shards if users else [], results, expected, strict=bool(users)):
        assert result.sources == positions_of(shards)[users].tolist()
        levels = as_seen(result.distances)
        np.testing.assert_array_equal(levels, wanted.distances)
        np.testing.assert_array_equal(result.predecessors, wanted.predecessors)
        reached = levels != unreached_of(LEVEL)
        assert result.num_reached == reached.sum()
        assert result.reached_arcs == np.diff(shard.rows.indptr)[reached].sum()
    return shards, results


@pytest.mark.covering(every=6)
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("case", SHORT, ids=lambda case: case.name)
def test_results_equal_the_step_variant_and_the_oracle(case, order):
    for seed, sources in enumerate(zoo_sources(case)):
        shards, results = search(case, sources, 2 + (seed + len(order)) % 2, order, seed=seed)
        levels = distance_parts(shards, oracles.bfs(case, sources), LEVEL)
        for (result, _), wanted in zip(results, levels, strict=bool(results)):
            np.testing.assert_array_equal(as_seen(result.distances), wanted)


@pytest.mark.ci
@examples(40)
@given(graphs_and_sources(), orders)
def test_results_of_drawn_graphs_equal_the_step_variant(drawn, order):
    case, sources = drawn
    search(case, sources, 2 + case.num_vertices % 3, order, seed=case.num_vertices)


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_depth_limit_ends_a_search(limit):
    search(random_case(1, 200), [0, 7], 3, "degree", limit=limit, seed=limit)


@pytest.mark.covering(every=4, ci=1)
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize(
    "case", [ZOO["grid"], ZOO["unreachable-part"], *(random_case(seed, 300) for seed in range(4))], ids=lambda c: c.name
)
def test_search_ends_after_the_level_of_a_target(case, order):
    """As the step variant does, to the bit."""
    sources = zoo_sources(case)[-1]
    ends = np.unique([case.sources, case.targets])
    targets = [target for target in (sources[0], *ends[:: 1 + len(ends) // 4].tolist()) if target in ends]
    for seed, several in enumerate((*([target] for target in targets), targets[:3], targets)):
        search(case, sources, 2 + seed % 2, order, seed=seed, targets=several)


@pytest.mark.ci
def test_list_of_unreached_vertices_ends_at_a_target():
    """A level that scans a list marks the target in the copies of all ranks, older ones in that of the owner alone."""
    random = np.random.default_rng(3)
    core = [(v, int(u)) for v in range(1, 600) for u in random.integers(0, v, 4)]
    case = make_case("tail", 608, [*core, *((v, v + 1) for v in range(599, 605)), (606, 607)])
    for num_ranks in (2, 3):
        steps = [
            len(search(case, [0], num_ranks, "degree", seed=num_ranks, targets=[target])[1][0][1].supersteps)
            for target in (600, 602, 604, 606)
        ]
        assert steps == [steps[0], steps[0] + 2, steps[0] + 4, steps[0] + 6]
        # All of several targets are in bitmaps alone: such a search lists nothing.
        assert len(search(case, [0], num_ranks, "degree", targets=[602, 600, 604])[1][0][1].supersteps) == steps[2]


def test_trace_has_arcs_and_bytes_of_each_rank_and_direction():
    """A search pushes in a star and pulls in a dense graph; both ranks count their own arcs and bytes."""
    for case, methods in (make_case("hub", 2000, [(0, v) for v in range(1, 2000)]), "push"), (DENSE, "pull"):
        _, results = search(case, [5], 2, "degree")
        steps = [trace.supersteps for _, trace in results]
        assert methods in {step["method"] for step in steps[0]}
        assert [s["frontier"] for s in steps[0]] == [s["frontier"] for s in steps[1]]
        assert steps[0][0]["frontier"] == 1
        assert all(
            sum(step["bytes"] for step in of_rank) == trace.bytes_sent > 0
            for of_rank, (_, trace) in zip(steps, results, strict=True)
        )


def test_candidates_beyond_the_inbox_are_sent_as_bitmap():
    """All neighbors of one vertex have one owner, and its inbox holds 64 candidates."""
    near = [(0, v) for v in range(300, 380)]
    case = make_case("lopsided", 600, [*near, *((v, v + 1) for v in (*range(1, 299, 2), *range(380, 600, 2)))])
    _, results = search(case, [0], 3, "natural")
    first = [trace.supersteps[0] for _, trace in results]
    assert {step["method"] for step in first} == {"push"}
    # The first rank pushes twice: its candidates do not fit, and discovered vertices scan for their parents.
    assert [step["arcs"] for step in first] == [160, 80, 0]


@pytest.mark.parametrize("blocks", [(8, 8), (1, 8), (8, 1)], ids=["equal", "more", "fewer"])
def test_many_blocks_send_and_merge_candidates(blocks):
    """Each block scans a part of one vertex's arcs, and has its own part of the owners' inboxes."""
    n = 16_000
    rng = np.random.default_rng(0)
    near = [(0, int(v)) for v in 1 + rng.permutation(n - 1)[:700]]
    shards = build_shards(make_case("fan", n, [*near, *((v, v + 1) for v in range(1, n - 1))]), 2, "degree")

    def fan_out(shard, comm):
        backend = EmulatedBackend(seed=comm.rank, block=32, blocks=blocks[comm.rank])
        shard = replace(shard, backend=backend)
        assert require_bfs_buffers(shard, comm)
        return bfs_multi_gpu(shard, comm, [0], Trace(backend, comm), 3)

    for ours, wanted in zip(
        run_on_ranks(fan_out, shards), run_on_ranks(search_by_steps, shards, [positions_of(shards)[0]], 3), strict=True
    ):
        np.testing.assert_array_equal(ours.distances, wanted.distances)
        np.testing.assert_array_equal(ours.predecessors, wanted.predecessors)


@pytest.mark.parametrize("order", ["degree", pytest.param("natural", marks=pytest.mark.ci)])
def test_thread_blocks_scan_hubs(order, monkeypatch):
    """Words with hubs in a pushed frontier are assigned to blocks, each row to a warp."""
    monkeypatch.setattr(module, "HUB_ARCS", 4)
    for seed in range(6):
        search(random_case(seed, 300), [0, 7] if seed % 2 else [11], 2 + seed % 2, order, seed=seed)


def test_more_candidates_than_vertices():
    edges = [*((0, v) for v in range(2, 33)), *((1, v) for v in range(29, 60))]
    clique = [(u, v) for u in range(2, 60) for v in range(u + 1, 60)]
    search(make_case("clique", 60, [*edges, *clique]), [0, 1], 2, "degree")


def test_frontier_of_many_candidates_is_pushed_alone():
    """Its queue is rebuilt from bitmap words; vertices that a small push enqueued before are not pushed again."""
    twigs = [(branch, 11 + 20 * (branch - 1) + k) for branch in range(1, 11) for k in range(20)]
    edges = [*((0, branch) for branch in range(1, 11)), *twigs, *((v, v + 200) for v in range(11, 211))]
    case = make_case("tree", 16_000, [*edges, *((v, v + 1) for v in range(411, 15_999))])
    for num_ranks in (2, 3):
        _, results = search(case, [0], num_ranks, "degree", seed=num_ranks)
        steps = list(zip(*(trace.supersteps for _, trace in results), strict=True))
        assert {step["method"] for of_level in steps for step in of_level} == {"push"}
        assert [sum(step["arcs"] for step in of_level) for of_level in steps] == [10, 210, 400, 200]


def test_few_unreached_vertices_are_listed():
    """After the pull of a core few vertices are unreached (a tail and a separate pair): only listed ones pull."""
    random = np.random.default_rng(3)
    core = [(v, int(u)) for v in range(1, 600) for u in random.integers(0, v, 4)]
    case = make_case("tail", 608, [*core, *((v, v + 1) for v in range(599, 605)), (606, 607)])
    for num_ranks in (2, 3):
        _, results = search(case, [0], num_ranks, "degree", seed=num_ranks)
        by_rank = [[(s["method"], s["arcs"]) for s in trace.supersteps[-4:]] for _, trace in results]
        assert all(method == "pull" for steps in by_rank for method, _ in steps)
        assert all(0 < sum(arcs) <= 2 * 9 for arcs in zip(*([a for _, a in steps] for steps in by_rank), strict=True))


@pytest.mark.ci
def test_long_row_prevents_a_list():
    """An unreached vertex has a long row, so no list is made: levels after the core are pushed."""
    random = np.random.default_rng(5)
    core = 72_000
    sources = np.repeat(np.arange(1, core), 3)
    near = np.stack([sources, random.integers(0, sources)], axis=1).tolist()
    tail = range(core - 1, core + 3)
    star = range(core + 5, core + 1100)
    case = make_case("star", core + 1100, [*near, *((v, v + 1) for v in tail), *((core + 4, v) for v in star)])
    # With all of the core as sources the first level is pulled while the queue is full, and a list uses its memory.
    for starts in [0], list(range(core)):
        _, results = search(case, starts, 2, "degree")
        methods = [step["method"] for step in results[0][1].supersteps]
        assert methods[-3:] == ["push"] * 3
        assert "pull" in methods
        # After a list the whole slice is broadcast.
        behind = len(methods) - methods[::-1].index("pull")
        assert all(trace.supersteps[behind]["bytes"] >= case.num_vertices // 2 // 8 for _, trace in results)


@pytest.mark.ci
def test_push_after_a_prevented_list_covers_all_words():
    """Marked vertices of all words find parents; blocks fetch the last runs dynamically."""
    random = np.random.default_rng(1)
    num = 92_000
    width = 120
    star = 1032
    core = num - 2 * width - star - 1
    sources = np.repeat(np.arange(1, core), 3)
    near = np.stack([sources, random.integers(0, sources)], axis=1)
    levels = oracles.bfs(make_case("core", core, near.tolist()), [0])
    behind = num - np.cumsum(np.bincount(levels))
    hub = int(np.flatnonzero(levels == np.argmax(behind < num / 64))[0])
    rays = core + 1 + np.arange(star)
    fan = core + 1 + star + np.arange(width)
    last = num - width + np.arange(width)
    pairs = np.stack(np.meshgrid(fan, last), axis=-1).reshape(-1, 2)
    edges = [*near.tolist(), *((hub, int(v)) for v in fan), *((core, int(v)) for v in rays), *pairs.tolist()]
    _, results = search(make_case("dirty", num, edges), [0], 2, "natural")
    steps = results[0][1].supersteps
    assert [step["method"] for step in steps[-4:]] == ["pull", "pull", "push", "push"]
    assert steps[-1]["frontier"] == width


def test_levels_beyond_the_trace_are_added_to_its_last_record(monkeypatch):
    case = make_case("line", 12, [(v, v + 1) for v in range(11)])
    _, whole = search(case, [0], 2, "degree")
    for name in (module, multi_gpu_search):
        monkeypatch.setattr(name, "TRACE_RECORDS", 3)
    _, short = search(case, [0], 2, "degree")
    for (_, all_rows), (_, rows) in zip(whole, short, strict=True):
        assert (len(all_rows.supersteps), len(rows.supersteps)) == (12, 3)
        for fact in ("frontier", "arcs", "bytes"):
            assert sum(step[fact] for step in rows.supersteps) == sum(step[fact] for step in all_rows.supersteps)


@pytest.mark.parametrize(("num_ranks", "name", "expected"), [(2, "cpu", "step"), (1, "emulated", "persistent")])
def test_clusters_without_peer_memory_run_other_variants(num_ranks, name, expected):
    make = EmulatedBackend if name == "emulated" else lambda: CpuBackend(1)
    with InProcessCluster(num_ranks, make_backend=make) as cluster, mg.grid(3, 4, cluster=cluster) as g:
        assert mg.bfs(g, 0).stats.variant == f"bfs.{expected}"
        assert mg.bfs(g, 0, method="sweep").stats.variant == "bfs.sweep"


def test_cluster_of_emulated_gpus_searches_in_peer_buffers():
    backends = iter(range(2))
    cluster = InProcessCluster(2, make_backend=lambda: EmulatedBackend(seed=next(backends), block=32))
    with cluster, mg.grid(6, 7, cluster=cluster) as g, mg.bfs(g, 0) as levels:
        mg.validate(levels)
        assert levels.stats.variant == "bfs.persistent_multi_gpu"
        assert levels.distances[41] == 11


def search_both(comm, xp, spec, num_roots):
    """Run both variants; return for each root whether the results are equal, and both traces."""
    backend = make_backend("cuda")
    facts = []
    shard = build(parse_spec(spec), backend, comm)
    assert require_bfs_buffers(shard, comm)
    for root in range(0, shard.info.num_vertices, shard.info.num_vertices // num_roots):
        traces = Trace(backend, comm), Trace(backend, comm)
        ours = bfs_multi_gpu(shard, comm, [root], traces[0])
        theirs = bfs(shard, comm, with_arcs(shard, ours.sources), traces[1])
        levels = as_seen(backend.to_host(ours.distances))
        wanted = backend.to_host(theirs.distances)
        equal = np.array_equal(levels, wanted) and bool((ours.predecessors == theirs.predecessors).all())
        target = min(root + 1, shard.partition.num_positions - 1)
        ours = bfs_multi_gpu(shard, comm, [root], Trace(backend, comm), None, [target])
        theirs = bfs(shard, comm, with_arcs(shard, ours.sources), Trace(backend, comm), None, [target])
        levels = as_seen(backend.to_host(ours.distances))
        equal = equal and np.array_equal(levels, backend.to_host(theirs.distances))
        equal = equal and bool((ours.predecessors == theirs.predecessors).all())
        facts.append((equal, *traces))
    return [(equal, [t.supersteps for t in traces]) for equal, *traces in facts]


@pytest.mark.gpus
@pytest.mark.parametrize("spec", ["rmat:18", "ssca2:12", "grid:60x70", "uniform:2^14:4"])
def test_results_on_gpus_equal_the_step_variant(gang, spec):
    for results in zip(*check(gang.run(search_both, spec, 4, on_host=False)), strict=True):
        assert all(equal for equal, _ in results)
        for _, (ours, theirs) in results:
            assert [step["frontier"] for step in ours] == [step["frontier"] for step in theirs]
            assert sum(step["bytes"] for step in ours) > 0 or len(ours) < 3


@pytest.mark.ci
@pytest.mark.parametrize("limit", [None, 253, 254, 255])
def test_search_repeats_where_levels_exceed_uint8(limit):
    case = chain_of_cliques()
    shards = build_shards(case, 2, "degree")
    expected = run_on_ranks(search_by_steps, shards, [positions_of(shards)[0]], limit)

    def search_again(shard, comm):
        backend = EmulatedBackend(seed=comm.rank, block=32)
        shard = replace(shard, backend=backend)
        assert require_bfs_buffers(shard, comm)
        traces = [Trace(backend, comm) for _ in range(2)]
        results = [bfs_multi_gpu(shard, comm, [0], trace, limit) for trace in traces]
        return results, [len(trace.supersteps) for trace in traces]

    wide = limit is None or limit > 254
    for (results, steps), wanted in zip(run_on_ranks(search_again, shards), expected, strict=True):
        for result in results:
            assert result.distances.dtype == (LEVEL if wide else NARROW_LEVEL)
            np.testing.assert_array_equal(as_seen(result.distances), wanted.distances)
            np.testing.assert_array_equal(result.predecessors, wanted.predecessors)
            assert result.num_reached == (wanted.distances != unreached_of(LEVEL)).sum()
        # Later searches of the graph begin with wide levels.
        assert steps[0] - steps[1] == (254 if wide else 0)
