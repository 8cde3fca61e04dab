"""Plans are exact to a few percent; a build or search that does not fit is refused before it allocates."""

from __future__ import annotations

import dataclasses
import functools
import re
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from emulator.backend import EmulatedBackend
from peak_memory import check_peak_of_validation, peak_of_build
from variant_checks import wrap_run

import mgraph as mg
from mgraph.algorithms.bfs.persistent_multi_gpu import require_bfs_buffers
from mgraph.algorithms.spanning_forest.filter_boruvka import forest_bytes
from mgraph.algorithms.spanning_forest.local_edges import name_bits
from mgraph.algorithms.sssp import persistent_multi_gpu as sssp_multi_gpu
from mgraph.algorithms.variant import GraphSizes
from mgraph.api.core_numbers import core_numbers
from mgraph.api.graph import Graph
from mgraph.api.hits import hits
from mgraph.api.pagerank import pagerank
from mgraph.api.spanning_forest import minimum_spanning_forest
from mgraph.api.strong_components import strongly_connected_components
from mgraph.api.subgraph import largest_component
from mgraph.api.traversal import bfs, sssp
from mgraph.backends.base import LIMITS
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.host_memory import FreeMemory
from mgraph.cluster.in_process import InProcessCluster
from mgraph.comm.peer_memory import HEAD_BYTES
from mgraph.comm.threads import open_threads
from mgraph.errors import WouldNotFit
from mgraph.generate.grid import Grid
from mgraph.generate.rmat import Rmat
from mgraph.generate.spec import parse_spec
from mgraph.generate.uniform import FixedOutDegree
from mgraph.ingest import build as builder
from mgraph.ingest.plan import Sizes, order_bytes, plan_build
from mgraph.partition import Partition
from mgraph.planning.memory import plan_graph
from mgraph.planning.parts import JOINED
from mgraph.rank_jobs.bridges import compute_bridges
from mgraph.rank_jobs.build import free_bytes
from mgraph.rank_jobs.steiner_tree import compute_steiner_tree
from mgraph.shard.batches import blocks_beside
from mgraph.shard.edge_blocks import require_blocks
from mgraph.validation import traversal as validation
from mgraph.validation.components import labels_check_bytes
from mgraph.validation.core_numbers import cores_check_bytes
from mgraph.validation.spanning_forest import forest_check_bytes
from mgraph.validation.strong_components import strong_check_bytes
from mgraph.validation.traversal import traversal_check_bytes


@pytest.mark.parametrize("num_chunks", [4, 64])
@pytest.mark.parametrize("weights", ["int", "float32", None])
def test_build_uses_the_planned_memory(num_chunks, weights, monkeypatch):
    shard, plan, peak = peak_of_build(monkeypatch, 17, num_chunks, weights)
    assert 0.9 * plan.peak_bytes <= peak <= 1.1 * plan.peak_bytes
    assert peak <= 2 * shard.nbytes


@pytest.mark.ci
@pytest.mark.parametrize("weights", ["int", "float32", None])
def test_compact_build_uses_the_planned_memory(weights, monkeypatch):
    shard, plan, peak = peak_of_build(monkeypatch, 19, None, weights, "compact")
    assert 0.9 * plan.peak_bytes <= peak <= 1.1 * plan.peak_bytes
    state = 2 * shard.partition.num_states * (4 if weights else 1)
    # A small graph has many parallel edges, which were allocated for.
    words = shard.blocks[4].words
    parallel = shard.info.num_parallel * (words.itemsize + {None: 0, "int": 1, "float32": 4}[weights])
    assert peak <= 1.15 * (shard.nbytes + parallel + state)
    # Bytes an edge: words, tables and degrees; a weight of 8 bits beside them.
    assert shard.nbytes / shard.info.num_edges < {None: 5, "int": 8, "float32": 9}[weights]


@pytest.mark.parametrize("weights", ["int", None])
def test_blocks_beside_rows_use_the_planned_memory(weights, monkeypatch):
    (comm,) = open_threads(1)
    # Small ones first, which compile the kernels.
    require_blocks(peak_of_build(monkeypatch, 6, None, weights)[0], comm, np.dtype(np.int32))
    shard, _, _ = peak_of_build(monkeypatch, 17, None, weights)
    peaks = []
    # Other threads allocate meanwhile, such as those of a cluster that closes: the smallest peak is without those.
    for _ in range(3):
        shard.blocks.clear()
        tracemalloc.start(1)
        blocks = require_blocks(shard, comm, np.dtype(np.int32))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    peak = min(peaks)
    beside = blocks_beside(blocks.num_edges, shard.num_owned, 1 if weights else 0, shard.backend.limits)
    assert 0.9 * (blocks.nbytes + beside) <= peak <= 1.1 * (blocks.nbytes + beside)
    # With the rows, from which they are made, at most twice the result.
    assert peak + shard.nbytes - blocks.nbytes <= 2 * shard.nbytes


