"""The five papers, run again: every method finds what SciPy finds, by both twins of its kernels."""

from __future__ import annotations

import contextlib
import importlib
import json
import pathlib
import sys
from types import SimpleNamespace

import click
import contract
import numpy as np
import pytest
import scipy.sparse
from backends import BACKENDS, available_backends
from click.testing import CliRunner
from kernel_files import VARIANTS
from nvrtc import check_text, compile_text
from scipy.sparse import csgraph

import mgraph as mg
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.cuda_source import module_text
from mgraph.backends.kernel import TYPEDEFS, Kernel
from mgraph.cluster.in_process import InProcessCluster

BENCH = pathlib.Path(__file__).parents[2] / "bench"
PAPERS = sorted(path.parent.name for path in BENCH.glob("papers/*/kernels.cu"))
PLACES = [pytest.param(name, marks=[pytest.mark.gpu] if name == "cuda" else []) for name in available_backends()]
SEARCHES = [("kolganov_paths", "bfs"), ("kolganov_paths", "sssp"), ("guo", "sssp"), ("keshavarzi", "bfs")]


@pytest.fixture(autouse=True)
def bench_on_path(monkeypatch):
    """Import scripts of bench/, which import their siblings by name."""
    monkeypatch.syspath_prepend(BENCH)


def module(paper: str, name: str):
    """Import a module of a paper."""
    return importlib.import_module(f"papers.{paper}.{name}")


def source_of(paper: str) -> pathlib.Path:
    return BENCH / "papers" / paper / "kernels.cu"


def kernels_of(paper: str) -> dict[str, Kernel]:
    return {k.name: k for k in vars(module(paper, "kernels")).values() if isinstance(k, Kernel)}


# ---- kernels ---------------------------------------------------------------------------------------
def test_every_paper_has_a_folder_and_a_line_of_the_command():
    assert sorted(importlib.import_module("five_papers").PAPERS) == PAPERS
    assert len(PAPERS) == 5


@pytest.mark.parametrize("paper", PAPERS)
def test_twins_of_papers_agree(paper):
    assert contract.stem_faults(source_of(paper), kernels_of(paper)) == []


@pytest.mark.parametrize("paper", PAPERS)
def test_kernels_of_papers_compile_without_a_warning(paper):
    for types in VARIANTS[:2]:
        assert check_text(module_text(source_of(paper), TYPEDEFS | types)) == ""


@pytest.mark.ci
@pytest.mark.parametrize("architecture", ["sm_75", "sm_90", "sm_100"])
@pytest.mark.parametrize("paper", PAPERS)
def test_kernels_of_papers_are_assembled(paper, architecture):
    built = compile_text(module_text(source_of(paper), TYPEDEFS), architecture)
    assert built.log == "" and built.registers.keys() == kernels_of(paper).keys()


# ---- answers ---------------------------------------------------------------------------------------
def drawn(seed: int, *, directed: bool = False) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """Return a random graph: a hub, a path, equal weights, several components, vertices without edges."""
    random = np.random.default_rng(seed)
    n = 90
    pairs = np.concatenate(
        [
            random.integers(0, 40, (110, 2)),
            np.column_stack([np.zeros(30, np.int64), random.integers(0, 60, 30)]),
            np.column_stack([np.arange(50, 80), np.arange(51, 81)]),
        ]
    )
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    pairs = np.unique(pairs if directed else np.sort(pairs, axis=1), axis=0)
    return n, *pairs.T, random.integers(1, 30, len(pairs))


def matrix_of(graph: tuple) -> scipy.sparse.csr_array:
    n, u, v, w = graph
    return scipy.sparse.csr_array((w.astype(float), (u, v)), (n, n))


@pytest.fixture(scope="module")
def cluster():
    with InProcessCluster(1) as cluster:
        yield cluster


