"""Whole rank programs on the emulator: build, search and predecessors run their CUDA kernels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracles
import pytest
from bridge_checks import breadth_first_forest
from builds import CaseEdges
from emulator.backend import EmulatedBackend
from forest_checks import FORESTS
from forest_checks import expected as expected_forest
from naive_shard import build_shards, distance_parts, positions_of, predecessor_parts
from on_ranks import run_on_ranks
from zoo import ZOO, make_case, random_case

from mgraph.algorithms.bfs import persistent_kernels as bfs_kernel
from mgraph.algorithms.bfs import persistent_multi_gpu_kernels as bfs_ranks_kernel
from mgraph.algorithms.bfs.step import bfs
from mgraph.algorithms.bfs.sweep import bfs_sweep
from mgraph.algorithms.bridges.cover import find_bridges
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.components.afforest import find_components
from mgraph.algorithms.components.labels import labels_of_users
from mgraph.algorithms.hits.mutual_iteration import HitsSpec
from mgraph.algorithms.hits.pull import hubs_by_pull
from mgraph.algorithms.hits.results import columns_of_users
from mgraph.algorithms.hits.sweep import hubs_by_sweep
from mgraph.algorithms.pagerank.bins import score_by_bins
from mgraph.algorithms.pagerank.bins_kernels import VALUE_BYTES
from mgraph.algorithms.pagerank.fixed_point import ONE, SCORE_BYTES, ScoreSpec
from mgraph.algorithms.pagerank.pull import score_by_pull
from mgraph.algorithms.pagerank.results import scores_of_users
from mgraph.algorithms.pagerank.sweep import score_by_sweep
from mgraph.algorithms.predecessors.rows import find_predecessors
from mgraph.algorithms.predecessors.sweep import find_predecessors_by_sweep
from mgraph.algorithms.spanning_forest.filter_boruvka import msf
from mgraph.algorithms.sssp import persistent_multi_gpu_kernels as sssp_kernel
from mgraph.algorithms.sssp.near_far import sssp
from mgraph.algorithms.sssp.sweep import sssp_sweep
from mgraph.algorithms.strong_components.coloring import find_strong_components
from mgraph.algorithms.strong_components.labels import labels_of_users as strong_labels_of_users
from mgraph.algorithms.variant import TraversalSpec
from mgraph.api.traversal import state_dtype
from mgraph.cluster.base import Rank
from mgraph.ingest.build import build
from mgraph.rank_jobs import components, core_numbers, traversal
from mgraph.shard.arc_bins import make_arc_bins
from mgraph.shard.edge_blocks import require_blocks
from mgraph.shard.in_rows import require_in_rows
from mgraph.shard.light_units import require_light_units
from mgraph.shard.user_ids import edges_of_users
from mgraph.types import LEVEL
from mgraph.validation.bridges import validate_bridges
from mgraph.validation.components import validate_labels
from mgraph.validation.hits import validate_hubs
from mgraph.validation.pagerank import validate_scores
from mgraph.validation.spanning_forest import validate_forest
from mgraph.validation.strong_components import validate_strong_labels

pytestmark = pytest.mark.interleavings

# All graphs of the zoo with a vertex to search from.
CASES = [case for case in ZOO.values() if case.num_vertices]
CASES += [random_case(seed, num_vertices=150) for seed in (0, 1, 2)]


def rank_program(_, comm, case, order, sources, how, seed):
    """Return the distances and predecessors of a rank's vertices; every rank has its own order of threads."""
    search, layout = how
    backend = EmulatedBackend(seed=100 * seed + comm.rank, block=32, blocks=3)
    shard = build(CaseEdges(case), backend, comm, order=order, layout=layout)
    require_in_rows(shard, comm)
    if search is sssp_sweep:
        require_light_units(shard, require_blocks(shard, comm, state_dtype(shard.info)))
    found = search(
        shard, comm, sources, Trace(backend, comm), *([] if "bfs" in search.__name__ else [state_dtype(shard.info)])
    )
    find = find_predecessors if layout == "rows" else find_predecessors_by_sweep
    parents = found.predecessors
    if parents is None and "bfs" not in search.__name__:
        parents = find(shard, comm, sources, found.distances)
    return backend.to_host(found.distances), None if parents is None else backend.to_host(parents)


