"""A graph that cannot fit is refused before its input is counted; one that fits is not."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from cli_runs import refused
from edge_checks import as_source

from mgraph.api.components import connected_components
from mgraph.api.graph import Graph
from mgraph.api.pagerank import pagerank
from mgraph.api.results import validate
from mgraph.api.spanning_forest import minimum_spanning_forest
from mgraph.api.strong_components import strongly_connected_components
from mgraph.backends.base import LIMITS
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.host_memory import FreeMemory
from mgraph.cluster.in_process import InProcessCluster
from mgraph.edges import EdgeSource
from mgraph.errors import WouldNotFit
from mgraph.generate.grid import Grid
from mgraph.generate.rmat import Rmat
from mgraph.generate.ssca2 import Ssca2
from mgraph.generate.uniform import FixedOutDegree, Uniform
from mgraph.ingest import build as builder
from mgraph.ingest import memory_check as room
from mgraph.io.memory import edges_table, id_options
from mgraph.planning.admission import least_bytes
from mgraph.planning.memory import expected_edges, plan_graph
from mgraph.planning.parts import BUILT
from mgraph.validation.components import labels_check_bytes
from mgraph.validation.pagerank import scores_check_bytes
from mgraph.validation.spanning_forest import forest_check_bytes
from mgraph.validation.strong_components import strong_check_bytes


def array_edges(loops: float, seed: int = 0) -> EdgeSource:
    """Return edges with some loops and some reversed duplicates."""
    draw = np.random.default_rng(seed)
    u, v = draw.integers(0, 5000, (2, 40_000), dtype=np.uint32)
    v = np.where(draw.random(len(u)) < loops, u, v)
    ends = np.append(u, v[::2]).astype(np.uint32), np.append(v, u[::2]).astype(np.uint32)
    return as_source(edges_table(*ends, name=f"arrays-loops{loops}", how=id_options(5000)))


SOURCES = [
    Rmat(12),
    Rmat(10, 4),
    Rmat(12, weights=None),
    Rmat(12, weights="float64"),
    Uniform(5000, 9.5),
    Uniform(3, 1000),
    FixedOutDegree(4000, 5),
    Grid(100, 100),
    Grid(300, 300, drop=0.9),
    Ssca2(13),
    Ssca2(12, max_clique=300),
    array_edges(0.0),
    array_edges(0.4),
]


@pytest.fixture
def count_fails(monkeypatch):
    def fail(*args):
        pytest.fail("the input was counted")

    def install():
        monkeypatch.setattr("mgraph.ingest.survey.count", fail)

    return install


@pytest.mark.covering
@pytest.mark.parametrize("num_ranks", [1, 3])
@pytest.mark.parametrize("num_chunks", [None, 999])
@pytest.mark.parametrize("layout", ["rows", "compact"])
@pytest.mark.parametrize("source", SOURCES, ids=lambda s: f"{s.name}-{s.num_vertices}")
def test_graph_that_just_fits_is_built(source, layout, num_chunks, num_ranks, monkeypatch):
    monkeypatch.setattr("mgraph.planning.admission.ASKED_BYTES", 0)
    plans = []
    refusal = room.refusal
    for module in (builder, room):
        monkeypatch.setattr(module, "refusal", lambda plan, *args: plans.append(plan) or refusal(plan, *args))
    with InProcessCluster(num_ranks) as cluster:
        # The more chunks, the less memory a build needs.
        Graph.from_source(source, cluster=cluster, layout=layout, num_chunks=num_chunks).close()
        # In chunks of its own choice, a build has its tables too when it allocates the rest.
        needed = max(max(plan.to_allocate_bytes, plan.order) if num_chunks else plan.peak_bytes for plan in plans)
        monkeypatch.setattr(CpuBackend, "free_memory", lambda self: FreeMemory(needed))
        Graph.from_source(source, cluster=cluster, layout=layout, num_chunks=num_chunks).close()


@pytest.mark.covering
@pytest.mark.parametrize("num_ranks", [1, 3])
@pytest.mark.parametrize("layout", ["rows", "compact", "auto"])
@pytest.mark.parametrize("source", [Rmat(15), Uniform(20_000, 50), Ssca2(14), array_edges(0.4)], ids=lambda s: s.name)
def test_graph_that_cannot_fit_is_refused_before_it_is_counted(source, layout, num_ranks, monkeypatch, count_fails):
    monkeypatch.setattr("mgraph.planning.admission.ASKED_BYTES", 0)
    free = least_bytes(source, num_ranks, layout) - 1
    monkeypatch.setattr(CpuBackend, "free_memory", lambda self: FreeMemory(free, "some limit holds"))
    count_fails()
    planned = plan_graph(source, num_ranks, "cpu", FreeMemory(free, "some limit holds"), layout)
    with InProcessCluster(num_ranks) as cluster, pytest.raises(WouldNotFit) as error:
        Graph.from_source(source, cluster=cluster, layout=layout)
    assert str(error.value) == planned.advice()
    assert str(error.value).endswith("; some limit holds")


@pytest.mark.covering
@pytest.mark.parametrize("num_ranks", [1, 3])
@pytest.mark.parametrize("layout", ["rows", "compact"])
@pytest.mark.parametrize("source", [Rmat(15), Uniform(20_000, 50)], ids=lambda s: s.name)
def test_generated_graph_with_a_build_that_cannot_fit_is_not_counted(
    source, layout, num_ranks, monkeypatch, count_fails
):
    monkeypatch.setattr("mgraph.planning.admission.ASKED_BYTES", 0)
    # Enough for the edges alone, and not for their build.
    plans = [plan_graph(source, num_ranks, "cpu", memory, layout).parts[BUILT] for memory in (1, 1 << 40)]
    free = int(0.89 * min(plans))
    assert least_bytes(source, num_ranks, layout) < free
    monkeypatch.setattr(CpuBackend, "free_memory", lambda self: FreeMemory(free))
    count_fails()
    with InProcessCluster(num_ranks) as cluster, pytest.raises(WouldNotFit, match=f"{source.name} takes"):
        Graph.from_source(source, cluster=cluster, layout=layout)


def test_file_that_cannot_fit_is_refused_before_it_is_counted(tmp_path, monkeypatch, no_gpus, count_fails):
    monkeypatch.setattr("mgraph.planning.admission.ASKED_BYTES", 0)
    u, v = np.random.default_rng(0).integers(0, 5000, (2, 100_000), dtype=np.int32)
    np.savez(tmp_path / "edges.npz", sources=u, targets=v)
    monkeypatch.setattr(CpuBackend, "free_memory", lambda self: FreeMemory(200_000))
    count_fails()
    assert "edges takes" in refused("info", tmp_path / "edges.npz", code=5)


def test_graph500_is_refused_before_its_build_if_a_search_cannot_fit(no_gpus, monkeypatch, count_fails):
    monkeypatch.setattr("mgraph.planning.admission.ASKED_BYTES", 0)
    parts = plan_graph(Rmat(14), 1, "cpu", 1).parts
    # The graph is built beside no search.
    free = int(0.85 * (parts["graph"] + max(parts["while bfs runs"], parts["while sssp runs"])))
    assert free > parts["graph"]
    monkeypatch.setattr(CpuBackend, "free_memory", lambda self: FreeMemory(free))
    count_fails()
    assert "rmat14 takes" in refused("graph500", "--scale", 14, code=5)


def test_graph500_is_refused_with_the_text_of_its_plan(no_gpus, monkeypatch, count_fails):
    monkeypatch.setattr(CpuBackend, "free_memory", lambda self: FreeMemory(20 << 30))
    planned = refused("plan", "--scale", 30, code=5)
    assert "20.0 GiB: use" in planned
    # A small graph, which is built first, is counted.
    monkeypatch.setattr("mgraph.api.graph500.WARM_UP_SCALE", 30)
    count_fails()
    assert refused("graph500", "--scale", 30, code=5) == planned


@pytest.mark.ci
@pytest.mark.parametrize("num_ranks", [1, 2])
def test_validation_that_would_not_fit_is_refused_before_it_begins(num_ranks, monkeypatch):
    monkeypatch.setattr(CpuBackend, "limits", dataclasses.replace(LIMITS["cpu"], tried_bytes=0))
    checks = {
        "components": ("components.validate_labels", labels_check_bytes),
        "forest": ("spanning_forest.validate_forest", forest_check_bytes),
    }
    with InProcessCluster(num_ranks) as cluster, Graph.from_source(Rmat(10), cluster=cluster) as g:
        found = {"components": connected_components(g), "forest": minimum_spanning_forest(g)}
        for what, (check, needed_bytes) in checks.items():
            edges = () if what == "components" else (-(-g.num_edges // num_ranks), 1, False)
            needed = needed_bytes(cluster._objects[0][g._key].partition, g.num_vertices, *edges)
            monkeypatch.setattr(CpuBackend, "free_bytes", lambda self, free=needed: free)
            validate(found[what])
            monkeypatch.setattr(CpuBackend, "free_bytes", lambda self, free=needed - 1: free)
            monkeypatch.setattr(f"mgraph.rank_jobs.{check}", lambda *args: pytest.fail("it began"))
            with pytest.raises(WouldNotFit, match=f"to validate .*{what} takes"):
                validate(found[what])


def test_validation_of_strong_components_that_would_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(CpuBackend, "limits", dataclasses.replace(LIMITS["cpu"], tried_bytes=0))
    with InProcessCluster(1) as cluster, Graph.from_source(FixedOutDegree(900, 3), cluster=cluster) as g:
        found = strongly_connected_components(g)
        needed = strong_check_bytes(cluster._objects[0][g._key].partition, g.num_vertices)
        monkeypatch.setattr(CpuBackend, "free_bytes", lambda self: needed)
        validate(found)
        monkeypatch.setattr(CpuBackend, "free_bytes", lambda self: needed - 1)
        with pytest.raises(WouldNotFit, match="to validate strong components takes"):
            validate(found)


def test_pagerank_that_would_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(CpuBackend, "limits", dataclasses.replace(LIMITS["cpu"], tried_bytes=0))
    with InProcessCluster(2) as cluster, Graph.from_source(Rmat(9), cluster=cluster) as g:
        with pagerank(g) as found:
            needed = scores_check_bytes(cluster._objects[0][g._key].partition, g.num_vertices)
            monkeypatch.setattr(CpuBackend, "free_bytes", lambda self: needed)
            validate(found)
            monkeypatch.setattr(CpuBackend, "free_bytes", lambda self: needed - 1)
            with pytest.raises(WouldNotFit, match="to validate PageRank takes"):
                validate(found)
        with pytest.raises(WouldNotFit, match=r"PageRank takes .* in addition to the graph on each .* is free: use"):
            pagerank(g)


@pytest.mark.parametrize(
    "source", [Grid(2000, 1500), Grid(1 << 12, 1 << 10, drop=0.9), Ssca2(19), Ssca2(18, max_clique=100)]
)
def test_unknown_number_of_edges_of_a_generator_is_estimated(source):
    edges = sum(len(source.chunk(k, 16, CpuBackend(1))) for k in range(16))
    assert expected_edges(source) == pytest.approx(edges, rel=0.1)
