"""The table of variants: the choice by conditions, needs that cannot be made, and readers of the table."""

from __future__ import annotations

import itertools
import pathlib
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from emulator.backend import EmulatedBackend

import mgraph as mg
from mgraph.algorithms import derived
from mgraph.algorithms.variant import METHODS, Conditions, select
from mgraph.algorithms.variants import TABLE, loop_of, markdown, methods_of
from mgraph.api.graph import Graph
from mgraph.backends.base import LIMITS
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.host_memory import FreeMemory
from mgraph.cli.main import main
from mgraph.cluster.in_process import InProcessCluster
from mgraph.errors import UsageError, WouldNotFit
from mgraph.generate.grid import Grid
from mgraph.generate.rmat import Rmat
from mgraph.generate.spec import parse_spec
from mgraph.ingest.survey import Survey
from mgraph.planning.memory import plan_graph
from mgraph.planning.parts import in_use_bytes
from mgraph.shard import lightest_arcs

ROOT = pathlib.Path(__file__).parents[2]
# One GPU with a graph of many arcs and of weights beyond a bucket; the settings of the tests differ from it.
GPU = Conditions("auto", "rows", 1, 1 << 20, True, False, False, 16.0, True)
GPUS = {"num_ranks": 4, "has_peer_memory": True}
NO_PEERS = {"num_ranks": 4}
CPU = {"has_persistent_kernels": False}
CPUS = {"has_persistent_kernels": False, "num_ranks": 4}
COMPACT = {"layout": "compact"}


@pytest.mark.parametrize(
    ("facts", "bfs", "sssp", "components", "forest"),
    [
        ({}, "persistent", "persistent", "afforest", "persistent"),
        (GPUS, "persistent_multi_gpu", "persistent_multi_gpu", "around_giant", "persistent"),
        ({**GPUS, "directed": True}, "persistent_multi_gpu", "persistent_multi_gpu", "afforest", "persistent"),
        ({**GPUS, "arcs_per_vertex": 4.0}, "persistent_multi_gpu", "persistent_multi_gpu", "afforest", "persistent"),
        (NO_PEERS, "step", "near_far", "afforest", "persistent"),
        (CPU, "hybrid", "hybrid", "afforest", "boruvka"),
        ({**CPU, "has_heavy_arcs": False}, "hybrid", "hybrid", "afforest", "boruvka"),
        ({**CPU, "arcs_per_vertex": 4.0, "threads": 2}, "hybrid", "hybrid", "serial", "boruvka"),
        ({**CPU, "arcs_per_vertex": 4.0, "threads": 3}, "hybrid", "hybrid", "afforest", "boruvka"),
        ({**CPU, "has_equal_weights": True}, "hybrid", "hybrid", "afforest", "first_edges"),
        ({**CPUS, "arcs_per_vertex": 4.0, "has_equal_weights": True}, "step", "near_far", "afforest", "boruvka"),
        ({**CPU, "method": "delta_stepping"}, None, "delta_stepping", None, None),
        (CPUS, "step", "near_far", "afforest", "boruvka"),
        # Too many vertices for a queue to count; on one GPU shortest paths count none beside arcs.
        ({"stride": 1 << 30}, "step", "persistent", "afforest", "persistent"),
        ({"stride": (1 << 30) - 1}, "persistent", "persistent", "afforest", "persistent"),
        ({**GPUS, "stride": 1 << 28}, "step", "near_far", "afforest", "persistent"),
        ({**GPUS, "stride": 1 << 27}, "persistent_multi_gpu", "near_far", "around_giant", "persistent"),
        ({"method": "sweep"}, "sweep", "sweep", None, None),
        ({**GPUS, "method": "sweep"}, "sweep", "sweep", None, None),
        ({**GPUS, "method": "frontier"}, "persistent_multi_gpu", "persistent_multi_gpu", None, None),
        (COMPACT, "sweep", "sweep", None, None),
        ({**COMPACT, **GPUS}, "sweep", "sweep", None, None),
        ({"failed": frozenset({"first_neighbors"})}, "step", "persistent", "afforest", "persistent"),
        ({**GPUS, "failed": frozenset({"peer_buffers"})}, "step", "near_far", "afforest", "persistent"),
        ({**CPU, "failed": frozenset({"lightest_arcs"})}, "hybrid", "hybrid", "afforest", "boruvka"),
    ],
    ids=str,
)
def test_setting_selects_the_variant(facts, bfs, sssp, components, forest):
    conditions = replace(GPU, **facts)
    wanted = {"bfs": bfs, "sssp": sssp, "components": components, "spanning_forest": forest}
    for algorithm, short_name in wanted.items():
        if short_name is not None:
            assert select(TABLE[algorithm], conditions).name == f"{algorithm}.{short_name}"