@pytest.fixture(params=PLACES, scope="module")
def setting(request, cluster):
    """Where methods run: the CPU, the emulator (graphs are built by the CPU), a GPU if there is one."""
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as stack:
        patch.syspath_prepend(BENCH)
        backend = BACKENDS[request.param].make()
        stack.callback(backend.close)
        if request.param == "cuda":
            cluster = stack.enter_context(InProcessCluster(1, backend="cuda"))
        trials = importlib.import_module("papers.trials")
        yield trials.Setting(cluster, backend, CpuBackend(2), quick=True, sources=2)


def built(setting, graph: tuple) -> mg.Graph:
    n, u, v, w = graph
    return mg.from_edges(u, v, w, num_vertices=n, cluster=setting.cluster, order="natural")


def require_distances(setting, search, graph: tuple, algorithm: str) -> None:
    """Compare a search from some vertices with SciPy's."""
    for source in (0, 55, graph[0] - 1):
        expected = csgraph.dijkstra(matrix_of(graph), False, source, unweighted=algorithm == "bfs")
        found = np.asarray(setting.backend.to_host(search(source)))
        unreached = np.inf if found.dtype.kind == "f" else np.iinfo(found.dtype).max
        np.testing.assert_array_equal(np.where(found == unreached, np.inf, found), expected)


@pytest.mark.ci
@pytest.mark.parametrize(("paper", "algorithm"), SEARCHES)
def test_searches_of_papers_find_what_scipy_finds(setting, paper, algorithm):
    for seed in (1, 2):
        graph = drawn(seed)
        with built(setting, graph) as g:
            methods = module(paper, "measure").methods_of(setting, g, algorithm)
            assert len(methods) > 2
            for search in methods.values():
                require_distances(setting, search, graph, algorithm)


@pytest.mark.ci
def test_two_kernels_find_what_scipy_finds(setting):
    random = np.random.default_rng(3)
    n = 80
    degree = 2
    targets = random.integers(0, n, n * degree).astype(np.uint32)
    matrix = scipy.sparse.csr_array((np.ones(len(targets)), targets, np.arange(0, len(targets) + 1, degree)), (n, n))
    two_kernels = module("fixed_degree", "methods").two_kernels
    for source in (0, 7):
        found = two_kernels(setting.backend, setting.backend.to_device(targets), degree, source)
        found = np.asarray(setting.backend.to_host(found))
        expected = csgraph.dijkstra(matrix, True, source, unweighted=True)
        np.testing.assert_array_equal(np.where(found == np.iinfo(np.int32).max, np.inf, found), expected)


@pytest.mark.ci
@pytest.mark.parametrize("one_block", [0, 3, 10])
@pytest.mark.parametrize("one_launch", [0, 12, 1000])
def test_tiers_of_queues_change_at_any_size_of_a_layer(setting, one_block, one_launch):
    methods = module("guo", "methods")
    graph = drawn(4)
    with built(setting, graph) as g:
        pairs = methods.pair_up(setting.backend, setting.rows(g))

        def search(source):
            return methods.by_queue(setting.backend, pairs, one_block, one_launch, source)

        require_distances(setting, search, graph, "sssp")


@pytest.mark.ci
@pytest.mark.parametrize("wide_by_queue", [True, False])
@pytest.mark.parametrize("limits", [(0, 0), (1, 1000), (3, 12), (6, 6), (5, 1000)])
def test_levels_are_handed_from_cpu_to_gpu_and_back(setting, limits, wide_by_queue, monkeypatch):
    methods = module("keshavarzi", "methods")
    monkeypatch.setattr(methods, "HEAVY", 5)
    graph = drawn(5)
    with built(setting, graph) as g:
        adjacency = module("keshavarzi", "measure").methods_of(setting, g, "bfs")["Luo, queues"].args[1]

        def search(source):
            found = methods.Levels(setting.backend, adjacency, methods.Limits(*limits), source)
            return found.search(wide_by_queue=wide_by_queue)

        require_distances(setting, search, graph, "bfs")
    assert (adjacency.host_levels == np.iinfo(np.int32).max).all()


