"""Test how benchmarks parse the output of tools, and what they count."""

from __future__ import annotations

import importlib
import json
import pathlib
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import mgraph as mg
from mgraph.cluster.in_process import InProcessCluster
from mgraph.generate.spec import parse_spec

BENCH = pathlib.Path(__file__).parents[2] / "bench"
# Scripts that a newcomer seldom changes.
pytestmark = pytest.mark.ci
HEAD = "========= COMPUTE-SANITIZER\n"
END = "========= RACECHECK SUMMARY: {} hazards displayed (1 errors, 0 warnings)\n"
RACE = """========= Error: Race reported between Write access at {0}+0xaf60
=========     and Read access at {0}+0xa8f0 [316 hazards]
=========     and Read access at {1}+0xa940 [124 hazards]
=========
"""
BOUNDS = """========= Invalid __global__ write of size 4 bytes
=========     at search_levels+0x80
=========     by thread (0,0,0) in block (0,0,0)
=========     Access to 0x7fceb6800100 is out of bounds
=========
========= ERROR SUMMARY: 1 error
"""


@pytest.fixture
def bench(monkeypatch):
    """Import a script of bench/, which imports its siblings by name."""
    monkeypatch.syspath_prepend(BENCH)
    return importlib.import_module


# Imports all scripts, with a stand-in for CuPy, which is absent where there is no GPU, and finds all that they replace.
IMPORT_ALL = """
import importlib, pathlib, sys
from unittest.mock import MagicMock
if importlib.util.find_spec("cupy") is None:
    sys.modules["cupy"] = sys.modules["cupy.cuda"] = MagicMock()
sys.path.insert(0, sys.argv[1])
for path in pathlib.Path(sys.argv[1]).glob("*.py"):
    importlib.import_module(path.stem)
for path in pathlib.Path(sys.argv[1], "conformance").glob("*.py"):
    importlib.import_module(f"conformance.{path.stem}")
import call, cost_model, every_kernel, sanitize
for owner, name, *_ in (*call.PARTS, *cost_model.PLACES.values()):
    getattr(owner, name)
rates = cost_model.H200
assert all(len(costs(rates, 1 << 20, 4)) for choices in cost_model.CHOICES.values() for costs in choices.values())
known = {*every_kernel.SEARCHES, *every_kernel.OTHERS}
assert {name for _, _, *names in sanitize.RUNS for name in names} <= known
"""


def test_scripts_import_and_name_what_exists():
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL, BENCH], cwd=BENCH.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_sanitizer_reports_are_counted_by_kernel(bench):
    found_in = bench("sanitize").found_in
    assert found_in([HEAD + END.format(0)]) == {"ours": {}, "foreign": {}, "unread": 0}
    races = (
        RACE.format("cupy_nonzero", "cupy_nonzero") + RACE.format("cupy_nonzero", "join") + RACE.format("join", "join")
    )
    assert found_in([HEAD + races + END.format(3), HEAD + BOUNDS]) == {
        "ours": {"join": 2, "search_levels": 1},
        "foreign": {"cupy_nonzero": 1},
        "unread": 0,
    }
    # A tool that was cut short, and one with more reports in its summary than can be parsed.
    assert found_in([HEAD])["unread"] == 1
    assert found_in([HEAD + END.format(2)])["unread"] == 2


