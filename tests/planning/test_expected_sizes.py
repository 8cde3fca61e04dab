"""Plan graphs of tables: their sizes are estimated before they are read."""

from __future__ import annotations

import numpy as np
import pytest
from cli_runs import run

import mgraph as mg
from mgraph.backends.host_memory import FreeMemory
from mgraph.io.formats import read_source
from mgraph.planning.expected_sizes import as_planned
from mgraph.planning.memory import KEPT, plan_graph
from mgraph.planning.placement import place_graph


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    ids = np.random.default_rng(1).integers(0, 5000, (100_000, 2))
    path = tmp_path_factory.mktemp("tables") / "edges.wel"
    path.write_text("".join(f"{u} {v} {u % 9}\n" for u, v in ids.tolist()))
    return path


def test_edges_of_text_are_estimated_from_samples(path, tmp_path):
    planned = as_planned(read_source(path, num_vertices=5000))
    assert (planned.num_vertices, planned.weight_dtype) == (5000, np.float32)
    assert planned.num_input_edges == pytest.approx(100_000, rel=0.05)
    assert as_planned(read_source(path)).num_vertices == pytest.approx(5000, rel=0.01)
    (tmp_path / "names.csv").write_text("source,target\n" + "a,b\n" * 800)
    assert as_planned(read_source(tmp_path / "names.csv")).num_vertices == pytest.approx(100, rel=0.05)
    (tmp_path / "small.el").write_text("0 1\n1 2")
    small = as_planned(read_source(tmp_path / "small.el"))
    assert (small.num_vertices, small.num_input_edges) == (3, 2)
    (tmp_path / "none.el").write_text("")
    assert as_planned(read_source(tmp_path / "none.el")).num_input_edges <= 1


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_plan_counts_the_edges_that_are_kept(path, kind):
    table = read_source(path, num_vertices=5000)
    one, four = (plan_graph(table, num_ranks, kind, 1 << 30) for num_ranks in (1, 4))
    assert one.is_estimate
    assert one.parts[KEPT] == pytest.approx(1.2e6, rel=0.05)
    assert four.parts[KEPT] == one.parts[KEPT] // 4
    # On a GPU they are no part of its memory.
    assert (one.parts["while it is built"] > plan_graph(table, 1, kind, 1 << 10).parts["while it is built"]) == (
        kind == "cpu"
    )
    assert place_graph(table, 4, "cuda", 1 << 30).num_ranks == 1


def test_plan_of_a_file_says_that_it_is_an_estimate(path):
    table = run("plan", path).stdout
    assert "edges: about 4,99" in table
    assert KEPT in table


def test_table_that_cannot_fit_is_refused_before_it_is_read(path, monkeypatch):
    monkeypatch.setattr("mgraph.planning.admission.ASKED_BYTES", 1 << 10)
    monkeypatch.setattr("mgraph.backends.cpu.CpuBackend.free_memory", lambda self: FreeMemory(1 << 18))
    monkeypatch.setattr("mgraph.io.text.TextTable.piece", lambda *args: pytest.fail("a piece was read"))
    with mg.connect(backend="cpu") as cluster, pytest.raises(mg.WouldNotFit):
        mg.read(path, num_vertices=5000, cluster=cluster)
