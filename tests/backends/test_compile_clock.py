"""Compiling kernels is a phase of its own, and said once."""

from __future__ import annotations

import logging
import time
import types

import numba
import numpy as np
import pytest

import mgraph as mg
from mgraph.algorithms.common.traversal import Trace
from mgraph.backends import compile_clock
from mgraph.backends.compile_clock import CLOCK, CompileClock
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.kernel import inline
from mgraph.cluster.in_process import InProcessCluster

COMM = types.SimpleNamespace(bytes_sent=0)


def fresh(x):
    return x + 1


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))


def test_compiling_advances_the_clock_and_calling_does_not(empty_cache):
    function = inline(fresh)
    before = CLOCK.seconds
    function(np.int16(1))
    compiled = CLOCK.seconds
    assert compiled > before
    function(np.int16(2))
    assert CLOCK.seconds == compiled


def test_threads_that_compile_at_once_are_counted_once():
    clock = CompileClock()
    with clock.running():
        with clock.running():
            time.sleep(0.02)
        assert clock.seconds == 0
    assert clock.seconds >= 0.02


@pytest.mark.parametrize("waits", [False, True])
def test_phase_and_superstep_leave_compiling_out(waits):
    """Also where the phase begins after its first compilation, when its inputs are known."""
    trace = Trace(CpuBackend(1), COMM)
    with trace.phase("traverse"):
        with CLOCK.running():
            time.sleep(0.3)
        if waits:
            trace.begin_phase()
        time.sleep(0.01)
        trace.superstep("push", 1, 1)
    assert 0.3 <= trace.seconds["compile"] < 0.5
    assert 0.01 <= trace.seconds["traverse"] < 0.2
    assert 1e4 <= trace.supersteps[0]["microseconds"] < 2e5


def test_compiling_is_no_part_of_the_total(monkeypatch):
    launch = CpuBackend.launch

    def compiled(self, kernel, args):
        with CLOCK.running():
            time.sleep(0.05)
        launch(self, kernel, args)

    with mg.connect(num_ranks=1, backend="cpu") as cluster, mg.rmat(6, cluster=cluster) as g:
        mg.bfs(g, 0, method="step").close()
        monkeypatch.setattr(CpuBackend, "launch", compiled)
        with mg.bfs(g, 0, method="step") as result:
            assert result.stats.seconds["compile"] >= 0.05
            assert result.stats.total_s < result.stats.seconds["compile"]


def test_rank_is_seen_compiling():
    with InProcessCluster(1) as cluster:
        seen = cluster.watch()
        with CLOCK.running():
            assert seen().name == "compile"
        assert seen() is None


def test_compiling_for_a_target_is_said_once(empty_cache, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(compile_clock, "_said", set())
    caplog.set_level(logging.INFO, logger="mgraph")
    monkeypatch.setattr(fresh, "__module__", "mgraph.fresh")
    for dtype in (np.int8, np.float32):
        inline(fresh)(dtype(1))
    (record,) = caplog.records
    assert record.getMessage().startswith(f"compiling kernels for the CPU, kept in {tmp_path}")
    assert (record.rank, record.job) == (None, "compile")