@pytest.mark.parametrize("num_ranks", [1, 3])
@pytest.mark.parametrize("order", ["degree", "natural"])
def test_build_is_refused_before_its_rows_are_allocated(num_ranks, order, monkeypatch):
    needs = []

    def plan(*args):
        needs.append([plan_build(*args[:4], bucketed).to_allocate_bytes for bucketed in (False, True)])
        return plan_build(*args)

    def allocated(*args):
        raise AssertionError("rows were allocated")

    with InProcessCluster(num_ranks) as cluster:
        monkeypatch.setattr(builder, "plan_build", plan)
        Graph.from_source(Rmat(9), cluster=cluster, order=order).close()
        # With row buckets or without, on the rank that needs most.
        needed = int(np.max(needs, axis=0).min())
        # Just enough is enough; a byte less is too little, for all ranks if for one.
        monkeypatch.setattr(CpuBackend, "free_bytes", lambda self: needed)
        Graph.from_source(Rmat(9), cluster=cluster, order=order).close()
        monkeypatch.setattr(CpuBackend, "free_bytes", lambda self: needed - 1)
        monkeypatch.setattr(builder, "RowsBuilder", allocated)
        monkeypatch.setattr(builder, "BucketedRows", allocated)
        here = "here" if num_ranks == 1 else "on each of 3 ranks"
        with pytest.raises(WouldNotFit, match=rf"takes .* more {here}, and .* is free: use \d+ ranks with as much"):
            Graph.from_source(Rmat(9), cluster=cluster, order=order)