@pytest.mark.parametrize(
    ("facts", "by_weights", "by_hops"),
    [
        ({}, "one_by_one", "multi_source_bitmaps"),
        ({"arcs_per_vertex": 4.0}, "per_block", "per_block"),
        (CPU, "per_core", "multi_source"),
        ({**CPU, "arcs_per_vertex": 4.0}, "per_core", "per_core"),
        (CPUS, "one_by_one", "multi_source"),
        ({**CPUS, "arcs_per_vertex": 4.0}, "near_far", "multi_source"),
        ({**NO_PEERS, "arcs_per_vertex": 4.0}, "near_far", "multi_source"),
        ({**GPUS, "arcs_per_vertex": 4.0}, "one_by_one", "multi_source"),
    ],
    ids=str,
)
def test_setting_selects_the_variant_of_many_sources(facts, by_weights, by_hops):
    conditions = replace(GPU, **facts)
    assert select(TABLE["distance_matrix"], conditions).name == f"distance_matrix.{by_weights}"
    assert select(TABLE["distance_matrix"], replace(conditions, by_hops=True)).name == f"distance_matrix.{by_hops}"


def test_method_that_names_a_variant_selects_it_or_is_refused_with_its_condition():
    for method, name in ("step", "bfs.step"), ("persistent", "bfs.persistent"):
        assert select(TABLE["bfs"], replace(GPU, method=method)).name == name
    with pytest.raises(UsageError, match=r"'persistent' does not apply here: bfs\.persistent runs on one GPU"):
        select(TABLE["bfs"], replace(GPU, method="persistent", **NO_PEERS))
    with pytest.raises(
        UsageError, match=r"\(could not be made here: peer_buffers\): bfs\.persistent_multi_gpu runs on 2"
    ):
        select(TABLE["bfs"], replace(GPU, method="persistent_multi_gpu", failed=frozenset({"peer_buffers"}), **GPUS))


def test_names_are_unique_and_the_last_variant_always_applies():
    names = [variant.name for variants in TABLE.values() for variant in variants]
    assert len(names) == len(set(names))
    for variants in TABLE.values():
        assert variants[-1].applies(replace(GPU, **CPUS))
    assert select(TABLE["strong_components"], GPU).name == "strong_components.coloring"
    assert select(TABLE["strong_components"], replace(GPU, **CPUS)).name == "strong_components.coloring"
    alone = replace(GPU, has_persistent_kernels=False)
    assert select(TABLE["strong_components"], alone).name == "strong_components.depth_first"
    short_names = {"persistent_multi_gpu", "host", "persistent", "streamed", "hybrid", "step"}
    assert set(methods_of("bfs")) == {*METHODS, *short_names}


def emulated(num_ranks):
    seeds = itertools.count()
    return InProcessCluster(num_ranks, make_backend=lambda: EmulatedBackend(seed=next(seeds), block=32))


def on_cpu(num_ranks):
    return InProcessCluster(num_ranks, make_backend=lambda: CpuBackend(1))


def crowd(cluster):
    """Return a small graph of many arcs, some of them heavy."""
    ends = np.array([(u, v) for u in range(12) for v in range(u)])
    return mg.from_edges(*ends.T, (1 + 7 * ends.sum(axis=1) % 90).astype(np.uint8), cluster=cluster)


