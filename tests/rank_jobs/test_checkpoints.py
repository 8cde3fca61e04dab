"""Calls that are stopped and go on from their checkpoint: equal to the bit, on any number of ranks."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import functools
import os
import pathlib

import dask
import numpy as np
import pytest
import rank_programs as programs
from distributed import Client
from host_layout import resident_share
from killer import Killer
from local_clusters import GPU, local_cluster
from worker_processes import worker_processes

import mgraph as mg
from mgraph.algorithms.components import afforest
from mgraph.cluster.in_process import InProcessCluster
from mgraph.config import settings
from mgraph.errors import InputError, UsageError
from mgraph.rank_jobs import checkpoints
from mgraph.store.checkpoint import newest_token, read_manifests

# Whatever it takes.
WHENEVER = {"mgraph.checkpoint-every": 1e-9, "mgraph.checkpoint-share": 1}


class Stopped(Exception):
    """The end of a search at a checkpoint, as if its ranks had died."""


@pytest.fixture
def every_step(monkeypatch):
    """Keep a checkpoint at every superstep that may have one; yield what stops a search when one of them is whole."""
    monkeypatch.setattr(afforest, "ROUND_ARCS", 40)
    keep = checkpoints.FolderCheckpoints.keep
    state = {"kept": 0, "stop": None}

    def counted(self, found, since=None):
        if self._comm.rank == 0:
            state["kept"] += 1
        keep(self, found, since)
        concurrent.futures.wait([self.writer.written])
        # A barrier: the state is whole, and every rank reads the same count.
        self._comm.barrier()
        if state["kept"] == state["stop"]:
            raise Stopped

    monkeypatch.setattr(checkpoints.FolderCheckpoints, "keep", counted)
    # The end of a `with dask.config.set(...)` removes defaults that were not there before.
    settings.setting("checkpoint-every")
    with dask.config.set(WHENEVER):
        yield state


def roads(ranks: int, **how):
    return mg.grid(24, 24, cluster=InProcessCluster(ranks), **how)


def directed(ranks: int, **how):
    return mg.fixed_out_degree(400, 2, weights="float32", cluster=InProcessCluster(ranks), **how)


def columns(found):
    return [column.digest() for column in found.columns]


SEARCHES = {
    "bfs.step": lambda g, **how: mg.bfs(g, 3, method="step", **how),
    "bfs.sweep": lambda g, **how: mg.bfs(g, 3, method="sweep", **how),
    "bfs of several": lambda g, **how: mg.bfs(g, [3, 77], depth_limit=30, **how),
    "sssp.near_far": lambda g, **how: mg.sssp(g, 3, method="near_far", **how),
    "sssp.sweep": lambda g, **how: mg.sssp(g, 3, method="sweep", **how),
    "pagerank": lambda g, **how: mg.pagerank(g, tolerance=None, max_iterations=20, **how),
    "pagerank of some": lambda g, **how: mg.pagerank(g, max_iterations=99, personalization={3: 1, 77: 2}, **how),
    "hits": lambda g, **how: mg.hits(g, tolerance=None, max_iterations=20, **how),
    "hits without weights": lambda g, **how: mg.hits(g, tolerance=1e-3, weighted=False, normalized=False, **how),
    "sssp with a cutoff": lambda g, **how: mg.sssp(g, [3, 77], cutoff=900, **how),
}


@pytest.mark.covering(ci=1)
@pytest.mark.parametrize("ranks", [(1, 3), (3, 2), (2, 1)])
@pytest.mark.parametrize("make", [roads, directed])
@pytest.mark.parametrize("name", SEARCHES)
def test_search_stopped_at_80_percent_goes_on_in_under_40_percent(tmp_path, every_step, name, make, ranks):
    search = SEARCHES[name]
    folder = tmp_path / "kept"
    before, after = ranks
    with make(before) as g:
        whole = search(g)
        expected = columns(whole)
        checked = search(g, checkpoint=folder)
        assert columns(checked) == expected
        assert not folder.exists()
        total = every_step["kept"]
        every_step |= {"kept": 0, "stop": -(-total * 8 // 10)}
        with pytest.raises(Stopped):
            search(g, checkpoint=folder)
    assert newest_token(folder)
    every_step["stop"] = None
    with make(after) as g:
        resumed = search(g, checkpoint=folder)
        assert columns(resumed) == expected
        mg.validate(resumed)
    if total >= 10:
        assert len(resumed.stats.supersteps) < 0.4 * len(checked.stats.supersteps)
    assert not folder.exists()


def trees(ranks: int):
    """Make a graph of two large trees and many small ones, none of them a giant, in natural order."""
    vertices = np.arange(600)
    # From vertex 400 on paths of three; cycles are closed by edges to grandparents.
    of_paths = np.where(vertices % 3 == 0, vertices, vertices - 1)
    parents = np.select([vertices < 200, vertices < 400], [vertices // 3, 100 + vertices // 2], of_paths)
    sources = np.concatenate([vertices, vertices])
    targets = np.concatenate([parents, parents[parents]])
    weights = (sources * 37 + targets * 11) % 101 / 4 - 9
    return mg.from_edges(sources, targets, weights, num_vertices=600, order="natural", cluster=InProcessCluster(ranks))


def arcs(ranks: int):
    """Make a directed tree, of which each arc is known at one end, on many ranks at once."""
    children = np.arange(1, 400)
    cluster = InProcessCluster(ranks)
    return mg.from_edges(children * 7 % 13 * children // 13, children, directed=True, order="degree", cluster=cluster)


def skewed(ranks: int):
    """Make two cliques, of light and of heavy edges, each with pairs that only edges of middle weight reach."""
    one, other = np.triu_indices(60, 1)
    spread = (one * 61 + other * 17) % 97
    ends = np.arange(60, 80)
    pairs = ends[::2]
    near = [(one, other, spread + 1), (pairs, pairs + 1, 0 * pairs), (pairs, pairs - 60, pairs + 500)]
    sources, targets, weights = (np.concatenate(column) for column in zip(*near, strict=True))
    sources = np.concatenate([sources, sources + 80, [0]])
    targets = np.concatenate([targets, targets + 80, [80]])
    weights = np.concatenate([weights, weights + 2000, [9000]])
    return mg.from_edges(sources, targets, weights, order="natural", cluster=InProcessCluster(ranks))


def wide(ranks: int, **how):
    return mg.grid(24, 24, weights="float64", cluster=InProcessCluster(ranks), **how)


def dense(ranks: int):
    """Make a graph of so many edges that a forest takes light ones first."""
    return mg.rmat(8, cluster=InProcessCluster(ranks))


PASSES = {
    "components": (mg.connected_components, [roads, directed, trees, arcs]),
    "forest": (mg.minimum_spanning_forest, [roads, trees, wide, dense, skewed]),
    "heaviest forest": (functools.partial(mg.minimum_spanning_forest, maximum=True), [roads, dense]),
}


@pytest.mark.covering(ci=1, every=2)
@pytest.mark.parametrize("ranks", [(1, 3), (3, 2), (2, 1), (2, 3)])
@pytest.mark.parametrize(("name", "make"), [(name, make) for name, (_, graphs) in PASSES.items() for make in graphs])
def test_components_and_forests_go_on_from_every_state(tmp_path, every_step, name, make, ranks):
    find = PASSES[name][0]
    folder = tmp_path / "kept"
    before, after = ranks
    with make(before) as g, make(after) as other:
        expected = columns(find(g))
        assert columns(find(other)) == expected
        every_step["kept"] = 0
        assert columns(find(g, checkpoint=folder)) == expected
        total = every_step["kept"]
        assert total
        for stop in sorted({1, -(-total * 8 // 10), total}):
            every_step |= {"kept": 0, "stop": stop}
            with pytest.raises(Stopped):
                find(g, checkpoint=folder)
            assert newest_token(folder)
            every_step["stop"] = None
            resumed = find(other, checkpoint=folder)
            assert columns(resumed) == expected
            assert "checkpoint" in resumed.stats.seconds
            mg.validate(resumed)
            assert not folder.exists()


@pytest.mark.parametrize("nth", [2, 3, 4])
def test_forest_goes_on_from_one_late_state(tmp_path, every_step, monkeypatch, nth):
    calls = collections.Counter()

    def is_due(self):
        calls[id(self)] += 1
        return calls[id(self)] == nth

    monkeypatch.setattr(checkpoints.FolderCheckpoints, "is_due", is_due)
    every_step["stop"] = 1
    with dense(3) as g, dense(2) as other:
        expected = columns(mg.minimum_spanning_forest(g))
        with pytest.raises(Stopped):
            mg.minimum_spanning_forest(g, checkpoint=tmp_path / "kept")
        every_step["stop"] = None
        assert columns(mg.minimum_spanning_forest(other, checkpoint=tmp_path / "kept")) == expected


def test_components_stopped_at_80_percent_link_under_40_percent_of_the_rows(tmp_path, every_step):
    def rows(found):
        return sum(step["frontier"] for step in found.stats.supersteps if step["method"] == "finish")

    with directed(3) as g:
        whole = mg.connected_components(g, checkpoint=tmp_path / "kept")
        every_step |= {"stop": -(-every_step["kept"] * 8 // 10), "kept": 0}
        with pytest.raises(Stopped):
            mg.connected_components(g, checkpoint=tmp_path / "kept")
    every_step["stop"] = None
    with directed(2) as g:
        assert 0 < rows(mg.connected_components(g, checkpoint=tmp_path / "kept")) < 0.4 * rows(whole)


def test_forest_that_was_stopped_twice_goes_on(tmp_path, every_step):
    """The second time from a state between light and heavy edges, on other ranks."""
    with dense(3) as g:
        expected = columns(mg.minimum_spanning_forest(g))
    for ranks, stop in ((3, 2), (2, 2), (4, 3), (1, None)):
        every_step |= {"kept": 0, "stop": stop}
        with dense(ranks) as g, contextlib.suppress(Stopped):
            found = mg.minimum_spanning_forest(g, checkpoint=tmp_path / "kept")
            assert stop is None, "it was stopped"
            assert columns(found) == expected


@pytest.mark.parametrize("first", ["step", "sweep"])
def test_checkpoint_of_another_variant_is_used(tmp_path, every_step, first):
    second = {"step": "sweep", "sweep": "step"}[first]
    for search, methods in (
        (mg.bfs, (first, second)),
        (mg.sssp, tuple(m.replace("step", "near_far") for m in (first, second))),
    ):
        every_step |= {"kept": 0, "stop": 5}
        with roads(2) as g:
            expected = columns(search(g, 3))
            with pytest.raises(Stopped):
                search(g, 3, method=methods[0], checkpoint=tmp_path / "kept")
            every_step["stop"] = None
            assert columns(search(g, 3, method=methods[1], checkpoint=tmp_path / "kept")) == expected


@pytest.mark.ci
@pytest.mark.parametrize("search", [mg.bfs, mg.sssp])
def test_search_of_a_gpu_goes_on_on_cpus(tmp_path, every_step, search):
    """Its persistent kernels keep none: the loop of the host runs."""
    with mg.grid(8, 8, cluster=local_cluster(GPU)) as g:
        every_step["stop"] = 4
        with pytest.raises(Stopped):
            search(g, 3, checkpoint=tmp_path / "kept")
    every_step["stop"] = None
    with mg.grid(8, 8, cluster=InProcessCluster(2)) as g:
        expected = columns(search(g, 3))
        assert columns(search(g, 3, checkpoint=tmp_path / "kept")) == expected
    with mg.grid(8, 8, cluster=local_cluster(GPU)) as g:
        every_step |= {"kept": 0, "stop": 4}
        with pytest.raises(Stopped):
            search(g, 3, checkpoint=tmp_path / "kept")
        every_step["stop"] = None
        assert columns(search(g, 3, checkpoint=tmp_path / "kept")) == expected


@pytest.mark.ci
@pytest.mark.parametrize(
    "find", [mg.connected_components, mg.minimum_spanning_forest, SEARCHES["pagerank"], SEARCHES["hits"]]
)
def test_call_of_a_gpu_goes_on_on_cpus_and_back(tmp_path, every_step, find):
    with mg.grid(8, 8, cluster=InProcessCluster(2)) as g, mg.grid(8, 8, cluster=local_cluster(GPU)) as on_gpu:
        expected = columns(find(g))
        for first, second in ((g, on_gpu), (on_gpu, g)):
            every_step |= {"kept": 0, "stop": 1}
            with pytest.raises(Stopped):
                find(first, checkpoint=tmp_path / "kept")
            every_step["stop"] = None
            assert columns(find(second, checkpoint=tmp_path / "kept")) == expected


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("search", [mg.bfs, mg.sssp])
@pytest.mark.parametrize("layout", ["compact", "host"])
def test_blocks_go_on_on_another_number_of_ranks(tmp_path, every_step, layout, search):
    with resident_share(0.4), roads(3, layout=layout) as g:
        expected = columns(search(g, 3))
        every_step["stop"] = 6
        with pytest.raises(Stopped):
            search(g, 3, checkpoint=tmp_path / "kept")
    every_step["stop"] = None
    with resident_share(0.4), roads(2, layout=layout) as g:
        assert columns(search(g, 3, checkpoint=tmp_path / "kept")) == expected


@pytest.fixture
def stopped(tmp_path, every_step):
    """Stop a search; return the folder of its checkpoint."""
    every_step["stop"] = 5
    with roads(2) as g, pytest.raises(Stopped):
        mg.sssp(g, 3, checkpoint=tmp_path / "kept")
    every_step["stop"] = None
    return tmp_path / "kept"


@pytest.mark.parametrize(
    ("make", "search", "differs"),
    [
        (roads, lambda g, **how: mg.sssp(g, 4, **how), "sources"),
        (roads, lambda g, **how: mg.sssp(g, 3, cutoff=7, **how), "limit"),
        (roads, lambda g, **how: mg.bfs(g, 3, **how), "algorithm"),
        (lambda ranks: mg.grid(24, 24, seed=2, cluster=InProcessCluster(ranks)), SEARCHES["sssp.near_far"], "graph"),
    ],
)
def test_checkpoint_of_another_search_is_refused_and_stays(stopped, make, search, differs):
    names = sorted(os.listdir(stopped))
    with make(2) as g, pytest.raises(UsageError, match=f"of another call, which differs in its {differs}: give"):
        search(g, checkpoint=stopped)
    assert sorted(os.listdir(stopped)) == names


def test_checkpoint_of_scores_for_other_vertices_is_refused(tmp_path, every_step):
    every_step["stop"] = 3
    with roads(2) as g:
        with pytest.raises(Stopped):
            mg.pagerank(g, personalization={3: 1}, checkpoint=tmp_path / "kept")
        with pytest.raises(UsageError, match="differs in its personalization: give"):
            mg.pagerank(g, personalization={4: 1}, checkpoint=tmp_path / "kept")
        with pytest.raises(UsageError, match="differs in its algorithm: give"):
            mg.hits(g, checkpoint=tmp_path / "kept")


def test_graph_with_other_weights_alone_is_another_one(tmp_path, every_step):
    path = functools.partial(mg.from_edges, range(50), range(1, 51), cluster=InProcessCluster(1))
    weights = [3, 5, 4, *[1] * 47]
    every_step["stop"] = 2
    with path(weights) as g, pytest.raises(Stopped):
        mg.sssp(g, 0, checkpoint=tmp_path / "kept")
    weights[:3] = 4, 5, 3
    with path(weights) as g, pytest.raises(UsageError, match="differs in its graph"):
        mg.sssp(g, 0, checkpoint=tmp_path / "kept")


@pytest.mark.parametrize("how", ["file", "manifest", "missing"])
def test_damaged_checkpoint_is_refused(stopped, how):
    name = "manifest" if how == "manifest" else "values"
    path = max(stopped.glob(f"kept-{name}-*"))
    if how == "missing":
        path.unlink()
    else:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 255
        path.write_bytes(data)
    with roads(3) as g, pytest.raises(InputError, match=r"damaged|cannot be read"):
        mg.sssp(g, 3, checkpoint=stopped)


def test_damaged_or_other_forest_is_refused(tmp_path, every_step):
    folder = tmp_path / "kept"
    every_step["stop"] = 2
    with dense(2) as g:
        with pytest.raises(Stopped):
            mg.minimum_spanning_forest(g, checkpoint=folder)
        with pytest.raises(UsageError, match="differs in its maximum: give"):
            mg.minimum_spanning_forest(g, maximum=True, checkpoint=folder)
        with pytest.raises(UsageError, match="differs in its algorithm: give"):
            mg.connected_components(g, checkpoint=folder)
        for name in ("taken", "candidates"):
            newest = folder.glob(f"kept-{name}-{newest_token(folder):016x}-*")
            path = max(newest, key=lambda path: path.stat().st_size)
            whole = path.read_bytes()
            for damaged in (whole[:-4], whole[:-16], whole + bytes(16), bytes([whole[0] ^ 1]) + whole[1:]):
                path.write_bytes(damaged)
                with pytest.raises(InputError, match="is damaged: its checksum"):
                    mg.minimum_spanning_forest(g, checkpoint=folder)
            path.write_bytes(whole)
        every_step["stop"] = None
        expected = columns(mg.minimum_spanning_forest(g))
        assert columns(mg.minimum_spanning_forest(g, checkpoint=folder)) == expected


def test_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("")
    with roads(1) as g, pytest.raises(UsageError, match=r"has other files, such as notes\.txt"):
        mg.bfs(g, 3, checkpoint=tmp_path)
    with roads(1) as g, pytest.raises(UsageError, match="there is no folder"):
        mg.bfs(g, 3, checkpoint=tmp_path / "none" / "kept")
    assert os.listdir(tmp_path) == ["notes.txt"]


def test_variant_without_checkpoints_is_refused():
    with (
        roads(1) as g,
        pytest.raises(UsageError, match="method 'hybrid' keeps no checkpoints: streamed, sweep, step do"),
    ):
        mg.bfs(g, 3, method="hybrid", checkpoint="kept")


@pytest.mark.ci
@pytest.mark.timeout(240)
def test_search_of_a_killed_worker_goes_on_from_its_checkpoint(tmp_path):
    """A path of many levels: rebuilt on the workers that there are, and resumed there."""
    folder = tmp_path / "kept"
    with mg.grid(2, 6000, drop=0) as g:
        expected = columns(mg.bfs(g, 0))
    with (
        worker_processes() as workers,
        Client(workers, set_as_default=False) as client,
        mg.connect(client, num_ranks=2, on_loss="rebuild") as ranks,
        mg.grid(2, 6000, drop=0, cluster=ranks) as g,
        dask.config.set(WHENEVER | {"mgraph.checkpoint-every": 0.01}),
    ):
        pid = ranks.run(programs.where)[1][0]
        levels = []

        def is_deep() -> bool:
            # Files may be deleted between the two.
            with contextlib.suppress(OSError, mg.InputError):
                if token := newest_token(folder):
                    levels.append(read_manifests(folder, token, {}).bound)
            return max(levels, default=0) > 1500

        killer = Killer(pid, is_deep)
        found = mg.bfs(g, 0, checkpoint=folder)
        killer.join()
        assert columns(found) == expected
        # The levels before the kill were not searched again.
        assert len(found.stats.supersteps) < 6001 - 1500
        assert not pathlib.Path(folder).exists()


@pytest.mark.ci
@pytest.mark.timeout(240)
def test_forest_of_a_killed_worker_goes_on_from_its_checkpoint(tmp_path):
    folder = tmp_path / "kept"
    with mg.grid(1000, 1000) as g:
        expected = columns(mg.minimum_spanning_forest(g))
    with (
        worker_processes() as workers,
        Client(workers, set_as_default=False) as client,
        mg.connect(client, num_ranks=2, on_loss="rebuild") as ranks,
        mg.grid(1000, 1000, cluster=ranks) as g,
        dask.config.set(WHENEVER),
    ):
        # Kernels are loaded, so that the killed call is not done before.
        mg.minimum_spanning_forest(g, maximum=True, checkpoint=folder)
        killer = Killer(ranks.run(programs.where)[1][0], lambda: folder.exists() and newest_token(folder) > 0)
        found = mg.minimum_spanning_forest(g, checkpoint=folder)
        killer.join()
        assert columns(found) == expected
        # The lightest edge of each vertex was not taken again.
        assert found.stats.supersteps[0]["method"] != "rows"
        assert not folder.exists()
