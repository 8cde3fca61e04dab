"""Persistent multi-GPU SSSP: distances equal the oracle's to the bit, on any number of ranks."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import oracles
import pytest
from comm_ranks import check
from emulator.backend import EmulatedBackend
from hypothesis import given
from naive_shard import build_shards
from on_ranks import run_on_ranks
from strategies import graphs_and_sources, orders
from sweep_checks import of_users
from tiers import examples
from traversal_checks import check_settled, lists_of_targets
from variant_checks import wrap_run
from zoo import CASES, ZOO, GraphCase, dense_behind_gap, make_case, random_case, trailing_chains, zoo_sources

import mgraph as mg
from mgraph.algorithms.bfs.persistent_multi_gpu import bfs_multi_gpu, require_bfs_buffers
from mgraph.algorithms.common import dtype_ladder as narrowing
from mgraph.algorithms.common import multi_gpu_search as multi_gpu_search
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.run_variant import with_arcs
from mgraph.algorithms.sssp import persistent_multi_gpu as module
from mgraph.algorithms.sssp.near_far import sssp
from mgraph.algorithms.sssp.persistent_multi_gpu import require_sssp_buffers, sssp_multi_gpu
from mgraph.api.traversal import state_dtype
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.create import make_backend
from mgraph.cluster.in_process import InProcessCluster
from mgraph.errors import CommAborted
from mgraph.generate.spec import parse_spec
from mgraph.ingest.build import build
from mgraph.partition import own_states
from mgraph.shard.lightest_arcs import require_lightest_arcs
from mgraph.types import unreached_of

pytestmark = pytest.mark.interleavings

NARROWEST = np.dtype(np.uint16)
# Every round has two barriers over emulated ranks: thousands take minutes.
SHORT = [case for case in CASES if "chain" not in case.name] + [random_case(seed, 200) for seed in range(3)]


def search_twice_in_peer_buffers(shard, comm, sources, dtype, seed, options):
    """Search from one source, then from all, in the same peer buffers; the second must not read data of the first."""
    options = dict(options)
    block = 32 << seed % 2
    blocks = options.pop("blocks", 1 + (seed + comm.rank) % 3)
    backend = EmulatedBackend(seed=10 * seed + comm.rank, block=block, blocks=blocks)
    shard = replace(shard, backend=backend)
    # Some ranks have no memory for lightest arcs.
    if (seed + comm.rank) % 3:
        require_lightest_arcs(shard)
    assert require_sssp_buffers(shard, comm, dtype)
    for k, others in enumerate((sources[-1:], sources)):
        trace = Trace(backend, comm)
        result = sssp_multi_gpu(shard, comm, others, trace, dtype, **(options if k else {}))
    return result.distances, trace, None if result.all_distances is None else result.all_distances.copy()


def search(case, sources, num_ranks=2, order="degree", seed=0, *, heavies=False, finishes=None, **options):
    """Search with or without heavy arcs, compare with the oracle, and return distances and trace of each rank.

    Distances have 16 bits if those suffice and `narrow` is true. `finishes` says whether the search ends with all
    distances on every rank; they must equal the owners'. With `targets` it may end there.
    """
    shards = build_shards(case, num_ranks, order)
    delta = options.pop("delta", None)
    targets = options.pop("targets", [])
    options["until"] = oracles.positions(case, order)[targets].tolist()
    users = list(dict.fromkeys(sources))
    if not users:
        return []
    wanted = oracles.sssp(case, sources, options.get("cutoff"))
    info = shards[0].info
    dtype = state_dtype(info)
    fits = dtype.kind != "f" and max(wanted) + 2 * int(info.max_weight) < unreached_of(NARROWEST)
    if options.pop("narrow", True) and fits:
        dtype = NARROWEST
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "wants_lightest_arcs", lambda info: heavies)
        if delta is not None:
            patch.setattr(module, "narrow_delta", lambda shard, dtype: delta)
        results = run_on_ranks(search_twice_in_peer_buffers, shards, users, dtype, seed, options)
    found = of_users(shards, sources, [found for found, *_ in results])
    if targets:
        check_settled(found, wanted, targets)
    else:
        np.testing.assert_array_equal(found, wanted)
    known = [all_distances.reshape(num_ranks, -1) for _, _, all_distances in results if all_distances is not None]
    assert len(known) in ([0, num_ranks] if finishes is None else [num_ranks * finishes])
    for parts in known:
        for part, (found, *_) in zip(parts, results, strict=True):
            np.testing.assert_array_equal(part[: len(found)], found)
    return [(found, trace) for found, trace, _ in results]


@pytest.mark.covering(every=6)
@pytest.mark.parametrize("case", SHORT, ids=lambda case: case.name)
def test_distances_of_the_zoo_equal_the_oracle(case):
    for seed, sources in enumerate(zoo_sources(case)):
        order = ["degree", "natural"][seed // 2 % 2]
        search(case, sources, 2 + seed % 2, order, seed=seed, heavies=seed == 1, narrow=seed % 2 > 0)


@examples(15)
@given(graphs_and_sources(), orders)
def test_distances_of_drawn_graphs_equal_the_oracle(drawn, order):
    case, sources = drawn
    n = case.num_vertices
    search(case, sources, 2 + n % 3, order, seed=n, heavies=n % 2 > 0, narrow=n // 2 % 2 > 0)


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int64"])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_distances_of_all_dtypes_equal_the_oracle(directed, dtype):
    case = random_case(0, 60, directed=directed).unweighted
    weights = np.random.default_rng(7).integers(0, 200, len(case.sources))
    # A weight that sums to more than 32 bits makes the state int64.
    weights[:2] = 2**31 if dtype == "int64" else 255
    case = type(case)(case.name, case.num_vertices, case.sources, case.targets, weights, directed)
    for narrow, held in ((False, {"uint8": "uint32"}), (True, {"uint8": "uint16"})):
        results = search(case.with_weights(dtype), [5, 59], 3, heavies=True, narrow=narrow)
        assert results[0][0].dtype == held.get(dtype, dtype)


@pytest.mark.covering(every=2)
@pytest.mark.parametrize(("delta", "heavies"), [(1, False), (40, False), (40, True), (10_000, True)])
def test_distances_do_not_depend_on_delta(delta, heavies):
    results = search(random_case(3, 40), [7], 2, delta=delta, heavies=heavies, finishes=heavies)
    steps = [trace.supersteps for _, trace in results]
    methods = {step["method"] for step in steps[0]}
    assert {"push", "scan"} <= methods <= {"push", "scan", *["heavy", "pull"][: 2 * heavies]}
    assert [(s["method"], s["frontier"]) for s in steps[0]] == [(s["method"], s["frontier"]) for s in steps[1]]
    for of_rank, (_, trace) in zip(steps, results, strict=True):
        assert sum(step["bytes"] for step in of_rank) == trace.bytes_sent > 0


def test_denormal_weights_terminate():
    """A bucket narrower than the spacing of floats would not end."""
    ends = [(u, v, 1e-45) for u in range(12) for v in range(u)]
    search(make_case("denormal", 12, ends, np.float32), [0])


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("first", [25, 21], ids=["in a bucket", "over a border"])
def test_heavy_arcs_are_pushed_before_the_peak_and_pulled_behind_it(first):
    """Search a path to hubs with heavy arcs to all other vertices; a bucket that ends among hubs is widened."""
    leaves = [(first + v % 5, v, 100 + v % 20) for v in range(31, 1031)]
    ends = [(v, v + 1, 1) for v in range(30)] + leaves
    results = search(make_case("hubs", 1031, ends, np.uint8), [0], seed=1, delta=8, heavies=True)
    steps = [step for _, trace in results for step in trace.supersteps]
    methods = [step["method"] for step in steps]
    assert methods.index("heavy") < methods.index("pull")
    assert sum(step["arcs"] for step in steps if step["method"] == "heavy") < len(leaves) // 5, (
        "heavy arcs of hubs are pulled, not pushed"
    )
    assert sum(step["arcs"] for step in steps) <= 3 * len(ends), (
        "rows of fewer than four arcs, without lightest ones, are read whole twice"
    )


def test_vertices_pull_from_vertices_that_pull_meanwhile():
    """At the peak most vertices are neither settled nor far, and have neighbors on the same rank."""
    random = np.random.default_rng(0)
    ends = [*zip(*random.integers(0, 200, (2, 2400)).tolist(), random.integers(1, 200, 2400).tolist(), strict=True)]
    results = search(make_case("dense", 200, ends, np.uint8), [5], seed=1, delta=20, heavies=True)
    assert "pull" in {step["method"] for step in results[0][1].supersteps}


def test_gap_before_a_dense_region_makes_no_more_arcs_light():
    """A bucket that is pulled from begins at the lowest distance in it, not at the bound before a gap."""
    pulled = []
    for weight in (130, 250):
        (_, trace), _ = search(dense_behind_gap(weight), [200], seed=1, delta=60, heavies=True)
        pulled.append([step["arcs"] for step in trace.supersteps if step["method"] == "pull"])
    assert pulled[0] == pulled[1] and pulled[0][0] > 0


def test_remaining_vertices_after_the_second_pull_are_one_bucket():
    """The last bucket is pushed to its end without a pull, although it is wider than delta."""
    (_, trace), _ = search(trailing_chains(), [0], seed=1, delta=12, heavies=True, finishes=True)
    methods = [step["method"] for step in trace.supersteps]
    last = len(methods) - methods[::-1].index("pull")
    assert methods.count("pull") == 2 and set(methods[last:]) == {"push"}
    assert sum(step["frontier"] for step in trace.supersteps[last:]) >= 12


def test_near_vertex_without_light_arcs_is_queued_in_a_pull():
    """Two vertices are attached to a dense part; only the farther one leads to a second dense part.

    When the nearer is settled, the farther is near, and all its arcs are heavier than the width of the settled bucket.
    """
    crowds = [
        (u, v, 1 + (u + v) % 3)
        for first, last in ((0, 60), (62, 92))
        for u in range(first, last)
        for v in range(first, u)
    ]
    case = make_case("two crowds", 92, [*crowds, (0, 60, 12), (0, 61, 25), (61, 62, 40)], np.uint8)
    methods = [step["method"] for step in search(case, [0], seed=1, delta=10, heavies=True)[0][1].supersteps]
    assert methods.count("pull") >= 3


def test_all_warps_pull_long_rows():
    """Pull a far vertex that has many arcs, most of them from settled vertices."""
    many = 300
    ends = [(0, v, 1 + v % 3) for v in range(1, many)] + [(v, many, 90 + v % 100) for v in range(1, many)]
    results = search(make_case("fan", many + 1, ends, np.uint8), [0], 2, seed=1, delta=4, heavies=True)
    assert "pull" in {step["method"] for step in results[0][1].supersteps}


def crowd_and_chain(seed, heaviest, *, directed):
    """Return a dense part and a chain out of it; weights are near the limits of weight classes."""
    random = np.random.default_rng(seed)
    n = 150
    crowd = random.integers(0, n // 3, (2, 3 * n))
    sources, targets = np.concatenate([np.stack([np.arange(n - 1), np.arange(1, n)]), crowd], axis=1)
    classes = random.integers(0, 256, len(sources)) * heaviest // 255
    weights = np.clip(classes + random.integers(-1, 2, len(sources)), 0, heaviest)
    weights[0] = heaviest
    return GraphCase(f"crowd-{seed}", n, sources.astype(np.uint32), targets.astype(np.uint32), weights, directed)


@pytest.mark.covering(every=2)
@pytest.mark.parametrize(("crowd", "source"), [(15, 39), (4, 1)])
def test_round_with_summary_follows_a_dense_round(crowd, source):
    """In a directed graph heavy arcs of many vertices are pushed, then those of few."""
    search(crowd_and_chain(crowd, 300, directed=True), [source], 2, "natural", seed=2, heavies=True, delta=3)


@pytest.mark.covering(every=3)
@pytest.mark.parametrize(
    ("crowd", "heaviest", "source", "order", "seed", "delta"),
    [(19, 300, 100, "degree", 2, 87), (0, 100, 72, "degree", 1, 40), (12, 20, 60, "natural", 3, None)],
)
def test_distances_settled_before_the_first_pull_are_broadcast_in_the_last(crowd, heaviest, source, order, seed, delta):
    options = {"finishes": True, "heavies": True, "seed": seed}
    search(crowd_and_chain(crowd, heaviest, directed=False), [source], 2, order, delta=delta, **options)


def test_thread_scans_a_long_slice_in_many_steps():
    search(random_case(0, 3000), [5], 2, seed=2, blocks=1)


@pytest.mark.parametrize("heaviest", [pytest.param(70_000, marks=pytest.mark.ci), 2**55 + 3])
def test_pull_scans_a_whole_class_with_light_arcs(heaviest):
    """In the row of a vertex a heavier arc of a class precedes its lightest arc."""
    scale = 255 / heaviest
    first = [next(w for w in range(int(c / scale) - 40, heaviest) if int(w * scale) == c) for c in (64, 65, 66)]
    crowd = [(u, v, 1 + (u + v) % 3) for u in range(60) for v in range(u)]
    light = [(5, 60, 2), (60, 61, 0), (1, 70, first[2] - 1), (5, 70, first[1]), (60, 70, first[1] - 1)]
    case = make_case("wide", 72, [*crowd, *light, (70, 71, heaviest)], np.int64)
    for order in ("natural", "degree"):
        for seed in range(4):
            search(case, [5], 2, order, seed=seed, heavies=True, delta=first[0] + 100)


@pytest.mark.parametrize("name", ["dag", "rounding", "large-weights"])
def test_vertices_beyond_the_cutoff_are_unreached(name):
    farthest = oracles.sssp(ZOO[name], [0]).max()
    for cutoff in (0, farthest // 2, farthest):
        search(ZOO[name], [0], 2, cutoff=cutoff)


@pytest.mark.covering(every=4, ci=1)
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize(
    "case", [trailing_chains(), *(random_case(seed, 60) for seed in range(6))], ids=lambda case: case.name
)
def test_search_up_to_a_target_settles_all_that_is_as_near(case, order):
    for seed, ends in enumerate(lists_of_targets(case, 3)):
        search(case, [3], 2 + seed % 2, order, seed, heavies=seed % 2 > 0, narrow=seed % 3 > 0, targets=ends)


@pytest.mark.ci
@pytest.mark.parametrize("heavies", [False, True])
def test_search_ends_after_the_bucket_of_a_target(heavies):
    num_steps = [
        len(search(trailing_chains(), [0], seed=1, delta=3, heavies=heavies, targets=targets)[0][1].supersteps)
        for targets in ([0], [4], [512], [4, 2, 0])
    ]
    assert num_steps[:3] == sorted({*num_steps})
    assert num_steps[3] == num_steps[1]


def test_rounds_beyond_the_trace_are_added_to_its_last_record(monkeypatch):
    case = make_case("line", 12, [(v, v + 1, 1) for v in range(11)], np.uint8)
    whole = search(case, [0], delta=2)
    for name in (module, multi_gpu_search):
        monkeypatch.setattr(name, "TRACE_RECORDS", 3)
    for (_, all_rows), (_, rows) in zip(whole, search(case, [0], delta=2), strict=True):
        assert len(rows.supersteps) == 3 < len(all_rows.supersteps)
        for fact in ("frontier", "arcs", "bytes"):
            assert sum(step[fact] for step in rows.supersteps) == sum(step[fact] for step in all_rows.supersteps)


def search_alternately(shard, comm, sources):
    """Run BFS and SSSP alternately in the same peer buffers; return the levels of each BFS."""
    shard = replace(shard, backend=EmulatedBackend(seed=comm.rank, block=32))
    levels = []
    for _ in range(2):
        assert require_bfs_buffers(shard, comm)
        levels.append(bfs_multi_gpu(shard, comm, sources, Trace(shard.backend, comm)).distances)
        assert require_sssp_buffers(shard, comm, state_dtype(shard.info))
        sssp_multi_gpu(shard, comm, sources, Trace(shard.backend, comm), state_dtype(shard.info))
    return levels


def test_bfs_and_sssp_alternate_in_the_same_peer_buffers():
    shards = build_shards(random_case(1, 120), 2, "degree")
    for before, after in run_on_ranks(search_alternately, shards, [3]):
        np.testing.assert_array_equal(before, after)


def test_cluster_of_emulated_gpus_searches_in_peer_buffers():
    backends = iter(range(2))
    cluster = InProcessCluster(2, make_backend=lambda: EmulatedBackend(seed=next(backends), block=32))
    with cluster, mg.grid(3, 4, cluster=cluster) as g, mg.sssp(g, 0) as paths, mg.sssp(g, 0, method="sweep") as swept:
        mg.validate(paths)
        assert (paths.stats.variant, swept.stats.variant) == ("sssp.persistent_multi_gpu", "sssp.sweep")
        np.testing.assert_array_equal(paths.distances.to_numpy(), swept.distances.to_numpy())
    with InProcessCluster(2, make_backend=lambda: CpuBackend(1)) as cluster, mg.grid(3, 4, cluster=cluster) as g:
        assert mg.sssp(g, 0).stats.variant == "sssp.near_far"


def test_peer_buffers_grow_where_paths_exceed_32_bits(monkeypatch):
    """The first of two searches fits; the second repeats in wider distances and larger peer buffers."""
    monkeypatch.setattr(narrowing, "MIN_ARCS", 1)
    backends = iter(range(2))
    ends = np.arange(6)
    weights = np.array([1, 2, 2**30, 2**30, 2**30, 2**30], np.int32)
    cluster = InProcessCluster(2, make_backend=lambda: EmulatedBackend(seed=next(backends), block=32))
    with cluster, mg.from_edges(ends, ends + 1, weights, cluster=cluster) as g:
        assert state_dtype(g.info) == np.int64
        near = mg.sssp(g, 0, cutoff=2**30 + 2)
        all_of_it = mg.sssp(g, 0)
        assert near.distances.to_numpy().tolist() == [0, 1, 3, -1, -1, -1, -1]
        assert all_of_it.distances.to_numpy().tolist() == [0, 1, 3, *(k * 2**30 + 3 for k in range(1, 5))]
        assert near.stats.variant == all_of_it.stats.variant == "sssp.persistent_multi_gpu"


@pytest.mark.ci
@pytest.mark.parametrize(("chain", "searched"), [(30, "HHHH"), (90, "HHHII")], ids=["fits", "too long"])
def test_distances_have_16_bits_until_a_search_overflows(chain, searched, monkeypatch):
    """Search a dense part, for a mean degree above a mesh's, and a chain of heavy arcs out of it."""
    dtypes = []
    heaviest = 400

    def noted(loop):
        return lambda *a: (a[1].rank or dtypes.append(a[4].char), loop(*a))[1]

    wrap_run(monkeypatch, "sssp.persistent_multi_gpu", noted)
    crowd = [(u, v, 1 + (u + v) % 3) for u in range(40) for v in range(u)]
    ends = np.array([*crowd, *((v, v + 1, heaviest) for v in range(39, 39 + chain))])
    backends = iter(range(2))
    cluster = InProcessCluster(2, make_backend=lambda: EmulatedBackend(seed=next(backends), block=32))
    with cluster, mg.from_edges(*ends[:, :2].T, ends[:, 2].astype(np.int32), cluster=cluster) as g:
        cutoffs = (1000, 2), (31_300, min(chain, 78)), (40_000, chain), (None, chain)
        for cutoff, arcs in cutoffs:
            with mg.sssp(g, 39, cutoff=cutoff) as paths:
                mg.validate(paths)
                assert paths.stats.variant == "sssp.persistent_multi_gpu"
                assert paths.distances.to_numpy()[40:].max() == heaviest * arcs
    assert "".join(dtypes) == searched