def conditions_of(cluster, g, method):
    """Return the conditions on rank 0."""
    return cluster.run(lambda rank: Conditions.of(rank.objects[g._key], rank.comm, method))[0]


def columns(result):
    return [column.to_numpy() for column in result]


@pytest.mark.parametrize(
    ("make", "num_ranks", "search", "name"),
    [
        (emulated, 1, mg.bfs, "bfs.persistent"),
        (emulated, 2, mg.bfs, "bfs.persistent_multi_gpu"),
        (on_cpu, 1, mg.bfs, "bfs.hybrid"),
        (on_cpu, 2, mg.bfs, "bfs.step"),
        (emulated, 1, mg.sssp, "sssp.persistent"),
        (emulated, 2, mg.sssp, "sssp.persistent_multi_gpu"),
        (on_cpu, 1, mg.sssp, "sssp.hybrid"),
        (on_cpu, 2, mg.sssp, "sssp.near_far"),
    ],
)
def test_all_variants_have_equal_results(make, num_ranks, search, name):
    algorithm = search.__name__
    with make(num_ranks) as cluster, crowd(cluster) as g:
        with search(g, 3) as found:
            assert (found.stats.variant, found.stats.method) == (name, "frontier")
            wanted = columns(found)
        applied = [
            variant for variant in TABLE[algorithm] if variant.applies(conditions_of(cluster, g, variant.short_name))
        ]
        assert len(applied) >= 2
        for variant in TABLE[algorithm]:
            if variant not in applied:
                with pytest.raises(UsageError, match=re.escape(f"{variant.name} runs {variant.when}")):
                    search(g, 3, method=variant.short_name)
                continue
            with search(g, 3, method=variant.short_name) as found:
                assert found.stats.variant == variant.name
                assert found.stats.method == ("sweep" if variant.short_name == "sweep" else "frontier")
                for column, other in zip(columns(found), wanted, strict=True):
                    np.testing.assert_array_equal(column, other)


def fails_on_rank(rank, function, error=MemoryError):
    """Return the function, which fails on one rank."""

    def failing(shard, *args):
        if shard.rank == rank:
            raise error("no room")
        return function(shard, *args)

    return failing


def break_peer_buffers(monkeypatch, rank):
    shared = itertools.count()
    share = EmulatedBackend.share

    def failing(backend, num_bytes):
        if backend.seed == rank:
            next(shared)
            raise MemoryError("no room")
        return share(backend, num_bytes)

    monkeypatch.setattr(EmulatedBackend, "share", failing)
    return shared


def break_first_neighbors(monkeypatch, rank):
    monkeypatch.setattr(derived, "require_first_neighbors", fails_on_rank(rank, derived.require_first_neighbors))


@pytest.mark.covering
@pytest.mark.parametrize("breaks", [break_peer_buffers, break_first_neighbors])
@pytest.mark.parametrize("rank", [0, 1])
def test_need_that_fails_on_one_rank_selects_the_next_variant_on_all(breaks, rank, monkeypatch):
    with emulated(2) as cluster, crowd(cluster) as g:
        wanted = [columns(search(g, 3)) for search in (mg.bfs, mg.sssp)]
        labels = mg.connected_components(g).labels.to_numpy()
    tried = breaks(monkeypatch, rank)
    with emulated(2) as cluster, crowd(cluster) as g:
        for _ in range(2):
            levels = mg.bfs(g, 3)
            paths = mg.sssp(g, 3)
            found = mg.connected_components(g)
            assert levels.stats.variant == "bfs.step"
            without_buffers = breaks is break_peer_buffers
            assert paths.stats.variant == ("sssp.near_far" if without_buffers else "sssp.persistent_multi_gpu")
            assert found.stats.variant == "components.afforest"
            for result, expected in zip((levels, paths), wanted, strict=True):
                for column, other in zip(columns(result), expected, strict=True):
                    np.testing.assert_array_equal(column, other)
            np.testing.assert_array_equal(found.labels.to_numpy(), labels)
        # The failure is remembered: no call tries again, and one that names the variant is refused on all ranks.
        assert tried is None or next(tried) == 1
        with pytest.raises(UsageError, match=r"bfs\.persistent_multi_gpu runs on 2 to 8 GPUs"):
            mg.bfs(g, 3, method="persistent_multi_gpu")
        assert mg.bfs(g, 3).distances.digest() == levels.distances.digest()


