"""Test plots of searches: complete files, or errors before the search."""

from __future__ import annotations

import importlib.util
import xml.etree.ElementTree

import pytest

import mgraph as mg
from mgraph.algorithms.bfs import persistent_kernels as bfs_persistent
from mgraph.algorithms.sssp import persistent_kernels as sssp_persistent
from mgraph.algorithms.sssp import persistent_multi_gpu_kernels as sssp_multi_gpu
from mgraph.api.plot import COLORS, plot_supersteps, require_drawable
from mgraph.errors import UsageError


@pytest.fixture(scope="module")
def stats():
    with mg.grid(8, 8) as g:
        yield mg.bfs(g, 0).stats


@pytest.mark.covering(every=2)
@pytest.mark.parametrize(
    ("suffix", "head"), [("png", b"\x89PNG"), ("PNG", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_plot_format_follows_the_suffix(suffix, head, stats, tmp_path):
    path = tmp_path / f"steps.{suffix}"
    plot_supersteps(stats, path)
    assert path.read_bytes().startswith(head)
    assert list(tmp_path.iterdir()) == [path]


def test_every_superstep_has_bars_of_frontier_and_time(stats, tmp_path):
    path = tmp_path / "steps.svg"
    plot_supersteps(stats, path, title="levels")
    drawn = xml.etree.ElementTree.parse(path).getroot()
    ids = [element.get("id", "") for element in drawn.iter()]
    assert sum(name.startswith("axes_") for name in ids) == 2
    # Each axes has a background, a frame of four lines, and a bar for each superstep; one has the legend.
    bars = [element for element in drawn.iter() if "clip-path" in element.attrib]
    assert len([b for b in bars if b.tag.endswith("path")]) >= 2 * len(stats.supersteps)
    assert {step["method"] for step in stats.supersteps} <= COLORS.keys()


def test_every_method_has_a_color():
    assert COLORS.keys() == {
        *bfs_persistent.METHODS,
        *sssp_persistent.KINDS,
        *sssp_multi_gpu.METHODS,
        "serial",
        "joint",
        "sweep",
    }
    assert len(set(COLORS.values())) == len(COLORS)


def test_search_without_supersteps_is_an_empty_plot(tmp_path):
    with mg.from_edges([], [], num_vertices=1) as g:
        plot_supersteps(mg.bfs(g, 0).stats, tmp_path / "none.png")
    assert (tmp_path / "none.png").stat().st_size > 0


def test_plot_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match=r"ends in one of \.png, \.svg, \.pdf"):
        require_drawable(tmp_path / "steps.txt")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        require_drawable(tmp_path / "folder.png")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="plots need matplotlib: pip install matplotlib"):
        require_drawable(tmp_path / "steps.png")
