"""Component sizes, the largest component and other parts of graphs, for any number of ranks, order and naming."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracles
import pytest
from builds import CaseEdges
from emulator.backend import EmulatedBackend
from on_ranks import FEW_RANKS, RANKS, run_on_ranks
from rank_programs import nothing
from tiers import by_tier
from user_graphs import GRAPHS, ORDERS, graph_of
from zoo import ZOO, make_case, random_case

import mgraph as mg
from mgraph.cluster.base import Rank
from mgraph.cluster.in_process import InProcessCluster
from mgraph.ingest.build import build
from mgraph.rank_jobs.results import StoredColumns
from mgraph.rank_jobs.subgraph import build_subgraph


def edges_within(case, kept):
    """Return {(u, v): weight} of the edges between vertices that are kept, each undirected one once."""
    arcs = oracles.arcs_of(case)
    return {(u, v): w for (u, v), w in arcs.items() if kept[u] and kept[v] and (case.directed or u < v)}


def check_subgraph(part, case, kept, names):
    """Compare a graph with the edges of a case between vertices that are kept."""
    assert part.num_vertices == kept.sum()
    assert part.labels.to_numpy().tolist() == names[kept].tolist()
    ends = part.edges.to_numpy()
    weights = ends[2].tolist() if len(ends) == 3 else [1] * len(ends[0])
    found = dict(zip(zip(ends[0].tolist(), ends[1].tolist(), strict=True), weights, strict=True))
    assert found == {(names[u], names[v]): w for (u, v), w in edges_within(case, kept).items()}


@pytest.mark.widens
@pytest.mark.parametrize("case", GRAPHS, ids=lambda case: case.name)
def test_sizes_of_components_equal_the_oracle(case, clusters):
    wanted, counts = np.unique(oracles.components(case), return_counts=True)
    for cluster in map(clusters.get, by_tier(FEW_RANKS, FEW_RANKS, RANKS)):
        for order in ORDERS:
            with graph_of(case, cluster, order) as g, mg.connected_components(g) as found:
                labels, sizes = found.sizes()
                np.testing.assert_array_equal(labels, wanted)
                np.testing.assert_array_equal(sizes, counts)
                if len(wanted):
                    assert found.largest() == wanted[counts.argmax()]


@pytest.mark.covering(every=3, ci_every=2)
@pytest.mark.widens
@pytest.mark.parametrize("case", GRAPHS, ids=lambda case: case.name)
def test_largest_component_has_its_edges_and_the_ids_of_its_vertices(case, clusters):
    labels = oracles.components(case)
    for cluster in map(clusters.get, by_tier(FEW_RANKS, FEW_RANKS, RANKS)):
        for order in ORDERS:
            with graph_of(case, cluster, order) as g:
                if not case.num_vertices:
                    with pytest.raises(mg.UsageError, match="column sizes has no value"):
                        mg.largest_component(g)
                    continue
                with mg.largest_component(g) as part:
                    assert part.info.order == g.info.order
                    kept = labels == np.bincount(labels).argmax()
                    check_subgraph(part, case, kept, np.arange(case.num_vertices))
                    assert mg.connected_components(part).num_components == 1


@pytest.mark.parametrize("order", ORDERS)
def test_largest_strong_component_is_strongly_connected(order, clusters):
    # Two rings, the larger one after the other, and arcs between them in one direction.
    arcs = [(v, (v + 1) % 4) for v in range(4)] + [(4 + v, 4 + (v + 1) % 6) for v in range(6)] + [(0, 4), (2, 9)]
    case = make_case("rings", 12, arcs, directed=True)
    for num_ranks in RANKS:
        with graph_of(case, clusters[num_ranks], order) as g, mg.largest_component(g, strong=True) as part:
            check_subgraph(part, case, np.isin(np.arange(12), range(4, 10)), np.arange(12))
            assert mg.diameter(part, weighted=False) == 5
            with pytest.raises(mg.UsageError, match="strong 'yes' is not True or False"):
                mg.largest_component(g, strong="yes")


@pytest.mark.ci
@pytest.mark.parametrize("kind", ["integer", "string"])
def test_parts_of_labelled_graphs_keep_their_labels(kind, clusters):
    name = {"integer": lambda v: 7 * v - 100, "string": lambda v: f"{v:04d}" + "x" * (v % 11)}[kind]
    digests = set()
    for case in (random_case(3), random_case(4)):
        ends = [[name(int(v)) for v in end] for end in (case.sources, case.targets)]
        for num_ranks in RANKS:
            with mg.from_edges(*ends, case.weights, directed=case.directed, cluster=clusters[num_ranks]) as g:
                names = g.labels.to_numpy()
                numbers = g.ids_of([name(int(v)) for v in case.sources]), g.ids_of([name(int(v)) for v in case.targets])
                dense = replace(case, num_vertices=len(names), sources=numbers[0], targets=numbers[1])
                mask = mg.degrees(g, "both") > 4
                with mg.subgraph(g, mask) as part:
                    check_subgraph(part, dense, oracles.degrees(dense, "both") > 4, names)
                    assert part.labels.missing == g.labels.missing
                    assert (part.info.labels, part.num_ranks) == (kind, num_ranks)
                    source = part.labels[5]
                    with mg.sssp(part, source) as found:
                        mg.validate(found)
                        digests.add((case.name, found.distances.digest()))
                        assert found.distances[source] == 0
    assert len(digests) == 2


def test_part_of_all_vertices_keeps_ids_and_needs_no_labels(clusters):
    case = random_case(0)
    with graph_of(case, clusters[3]) as g:
        with mg.subgraph(g, mg.degrees(g) >= 0) as part:
            # Parallel edges that were dropped are not in the extremes of the weights.
            facts = {"num_loops": 0, "num_parallel": 0, "max_weight": part.info.max_weight}
            assert part.info == replace(g.info, **facts)
            assert part.edges.to_numpy()[0].tolist() == g.edges.to_numpy()[0].tolist()
        with mg.subgraph(g, mg.degrees(g) < 0) as none:
            assert (none.num_vertices, none.num_edges) == (0, 0)


def test_part_outlives_its_graph_and_is_freed_by_itself():
    def kept(cluster):
        cluster.run(nothing)
        return [len(objects) for objects in cluster._objects]

    with InProcessCluster(2) as cluster:
        g = graph_of(ZOO["grid"], cluster)
        part = mg.largest_component(g)
        g.close()
        del g
        assert kept(cluster) == [1, 1]
        assert mg.bfs(part, 0).distances.max() > 0
        with mg.largest_component(part) as again:
            assert again.num_edges == part.num_edges
        part.close()
        assert kept(cluster) == [0, 0]


def test_failed_part_leaves_nothing_on_the_ranks(monkeypatch):
    with InProcessCluster(2) as cluster, graph_of(ZOO["path"], cluster) as g:
        mask = mg.degrees(g) > 1
        before = [{g._key, mask._stored.key}] * 2
        monkeypatch.setattr("mgraph.rank_jobs.subgraph.build", lambda *args, **how: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            mg.subgraph(g, mask)
        assert [set(objects) for objects in cluster._objects] == before


def test_wrong_arguments_are_refused(clusters):
    with graph_of(ZOO["path"], clusters[2]) as g, graph_of(ZOO["path"], clusters[2]) as other:
        hops = mg.bfs(g, 0).distances
        forest = mg.minimum_spanning_forest(g)
        for mask, message in (
            (hops, "is not a boolean column: compare one with a value"),
            ([True] * 7, "is not a boolean column"),
            (mg.bfs(other, 0).distances > 1, "the column distances > 1 is not about the vertices of edges"),
            (forest.weights > 0, "the column weights > 0 is not about the vertices of edges"),
        ):
            with pytest.raises(mg.UsageError, match=message):
                mg.subgraph(g, mask)
    compact = graph_of(ZOO["path"], clusters[2], layout="compact")
    with pytest.raises(mg.UsageError, match="subgraph needs rows, and edges has the compact layout"):
        mg.subgraph(compact, mg.degrees(compact) > 1)


def emulated_program(_, comm, case, order):
    backend = EmulatedBackend(seed=comm.rank, block=32, blocks=3)
    shard = build(CaseEdges(case), backend, comm, order=order)
    lo, hi = shard.user_range
    mask = StoredColumns(lo, {"mask": backend.to_device(oracles.degrees(case, "out")[lo:hi] > 9)})
    rank = Rank(comm.rank, comm.size, comm, backend, {"graph": shard, "mask": mask})
    info, _ = build_subgraph(rank, "graph", "part", ("mask", "mask"), "part")
    part = rank.objects["part"]
    return info.num_arcs, len(part.rows.targets), part.labels.part.tolist()


@pytest.mark.covering(every=2)
@pytest.mark.interleavings
@pytest.mark.parametrize("order", ORDERS)
def test_emulated_ranks_build_the_same_part(order):
    for seed in (1, 2):
        case = random_case(seed, num_vertices=150)
        kept = oracles.degrees(case, "out") > 9
        arcs = len(edges_within(case, kept)) * (1 if case.directed else 2)
        for num_ranks in (1, 3):
            counts, own, labels = zip(*run_on_ranks(emulated_program, [None] * num_ranks, case, order), strict=True)
            assert {*counts} == {sum(own)} == {arcs}
            assert [label for part in labels for label in part] == np.flatnonzero(kept).tolist()
