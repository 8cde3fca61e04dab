"""Bars of builds, searches, loads and saves: on a terminal and in a notebook, never in a pipe or for what is short."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import threading
import time
import types
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import dask
import numpy as np
import pytest
from cli_runs import ENVIRONMENT, start
from distributed import Client, LocalCluster

import mgraph as mg
from mgraph.algorithms.common.traversal import Trace
from mgraph.api import progress_bar
from mgraph.api.progress_bar import Bar, facts_of
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.progress import Phase
from mgraph.cluster import watch
from mgraph.cluster.dask import DaskCluster
from mgraph.cluster.in_process import InProcessCluster
from mgraph.cluster.watch import Watch
from mgraph.generate.rmat import Rmat

HIDE = "\x1b[?25l"
SHOW = "\x1b[?25h"
STYLES = re.compile(r"\x1b\[[\d;]*m")


@dataclass(frozen=True)
class Slow(Rmat):
    """Edges of which each chunk takes a while."""

    seconds: float = 0.15
    wrong_chunk: int = -1

    def chunk(self, k, num_chunks, backend):
        time.sleep(self.seconds)
        if k == self.wrong_chunk:
            raise mg.InputError("chunk is wrong")
        return super().chunk(k, num_chunks, backend)


class Screen:
    """What is written to a pseudo-terminal."""

    def __init__(self) -> None:
        self._master, self.slave = pty.openpty()
        self._written = bytearray()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        # EIO when the last writer has closed its end.
        with contextlib.suppress(OSError):
            while data := os.read(self._master, 1 << 16):
                self._written += data

    @property
    def text(self) -> str:
        return STYLES.sub("", self._written.decode(errors="replace"))

    def close(self) -> str:
        """Return all that was written."""
        os.close(self.slave)
        self._thread.join()
        os.close(self._master)
        return self.text


@contextlib.contextmanager
def on_terminal():
    """Make standard error a terminal; in a block, as pytest replaces it between a fixture and its test."""
    screen = Screen()
    with pytest.MonkeyPatch.context() as patch, os.fdopen(os.dup(screen.slave), "w") as stream:
        patch.setenv("TERM", "xterm")
        patch.setenv("COLUMNS", "160")
        patch.setattr(sys, "stderr", stream)
        yield screen
    screen.close()


def check_clean(text: str) -> None:
    """Check that a bar was drawn, and that it is gone; perhaps another of a search that had to be compiled."""
    assert text.count(HIDE) == text.count(SHOW) >= 1
    assert text.rindex(SHOW) > text.rindex(HIDE)
    # The line of the bar is erased last.
    assert text.rstrip().endswith("\x1b[2K")


def build(source: Rmat, num_ranks: int = 1):
    # With as many threads as chunks all would be made at once.
    few_threads = functools.partial(CpuBackend, threads=2 // num_ranks)
    with (
        InProcessCluster(num_ranks, make_backend=few_threads) as cluster,
        mg.Graph.from_source(source, cluster=cluster, num_chunks=12) as g,
    ):
        return g.info, mg.bfs(g, 1).distances.to_numpy()


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("num_ranks", [1, 2])
def test_long_build_shows_per_cent_rate_and_time_left(num_ranks):
    with on_terminal() as screen:
        info, distances = build(Slow(8, seconds=0.3), num_ranks)
    text = screen.text
    check_clean(text)
    found = re.findall(r"building rmat8: (\w+) .*? (\d+)%, [\d.]+k? edges/s, 0:00:\d\d left", text)
    assert {phase for phase, _ in found} <= {"counting", "placing"}
    for phase in ("counting", "placing"):
        shown = [int(percent) for name, percent in found if name == phase]
        assert len(set(shown)) > 1
        assert shown == sorted(shown)
        assert max(shown) <= 100
    expected_info, expected = build(Rmat(8), num_ranks)
    assert info == expected_info
    np.testing.assert_array_equal(distances, expected)


@pytest.fixture
def slow_supersteps(monkeypatch):
    """Make each superstep of a search on ranks of this process take a while; bars and questions come earlier."""
    monkeypatch.setattr(progress_bar, "DELAY_S", 0.3)
    monkeypatch.setattr(watch, "PERIOD_S", 0.1)
    record = Trace.superstep

    def slow(trace, *args, **facts):
        time.sleep(0.1)
        record(trace, *args, **facts)

    monkeypatch.setattr(Trace, "superstep", slow)


def path_graph(cluster, length=15):
    return mg.from_edges(np.arange(length), np.arange(length) + 1, np.ones(length, np.int8), cluster=cluster)


@pytest.fixture(scope="module")
def clusters():
    """Return a cluster of two ranks in this process, and one on Dask workers."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as workers,
        Client(workers, set_as_default=False) as client,
        InProcessCluster(2) as threads,
        DaskCluster(client, 2, backend="cpu") as dask_ranks,
    ):
        yield {"in-process": threads, "dask": dask_ranks}


