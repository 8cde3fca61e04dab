"""Plans of the layouts that have a part of the graph in host memory: what does not fit is refused."""

from __future__ import annotations

import pytest
from host_layout import resident_share
from split_layout import device_share
from user_graphs import graph_of
from zoo import random_case

import mgraph as mg
from mgraph.ingest.host_plan import HostPlan, ranks_of_host
from mgraph.ingest.split_plan import SplitPlan


@pytest.mark.parametrize(
    ("layout", "plan", "share"), [("host", HostPlan, resident_share), ("split", SplitPlan, device_share)]
)
def test_graph_that_exceeds_device_or_host_memory_is_refused(layout, plan, share, clusters, monkeypatch):
    case = random_case(3, 300)
    cluster = clusters[2]
    with share(0.5):
        monkeypatch.setattr(plan, "least_bytes", lambda plan: 1 << 60)
        with pytest.raises(mg.WouldNotFit, match=r"takes .* more of the device on each rank, and .* is free"):
            graph_of(case, cluster, layout=layout)
        monkeypatch.undo()
        monkeypatch.setattr("mgraph.ingest.host_plan.free_on_host", lambda plan, backend, comm: 10)
        with pytest.raises(mg.WouldNotFit, match=r"take .* of host memory on each rank, and .* use \d+ ranks"):
            graph_of(case, cluster, layout=layout)
        monkeypatch.undo()
        with graph_of(case, cluster, layout=layout) as g:
            assert g.build_stats[0]["host_bytes"] > 0
            mg.validate(mg.bfs(g, 0))


def test_ranks_of_this_process_share_a_host(clusters):
    assert clusters[3].run(lambda rank: ranks_of_host(rank.comm)) == [3] * 3
