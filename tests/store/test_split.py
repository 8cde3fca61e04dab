"""Rows of the layout split are saved as rows, and rows are loaded in the layout split, on any number of ranks."""

from __future__ import annotations

import dataclasses
import math

import pytest
from emulator.backend import EmulatedBackend
from split_layout import SHARES, device_share
from stores import assert_same_shards, build_shards, load_rank, load_shards, save_shards
from zoo import ZOO, random_case

import mgraph as mg
from mgraph.comm.threads import open_threads
from mgraph.errors import WouldNotFit
from mgraph.ingest.host_plan import InUse
from mgraph.store.load import load_shard

CASES = [random_case(0), random_case(1), ZOO["dag"], ZOO["isolated"]]


def as_rows(shard):
    """Return the shard with the facts of the layout rows."""
    return dataclasses.replace(shard, info=dataclasses.replace(shard.info, layout="rows"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("order", ["degree", "natural"])
def test_saved_split_rows_equal_saved_rows(case, order, tmp_path):
    with device_share(0.4):
        split = save_shards(build_shards(case, 2, order, layout="split"), tmp_path / "split")
    rows = save_shards(build_shards(case, 2, order), tmp_path / "rows")
    assert split.info.layout == "rows"
    for path in sorted(rows.path.iterdir()):
        assert (split.path / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("share", SHARES)
def test_rows_are_loaded_in_the_layout_split(case, order, share, tmp_path):
    store = save_shards(build_shards(case, 2, order), tmp_path / "store")
    for num_ranks in (1, 2, 3):
        wanted = load_shards(store, num_ranks)
        assert {shard.info.layout for shard in wanted} == {"rows"}
        with device_share(share):
            found = load_shards(store, num_ranks, layout="split")
        assert {shard.info.layout for shard in found} == {"split"}
        assert_same_shards([as_rows(shard) for shard in found], wanted)
        for shard in found:
            num_arcs = len(shard.rows.targets)
            # At least one arc is on the device.
            most = max(num_arcs - 1, 0) if share < 1 else 0
            assert shard.rows.host_arcs <= most
            assert shard.rows.host_arcs >= min(most, math.floor((1 - share) * num_arcs))


def test_auto_layout_of_a_load_is_split_where_rows_do_not_fit_a_gpu(tmp_path, monkeypatch):
    store = save_shards(build_shards(random_case(0, 300), 1), tmp_path / "store")
    backend = EmulatedBackend()
    (comm,) = open_threads(1)
    arcs = store.info.num_arcs * 5
    for free, layout in ((1 << 20, "rows"), (arcs - 1, "split")):
        monkeypatch.setattr(EmulatedBackend, "free_bytes", lambda self, free=free: free)
        monkeypatch.setattr("mgraph.ingest.host_plan.free_on_host", lambda plan, backend, comm: 1 << 30)
        shard = load_rank(store, backend, comm)
        assert shard.info.layout == layout
        assert (shard.host_bytes > 0) == (layout == "split")
    monkeypatch.setattr("mgraph.ingest.host_plan.free_on_host", lambda plan, backend, comm: 10)
    with pytest.raises(WouldNotFit, match="loading graph takes"):
        load_rank(store, backend, comm)
    # What runs on rows would not fit beside them.
    monkeypatch.setattr(EmulatedBackend, "free_bytes", lambda self: 2 * arcs)
    monkeypatch.setattr("mgraph.ingest.host_plan.free_on_host", lambda plan, backend, comm: 1 << 30)
    uses = {"rows": 5 * arcs, "split": arcs}
    in_use = lambda survey, layout: InUse(uses[layout], uses[layout])  # noqa: E731
    assert load_shard(store, backend, comm, "auto", in_use).info.layout == "split"


def test_saved_graph_is_loaded_as_split_on_request(clusters, tmp_path):
    with mg.rmat(10, cluster=clusters[2]) as g:
        g.save(tmp_path / "saved")
        wanted = mg.bfs(g, 1).predecessors.digest()
    with device_share(0.4), mg.load(tmp_path / "saved", cluster=clusters[2], layout="split") as g:
        assert g.info.layout == "split"
        assert sum(one["host_bytes"] for one in g.build_stats) > 0
        assert mg.bfs(g, 1).predecessors.digest() == wanted
        g.save(tmp_path / "again")
    with mg.load(tmp_path / "again", cluster=clusters[1]) as g:
        assert g.info.layout == "rows"
        assert mg.bfs(g, 1).predecessors.digest() == wanted