@pytest.mark.ci
@pytest.mark.parametrize("launcher", ["in-process", "dask"])
def test_long_searches_show_what_is_known(launcher, clusters, slow_supersteps):
    with path_graph(clusters[launcher]) as g, on_terminal() as screen:
        found = mg.bfs(g, 0)
        mg.sssp(g, 0).close()
        mg.bfs_many(g, [3, 7, 8]).close()
    text = screen.text
    check_clean(text)
    shown = re.findall(r"bfs of edges: traverse .*? (\d+)%, [\d.]+ vertices/s, 0:00:0\d left", text)
    percents = [int(percent) for percent in shown]
    assert len(set(percents)) > 1 and percents == sorted(percents) and percents[-1] <= 100
    assert re.search(r"sssp of edges: traverse .*? [\d.]+ arcs, [\d.]+ arcs/s", text)
    assert re.search(r"bfs of edges: bfs .*? (33|66)%, [\d.]+ searches/s, 0:00:0\d left", text)
    assert found.distances[15] == 15


@pytest.mark.ci
def test_many_short_searches_of_one_call_are_counted(slow_supersteps):
    with InProcessCluster(1) as cluster, path_graph(cluster, 7) as g, on_terminal() as screen:
        mg.eccentricity(g, list(range(6)))
    text = screen.text
    check_clean(text)
    assert re.search(r"eccentricities of edges .*? (50|66|83)%, [\d.]+ searches/s, 0:00:0\d left", text)


@pytest.mark.ci
def test_scheduler_is_asked_only_while_a_bar_is_drawn(clusters, slow_supersteps, monkeypatch):
    asked = []
    ask = Watch._ask

    async def noted(one):
        asked.append(one._asked)
        await ask(one)

    monkeypatch.setattr(Watch, "_ask", noted)
    with path_graph(clusters["dask"]) as g:
        mg.bfs(g, 0).close()
        with on_terminal():
            monkeypatch.setattr(progress_bar, "DELAY_S", 60)
            mg.bfs(g, 0).close()
            assert asked == []
            monkeypatch.setattr(progress_bar, "DELAY_S", 0.3)
            mg.bfs(g, 0).close()
    assert asked
    assert all(later - earlier > watch.PERIOD_S for earlier, later in itertools.pairwise(asked))


def test_nothing_is_drawn_before_the_delay(monkeypatch):
    monkeypatch.setattr(progress_bar, "DELAY_S", 3600.0)
    with on_terminal() as screen:
        build(Rmat(8))
    assert screen.text == ""


def test_setting_switches_bars_off():
    with on_terminal() as screen, dask.config.set({"mgraph.progress": "off"}):
        build(Slow(6))
    assert screen.text == ""


def test_pipe_stays_silent_and_no_thread_is_started(capfd, monkeypatch):
    monkeypatch.setattr(progress_bar, "Bar", lambda headline: pytest.fail("a bar begins"))
    build(Slow(6))
    assert capfd.readouterr().err == ""


def test_error_leaves_the_terminal_clean():
    with on_terminal() as screen, pytest.raises(mg.InputError, match="chunk is wrong"):
        build(Slow(6, seconds=0.8, wrong_chunk=3))
    check_clean(screen.text)


@pytest.mark.ci
def test_another_thread_draws_no_second_bar():
    with on_terminal() as screen, ThreadPoolExecutor(2) as pool:
        list(pool.map(build, (Slow(6, seconds=0.3), Slow(7, seconds=0.3))))
    text = screen.text
    check_clean(text)
    assert ("building rmat6" in text) != ("building rmat7" in text)


def test_load_and_save_count_pieces(tmp_path):
    with InProcessCluster(1) as cluster, mg.rmat(8, cluster=cluster) as g:
        before = cluster.watch()
        watched = cluster.watch()
        g.save(tmp_path / "saved")
        saved = watched()
        watched = cluster.watch()
        with mg.load(tmp_path / "saved", cluster=cluster):
            loaded = watched()
    assert before() is loaded
    assert (saved.name, saved.done) == ("writing", saved.total)
    assert (loaded.name, loaded.done) == ("reading", loaded.total)