def test_build_fits_on_the_advised_number_of_ranks():
    limits = LIMITS["cpu"]

    def plan(num_ranks):
        sizes = Sizes(1 << 20, 1 << 24, (1 << 25) // num_ranks, False, 1, 1)
        return plan_build(sizes, Partition(1 << 20, num_ranks, cyclic=True), limits, 64)

    free = plan(8).to_allocate_bytes
    assert plan(2).to_allocate_bytes > free
    advised = int(plan(2).refusal(free).split("use ")[1].split()[0])
    assert advised <= 16
    assert plan(advised).to_allocate_bytes <= free
    assert "use ranks with more memory" in plan(2).refusal(plan(2).place)


@pytest.mark.parametrize(
    "source", [Rmat(10), Rmat(10, weights=None), Grid(40, 40), FixedOutDegree(900, 5)], ids=lambda s: s.name
)
@pytest.mark.parametrize("num_ranks", [1, 3])
def test_plan_of_a_graph_covers_its_shard(source, num_ranks):
    made = plan_graph(source, num_ranks, "cpu", 1 << 30)
    assert made.fits
    assert made.enough_ranks == num_ranks
    with InProcessCluster(num_ranks) as cluster:
        g = Graph.from_source(source, cluster=cluster)
        # With in-rows and lightest arcs, which searches build.
        (bfs if source.weight_dtype is None else sssp)(g, 0)
        largest = max(shard.nbytes for objects in cluster._objects for shard in [objects[g._key]])
    # Planned for all edges: only a build finds the parallel ones.
    assert 0.85 * made.parts["graph"] - 4096 <= 1.4 * largest
    assert largest <= 1.1 * (made.parts["graph"] + made.parts.get("lightest arcs for sssp", 0)) + 4096


@pytest.mark.parametrize(("layout", "num_ranks"), [("rows", 3), ("compact", 3), ("rows", 1)])
def test_plan_has_the_bytes_of_result_routing(layout, num_ranks):
    source = Rmat(12)
    made = plan_graph(source, num_ranks, "cpu", 1 << 30, layout)
    with InProcessCluster(num_ranks) as cluster, Graph.from_source(source, cluster=cluster, layout=layout) as g:
        sssp(g, 0).close()
        routings = [objects[g._key].result_routing for objects in cluster._objects]
    if num_ranks == 1:
        assert routings == [None]
        assert "result routing" not in made.parts
        return
    # The plan estimates the number of connected vertices; a compact shard keeps no table of user ids.
    assert made.parts["result routing"] == pytest.approx(routings[0].nbytes, rel=0.1)
    assert (routings[0].users is None) == (layout == "compact")
    needed = made.needed_bytes
    made.parts["result routing"] += 1 << 29
    assert made.needed_bytes >= needed + (1 << 28)


def test_plan_has_the_bytes_of_components():
    for num_ranks, most in ((1, 1.2), (4, 0.6)):
        made = plan_graph(Rmat(20), num_ranks, "cpu", 1 << 40)
        taken = made.parts["while components run"]
        assert 4 << 20 < taken < most * made.parts["graph"]
        # The needed bytes include it.
        made.parts["while components run"] = 1 << 39
        assert made.needed_bytes > 1 << 39


@pytest.mark.parametrize("source", [FixedOutDegree(20_000, 1), FixedOutDegree(20_000, 8)], ids=["sparse", "dense"])
@pytest.mark.parametrize("num_ranks", [1, 3])
def test_strong_components_use_at_most_the_planned_memory(source, num_ranks):
    made = plan_graph(source, num_ranks, "cpu", 1 << 30)
    assert "while strong components run" not in plan_graph(Rmat(8), 1, "cpu", None).parts
    planned = made.parts["while strong components run"] + made.parts.get("result routing", 0)
    with InProcessCluster(num_ranks) as cluster, Graph.from_source(source, cluster=cluster) as g:
        strongly_connected_components(g).close()
        tracemalloc.start()
        strongly_connected_components(g).close()
        taken = tracemalloc.get_traced_memory()[1] / num_ranks
        tracemalloc.stop()
    # Buffers of a thread have a size of their own.
    assert 0.4 * planned < taken < planned + (1 << 18)


@pytest.mark.parametrize("num_ranks", [1, 3])
def test_scores_use_at_most_the_planned_memory(num_ranks):
    source = FixedOutDegree(20_000, 2)
    planned = plan_graph(source, num_ranks, "cpu", 1 << 30).parts["while scores are found"]
    with InProcessCluster(num_ranks) as cluster, Graph.from_source(source, cluster=cluster) as g:
        rank = functools.partial(pagerank, g, weighted=g.info.weight_dtype is not None)
        # What compiles or loads a kernel takes memory too.
        rank(personalization=np.ones(g.num_vertices)).close()
        hits(g, tolerance=None, max_iterations=2).close()
        tracemalloc.start()
        rank(personalization=np.ones(g.num_vertices)).close()
        taken = tracemalloc.get_traced_memory()[1] / num_ranks
        tracemalloc.stop()
        tracemalloc.start()
        hits(g, tolerance=None, max_iterations=2).close()
        taken_by_hits = tracemalloc.get_traced_memory()[1] / num_ranks
        tracemalloc.stop()
    # The request itself is an array of all vertices.
    assert 0.4 * planned < taken < planned + (1 << 20)
    assert 0.4 * planned < taken_by_hits < planned + (1 << 18)


@pytest.mark.parametrize("source", [FixedOutDegree(20_000, 8), Rmat(14, weights=None)], ids=["directed", "undirected"])
@pytest.mark.parametrize("num_ranks", [1, 3])
def test_core_numbers_use_at_most_the_planned_memory(source, num_ranks):
    made = plan_graph(source, num_ranks, "cpu", 1 << 30)
    planned = made.parts["while core numbers run"] + made.parts.get("result routing", 0)
    with InProcessCluster(num_ranks) as cluster, Graph.from_source(source, cluster=cluster) as g:
        core_numbers(g).close()
        tracemalloc.start()
        core_numbers(g).close()
        taken = tracemalloc.get_traced_memory()[1] / num_ranks
        tracemalloc.stop()
    # Buffers of a thread have a size of their own.
    assert 0.4 * planned < taken < planned + (1 << 18)


@pytest.mark.parametrize("part", ["while bridges are found", "while terminals are connected"])
@pytest.mark.parametrize("num_ranks", [1, 3])
def test_loops_after_a_search_use_at_most_the_planned_memory(part, num_ranks):
    source = Grid(200, 100)
    planned = plan_graph(source, num_ranks, "cpu", 1 << 30).parts[part]
    is_tree = part == "while terminals are connected"
    # For bridges one vertex of each component.
    terminals = np.arange(0, 15_000 if is_tree else 1, 500)
    with (
        InProcessCluster(num_ranks) as cluster,
        Graph.from_source(source, cluster=cluster) as g,
        largest_component(g) as connected,
        bfs(connected, connected.labels_of(terminals.tolist()).tolist()) as found,
    ):
        how = (compute_bridges, connected._key, found._stored.key, "edges")
        if is_tree:
            how = (compute_steiner_tree, *how[1:], terminals, False)
        cluster.run(*how)
        tracemalloc.start()
        cluster.run(*how)
        taken = tracemalloc.get_traced_memory()[1] / num_ranks
        tracemalloc.stop()
    # And a chunk of arcs with their ends.
    assert 0.4 * planned < taken < planned + (3 << 20)


@pytest.mark.parametrize("weights", ["int", "float64", None])
@pytest.mark.parametrize("num_ranks", [1, 3])
def test_plan_of_a_compact_graph_covers_its_shard(num_ranks, weights):
    source = Rmat(14, weights=weights)
    made = plan_graph(source, num_ranks, "cpu", 1 << 40, layout="compact")
    assert made.parts["graph"] < plan_graph(source, num_ranks, "cpu", 1 << 40).parts["graph"] / 1.5
    with InProcessCluster(num_ranks) as cluster:
        g = Graph.from_source(source, cluster=cluster, layout="compact")
        largest = max(shard.nbytes for objects in cluster._objects for shard in [objects[g._key]])
    # Of a graph as small as this one edge in five is parallel.
    assert 0.7 * made.parts["graph"] <= largest <= 1.1 * made.parts["graph"]


@pytest.mark.parametrize("source", [Rmat(15, weights=None), Grid(200, 200)], ids=lambda s: s.name)
@pytest.mark.parametrize("num_ranks", [1, 3])
def test_bfs_over_blocks_uses_at_most_the_planned_memory(source, num_ranks, tmp_path):
    planned = plan_graph(source, num_ranks, "cpu", 1 << 30, "compact").parts["while bfs runs"]
    with InProcessCluster(num_ranks) as cluster, Graph.from_source(source, cluster=cluster, layout="compact") as g:
        bfs(g, 1).close()
        tracemalloc.start()
        bfs(g, 1).close()
        taken = tracemalloc.get_traced_memory()[1] / num_ranks
        tracemalloc.stop()
    assert 0.3 * planned < taken < planned + (1 << 18)


@pytest.mark.parametrize("source", [Rmat(13), Rmat(13, weights="float64"), Grid(200, 200)], ids=lambda s: s.name)
@pytest.mark.parametrize("num_ranks", [1, 3, 8])
@pytest.mark.parametrize(("layout", "part"), [("rows", "while msf runs"), ("compact", JOINED)], ids=["rows", "compact"])
def test_forest_uses_at_most_the_planned_memory(source, layout, part, num_ranks):
    planned = plan_graph(source, num_ranks, "cpu", 1 << 30, layout).parts[part]
    with InProcessCluster(num_ranks) as cluster, Graph.from_source(source, cluster=cluster, layout=layout) as g:
        minimum_spanning_forest(g).close()
        tracemalloc.start()
        minimum_spanning_forest(g).close()
        taken = tracemalloc.get_traced_memory()[1] / num_ranks
        tracemalloc.stop()
    # Samples and buffers of a thread have a size of their own.
    assert 0.2 * planned < taken < planned + (1 << 19)


@pytest.mark.parametrize(("num_ranks", "shares"), [(1, (0, 1 / 3, 1 / 2)), (2, (3 / 4,))])
def test_forest_that_would_not_fit_is_refused_before_it_begins(num_ranks, shares, monkeypatch):
    source = Rmat(13)
    planned = plan_graph(source, num_ranks, "cpu", 1 << 30).parts["while msf runs"]
    monkeypatch.setattr(CpuBackend, "limits", dataclasses.replace(LIMITS["cpu"], tried_bytes=0))
    with InProcessCluster(num_ranks) as cluster, Graph.from_source(source, cluster=cluster) as g:
        wrap_run(monkeypatch, "spanning_forest.boruvka", lambda loop: lambda *args: pytest.fail("it began"))
        for share in shares:
            monkeypatch.setattr(CpuBackend, "free_bytes", lambda self, share=share: int(share * planned))
            with pytest.raises(WouldNotFit, match="a spanning forest takes") as refused:
                minimum_spanning_forest(g)
            ranks = re.search(r"use (\d+) ranks with as much", str(refused.value))
            assert ranks, str(refused.value)
            assert num_ranks < int(ranks[1]) < 10 * num_ranks
        monkeypatch.undo()
        minimum_spanning_forest(g).close()


@pytest.mark.parametrize("num_ranks", [1, 2])
def test_heaviest_forest_needs_a_copy_of_the_weights(num_ranks, monkeypatch):
    source = Rmat(13, weights="float32")
    planned = plan_graph(source, num_ranks, "cpu", 1 << 30).parts["while msf runs"]
    monkeypatch.setattr(CpuBackend, "limits", dataclasses.replace(LIMITS["cpu"], tried_bytes=0))
    with InProcessCluster(num_ranks) as cluster, Graph.from_source(source, cluster=cluster) as g:
        monkeypatch.setattr(CpuBackend, "free_bytes", lambda self: planned + 2 * g.info.num_arcs // num_ranks)
        minimum_spanning_forest(g).close()
        with pytest.raises(WouldNotFit, match="a spanning forest takes"):
            minimum_spanning_forest(g, maximum=True)
        monkeypatch.setattr(CpuBackend, "free_bytes", lambda self: planned + 5 * g.info.num_arcs // num_ranks)
        minimum_spanning_forest(g, maximum=True).close()


def test_arcs_beyond_the_bits_of_a_name_use_one_word_more():
    weight = np.dtype(np.float32)
    named = 1 << name_bits(weight.itemsize)
    few, many = (
        forest_bytes(GraphSizes(1 << 20, arcs // 2, False, Partition(1 << 20, 1, True), weight, 255))
        for arcs in (named - 2, named)
    )
    assert 1.2 * few < many


def test_graphs_without_a_forest_have_no_bytes_for_one():
    assert "while msf runs" in plan_graph(Rmat(8), 1, "cpu", None).parts
    for source in (Rmat(8, weights=None), FixedOutDegree(90, 5)):
        assert "while msf runs" not in plan_graph(source, 1, "cpu", None).parts


@pytest.mark.parametrize(("scale", "num_ranks"), [(28, 1), (30, 1), (30, 2), (30, 4), (31, 2), (32, 4), (32, 8)])
@pytest.mark.parametrize(("weights", "state_bytes"), [("none", 1), ("int", 4)])
def test_large_compact_build_uses_15_percent_beside_graph_and_state(scale, num_ranks, weights, state_bytes):
    source = parse_spec(f"rmat:{scale},weights={weights}")
    parts = plan_graph(source, num_ranks, "cuda", 1 << 50, layout="compact").parts
    states = Partition(source.expected_connected(), num_ranks, cyclic=True).num_states
    assert parts["while it is built"] <= 1.15 * (parts["graph"] + 2 * state_bytes * states)
    # No more than 5 bytes an edge for levels, with weights of 8 bits 8.
    assert parts["graph"] <= {"none": 5, "int": 8}[weights] * source.num_input_edges / num_ranks


@pytest.mark.parametrize("num_ranks", [2, 3])
def test_peer_buffers_have_the_planned_size(num_ranks):
    source = Rmat(7)
    planned = plan_graph(source, num_ranks, "cuda", 1 << 30).parts

    def opened(comm):
        backend = EmulatedBackend(seed=comm.rank)
        shard = builder.build(source, backend, comm)
        assert require_bfs_buffers(shard, comm)
        return comm.peer_buffers.own.nbytes

    with ThreadPoolExecutor(num_ranks) as pool:
        found = list(pool.map(opened, open_threads(num_ranks)))
    assert [planned["peer buffers"] - HEAD_BYTES] * num_ranks == found
    # They count for every algorithm; CPU ranks, a single rank, and more ranks than peer memory supports have none.
    made = plan_graph(source, num_ranks, "cuda", 1 << 30)
    before = made.needed_bytes
    made.parts["peer buffers"] += 1 << 20
    assert made.needed_bytes == before + (1 << 20)
    for others, backend in ((num_ranks, "cpu"), (1, "cuda"), (9, "cuda")):
        assert "peer buffers" not in plan_graph(source, others, backend, 1 << 30).parts


@pytest.mark.parametrize("num_ranks", [2, 3])
def test_persistent_multi_gpu_sssp_is_planned_for_all_arcs_of_a_rank(num_ranks, monkeypatch):
    source = Rmat(7)
    planned = []
    work_words = sssp_multi_gpu.work_words
    monkeypatch.setattr(sssp_multi_gpu, "work_words", lambda *args: planned.append(args) or work_words(*args))
    plan_graph(source, num_ranks, "cuda", 1 << 30)
    for partition, arcs in planned:
        assert partition.num_ranks == num_ranks
        assert arcs * num_ranks >= 2 * source.num_input_edges
    assert planned


def test_vertex_order_uses_less_memory_on_several_ranks():
    limits = LIMITS["cuda"]
    one, four = (order_bytes(1 << 26, Partition(1 << 25, num_ranks, cyclic=True), limits) for num_ranks in (1, 4))
    # Each rank has the positions of all vertices, and the user ids of its own.
    assert one - four == 4 * 3 * (1 << 25) // 4


def test_plan_that_does_not_fit_advises_a_number_of_ranks():
    made = plan_graph(Rmat(24), 1, "cuda", 3 << 30)
    assert not made.fits
    assert made.needed_bytes > 3 << 30
    assert f"use {made.enough_ranks} ranks with as much" in made.advice()
    assert plan_graph(Rmat(24), made.enough_ranks, "cuda", 3 << 30).fits
    assert not plan_graph(Rmat(24), made.enough_ranks - 1, "cuda", 3 << 30).fits
    hopeless = plan_graph(Rmat(30), 4, "cuda", 1 << 30)
    assert hopeless.enough_ranks is None
    assert "use ranks with more memory, or fewer edges" in hopeless.advice()


def test_ranks_of_this_process_share_its_free_memory(monkeypatch):
    monkeypatch.setattr("mgraph.backends.host_memory.host_memory", lambda: FreeMemory(5 << 20))
    for num_ranks in (1, 4):
        made = plan_graph(Rmat(14), num_ranks, "cpu", None)
        assert made.memory_bytes == (5 << 20) // num_ranks
        with InProcessCluster(num_ranks) as cluster:
            assert cluster.run(free_bytes) == [made.memory_bytes] * num_ranks


@pytest.mark.parametrize("num_ranks", [1, 2])
def test_validation_uses_the_planned_memory(num_ranks, monkeypatch):
    # The plan omits temporaries of a piece, and buffers of a thread for each core.
    monkeypatch.setattr(validation, "PIECE", 1 << 9)
    one_core = InProcessCluster(num_ranks, make_backend=lambda: CpuBackend(1))
    with one_core as cluster, mg.rmat(15, cluster=cluster) as g:
        partition = cluster._objects[0][g._key].partition
        own_edges = g.num_edges // num_ranks
        planned = {
            mg.connected_components: labels_check_bytes(partition, g.num_vertices),
            mg.minimum_spanning_forest: forest_check_bytes(partition, g.num_vertices, own_edges, 1, inverted=False),
        }
        for search, wanted in planned.items():
            with search(g) as found:
                check_peak_of_validation(found, wanted, num_ranks)


@pytest.mark.ci
@pytest.mark.parametrize("num_ranks", [1, 2])
def test_validation_of_strong_components_uses_the_planned_memory(num_ranks, monkeypatch):
    monkeypatch.setattr(validation, "PIECE", 1 << 9)
    one_core = InProcessCluster(num_ranks, make_backend=lambda: CpuBackend(1))
    with one_core as cluster, mg.fixed_out_degree(40_000, 1, cluster=cluster) as g:
        wanted = strong_check_bytes(cluster._objects[0][g._key].partition, g.num_vertices)
        with mg.strongly_connected_components(g) as found:
            check_peak_of_validation(found, wanted, num_ranks)


@pytest.mark.parametrize("num_ranks", [1, 2])
def test_validation_of_core_numbers_uses_the_planned_memory(num_ranks, monkeypatch):
    monkeypatch.setattr(validation, "PIECE", 1 << 9)
    one_core = InProcessCluster(num_ranks, make_backend=lambda: CpuBackend(1))
    with one_core as cluster, mg.rmat(15, weights=None, cluster=cluster) as g:
        wanted = cores_check_bytes(cluster._objects[0][g._key].partition, g.num_vertices)
        with mg.core_numbers(g) as found:
            check_peak_of_validation(found, wanted, num_ranks)


@pytest.mark.parametrize("num_ranks", [1, 2])
@pytest.mark.parametrize("layout", ["rows", "compact"])
def test_validation_of_a_search_uses_the_planned_memory(layout, num_ranks, monkeypatch):
    monkeypatch.setattr(validation, "PIECE", 1 << 9)
    one_core = InProcessCluster(num_ranks, make_backend=lambda: CpuBackend(1))
    with one_core as cluster, mg.read("rmat:15,weights=float64", cluster=cluster, layout=layout) as g:
        wanted = traversal_check_bytes(cluster._objects[0][g._key].partition)
        with mg.sssp(g, 1) as found:
            check_peak_of_validation(found, wanted, num_ranks)