@pytest.mark.ci
def test_forests_of_papers_are_those_of_scipy(setting):
    measure = module("kolganov_forests", "measure")
    prepare = module("kolganov_forests", "prepare")
    for seed in (6, 7):
        graph = drawn(seed)
        _, u, v, w = graph
        expected = csgraph.minimum_spanning_tree(matrix_of(graph))
        with built(setting, graph) as g:
            arcs = prepare.list_arcs(setting.backend, setting.rows(g))
            same = measure.expected_edges(setting, g, arcs)
            names = []
            for name, (find, _) in measure.methods_of(setting, g, arcs):
                names.append(name)
                found = find()
                measure.require_forest(setting, name, found, same)
                forest = np.asarray(setting.backend.to_host(found))
                assert (len(forest), w[forest].sum()) == (expected.nnz, expected.sum())
                ends = (np.ones(len(forest)), (u[forest], v[forest]))
                trees, _ = csgraph.connected_components(scipy.sparse.csr_array(ends, shape=expected.shape), False)
                assert trees == graph[0] - len(forest)
    assert {"no preparation", "all preparations, compressed neighbors", "all preparations, all CPU cores"} < {*names}


@pytest.mark.ci
def test_neighbors_too_far_apart_are_not_compressed(setting):
    prepare = module("kolganov_forests", "prepare")
    n = 2000
    u = np.r_[np.zeros(3, np.int64), np.arange(1, 9)]
    v = np.r_[[500, 900, 1999], np.arange(11, 19)]
    with built(setting, (n, u, v, np.arange(1, 12))) as g:
        arcs = prepare.list_arcs(setting.backend, setting.rows(g))
        lists = prepare.prepare(setting.backend, arcs, is_sorted=True, numbers=None, has_ranks=True)
        bases = np.asarray(setting.backend.to_host(prepare.compress(setting.backend, lists).compressed.bases))
    top = np.iinfo(np.uint32).max
    assert (bases[0], bases[1], bases[500], bases[30]) == (top, 11, 0, top)


# ---- the checks of a run can fail ------------------------------------------------------------------
def test_a_wrong_answer_ends_the_run():
    trials = importlib.import_module("papers.trials")
    top = np.iinfo(np.int32).max
    expected = np.array([0, 2, top], np.int32)
    trials.require_same("x", np.array([0.0, 2.0, np.inf]), expected)
    for wrong in ([0.0, 3.0, np.inf], [0.0, 2.0, 9.0], [0.0, np.inf, np.inf]):
        with pytest.raises(SystemExit, match="x: the result differs"):
            trials.require_same("x", np.array(wrong), expected)
    require_forest = module("kolganov_forests", "measure").require_forest
    require_forest(None, "y", np.array([2, 1]), np.array([1, 2]))
    with pytest.raises(SystemExit, match="y: the forest differs"):
        require_forest(None, "y", np.array([3, 1]), np.array([1, 2]))


def test_figures_without_matplotlib_are_refused_in_one_line(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.import_module("papers.figures"), "is_drawable", lambda: False)
    done = CliRunner().invoke(importlib.import_module("five_papers").main, ["guo", "--figures", str(tmp_path)])
    assert (done.exit_code, done.output) == (1, "Error: figures need matplotlib: pip install 'dask-mgraph[plot]'\n")


def test_a_gpu_that_is_not_there_is_refused_in_one_line(monkeypatch):
    def refuse(**_):
        raise mg.UsageError("no GPU is seen here")

    monkeypatch.setattr(mg, "connect", refuse)
    done = CliRunner().invoke(importlib.import_module("five_papers").main, ["guo", "--backend", "cuda"])
    assert (done.exit_code, done.output) == (1, "Error: no GPU is seen here\n")


def test_a_folder_without_road_maps_is_refused(tmp_path):
    done = CliRunner().invoke(importlib.import_module("five_papers").main, ["--roads", str(tmp_path)])
    assert done.exit_code == 2 and "has no *.gr.xz" in done.output