@pytest.mark.covering(every=6)
@pytest.mark.parametrize(
    ("search", "layout"),
    [
        (bfs, "rows"),
        (bfs_sweep, "rows"),
        (bfs_sweep, "compact"),
        (sssp, "rows"),
        (sssp_sweep, "rows"),
        (sssp_sweep, "compact"),
    ],
    ids=lambda given: getattr(given, "__name__", given),
)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_searches_equal_the_oracles(case, search, layout):
    is_bfs = "bfs" in search.__name__
    source = 0 if case.num_vertices < 100 else int(case.sources[0])
    dist = (oracles.bfs if is_bfs else oracles.sssp)(case, [source])
    for num_ranks, order in (1, "natural"), (2, "degree"), (3, "natural"), (3, "degree"):
        shards = build_shards(case, num_ranks, order)
        positions = positions_of(shards)
        starts = [p for p in positions[[source]].tolist() if p < shards[0].partition.num_positions]
        results = run_on_ranks(rank_program, [None] * num_ranks, case, order, starts, (search, layout), num_ranks)
        dtype = results[0][0].dtype
        for (got, _), wanted in zip(results, distance_parts(shards, dist, dtype), strict=True):
            np.testing.assert_array_equal(got, wanted)
        if search is not bfs:
            chosen = oracles.predecessors(case, dist, [source], positions, weighted=not is_bfs)
            for (_, got), wanted in zip(results, predecessor_parts(shards, chosen), strict=True):
                np.testing.assert_array_equal(got, wanted)


def job_program(_, comm, case):
    """Run BFS and SSSP on a rank; return the `form` of their stats, and their distances."""
    backend = EmulatedBackend(seed=comm.rank, block=64, blocks=3)
    shard = build(CaseEdges(case), backend, comm, order="degree")
    rank = Rank(comm.rank, comm.size, comm, backend, {"graph": shard})
    results = []
    for algorithm, dtype in ("bfs", LEVEL), ("sssp", state_dtype(shard.info)):
        spec = TraversalSpec(algorithm, "frontier", (int(case.sources[0]),), dtype)
        (stats,) = traversal.traverse(rank, "graph", [algorithm], [spec])
        results.append((stats["variant"], rank.objects[algorithm].columns["distances"]))
    assert comm.size > 1 or comm.peer_buffers is None, "one rank needs no peer buffers"
    return results


@pytest.mark.parametrize(("num_ranks", "expected"), [(1, "persistent"), (2, "persistent_multi_gpu")])
def test_step_variant_runs_where_a_queue_cannot_count_the_rows(num_ranks, expected, monkeypatch):
    case = random_case(0, num_vertices=150)
    before = run_on_ranks(job_program, [None] * num_ranks, case)
    for kernel in bfs_kernel, bfs_ranks_kernel, sssp_kernel:
        monkeypatch.setattr(kernel, "MAX_ROWS", 8)
    for found, again in zip(before, run_on_ranks(job_program, [None] * num_ranks, case), strict=True):
        assert [variant for variant, _ in found] == [f"bfs.{expected}", f"sssp.{expected}"]
        # The queue of one-rank SSSP counts arcs only.
        assert [variant for variant, _ in again] == [
            "bfs.step",
            "sssp.persistent" if num_ranks == 1 else "sssp.near_far",
        ]
        for (_, distances), (_, others) in zip(found, again, strict=True):
            np.testing.assert_array_equal(distances, others)


def components_program(_, comm, case, order, seed):
    """Return the labels of a rank's user ids, and the violations of the rules."""
    backend = EmulatedBackend(seed=100 * seed + comm.rank, block=32, blocks=3)
    shard = build(CaseEdges(case), backend, comm, order=order)
    labels = labels_of_users(shard, comm, find_components(shard, comm, Trace(backend, comm)))
    return backend.to_host(labels), validate_labels(shard, comm, labels)


@pytest.mark.covering(every=6)
@pytest.mark.parametrize("case", [*ZOO.values(), *CASES[-3:]], ids=lambda case: case.name)
def test_components_equal_the_oracle(case):
    for num_ranks, order in (1, "natural"), (2, "degree"), (3, "natural"), (3, "degree"):
        results = run_on_ranks(components_program, [None] * num_ranks, case, order, num_ranks)
        np.testing.assert_array_equal(np.concatenate([labels for labels, _ in results]), oracles.components(case))
        assert [wrong for _, wrong in results] == [[]] * num_ranks


def strong_components_program(_, comm, case, order, seed):
    """Return the strong labels of a rank's user ids, and the violations of the rules."""
    backend = EmulatedBackend(seed=100 * seed + comm.rank, block=32, blocks=3)
    shard = build(CaseEdges(case), backend, comm, order=order)
    require_in_rows(shard, comm)
    labels = strong_labels_of_users(shard, comm, find_strong_components(shard, comm, Trace(backend, comm)))
    return backend.to_host(labels), validate_strong_labels(shard, comm, labels)


# A chain takes as long as all other cases.
STRONG = [pytest.param(case, marks=pytest.mark.long) if case.name == "long-chain" else case for case in ZOO.values()]


