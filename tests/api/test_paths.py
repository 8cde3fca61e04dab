"""Paths between two vertices: equal to those of whole searches, by searches that end at the target."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from builds import CaseEdges
from emulator.backend import EmulatedBackend
from on_ranks import FEW_RANKS, RANKS, run_on_ranks
from tiers import by_tier
from user_graphs import ORDERS, STARTABLE, graph_of
from zoo import ZOO, make_case, random_case

import mgraph as mg
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.variant import TraversalSpec
from mgraph.algorithms.variants import TABLE
from mgraph.api.traversal import state_dtype
from mgraph.cluster.base import Rank
from mgraph.ingest.build import build
from mgraph.rank_jobs.paths import find_paths
from mgraph.types import LEVEL


def pairs_of(case, seed=0, count=12):
    """Return some pairs of vertices, a few from one source, one of them twice."""
    random = np.random.default_rng(seed)
    sources = random.integers(0, case.num_vertices, count)
    sources[: count // 3] = sources[0]
    targets = random.integers(0, case.num_vertices, count)
    sources[-1] = sources[0]
    targets[-1] = targets[0]
    targets[1] = sources[1]
    return sources, targets


@pytest.mark.covering(every=3, ci=1)
@pytest.mark.widens
@pytest.mark.parametrize("weighted", [False, True], ids=["hops", "weights"])
@pytest.mark.parametrize("case", STARTABLE, ids=lambda case: case.name)
def test_paths_equal_those_of_whole_searches(case, weighted, clusters):
    sources, targets = pairs_of(case)
    search, oracle = (mg.sssp, oracles.sssp) if weighted else (mg.bfs, oracles.bfs)
    wanted = [oracle(case, [source])[target] for source, target in zip(sources, targets, strict=True)]
    for cluster in map(clusters.get, by_tier(FEW_RANKS, FEW_RANKS, RANKS)):
        for order in ORDERS:
            with graph_of(case, cluster, order) as g:
                found = mg.shortest_paths(g, sources, targets, weighted=weighted)
                assert [path.distance for path in found] == wanted
                assert mg.shortest_path(g, sources[0], targets[0], weighted=weighted) == found[0]
                for source in set(sources.tolist()):
                    with search(g, source) as whole:
                        for path, begin, target in zip(found, sources, targets, strict=True):
                            assert begin != source or path.vertices == whole.path_to(target)


@pytest.mark.parametrize("weighted", [False, True], ids=["hops", "weights"])
@pytest.mark.parametrize("num_ranks", [1, 3])
def test_searches_end_soon_after_a_near_target(weighted, num_ranks, clusters, monkeypatch):
    scanned = []
    monkeypatch.setattr(Trace, "superstep", lambda self, method, frontier, arcs, **more: scanned.append(arcs))
    graphs = (lambda: mg.grid(150, 150, cluster=clusters[num_ranks]), lambda: heavy_path(clusters[num_ranks]))
    for make in graphs:
        with make() as g:
            counts = []
            for target in (301, 303, g.num_vertices - 1):
                scanned.clear()
                mg.shortest_path(g, 300, target, weighted=weighted)
                counts.append(sum(scanned))
            assert max(counts[:2]) * 5 < counts[2]


def heavy_path(cluster):
    """Return a path, with weights for which rows are sorted."""
    n = 3000
    weights = np.random.default_rng(0).integers(1, 255, n - 1 + 9 * n)
    starts = np.arange(n)
    near = [np.minimum(starts + step, n - 1) for step in range(2, 11)]
    sources = np.concatenate([starts[:-1], *[starts] * 9])
    return mg.from_edges(sources, np.concatenate([starts[1:], *near]), weights, cluster=cluster)


def test_searches_of_one_rank_and_of_several_end_early(clusters):
    for num_ranks, name in ((1, "sssp.hybrid"), (3, "sssp.near_far")):
        with heavy_path(clusters[num_ranks]) as g:
            whole = mg.sssp(g, 300)
            assert whole.stats.variant == name
            for target in (299, 310, 2999, 0):
                path = mg.shortest_path(g, 300, target)
                assert (path.distance, path.vertices) == (whole.distances[target], whole.path_to(target))


def test_all_loops_but_sweeps_take_targets():
    running_on = {variant.name for variant in (*TABLE["bfs"], *TABLE["sssp"]) if not variant.takes_until}
    assert running_on == {"bfs.streamed", "bfs.sweep", "sssp.streamed", "sssp.sweep"}


def test_float32_targets_at_a_rounded_bound_are_settled(clusters):
    """The bound of a bucket is rounded to the width of distances, and a distance may be equal to it."""
    random = np.random.default_rng(2)
    ends = random.integers(0, 400, (2, 2400))
    weights = np.float32(0.1) * random.integers(0, 60, 2400).astype(np.float32)
    for num_ranks in (1, 2):
        with mg.from_edges(*ends, weights, num_vertices=400, cluster=clusters[num_ranks]) as g:
            whole = mg.sssp(g, 0).distances.to_numpy()
            found = [mg.shortest_path(g, 0, target).distance for target in range(0, 400, 3)]
            assert found == whole[::3].tolist()


def test_long_paths_are_found_in_a_wider_dtype(clusters):
    heavy = 2**31
    case = make_case("heavy", 40, [(v, v + 1, heavy) for v in range(39)], np.int64)
    with graph_of(case, clusters[2]) as g:
        assert [mg.shortest_path(g, 0, target).distance for target in (1, 39, 0)] == [heavy, 39 * heavy, 0]


def emulated_program(_, comm, case, order, specs):
    backend = EmulatedBackend(seed=comm.rank, block=32, blocks=3)
    shard = build(CaseEdges(case), backend, comm, order=order)
    rank = Rank(comm.rank, comm.size, comm, backend, {"graph": shard})
    specs = [TraversalSpec(*spec, targets=targets) for spec, targets in specs(shard)]
    return find_paths(rank, "graph", specs)


@pytest.mark.ci
@pytest.mark.covering(ci=1)
@pytest.mark.interleavings
@pytest.mark.parametrize("method", ["frontier", "step"])
@pytest.mark.parametrize("order", ORDERS)
def test_emulated_searches_find_the_same_paths(order, method):
    for case in (ZOO["grid"], ZOO["isolated"], random_case(1, num_vertices=150)):
        sources, targets = (ends.tolist() for ends in pairs_of(case, count=4))

        def specs(shard, sources=sources, targets=targets):
            weights = "near_far" if method == "step" else method
            dtypes = {"bfs": (method, LEVEL), "sssp": (weights, state_dtype(shard.info))}
            for name, (how, dtype) in dtypes.items():
                yield from (((name, how, (s,), dtype), (t,)) for s, t in zip(sources, targets, strict=True))

        wanted = [oracles.bfs(case, [s])[t] for s, t in zip(sources, targets, strict=True)]
        wanted += [oracles.sssp(case, [s])[t] for s, t in zip(sources, targets, strict=True)]
        for num_ranks in (1, 2):
            by_rank = run_on_ranks(emulated_program, [None] * num_ranks, case, order, specs)
            found = [next(d for d, _ in ends if d is not None) for ((*ends,),) in zip_targets(by_rank)]
            assert found == wanted


def zip_targets(by_rank):
    """Yield for each search of one target what every rank returned."""
    return (zip(*parts, strict=True) for parts in zip(*by_rank, strict=True))


def test_labels_name_the_ends_and_the_path(clusters):
    with mg.from_edges(["a", "b", "x"], ["b", "c", "y"], cluster=clusters[3]) as g:
        assert mg.shortest_path(g, "a", "c") == (2, ["a", "b", "c"])
        assert mg.shortest_path(g, "a", "y") == (-1, [])
        assert mg.shortest_path(g, "b", "b") == (0, ["b"])
        assert [path.vertices for path in mg.shortest_paths(g, ["y", "c"], ["x", "a"])] == [["y", "x"], ["c", "b", "a"]]


def test_isolated_ends_have_no_path_but_to_themselves(clusters):
    case = ZOO["isolated"]
    for weighted in (False, True):
        with graph_of(case, clusters[2]) as g:
            none = oracles.sssp(case, [1])[3] if weighted else -1
            assert mg.shortest_path(g, 1, 3, weighted=weighted) == (none, [])
            assert mg.shortest_path(g, 3, 1, weighted=weighted) == (none, [])
            assert mg.shortest_path(g, 3, 3, weighted=weighted) == (0, [3])
            first, _ = mg.shortest_paths(g, [1, 1], [3, 5], weighted=weighted)
            assert first.distance == none


def test_nothing_stays_on_the_ranks(clusters):
    with graph_of(ZOO["grid"], clusters[2]) as g:
        before = [set(objects) for objects in clusters[2]._objects]
        mg.shortest_paths(g, [0, 1], [5, 7])
        assert [set(objects) for objects in clusters[2]._objects] == before


def test_wrong_arguments_are_refused(clusters):
    with graph_of(ZOO["path"].unweighted, clusters[2]) as g:
        assert mg.shortest_paths(g, [], []) == []
        for wrong, message in (
            (lambda: mg.shortest_path(g, 0, 7), "target 7 is not a vertex"),
            (lambda: mg.shortest_path(g, "a", 1), "source 'a' is not an integer"),
            (lambda: mg.shortest_paths(g, [0, 1], [2]), "shortest_paths has 2 sources and 1 target: give as many"),
            (
                lambda: mg.shortest_paths(g, 0, [2]),
                "sources 0 are not a list of vertices: shortest_path takes",
            ),
            (lambda: mg.shortest_path(g, 0, 1, weighted=True), "the graph has no weights"),
            (lambda: mg.shortest_path(g, 0, 1, weighted="no"), "weighted 'no' is not True or False"),
        ):
            with pytest.raises(mg.UsageError, match=message):
                wrong()