# ---- the command -----------------------------------------------------------------------------------
@pytest.mark.ci
@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.parametrize("backend_name", [place for place in PLACES if place.values != ("emulated",)])
def test_each_paper_runs_quickly_is_recorded_and_drawn(paper, backend_name, tmp_path, monkeypatch):
    record = importlib.import_module("record")
    monkeypatch.setattr(record, "RESULTS", tmp_path / "results")
    words = [
        paper,
        "--backend",
        backend_name,
        "--quick",
        "--record",
        "--commit",
        "none",
        "--figures",
        str(tmp_path / "figures"),
    ]
    done = CliRunner().invoke(importlib.import_module("five_papers").main, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    lines = record.lines(backend_name)
    assert len(lines) > 3 and all(line["validated"] and line["quick"] for line in lines)
    assert lines[-1]["method"] == "mgraph"
    assert {path.suffix for path in (tmp_path / "figures").iterdir()} == {".png", ".svg"}
    assert all(path.stat().st_size > 1000 for path in (tmp_path / "figures").iterdir())


@pytest.mark.ci
@pytest.mark.parametrize("backend_name", [place for place in PLACES if place.values != ("emulated",)])
def test_sweeps_on_a_cluster_are_recorded_with_the_shares_of_their_time(backend_name, tmp_path, monkeypatch):
    record = importlib.import_module("record")
    monkeypatch.setattr(record, "RESULTS", tmp_path / "results")
    words = ["kolganov_ranks", "--backend", backend_name, "--quick", "--record", "--commit", "none"]
    done = CliRunner().invoke(importlib.import_module("five_papers").main, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    lines = record.lines(backend_name)
    launcher = "LocalCluster" if backend_name == "cpu" else "LocalCUDACluster"
    assert {line["launcher"] for line in lines} == {launcher}
    numbers = {line["ranks"] for line in lines}
    assert 1 in numbers and (backend_name != "cpu" or numbers == {1, 2})
    assert len(lines) == 2 * 2 * len(numbers) and all(line["validated"] for line in lines)
    for line in lines:
        shares = line["shares"]
        assert [*shares] == ["sweep kernel", "other kernels", "reduction", "rest"]
        assert sum(shares.values()) == pytest.approx(1, abs=1e-3) and min(shares.values()) >= 0
        assert shares["sweep kernel"] and shares["other kernels"] and (line["ranks"] == 1 or shares["reduction"])


def test_ranks_are_powers_of_two_and_all_of_them():
    numbers_of_ranks = module("kolganov_paths", "ranks").numbers_of_ranks
    assert [numbers_of_ranks(most) for most in (1, 2, 3, 4, 6)] == [[1], [1, 2], [1, 2, 3], [1, 2, 4], [1, 2, 4, 6]]


def test_other_distances_on_more_ranks_end_the_run(cluster):
    require_same = module("kolganov_paths", "ranks").require_same
    with mg.rmat(4, cluster=cluster) as g:
        require_same(g, "bfs", [1, 2], [1, 2])
        with pytest.raises(SystemExit, match="bfs of rmat4 on 1 rank: the distances differ"):
            require_same(g, "bfs", [1, 2], [1, 3])


@pytest.mark.ci
def test_kernels_and_verbs_of_ranks_are_timed_in_the_search_alone():
    rank_times = importlib.import_module("papers.rank_times")
    with InProcessCluster(2) as cluster, mg.rmat(6, cluster=cluster) as g:
        mg.bfs(g, 1, method="sweep").close()
        cluster.run(rank_times.begin)
        with mg.bfs(g, 1, method="sweep") as result:
            mg.validate(result)
            took = 1e3 * result.stats.seconds["traverse"]
        for found in cluster.run(rank_times.end):
            assert {"sweep_frontier", "settle_level", "allreduce", "alltoallv", "allgather"} <= {*found}
            assert not any("valid" in name or "translate" in name for name in found)
            assert 0 < sum(found.values()) < took
        left = cluster.run(lambda rank: {*vars(rank.backend), *vars(rank.comm)} & {"launch", *rank_times.VERBS})
        assert left == [set(), set()]


def test_ranks_on_gpus_are_timed_by_events(monkeypatch):
    clock = iter(range(100))

    class Event:
        def record(self):
            self.at = next(clock)

    cuda = SimpleNamespace(Event=Event, get_elapsed_time=lambda began, ended: float(ended.at - began.at))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))
    mark, between = importlib.import_module("papers.rank_times")._marks(SimpleNamespace(name="cuda"))
    began = mark()
    assert between(began, mark()) == 1.0


