"""Plans of the layouts that have a part of the graph in host memory: what does not fit is refused."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from host_layout import resident_share
from split_layout import device_share
from user_graphs import graph_of
from zoo import random_case

import mgraph as mg
from mgraph.backends.base import LIMITS
from mgraph.ingest.compact_plan import plan_compact
from mgraph.ingest.host import _plan_stretches
from mgraph.ingest.host_plan import HostPlan, host_plan, ranks_of_host
from mgraph.ingest.keys import key_layout
from mgraph.ingest.plan import Sizes
from mgraph.ingest.split_plan import SplitPlan
from mgraph.partition import Partition
from mgraph.shard.block_headers import shape_of


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


@pytest.mark.parametrize("largest", [1, 5 << 22, 70_000_000])
@pytest.mark.parametrize("resident", [0.0, 0.05, 0.4])
def test_blocks_that_are_built_at_once_fit_with_their_buffer(resident, largest, monkeypatch):
    """However unequal buckets are: those of hubs have many times the edges of others."""
    sizes = Sizes(1 << 24, 1 << 28, 1 << 28, False, 1, 1)
    partition = Partition(1 << 24, 1, cyclic=True)
    shape = shape_of(227 << 10, 60 << 20, 4)
    layout = key_layout(shape, 1 << 24, range(1 << 24), 1 << 28)
    plan = host_plan(plan_compact(sizes, partition, layout, LIMITS["cuda"], 64, 4), 1 << 28, 5, shape, 0)
    buckets = np.full(4096, 1 << 14)
    buckets[200::500] = 3 << 22
    buckets[1000] = largest
    ends = np.concatenate([[0], np.cumsum(buckets)])
    monkeypatch.setattr(HostPlan, "resident_edges", lambda plan, free_bytes: int(resident * ends[-1]))
    free = plan.temporary + (1 << 30)
    stretches = _plan_stretches(SimpleNamespace(ends=ends), plan, free)
    assert [stretch.stays for stretch in stretches] == [False] * (len(stretches) - 1) + [True]
    assert sum(int(stretch.ends[-1]) for stretch in stretches) == ends[-1]
    # 9.5 bytes an edge, and a bucket larger than others is in one stretch.
    assert len(stretches) <= 4 + 2 * 9.5 * ends[-1] / (1 << 30)
    for stretch in stretches:
        in_buffer = max((int(stretch.ends[p.last] - stretch.ends[p.middle]) for p in stretch.passes), default=0)
        assert 5 * int(stretch.ends[-1]) + 9 * in_buffer <= free - free // 32 - plan.temporary


def test_ranks_of_this_process_share_a_host(clusters):
    assert clusters[3].run(lambda rank: ranks_of_host(rank.comm)) == [3] * 3