@pytest.mark.parametrize("layout", ["rows", "compact"])
@pytest.mark.parametrize("num_ranks", [1, 3])
def test_phases_end_with_all_of_their_steps(layout, num_ranks, monkeypatch):
    begun = []
    begin = Phase.__init__

    def noted(phase, *args):
        begin(phase, *args)
        begun.append(phase)

    monkeypatch.setattr(Phase, "__init__", noted)
    with InProcessCluster(num_ranks) as cluster:
        mg.Graph.from_source(Rmat(8), cluster=cluster, num_chunks=7, layout=layout).close()
        mg.from_edges(np.arange(50), np.arange(50)[::-1], cluster=cluster, layout=layout).close()
    names = {phase.name.split(",")[0] for phase in begun}
    assert {"counting", "placing", "reading"} <= names
    assert all(phase.done == phase.total for phase in begun)


def test_steps_never_run_backwards_nor_past_the_total():
    bar = Bar("")
    phase = bar.own = Phase("placing", 5)
    seen = []
    for done in (1, 3, 2, 9, 4):
        phase.done = done
        seen.append(bar._newest()[1])
    assert seen == [1, 3, 3, 5, 5]
    bar.own = Phase("sorting")
    assert bar._newest() == (bar.own, 0)


def test_facts_are_those_that_are_known():
    phase = Phase("placing", 4, "edges", 1e6)
    assert facts_of(phase, 0, 1) == "0%"
    phase.began -= 10
    assert facts_of(phase, 1, 2) == "25%, 200.0k edges/s, 0:00:30 left"
    phase = Phase("reading", 0, "bytes", 1 << 20)
    phase.began -= 2
    assert facts_of(phase, 4, 1) == "4 MiB, 2 MiB/s"
    assert facts_of(Phase("sorting"), 0, 1) == ""


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("has_widgets", [True, False])
def test_notebook_shows_a_widget_if_there_are_widgets(monkeypatch, has_widgets):
    events = []

    class Output:
        def __enter__(self):
            events.append("enter")

        def __exit__(self, *_):
            pass

        def clear_output(self, wait):
            pass

        def close(self):
            events.append("close")

    shown = []
    display = types.SimpleNamespace(display=shown.append)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(display=display, get_ipython=object))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setitem(sys.modules, "ipywidgets", types.SimpleNamespace(Output=Output, __spec__=object()))
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    if not has_widgets:
        monkeypatch.setattr(progress_bar.importlib.util, "find_spec", lambda name: None)
    build(Slow(6, seconds=0.3))
    if not has_widgets:
        assert (events, shown) == ([], [])
        return
    assert isinstance(shown[0], Output)
    assert events[0] == "enter"
    assert events[-1] == "close"
    text = "".join(str(part._repr_mimebundle_([], [])) for part in shown[1:])
    assert re.search(r"building rmat6: counting.* \d+%, [\d.]+k? edges/s", text)


def command(screen: Screen, *arguments: str) -> subprocess.Popen:
    return start(*arguments, stderr=screen.slave, env={**ENVIRONMENT, "TERM": "xterm", "COLUMNS": "160"})


@pytest.mark.ci
def test_command_shows_bars_with_its_own_headline():
    screen = Screen()
    process = command(screen, "graph500", "--scale", "14", "--roots", "60")
    out = process.communicate(timeout=120)[0]
    text = screen.close()
    assert process.returncode == 0
    assert "60 roots" in out
    check_clean(text)
    assert re.search(r"(bfs|sssp) \d+ of 60 .*? \d+%, [\d.]+ searches/s, 0:00:\d\d left", text)


@pytest.mark.ci
def test_interrupted_command_leaves_the_terminal_clean():
    screen = Screen()
    process = command(screen, "graph500", "--scale", "22")
    deadline = time.monotonic() + 60
    while "%" not in screen.text:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    process.stdout.close()
    bar, last = re.split(r"(?=mgraph: interrupted)", screen.close())
    check_clean(bar)
    assert last.split() == ["mgraph:", "interrupted"]


@pytest.mark.ci
def test_command_with_json_shows_nothing(tmp_path: pathlib.Path):
    screen = Screen()
    process = command(screen, "bfs", "rmat:20", "-s", "0", "--json")
    process.communicate(timeout=120)
    assert (process.returncode, screen.close()) == (0, "")