@pytest.mark.ci
def test_tables_have_the_newest_record_of_each_method(tmp_path):
    report = importlib.import_module("papers_report")

    def line(graph: str, method: str, ms: float, **more) -> dict:
        facts = {"bench": "papers", "paper": "guo", "quick": False, "algorithm": "sssp", "runs_on": "cuda"}
        facts |= {
            "date": "2026-01-02",
            "machine": "gpu",
            "commit": "c",
            "n": int(graph[3:]),
            "arcs": 9,
            "arcs_per_s": 1,
        }
        return facts | {"graph": graph, "method": method, "median_ms": ms} | more

    lines = [line("uni512", "IIIT, mask", 9.0, date="2026-01-01"), line("uni512", "IIIT, mask", 4.0)]
    lines += [line("uni512", "mgraph", 2.0), line("uni128", "mgraph", 1.0), line("uni128", "IIIT, mask", 7.0)]
    lines += [line("uni128", "mgraph", 5.0, quick=True), {"bench": "energy"}]
    (tmp_path / "gpu.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    older = line("uni128", "mgraph", 8.0, machine="old", date="2025-01-01")
    (tmp_path / "old.jsonl").write_text(json.dumps(older) + "\n")
    document = tmp_path / "papers.md"
    document.write_text("a\n<!-- measured: guo -->\nb\n<!-- end -->\nc\n")
    report.write(document, report.lines_of(tmp_path))
    rows = [row for row in document.read_text().splitlines() if row.startswith("|")]
    assert rows == [
        "| random graphs, milliseconds | uni128 | uni512 |",
        "| --- | --- | --- |",
        "| IIIT, mask | 7 | 4 |",
        "| mgraph | 1 | 2 |",
    ]
    assert (tmp_path / "papers-guo.svg").exists()
    once = document.read_text()
    report.write(document, report.lines_of(tmp_path))
    assert document.read_text() == once and once.startswith("a\n") and once.endswith("c\n")
    document.write_text("no part")
    with pytest.raises(click.ClickException, match="0 parts for guo"):
        report.write(document, report.lines_of(tmp_path))


def test_table_of_a_cluster_has_shares_and_a_machine_of_its_own(tmp_path):
    report = importlib.import_module("papers_report")
    facts = {"bench": "papers", "quick": False, "n": 8, "arcs": 9, "arcs_per_s": 2e9, "median_ms": 3.0}
    facts |= {"date": "2026-01-02", "commit": "c", "graph": "rmat3", "method": "mgraph, sweep", "runs_on": "cuda"}
    shares = {"sweep kernel": 0.5, "other kernels": 0.125, "reduction": 0.25, "rest": 0.125}
    ranks = [
        facts | {"paper": "kolganov_ranks", "machine": "new", "algorithm": name, "ranks": number, "shares": shares}
        for name in ("bfs", "sssp")
        for number in (2, 1)
    ]
    lines = [facts | {"paper": "kolganov_paths", "machine": "old", "algorithm": "bfs", "date": "2026-01-01"}, *ranks]
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    document = tmp_path / "papers.md"
    papers = ("kolganov_paths", "kolganov_ranks")
    document.write_text("".join(f"<!-- measured: {paper} -->\n<!-- end -->\n" for paper in papers))
    report.write(document, report.lines_of(tmp_path))
    text = document.read_text()
    row = "| 3 | 2 | 50% | 12% | 25% | 12% |"
    head = "| ranks | ms | G arcs/s | sweep kernel | other kernels | reduction | rest |"
    assert [line for line in text.splitlines() if "rmat3 |" in line and "BFS, G" not in line] == 2 * [
        f"| rmat3 | 1 {row}",
        f"| rmat3 | 2 {row}",
    ]
    assert f"| BFS by sweeps {head}" in text and f"| SSSP by sweeps {head}" in text
    assert "Medians; old, c." in text and "Medians; new, c." in text
    assert text.count(".svg") == 1
