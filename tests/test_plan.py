"""Memory is planned to a few percent, and what does not fit is refused before it is taken."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

from mgraph.build import build as builder
from mgraph.build.plan import Sizes, plan_build, readable_bytes
from mgraph.cluster.in_process import InProcessCluster
from mgraph.errors import WouldNotFit
from mgraph.generate.grid import Grid
from mgraph.generate.rmat import Rmat
from mgraph.generate.uniform import FixedOutDegree
from mgraph.graph import Graph
from mgraph.kernels.backend import LIMITS, CpuBackend
from mgraph.memory import plan_graph
from mgraph.partition import Partition
from mgraph.traversals import bfs, sssp

TESTS = pathlib.Path(__file__).parent


@pytest.mark.parametrize("num_chunks", [4, 64])
@pytest.mark.parametrize("weights", ["int", "float32", "none"])
def test_a_build_takes_what_was_planned(num_chunks, weights):
    scale = 17
    answer = subprocess.run(
        [sys.executable, "peak_memory.py", str(scale), str(num_chunks), weights],
        cwd=TESTS,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(TESTS.parent), os.environ.get("PYTHONPATH", "")]),
            "MALLOC_MMAP_THRESHOLD_": "65536",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    took = json.loads(answer.stdout)
    assert 0.9 * took["planned"] <= took["peak"] <= 1.1 * took["planned"]
    assert took["peak"] <= 2 * took["shard"]


@pytest.mark.parametrize("num_ranks", [1, 3])
@pytest.mark.parametrize("order", ["degree", "natural"])
def test_a_build_is_refused_before_its_rows_are_allocated(num_ranks, order, monkeypatch):
    plans = []

    def plan(*args):
        plans.append(plan_build(*args))
        return plans[-1]

    def allocated(*args):
        raise AssertionError("rows were allocated")

    with InProcessCluster(num_ranks) as cluster:
        monkeypatch.setattr(builder, "plan_build", plan)
        Graph.from_source(Rmat(9), cluster=cluster, order=order).close()
        needed = max(plan.to_allocate_bytes for plan in plans)
        # Just enough is enough; a byte less is too little, for all ranks if for one.
        monkeypatch.setattr(CpuBackend, "free_bytes", lambda self: needed)
        Graph.from_source(Rmat(9), cluster=cluster, order=order).close()
        monkeypatch.setattr(CpuBackend, "free_bytes", lambda self: needed - 1)
        monkeypatch.setattr(builder, "RowsBuilder", allocated)
        here = "here" if num_ranks == 1 else "on each of 3 ranks"
        with pytest.raises(WouldNotFit, match=rf"takes .* more {here}, and .* is free: use \d+ ranks with as much"):
            Graph.from_source(Rmat(9), cluster=cluster, order=order)


def test_the_advice_of_a_refused_build_is_enough():
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
def test_the_plan_of_a_graph_covers_its_shard(source, num_ranks):
    made = plan_graph(source, num_ranks, "cpu", 1 << 30)
    assert made.fits
    assert made.enough_ranks == num_ranks
    with InProcessCluster(num_ranks) as cluster:
        g = Graph.from_source(source, cluster=cluster)
        # In-rows, too, which searches of a directed graph build.
        (bfs if source.weight_dtype is None else sssp)(g, 0)
        largest = max(shard.nbytes for objects in cluster._objects for shard in [objects[g.key]])
    # Planned for all edges: parallel ones are known only to the build.
    assert 0.85 * made.parts["graph"] - 4096 <= 1.4 * largest
    assert largest <= 1.1 * made.parts["graph"] + 4096


def test_the_plan_tells_what_components_take():
    for num_ranks, most in ((1, 1.2), (4, 0.6)):
        made = plan_graph(Rmat(20), num_ranks, "cpu", 1 << 40)
        taken = made.parts["while components run"]
        assert 4 << 20 < taken < most * made.parts["graph"]
        # It is counted in what is needed, after the build as during it.
        made.parts["while components run"] = 1 << 39
        assert made.needed_bytes > 1 << 39


def test_the_plan_refuses_what_does_not_fit_and_says_what_would():
    made = plan_graph(Rmat(24), 1, "cuda", 3 << 30)
    assert not made.fits
    assert made.needed_bytes > 3 << 30
    assert f"use {made.enough_ranks} ranks with as much" in made.advice()
    assert plan_graph(Rmat(24), made.enough_ranks, "cuda", 3 << 30).fits
    assert not plan_graph(Rmat(24), made.enough_ranks - 1, "cuda", 3 << 30).fits
    hopeless = plan_graph(Rmat(30), 4, "cuda", 1 << 30)
    assert hopeless.enough_ranks is None
    assert "use ranks with more memory, or fewer edges" in hopeless.advice()
    # What is free here decides where nothing is said.
    assert plan_graph(Rmat(5), 1, "cpu", None).memory_bytes == pytest.approx(CpuBackend(1).free_bytes(), rel=0.5)


@pytest.mark.parametrize(
    ("num_bytes", "text"),
    [(0, "0 B"), (1000, "1000 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (300_000, "293 KiB"), (5 << 30, "5.0 GiB")],
)
def test_bytes_are_readable(num_bytes, text):
    assert readable_bytes(num_bytes) == text