@pytest.mark.covering(every=6, ci_every=2)
@pytest.mark.parametrize("case", [*STRONG, *CASES[-3:]], ids=lambda case: case.name)
def test_strong_components_equal_the_oracle(case):
    for num_ranks, order in (1, "natural"), (2, "degree"), (3, "natural"), (3, "degree"):
        results = run_on_ranks(strong_components_program, [None] * num_ranks, case, order, num_ranks)
        wanted = oracles.strong_components(case)
        np.testing.assert_array_equal(np.concatenate([labels for labels, _ in results]), wanted)
        assert [wrong for _, wrong in results] == [[]] * num_ranks


def pagerank_program(_, comm, case, order, spec, seed):
    """Return the scores of a rank's user ids by each loop, and the violations of the rules."""
    backend = EmulatedBackend(seed=100 * seed + comm.rank, block=32, blocks=3)
    shard = build(CaseEdges(case), backend, comm, order=order)
    require_in_rows(shard, comm)
    loops = [score_by_pull, score_by_sweep]
    if not spec.weighted:
        loops.append(score_by_bins)
    found = []
    for loop in loops:
        if loop is score_by_bins:
            backend.shared_bytes = 64  # segments and bins of eight vertices
            assert make_arc_bins(shard, VALUE_BYTES, SCORE_BYTES, max_slots=1 << 30, beside=0)
        found.append(loop(shard, comm, Trace(backend, comm), spec))
    assert len({(one.iterations, one.change) for one in found}) == 1
    scores = [scores_of_users(shard, comm, one) for one in found]
    violations = validate_scores(shard, comm, scores[0], spec, found[0].change)
    return [backend.to_host(of_loop) for of_loop in scores], violations


