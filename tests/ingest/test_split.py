"""The layout split has the rows of the layout rows, the first of them in host memory."""

from __future__ import annotations

import numpy as np
import pytest
from builds import BACKEND, CaseEdges
from emulator.backend import EmulatedBackend
from hypothesis import given
from on_ranks import run_on_ranks
from split_layout import SHARES, device_share
from strategies import graphs, orders, rank_counts
from tiers import examples
from user_graphs import GRAPHS
from zoo import ZOO, random_case

import mgraph as mg
from mgraph.backends.base import LIMITS
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.host_link import HostLink
from mgraph.comm.threads import open_threads
from mgraph.generate.rmat import Rmat
from mgraph.generate.spec import parse_spec
from mgraph.ingest.build import build
from mgraph.ingest.host_plan import InUse
from mgraph.ingest.plan import Plan, Sizes, plan_build
from mgraph.ingest.split_plan import SplitPlan, plan_split_build
from mgraph.partition import Partition
from mgraph.shard.in_rows import require_in_rows


def build_on(case, num_ranks, layout, order, backend=BACKEND):
    """Return the shards of a build with several chunks, with in-rows."""

    def program(_, comm):
        shard = build(CaseEdges(case), backend, comm, order=order, num_chunks=5, layout=layout)
        require_in_rows(shard, comm)
        return shard

    return run_on_ranks(program, [None] * num_ranks)


def check(case, num_ranks, share, order, backend=BACKEND):
    with device_share(share):
        found = build_on(case, num_ranks, "split", order, backend)
    wanted = build_on(case, num_ranks, "rows", order)
    for shard, plain in zip(found, wanted, strict=True):
        assert (shard.info.layout, shard.info.num_edges) == ("split", plain.info.num_edges)
        for own, other in ((shard.rows, plain.rows), (shard.incoming, plain.incoming)):
            for array, expected in (
                (own.indptr, other.indptr),
                (own.targets, other.targets),
                (own.weights, other.weights),
            ):
                assert (array is None) == (expected is None)
                if array is not None:
                    np.testing.assert_array_equal(backend.to_host(array), expected)
            assert share < 1 or own.host_arcs == 0
            assert own.nbytes + own.host_bytes == other.nbytes
    if share < 1 and len(case.sources) > 20 * num_ranks:
        assert sum(shard.host_bytes for shard in found) > 0


@pytest.mark.covering(every=2, ci=1)
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("case", GRAPHS, ids=lambda case: case.name)
def test_rows_are_those_of_the_layout_rows(case, share):
    for num_ranks in (1, 2, 3):
        for order in ("degree", "natural"):
            check(case, num_ranks, share, order)


@examples(40)
@given(graphs(), rank_counts, orders)
def test_rows_of_random_graphs_are_those_of_the_layout_rows(case, num_ranks, order):
    check(case, num_ranks, 0.5, order)


@pytest.mark.parametrize("case", [random_case(2, 150), ZOO["dag"]], ids=lambda case: case.name)
def test_rows_on_every_backend_are_those_of_the_layout_rows(case, backend):
    for share in SHARES:
        check(case, 2, share, "degree", backend)


def test_host_memory_grows_before_the_device_and_the_end_is_freed(monkeypatch):
    """The rows in host memory come first, and nothing is left mapped behind the last arc."""
    calls = []

    class Memory:
        def __init__(self, link, most_bytes):
            self.bytes = link.xp.empty(most_bytes, np.uint8)

        def grow(self, num_bytes, *, on_host):
            calls.append(("host" if on_host else "device", num_bytes))

        def shrink(self, num_bytes):
            calls.append(("end", num_bytes))

        def array(self, count, dtype):
            return self.bytes[: count * dtype.itemsize].view(dtype)

    monkeypatch.setattr(HostLink, "split_memory", lambda link, most_bytes: Memory(link, most_bytes))
    case = random_case(5, 200)
    with device_share(0.4):
        (shard,) = build_on(case, 1, "split", "degree")
    rows = shard.rows
    kinds = [kind for kind, _ in calls]
    last_on_host = max(k for k, kind in enumerate(kinds) if kind == "host")
    assert "device" not in kinds[:last_on_host]
    assert kinds.count("host") >= 2 * 2
    assert ("host", rows.host_arcs * rows.targets.itemsize) in calls
    assert ("end", rows.targets.nbytes) in calls
    assert ("end", rows.weights.nbytes) in calls


def test_auto_layout_is_split_where_rows_do_not_fit_a_gpu(monkeypatch):
    backend = EmulatedBackend()
    (comm,) = open_threads(1)

    def layout_of(free, beside, on_host=1 << 40, spec="rmat:8"):
        monkeypatch.setattr(EmulatedBackend, "free_bytes", lambda self: free)
        monkeypatch.setattr("mgraph.ingest.host_plan.free_on_host", lambda plan, backend, comm: on_host)
        in_use = {"rows": 4 << 20 if free > 1 << 20 else 2 * free, "split": beside, "compact": 0, "host": 0}
        uses = lambda survey, layout: InUse(in_use[layout], in_use[layout])  # noqa: E731
        return build(parse_spec(spec), backend, comm, layout="auto", in_use_bytes=uses).info.layout

    assert layout_of(8 << 20, 0) == "rows"
    assert layout_of(3 << 20, 0) == "split"
    # What runs on rows does not fit beside none of the arcs, or these do not fit the host.
    assert layout_of(3 << 20, 4 << 20) == "compact"
    # Some arcs must be in host memory.
    assert layout_of(150_000, 140_000) == "split"
    assert layout_of(150_000, 140_000, on_host=0) == "compact"
    # Without hubs sweeps are faster, unless they are many.
    assert layout_of(3 << 20, 0, spec="uniform:256:32") == "compact"
    assert layout_of(3 << 20, 0, spec="uniform:2048:4") == "split"
    monkeypatch.setattr(HostLink, "has_split_memory", lambda self: False)
    assert layout_of(3 << 20, 0) == "compact"