def test_regressions_are_what_noise_does_not_explain(bench, tmp_path, capsys):
    """The newest record counts, by its date; on a CPU it is divided by a rival's in the same run."""

    def lines(graph, values, **facts):
        cell = {"graph": graph, "algorithm": "bfs", "commit": "c", **facts}
        return [{"date": f"2026-01-0{day}", **cell, **found} for day, found in enumerate(values, 1)]

    gpu = {"backend": "cuda"}
    records = [
        *lines("same", [{"median_ms": ms} for ms in (1.0, 1.1, 1.12)], **gpu),
        *lines("slower", [{"median_ms": ms} for ms in (1.0, 1.1, 1.4)], **gpu)[::-1],
        *lines("noisy", [{"median_ms": ms} for ms in (1.0, 1.0, 1.6, 1.4)], **gpu),
        *lines("busy", [{"median_ms": 1.0, "gap_ms": 2.0}, {"median_ms": 3.0, "gap_ms": 6.0}], backend="cpu"),
        *lines("less", [{"mteps_per_w": 90.0}, {"mteps_per_w": 60.0}], bench="energy"),
        *lines("once", [{"median_ms": 1.0}], **gpu),
        *lines("other", [{"seconds": 1.0}, {"seconds": 9.0}], bench="sanitize"),
    ]
    regressions = bench("regressions")
    found = {one.cell.split()[0]: one.is_slower for one in regressions.compare(records)}
    assert found == {"same": False, "slower": True, "noisy": False, "busy": False, "energy": True}
    assert not regressions.compare(records, since="2026-01-05")
    (tmp_path / "gpu.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    for since, code, said in (("", 1, "2 are slower"), ("2026-01-04", 0, "1 cells were measured again, 0")):
        with pytest.raises(SystemExit) as ended:
            regressions.main(["--results", str(tmp_path), "--since", since])
        assert ended.value.code == code
        assert said in capsys.readouterr().out


def test_counters_are_parsed_for_each_launch(bench):
    counters = bench("counters")
    begin, end = counters.WAITS
    names = ["Kernel Name", *counters.COUNTERS.values(), f"{begin}barrier{end}", f"{begin}wait{end}"]
    launches = [["search_levels(long)", *map(str, (2000, 3e6, 1e6, 2e5, 50, "1,000", 500, 25, 3, 1))]]
    launches += [["search_levels", *["1"] * 10], ["find_nearer", *["1"] * 10]]
    rows = [names, [""] * len(names), *launches]
    text = "==PROF== Connected\n" + "\n".join(",".join(f'"{cell}"' for cell in row) for row in rows)
    (first,), (_, last) = counters.of_searches(counters.read(text))
    assert first == {
        "kernel": "search_levels",
        "microseconds": 2.0,
        "dram_bytes_per_s": 2_000_000_000_000,
        "l2_bytes_per_s": 3_200_000_000_000,
        "l2_hits": 0.5,
        "sectors_per_request": 2.0,
        "occupancy": 0.25,
        "waits": {"barrier": 0.75, "wait": 0.25},
    }
    assert last["kernel"] == "find_nearer"


def test_floors_count_the_arcs_that_verify_distances(bench):
    # The edge of weight 9 need not be scanned: the other two give a smaller distance.
    with InProcessCluster(1) as cluster, mg.from_edges([0, 1, 0], [1, 2, 2], [1, 1, 9], cluster=cluster) as g:
        assert bench("floors").proof_of(g, 0) == (2, 2)
    with InProcessCluster(1) as cluster, mg.rmat(8, cluster=cluster) as g, mg.sssp(g, 1) as found:
        arcs, _ = bench("floors").proof_of(g, 1)
        assert found.stats.num_reached <= arcs + 1 < g.info.num_arcs


@pytest.mark.parametrize("algorithm", ["bfs", "sssp"])
def test_searches_are_timed_on_the_clock_of_graph500(bench, algorithm):
    with InProcessCluster(1) as cluster, mg.rmat(6, cluster=cluster) as g:
        found = bench("run").on_clock(g, algorithm, "frontier", [1, 2])
    assert list(found) == ["graph order", "user order"]
    for clock in found.values():
        assert 0 < clock["min_ms"] <= clock["median_ms"] <= clock["max_ms"]
        assert 0 < clock["harmonic_teps"] <= clock["teps"]


class Nvml:
    """NVML of a board that takes 300 W, as its samples say; its counter, if it has one, adds 0.4 J at each reading."""

    class NVMLError_NotSupported(Exception):
        pass

    def __init__(self, has_counter):
        self.has_counter = has_counter
        self.joules = 5000.0

    def nvmlDeviceGetPowerUsage(self, handle):
        return 300_000

    def nvmlDeviceGetTotalEnergyConsumption(self, handle):
        if not self.has_counter:
            raise self.NVMLError_NotSupported
        self.joules += 0.4
        return 1000 * self.joules


def test_energy_is_that_of_the_loop_by_the_counter_or_by_samples(bench):
    energy = bench("energy")
    # 1,000 and 3,000 edges in 1 and 4 ms: a harmonic mean of 6/7 million edges/s, in a loop of 10 ms.
    searches = [(1000, 1e-3), (3000, 4e-3)]
    found = energy.figures(searches, energy.Reading(0.01, [200.0, 100.0], 3.0))
    assert (found["searches"], found["busy"], found["teps"], found["harmonic_teps"]) == (2, 0.5, 875_000, 857_143)
    assert (found["watts"], found["sampled_w"], found["has_counter"]) == (300.0, 150.0, True)
    assert found["edges_per_joule"] == round(4000 / 3)
    assert found["mteps_per_w"] == round(857_143 / 1e6 / 300, 1)
    sampled = energy.figures([(10**9, 1e-3)], energy.Reading(0.01, [200.0, 100.0]))
    assert (sampled["watts"], sampled["has_counter"], sampled["mteps_per_w"]) == (150.0, False, 6666.7)
    assert sampled["edges_per_joule"] == round(1e9 / 1.5)


@pytest.mark.parametrize("has_counter", [True, False])
def test_searches_are_metered_and_validated(bench, has_counter):
    energy = bench("energy")
    board = energy.Board(Nvml(has_counter), None, sample_s=0.001)
    source = parse_spec("rmat:6")
    with InProcessCluster(1) as cluster, mg.rmat(6, cluster=cluster) as g:
        for algorithm in ("bfs", "sssp"):
            found = energy.measure(g, source, algorithm, [1, 2], board, 0.02)
            assert found["validated"]
            assert found["searches"] > 1
            assert found["seconds"] >= 0.02
            assert found["sampled_w"] == 300.0
            assert found["watts"] == pytest.approx(0.4 / found["seconds"] if has_counter else 300.0, rel=0.05)


def test_energy_without_a_gpu_is_refused_in_one_line(bench, monkeypatch):
    energy = bench("energy")
    monkeypatch.setattr(energy, "visible_gpus", list)
    result = CliRunner().invoke(energy.main, ["rmat6"])
    assert (result.exit_code, result.output) == (
        1, "Error: no GPU that NVML reads: the energy of searches is measured on one\n",
    )  # fmt: skip


def test_rules_of_graphalytics_find_a_level_a_distance_and_components_that_differ(bench):
    rules = bench("conformance.graphalytics")
    g = mg.from_edges([1, 2, 4, 7], [2, 3, 5, 7], weights=[0.5, 0.25, 2.0, 1.0], labels=True)
    vertices = [1, 2, 3, 4, 5, 7]

    def differs(rule, *values):
        given = {"source-vertex": "1", "num-iterations": "1", "damping-factor": "0"}
        return rule(g, given, pd.Series(values, vertices)).tolist()

    far = rules.UNREACHED
    assert differs(rules.bfs_differs, 0, 1, 2, far, far, far) == []
    assert differs(rules.bfs_differs, 0, 2, 2, far, 1, far) == [2, 5]
    inf = np.inf
    assert differs(rules.sssp_differs, 0.0, 0.50004, 0.75, inf, inf, inf) == []
    assert differs(rules.sssp_differs, 0.0, 0.5001, inf, inf, 3.0, inf) == [2, 3, 5]
    assert differs(rules.wcc_differs, 9, 9, 9, 4, 4, 1) == []
    assert differs(rules.wcc_differs, 9, 9, 9, 4, 4, 4) == [4, 5, 7]
    assert differs(rules.wcc_differs, 9, 8, 9, 4, 4, 1) == [1, 2, 3]
    assert differs(rules.pr_differs, *[1 / 6] * 4, 1.00009 / 6, 1.0002 / 6) == [7]


# The example graphs of the benchmark's specification, and its answers.
EXAMPLES = {
    "directed": (
        "1 3 .5,1 5 .3,2 4 .1,2 5 .3,2 10 .12,3 1 .53,3 5 .62,3 8 .21,3 10 .52,5 3 .69,5 4 .53,5 8 .1,6 3 .23,6 4 .39,"
        "7 4 .83,8 1 .39,9 4 .69",
        {
            "BFS": "0 - 1 2 1 - - 2 - 2",
            "SSSP": "0 Infinity .5 .83 .3 Infinity Infinity .4 Infinity 1.02",
            "WCC": "1 1 1 1 1 1 1 1 1 1",
            "PR": ".1477629167 .0475337500 .1550469444 .1597573611 .1462400000 .0475337500 .0475337500 .1135740278 "
            ".0475337500 .0874837500",
        },
    ),
    "undirected": (
        "2 3 .9,2 4 .69,3 4 .13,3 5 .5,3 8 .32,5 6 .63,5 8 .12,6 7 .53,6 8 .64,6 9 .23,6 10 .63,7 9 .36",
        {
            "BFS": "0 1 1 2 3 4 2 4 4",
            "SSSP": "0 .82 .69 1.26 1.78 2.31 1.14 2.01 2.41",
            "WCC": "2 2 2 2 2 2 2 2 2",
            "PR": ".0908449074 .1424089506 .0908449074 .1249891975 .1686172840 .0974953704 .1249891975 .0974953704 "
            ".0623148148",
        },
    ),
}


@pytest.mark.parametrize("kind", EXAMPLES)
def test_driver_and_rules_of_graphalytics_agree_with_its_examples(bench, kind, tmp_path):
    rules = bench("conformance.graphalytics")
    driver = bench("conformance.graphalytics_driver")
    edges, answers = EXAMPLES[kind]
    source = 1 if kind == "directed" else 2
    vertices = [str(vertex) for vertex in range(source, 11)]
    path = tmp_path / f"example-{kind}"
    rules.with_ending(path, ".e").write_text(edges.replace(",", "\n") + "\n")
    rules.with_ending(path, ".v").write_text("\n".join(vertices) + "\n")
    given = f"bfs.source-vertex = {source}", f"sssp.source-vertex = {source}", "pr.num-iterations = 2"
    given += "pr.damping-factor = 0.85", "edge-properties.names = weight"
    given += (f"directed = {str(kind == 'directed').lower()}",)
    rules.with_ending(path, ".properties").write_text("".join(f"graph.{path.name}.{line}\n" for line in given))

    def run(command, **options):
        words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        done = CliRunner().invoke(driver.main, [command, *words], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    loaded = tmp_path / "loaded"
    ends = {"input_vertex_path": f"{path}.v", "input_edge_path": f"{path}.e"}
    run("load-graph", graph_name=kind, **ends, output_path=loaded, directed=kind == "directed", weighted=True)
    for kernel, values in answers.items():
        how = {"algorithm": kernel.lower(), "source_vertex": source, "max_iteration": 2, "damping_factor": 0.85}
        shown = run("execute-job", job_id="j", **how, input_path=loaded, output_path=tmp_path / "out" / kernel)
        assert re.findall(r"Processing (starts|ends) at: \d{13}", shown) == ["starts", "ends"]
        right = [value.replace("-", str(rules.UNREACHED)) for value in values.split()]
        lines = zip(vertices, right, strict=True)
        rules.with_ending(path, f"-{kernel}").write_text("".join(f"{vertex} {value}\n" for vertex, value in lines))
        written, reference = (
            rules.read_reference(file, kernel) for file in (tmp_path / "out" / kernel, f"{path}-{kernel}")
        )
        np.testing.assert_allclose(written.sort_index(), reference, rtol=1e-9)
        if kernel == "WCC":
            assert written.nunique() == 1
    run("unload-graph", graph_name=kind, output_path=loaded)
    assert not loaded.exists()
    done = CliRunner().invoke(rules.main, [str(path), "--backend", "cpu"])
    assert done.exit_code == 0, done.output
    assert re.findall(r" (\w+): 0 of", done.output) == [*answers]


def test_every_shape_is_a_graph_of_the_size_asked_for(bench):
    shape_graphs = bench("shape_graphs")
    assert len(shape_graphs.SHAPES) > 25
    for name, shape in shape_graphs.SHAPES.items():
        first, again = (shape_graphs.matrix_of(shape, 256, 1) for _ in range(2))
        assert (first != again).nnz == 0, name
        assert first.nnz > 0 and first.shape[0] <= 300, name
        sources, targets = bench("shapes").ends_of(first)
        assert (sources < targets).all() if not shape.directed else (sources != targets).all(), name


@pytest.mark.parametrize("directed", [False, True])
def test_shapes_are_measured_with_equal_answers(bench, directed):
    shapes = bench("shapes")
    shape = shapes.SHAPES["web" if directed else "grid with obstacles"]
    matrix = bench("shape_graphs").matrix_of(shape, 64, 1)
    with InProcessCluster(1) as cluster:
        cells = shapes.measured(matrix, directed, shapes.ALGORITHMS, cluster, 1e-6)
    assert [cell["algorithm"] for cell in cells] == [
        name for name in shapes.ALGORITHMS if not directed or name != "msf"
    ]
    assert all(cell["ms"] > 0 and cell["scipy_ms"] > 0 for cell in cells)


def test_answers_that_differ_from_scipy_are_refused(bench):
    shapes = bench("shapes")
    with InProcessCluster(1) as cluster, mg.from_edges([0, 1], [1, 2], [1, 5], num_vertices=4, cluster=cluster) as g:
        none = -9999
        levels = mg.bfs(g, 0)
        assert shapes.compare_levels(levels, (np.array([0, 1, 2]), np.array([none, 0, 1, none]))) == 0.75
        with pytest.raises(shapes.click.ClickException, match="levels differ"):
            shapes.compare_levels(levels, (np.array([0, 1, 2]), np.array([none, 0, 0, none])))
        assert shapes.compare_distances(mg.sssp(g, 0), (np.array([0, 1, 6, np.inf]), None)) == 0.75
        with pytest.raises(shapes.click.ClickException, match="distances differ"):
            shapes.compare_distances(mg.sssp(g, 0), (np.array([0, 1, 7, np.inf]), None))
        with pytest.raises(shapes.click.ClickException, match="components differ"):
            shapes.compare_components(mg.connected_components(g), (1, np.zeros(4, np.int64)))


def test_tables_of_libraries_end_at_a_wrong_answer(bench):
    of_csgraph = bench("csgraph")
    A = of_csgraph.made(512)
    for call in of_csgraph.CALLS.values():
        assert re.fullmatch(r"[\d.e+]+ / [\d.e+]+", of_csgraph.cell(call, A, 1))
    with pytest.raises(AssertionError):
        of_csgraph.cell(lambda of, A: np.array([of is of_csgraph.csgraph]), A, 1)
    of_networkx = bench("networkx_thresholds")
    for name in ("connected_components", "bfs_tree", "single_source_dijkstra"):
        assert len(of_networkx.measured(name, 32, 1)) == 3
    strong = bench("strong_components")
    with InProcessCluster(1) as one, InProcessCluster(2) as two:
        ring = np.arange(12)
        assert strong.row((12, ring, (ring + 1) % 12), one, two)[:3] == ["12", "12", "1"]


def test_the_table_of_libraries_marks_the_fastest(bench):
    libraries = bench("libraries")
    times = {name: 10.0 + k for k, name in enumerate(("SciPy", "NetworkX", "igraph", "NetworKit"))} | {"mgraph": 6449.7}
    head, _, *rows = libraries.table({"rmat4": dict.fromkeys(libraries.ALGORITHMS, times)}).splitlines()
    assert head == "| rmat4 | mgraph | SciPy | NetworkX | igraph | NetworKit |"
    assert rows[0] == "| BFS | 6,450 | **10** | 11 | 12 | 13 |"


def test_superstep_model_adds_the_network_beyond_one_host(bench):
    """Bytes of ranks of the same host arrive meanwhile: the slower of the two counts."""
    model = bench("superstep_model")
    step = {"method": "push", "arcs": 0, "bytes": 64_000_000, "microseconds": 40.0}
    line = {"algorithm": "bfs", "ranks": 4, "median_ms": 0.08, "steps": [step, step]}
    for us_per_byte, slower in ((0.0, True), (1.0, False)):
        fitted = dict.fromkeys(
            [("bfs", "several", "first"), ("bfs", "several", "push")], np.array([0, 0, 0, us_per_byte])
        )
        for ranks, others in ((8, 0), (16, 8)):
            reaching = step["bytes"] / ranks
            network = reaching * others / (ranks - 1) / model.NETWORK_BYTES_PER_US if slower else 0
            waits = (model.NETWORK_US + model.LAUNCH_US) * (others > 0)
            wanted = 2e-3 * (reaching * us_per_byte + network + waits)
            assert model.predict_ms(fitted, line, ranks) == pytest.approx(wanted)