@pytest.mark.ci
@pytest.mark.parametrize("case", [ZOO["parallel"], CASES[-1]], ids=lambda case: case.name)
def test_pagerank_equals_the_oracle(case):
    n = case.num_vertices
    some = {"users": np.array([0, n - 1]), "shares": np.array([ONE // 3, ONE // 3 * 2])}
    shares = [ONE // 3, *[0] * (n - 2), ONE // 3 * 2]
    how = (1, "natural", True, {}), (2, "degree", False, some), (3, "natural", True, some), (3, "degree", False, {})
    for num_ranks, order, weighted, named in how:
        spec = ScoreSpec(int(0.85 * ONE), None, 3, weighted and case.weights is not None, **named)
        results = run_on_ranks(pagerank_program, [None] * num_ranks, case, order, spec, num_ranks)
        wanted = oracles.pagerank(case, 0.85, 3, shares if named else None, weighted=weighted)
        for of_loop in zip(*(scores for scores, _ in results), strict=True):
            np.testing.assert_array_equal(np.concatenate(of_loop), [score / ONE for score in wanted])
        assert [violations for _, violations in results] == [[]] * num_ranks


def bridges_program(_, comm, case, order, seed):
    """Return the bridges of a rank, and the violations of the rules."""
    backend = EmulatedBackend(seed=100 * seed + comm.rank, block=32, blocks=3)
    shard = build(CaseEdges(case), backend, comm, order=order)
    levels, parents = (backend.to_device(one) for one in breadth_first_forest(case))
    found = find_bridges(shard, comm, Trace(backend, comm), levels, parents)
    return [backend.to_host(one) for one in found], validate_bridges(shard, comm, *found, levels, parents)


@pytest.mark.covering(every=3)
@pytest.mark.parametrize("case", [case for case in ZOO.values() if not case.directed], ids=lambda case: case.name)
def test_bridges_equal_the_oracle(case):
    for num_ranks, order in (1, "natural"), (2, "degree"), (3, "natural"):
        results = run_on_ranks(bridges_program, [None] * num_ranks, case, order, num_ranks)
        ends = np.concatenate([np.stack(found, axis=1) for found, _ in results])
        assert [*map(tuple, ends.tolist())] == oracles.bridges(case)
        assert [violations for _, violations in results] == [[]] * num_ranks


def hits_program(_, comm, case, order, spec, seed):
    """Return both scores of a rank's user ids by rows and by sweeps, and the violations of the rules."""
    backend = EmulatedBackend(seed=100 * seed + comm.rank, block=32, blocks=3)
    shard = build(CaseEdges(case), backend, comm, order=order)
    require_in_rows(shard, comm)
    results = []
    for loop in hubs_by_pull, hubs_by_sweep:
        found = loop(shard, comm, Trace(backend, comm), spec)
        results.append(columns_of_users(shard, comm, found, spec.normalized))
    violations = validate_hubs(shard, comm, *results[0].values(), spec, found.change / (1 << 61))
    return [[backend.to_host(one) for one in columns.values()] for columns in results], violations


@pytest.mark.ci
@pytest.mark.parametrize("case", [ZOO["parallel"], CASES[-1]], ids=lambda case: case.name)
def test_hits_equal_the_oracle(case):
    for num_ranks, order, weighted in (1, "natural", True), (2, "degree", False), (3, "natural", True):
        spec = HitsSpec(None, 3, weighted and case.weights is not None, normalized=True)
        results = run_on_ranks(hits_program, [None] * num_ranks, case, order, spec, num_ranks)
        for which, wanted in enumerate(oracles.hits(case, 3, weighted=weighted)):
            for loop in range(2):
                found = np.concatenate([both[loop][which] for both, _ in results])
                np.testing.assert_array_equal(found, [score / float(sum(wanted)) for score in wanted])
        assert [violations for _, violations in results] == [[]] * num_ranks


def core_numbers_program(_, comm, case, order, seed):
    """Return the core numbers of a rank's user ids, and the violations of the rules."""
    backend = EmulatedBackend(seed=100 * seed + comm.rank, block=32, blocks=3)
    shard = build(CaseEdges(case), backend, comm, order=order)
    rank = Rank(comm.rank, comm.size, comm, backend, {"graph": shard})
    core_numbers.compute_core_numbers(rank, "graph", "cores")
    cores = rank.objects["cores"].columns["cores"]
    return backend.to_host(cores), core_numbers.check_core_numbers(rank, "cores", "graph")


@pytest.mark.covering(every=6, ci_every=2)
@pytest.mark.parametrize("case", [*ZOO.values(), *CASES[-3:]], ids=lambda case: case.name)
def test_core_numbers_equal_the_oracle(case):
    for num_ranks, order in (1, "natural"), (2, "degree"), (3, "natural"), (3, "degree"):
        results = run_on_ranks(core_numbers_program, [None] * num_ranks, case, order, num_ranks)
        np.testing.assert_array_equal(np.concatenate([cores for cores, _ in results]), oracles.core_numbers(case))
        assert [wrong for _, wrong in results] == [[]] * num_ranks


def search_components_program(_, comm, case, order):
    """Return the labels of a rank's user ids, and the methods of the supersteps."""
    backend = EmulatedBackend(seed=comm.rank, block=64, blocks=3)
    shard = build(CaseEdges(case), backend, comm, order=order)
    rank = Rank(comm.rank, comm.size, comm, backend, {"graph": shard})
    stats = components.compute_components(rank, "graph", "labels")
    steps = stats["supersteps"]
    assert sum(step["bytes"] for step in steps) <= stats["bytes_sent"], "bytes are reported once"
    return rank.objects["labels"].columns["labels"], [step["method"] for step in steps]


@pytest.mark.ci
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("num_ranks", [2, 3])
def test_giant_of_a_dense_undirected_graph_is_found_by_bfs(num_ranks, order):
    for seed in range(3):
        # Two chains beside the giant, one of them attached to it, and isolated vertices.
        ends = [(150 + i, 151 + i) for i in range(20) if i != 9] + [(150, 3)]
        ends += np.random.default_rng(seed).integers(0, 150, (900, 2)).tolist()
        case = make_case("chains", 175, [], directed=False)
        sources, targets = np.random.default_rng(seed).permutation(175).astype(np.uint32)[np.array(ends)].T
        case = replace(case, sources=sources, targets=targets, weights=None)
        results = run_on_ranks(search_components_program, [None] * num_ranks, case, order)
        np.testing.assert_array_equal(np.concatenate([labels for labels, _ in results]), oracles.components(case))
        for _, methods in results:
            assert {"push", "pull"} & set(methods)
            assert methods[-2:] == ["broadcast", "merge"]
        # A search along directed arcs does not find weak components.
        results = run_on_ranks(search_components_program, [None] * num_ranks, replace(case, directed=True), order)
        np.testing.assert_array_equal(np.concatenate([labels for labels, _ in results]), oracles.components(case))
        assert all(methods[0] == "sample" for _, methods in results)


def forest_program(_, comm, case, order, maximum, seed):
    """Return the edges of a forest that a rank stores, and the violations of the rules."""
    backend = EmulatedBackend(seed=100 * seed + comm.rank, block=32, blocks=3)
    shard = build(CaseEdges(case), backend, comm, order=order)
    _, columns = edges_of_users(shard, comm, msf(shard, comm, Trace(backend, comm), maximum, is_persistent=True))
    edges = zip(*(backend.to_host(column).tolist() for column in columns.values()), strict=True)
    return list(edges), validate_forest(shard, comm, columns, maximum)


@pytest.mark.ci
@pytest.mark.parametrize("case", [c for c in FORESTS if c.num_vertices <= 700], ids=lambda case: case.name)
def test_forests_equal_the_oracle(case):
    for num_ranks, order, maximum in (1, "natural", False), (2, "degree", True), (3, "natural", False):
        results = run_on_ranks(forest_program, [None] * num_ranks, case, order, maximum, num_ranks)
        assert [edge for edges, _ in results for edge in edges] == expected_forest(case, order, maximum)
        assert not any(violations for _, violations in results)