def test_build_leaves_memory_for_what_is_wanted_if_the_graph_fits_then(monkeypatch):
    backend = EmulatedBackend()
    (comm,) = open_threads(1)
    monkeypatch.setattr(EmulatedBackend, "free_bytes", lambda self: 150_000)
    monkeypatch.setattr("mgraph.ingest.host_plan.free_on_host", lambda plan, backend, comm: 1 << 40)

    def host_arcs(needed, wanted):
        uses = lambda survey, layout: InUse(needed, wanted)  # noqa: E731
        return build(Rmat(10), backend, comm, layout="split", in_use_bytes=uses).rows.host_arcs

    num_arcs = build(Rmat(10), CpuBackend(), comm).info.num_arcs
    least = host_arcs(60_000, 60_000)
    more = host_arcs(60_000, 90_000)
    assert more > least
    # More than there is: a share of what is left has rows, unless host memory is too small.
    assert more < host_arcs(60_000, 1 << 30) < num_arcs
    monkeypatch.setattr("mgraph.ingest.host_plan.free_on_host", lambda plan, backend, comm: 100_000)
    assert host_arcs(60_000, 1 << 30) == least
    with pytest.raises(mg.WouldNotFit, match="the graph with its edges in host memory takes"):
        host_arcs(1 << 30, 1 << 30)


def test_refusal_of_rows_says_that_split_rows_would_fit(monkeypatch):
    backend = EmulatedBackend()
    (comm,) = open_threads(1)
    monkeypatch.setattr(EmulatedBackend, "free_bytes", lambda self: 150_000)
    monkeypatch.setattr("mgraph.ingest.host_plan.free_on_host", lambda plan, backend, comm: 1 << 40)
    with pytest.raises(mg.WouldNotFit, match="or fewer edges; the layout split would fit"):
        build(Rmat(10), backend, comm)


def test_plan_holds_as_many_arcs_as_fit_beside_the_rest():
    rows = Plan(1, order=0, tables=1000, rows=80_000, place=2000, sort=3000)
    how = {
        "num_arcs": 10_000,
        "arc_bytes": 8,
        "needed": 9000,
        "left_free": 9000,
        "longest_row": 100,
        "least_arcs": 1250,
    }
    plan = SplitPlan(rows, 500, copies=1, **how)
    free = 50_000
    usable = free - free // 32
    assert plan.device_arcs(free) == (usable + 1000 - 9000) // 8
    assert plan.arcs_at_once(free) == (usable - 3500) // 8 - 100
    assert plan.host_bytes(free) + plan.resident_bytes(free) == 80_000
    assert plan.peak_bytes(free) == 1000 + 3500 + 8 * plan.device_arcs(free)
    # All of them; none, but an eighth is built at once.
    assert plan.device_arcs(1 << 20) == 10_000
    assert plan.device_arcs(8000) == 0
    assert plan.least_bytes() == 15_300 + 15_300 // 32
    # In-rows take as much again.
    twice = SplitPlan(rows, 500, copies=2, **how)
    assert twice.device_arcs(free) == (usable + 1000 - 9000) // 16
    assert twice.host_bytes(free) + twice.resident_bytes(free) == 160_000


def test_rows_share_the_device_with_lightest_arcs_where_it_lacks_memory_for_both():
    rows = Plan(1, order=0, tables=0, rows=80_000, place=0, sort=0)
    plan = SplitPlan(rows, 0, 80_000, 1, 1, longest_row=0, least_arcs=0, needed=1000, left_free=11_000)

    def arcs(beside):
        free = 1000 + beside
        while free - free // 32 < 1000 + beside:
            free += 1
        return plan.device_arcs(free)

    assert [arcs(beside) for beside in (0, 2500, 5000, 12_000)] == [0, 1500, 3000, 3000]
    # All that is wanted fits, and the rows have more than their share.
    assert [arcs(beside) for beside in (13_000, 30_000)] == [3000, 20_000]


def test_ranges_need_smaller_temporary_memory_than_whole_rows():
    sizes = Sizes(1 << 24, 1 << 28, 1 << 29, False, 1, 1)
    partition = Partition(1 << 24, 1, cyclic=True)
    limits = LIMITS["cuda"]
    plan = plan_split_build(sizes, partition, limits, 64, 1 << 20, 0, 0)
    whole = plan_build(sizes, partition, limits, 16)
    assert plan.rows.sort < 0.5 * whole.sort
    assert plan.rows.place < 0.6 * whole.place
    # A star's hub has half of all arcs, and is built at once.
    star = plan_split_build(sizes, partition, limits, 64, 1 << 28, 0, 0)
    assert star.least_bytes() > plan.least_bytes() + 4 * ((1 << 28) - (1 << 20))