def test_dtypes_to_try_follow_weights_and_degree():
    def tried(dtype, heaviest, degree, has_peer_buffers=True):
        found = narrowing.dtypes_to_try(np.dtype(dtype), heaviest, degree, has_peer_buffers=has_peer_buffers)
        return "".join(d.char for d in found)

    assert tried("int64", 488, 16) == "HI" and tried("int64", 489, 16) == "I"
    assert tried("uint32", 255, 6) == "H" and tried("uint32", 489, 6) == ""
    assert tried("int64", 255, 5.9) == tried("int64", 255, 16, has_peer_buffers=False) == "I"
    assert tried("int64", 2**26, 16) == tried("float32", 1, 16) == ""


def search_without_rank_1(shard, comm, search):
    """Search on rank 0 while rank 1 aborts instead."""
    shard = replace(shard, backend=EmulatedBackend(seed=comm.rank, block=32))
    dtype = state_dtype(shard.info)
    assert require_sssp_buffers(shard, comm, dtype) and require_bfs_buffers(shard, comm)
    if comm.rank == 1:
        threading.Timer(0.3, comm.abort, ("rank 1 is gone",)).start()
        return
    with pytest.raises(CommAborted, match="rank 1 is gone"):
        search(shard, comm, [3], Trace(shard.backend, comm), *([dtype] if search is sssp_multi_gpu else []))