def test_one_gpu_without_memory_for_first_neighbors_runs_the_step_variant(monkeypatch):
    break_first_neighbors(monkeypatch, 0)
    with emulated(1) as cluster, crowd(cluster) as g, mg.bfs(g, 3) as found:
        assert found.stats.variant == "bfs.step"
        mg.validate(found)


def test_cpu_rank_without_memory_for_lightest_arcs_searches_by_one_core(monkeypatch):
    with on_cpu(1) as cluster, crowd(cluster) as g:
        monkeypatch.setattr(lightest_arcs, "SEARCH_BYTES", 1 << 60)
        found = mg.sssp(g, 3)
        assert found.stats.variant == "sssp.hybrid"
        assert {step["method"] for step in found.stats.supersteps} == {"serial"}
        mg.validate(found)
        with pytest.raises(UsageError, match=r"could not be made here: lightest_arcs"):
            mg.sssp(g, 3, method="delta_stepping")


@pytest.mark.parametrize(("need", "method"), [("require_in_rows", "step"), ("require_blocks", "sweep")])
def test_need_of_every_variant_fails_the_call_but_no_later_one(need, method, monkeypatch):
    with on_cpu(2) as cluster, crowd(cluster) as g:
        wanted = mg.bfs(g, 3).distances.digest()
        with monkeypatch.context() as patch:
            patch.setattr(derived, need, fails_on_rank(1, getattr(derived, need)))
            with Graph.from_source(Grid(3, 4), cluster=cluster) as other, pytest.raises(WouldNotFit, match="no room"):
                mg.bfs(other, 0, method=method)
        assert mg.bfs(g, 3, method=method).distances.digest() == wanted


@pytest.mark.parametrize(("make", "limits"), [(emulated, "cuda"), (on_cpu, "cpu")])
@pytest.mark.parametrize("source", [Rmat(6), Rmat(6, weights=None), Grid(5, 6)], ids=lambda source: source.name)
def test_plan_selects_the_variants_that_run(make, limits, source, monkeypatch):
    planned = []

    def noted(variants, conditions):
        planned.append(select(variants, conditions).name)
        return select(variants, conditions)

    for num_ranks in (1, 2):
        planned.clear()
        monkeypatch.setattr("mgraph.planning.parts.select", noted)
        plan_graph(source, num_ranks, limits, 1 << 40)
        monkeypatch.undo()
        with make(num_ranks) as cluster, Graph.from_source(source, cluster=cluster) as g:
            found = [mg.bfs(g, 0), mg.connected_components(g)]
            if source.weight_dtype is not None:
                found += [mg.sssp(g, 0), mg.minimum_spanning_forest(g)]
            names = {result.stats.variant for result in found}
        # The plan of a graph on several ranks selects for the compact layout too.
        assert names <= set(planned)


def test_plan_without_peer_memory_has_the_step_variant():
    near, far = (plan_graph(Rmat(24), 4, "cuda", 1 << 40, peer_memory=peers).parts for peers in (True, False))
    assert "peer buffers" in near
    assert "peer buffers" not in far
    assert far["while bfs runs"] > near["while bfs runs"]