@pytest.mark.parametrize("search", [bfs_multi_gpu, sssp_multi_gpu])
def test_lost_rank_ends_the_search_of_the_others(search):
    run_on_ranks(search_without_rank_1, build_shards(random_case(1, 60), 2, "degree"), search)


def search_both(comm, xp, spec, num_roots):
    """Run both variants; return for each root whether the results are equal, and the persistent one's trace."""
    backend = make_backend("cuda")
    facts = []
    shard = build(parse_spec(spec), backend, comm)
    dtype = state_dtype(shard.info)
    assert require_sssp_buffers(shard, comm, dtype)
    require_lightest_arcs(shard)
    for k, root in enumerate(range(0, shard.info.num_vertices, shard.info.num_vertices // num_roots)):
        trace = Trace(backend, comm)
        ours = sssp_multi_gpu(shard, comm, [root], trace, dtype)
        theirs = sssp(shard, comm, with_arcs(shard, ours.sources), Trace(backend, comm), dtype)
        last = shard.partition.num_positions - 1
        targets = sorted({min(root + step, last) for step in range(1, 2 + k)})
        near = sssp_multi_gpu(shard, comm, [root], Trace(backend, comm), dtype, None, targets).distances
        is_target = backend.to_device(own_states(shard.partition, comm.rank, targets).astype(np.int64))
        is_target -= comm.rank * shard.partition.stride
        dropped = near == unreached_of(dtype)
        equal = (ours.distances == theirs.distances) & ((near == theirs.distances) | dropped)
        equal[is_target] &= (near == theirs.distances)[is_target]
        facts.append((bool(equal.all()), trace.supersteps))
    return facts


@pytest.mark.gpus
@pytest.mark.parametrize("spec", ["rmat:18", "rmat:16,weights=float32", "ssca2:12", "grid:60x70", "uniform:2^14:4"])
def test_results_on_gpus_equal_the_step_variant(gang, spec):
    for results in zip(*check(gang.run(search_both, spec, 4, on_host=False)), strict=True):
        assert all(equal for equal, _ in results)
        assert {step["method"] for _, steps in results for step in steps} <= {"push", "scan", "heavy", "pull"}