def test_auto_layout_counts_the_memory_of_searches():
    """Plan Graph500's scale 29 without weights on a GPU of 80 GB: a build of rows needs 75 GiB, a search 80."""
    source = parse_spec("rmat:29,weights=none")
    free = 79 << 30
    rows = plan_graph(source, 1, "cuda", free, "rows")
    assert rows.parts["while it is built"] < free < rows.needed_bytes
    assert plan_graph(source, 1, "cuda", FreeMemory(free, host_bytes=1 << 40), "auto").layout == "split"
    assert plan_graph(source, 1, "cuda", FreeMemory(free, host_bytes=0), "auto").layout == "compact"
    # The ranks decide by the same number.
    edges = source.num_input_edges
    partition = SimpleNamespace(num_arcs=2 * edges, max_weight=0)
    from mgraph.planning.memory import _sizes_of

    survey = Survey(source, partition, "degree", _sizes_of(source, edges, 1).partition, None, None, None)
    assert in_use_bytes(survey, "rows", LIMITS["cuda"], peer_memory=True).needed == rows.needed_bytes


@pytest.mark.parametrize("num_ranks", [1, 2])
def test_graph_is_built_compact_if_searches_would_not_fit_beside_rows(num_ranks, monkeypatch):
    source = Grid(200, 200)
    made = plan_graph(source, num_ranks, "cpu", 1 << 40)
    built = made.parts["while it is built"]
    needed = made.needed_bytes
    assert built < needed
    for free, layout in ((2 * needed, "rows"), ((3 * built + needed) // 4, "compact")):
        monkeypatch.setattr(CpuBackend, "free_bytes", lambda self, free=free: free)
        with on_cpu(num_ranks) as cluster, Graph.from_source(source, cluster=cluster, layout="auto") as g:
            assert g.info.layout == layout
            mg.validate(mg.bfs(g, 1))


def test_command_line_refuses_a_method_before_the_build(monkeypatch):
    monkeypatch.setattr("mgraph.cli.algorithm_command.Graph", None)
    for command in ("bfs", "sssp"):
        arguments = [command, "rmat:6", "-s", "0", "--backend", "cpu", "--method", "persistent"]
        result = CliRunner().invoke(main, arguments, prog_name="mgraph")
        assert result.exit_code == 2
        assert f"{command}.persistent runs on one GPU" in result.stderr


def test_traces_and_json_name_the_variant():
    def run(*arguments):
        result = CliRunner().invoke(main, [*arguments, "--backend", "cpu", "--workers", "1"], prog_name="mgraph")
        assert result.exit_code == 0, result.output
        return result.stdout

    assert "supersteps of bfs.step" in run("bfs", "rmat:6", "-s", "0", "--method", "step", "--trace")
    assert '"variant": "sssp.sweep"' in run("sssp", "rmat:6", "-s", "0", "--method", "sweep", "--json")
    assert '"variant": "components.afforest"' in run("components", "rmat:6", "--json")
    assert '"variant": "spanning_forest.boruvka"' in run("msf", "rmat:6", "--json")


def test_document_of_variants_equals_the_table():
    assert (ROOT / "docs" / "variants.md").read_text() == markdown(), "run the command at the head of docs/variants.md"
    for variant in itertools.chain.from_iterable(TABLE.values()):
        assert (ROOT / loop_of(variant)).exists()


def test_table_of_papers_has_every_variant_with_its_condition_and_loop():
    text = (ROOT / "docs" / "papers.md").read_text()
    rows = [re.split(r" *\| *", line.strip("| \n")) for line in text.splitlines()]
    listed = {cells[0].strip("`"): cells for cells in rows if len(cells) > 2}
    for variant in itertools.chain.from_iterable(TABLE.values()):
        assert listed[variant.name][1] == variant.when
        assert f"`{loop_of(variant)}`" in listed[variant.name][2]


def test_only_the_setting_tests_for_persistent_backends():
    """Assertions for the type checker are allowed."""
    found = [
        (path.relative_to(ROOT).as_posix(), line.strip())
        for path in sorted((ROOT / "mgraph").rglob("*.py"))
        for line in path.read_text().splitlines()
        if re.search(r"isinstance\(.*\bPersistentBackend\b", line) and "assert" not in line
    ]
    assert [path for path, _ in found] == ["mgraph/algorithms/variant.py"], found
