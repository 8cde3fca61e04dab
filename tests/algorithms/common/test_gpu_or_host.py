"""Searches beside one GPU on the CPU: when they are chosen, and that their results are those of the GPU."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from emulator.backend import EmulatedBackend
from hypothesis import given
from strategies import graphs_and_sources, orders
from tiers import examples
from user_graphs import graph_of

import mgraph as mg
from mgraph.algorithms.bfs import hybrid as bfs_hybrid
from mgraph.algorithms.bfs import persistent as bfs
from mgraph.algorithms.common import gpu_or_host
from mgraph.algorithms.sssp import hybrid as sssp_hybrid
from mgraph.algorithms.sssp import persistent as sssp
from mgraph.backends.host import HostBackend
from mgraph.backends.kernel import inline
from mgraph.cluster.in_process import InProcessCluster
from mgraph.errors import CommAborted

DEPTH = 40


class Device(EmulatedBackend):
    """A GPU whose times count."""

    competes_with_host = True


@pytest.fixture
def cluster():
    with InProcessCluster(1, make_backend=Device) as made:
        yield made


@pytest.fixture
def path(cluster):
    """Return a path as deep as a few trials."""
    ends = np.arange(DEPTH * 3)
    with mg.from_edges(ends, ends + 1, (ends % 7).astype(np.uint8), cluster=cluster) as g:
        yield g


@pytest.fixture
def costs(monkeypatch):
    """Return a function that sets what the host should take for a vertex, and whether it then takes longer."""
    monkeypatch.setattr(bfs, "TRIAL_LEVELS", DEPTH)
    monkeypatch.setattr(sssp, "TRIAL_ROUNDS", DEPTH // 4)
    monkeypatch.setattr(gpu_or_host, "NS_PER_CALL", 0)

    def set_costs(ns_per_vertex, *, slower=False):
        monkeypatch.setattr(gpu_or_host, "NS_PER_VERTEX", dict.fromkeys(["bfs", "sssp"], ns_per_vertex))
        monkeypatch.setattr(gpu_or_host, "NS_PER_ARC", dict.fromkeys(["bfs", "sssp"], 1e-9))
        monkeypatch.setattr(gpu_or_host, "SLOWER", 0 if slower else 10**12)

    return set_costs


def found(search, g, *args, **options):
    """Return the variant, the methods of its supersteps, and the values."""
    with search(g, *args, **options) as result:
        steps = [step["method"] for step in result.stats.supersteps]
        return result.stats.variant, steps, [column.to_numpy().tolist() for column in result.columns]


SEARCHES = [(mg.bfs, "step"), (mg.sssp, "near_far")]


@pytest.mark.parametrize(("search", "other"), SEARCHES)
def test_deep_graph_is_searched_on_the_host_from_its_first_search_on(path, costs, search, other):
    costs(0)
    name = f"{search.__name__}.host"
    _, _, expected = found(search, path, 3, method=other)
    variant, steps, values = found(search, path, 3)
    assert (variant, values) == (name, expected)
    # The trial of the GPU comes first, and only once.
    assert {*steps} > {"serial"}
    assert found(search, path, 3) == (name, ["serial"], expected)


@pytest.mark.parametrize(("search", "other"), SEARCHES)
def test_deep_graph_that_the_gpu_searches_faster_stays_there(path, costs, search, other):
    costs(10**12)
    name = f"{search.__name__}.persistent"
    _, _, expected = found(search, path, 3, method=other)
    variant, trial_and_search, values = found(search, path, 3)
    assert (variant, values) == (name, expected)
    variant, steps, values = found(search, path, 3)
    assert (variant, values) == (name, expected)
    assert len(steps) < len(trial_and_search)


def test_whole_search_shows_what_a_trial_has_not(path, costs):
    costs(10**12)
    expected = found(mg.bfs, path, 3)
    costs(0)
    assert found(mg.bfs, path, 3)[::2] == expected[::2] == ("bfs.persistent", expected[2])
    assert found(mg.bfs, path, 3)[::2] == ("bfs.host", expected[2])


@pytest.mark.parametrize(
    ("dense", "num_arcs", "faster"),
    [(1, 1 << 20, True), (1 << 30, 1 << 20, True), (1 << 30, 1 << 40, False), (None, 1 << 20, False)],
)
def test_trial_shows_a_long_path_also_behind_a_dense_part(dense, num_arcs, faster):
    """Supersteps of a microsecond: of one vertex, but the first of `dense`, or all of many vertices."""
    frontiers = np.ones(1000, np.int64)
    frontiers[:1] = dense or 1
    if dense is None:
        frontiers[:] = 1 << 10
    info = SimpleNamespace(mean_degree=2, num_arcs=num_arcs)
    shard = SimpleNamespace(
        backend=Device(), info=info, faster_on_host={}, trial_ns_per_distance={}, max_wide_arcs={}
    )  # fmt: skip
    times = np.full(1000, 1000)
    assert gpu_or_host.try_gpu(shard, "bfs", times, frontiers, int(frontiers.sum()), 1000) is faster
    assert shard.faster_on_host == {"bfs": faster}


def test_host_that_turns_out_to_be_slower_is_asked_once(path, costs):
    costs(0, slower=True)
    for search in mg.bfs, mg.sssp:
        name = search.__name__
        expected = found(search, path, 3)
        assert expected[0] == f"{name}.host"
        for _ in range(2):
            assert found(search, path, 3)[::2] == (f"{name}.persistent", expected[2])


def test_levels_beyond_bytes_are_a_trial_too(cluster, costs, monkeypatch):
    costs(0)
    # Cliques of nine: so many arcs a vertex that levels are bytes first.
    pairs = np.array([(9 * c + u, 9 * c + v) for c in range(140) for u in range(9) for v in range(u)])
    links = np.array([(9 * c, 9 * c + 17) for c in range(139)])
    with mg.from_edges(np.concatenate([pairs, links]), cluster=cluster) as g:
        _, _, expected = found(mg.bfs, g, 0, method="step")
        assert found(mg.bfs, g, 0)[::2] == ("bfs.host", expected)


def test_what_is_known_of_one_algorithm_is_nothing_to_another(path, costs):
    costs(0)
    assert found(mg.sssp, path, 3)[0] == "sssp.host"
    costs(10**12)
    assert found(mg.bfs, path, 3)[0] == "bfs.persistent"


@pytest.mark.parametrize("limits", [{"cutoff": 40}, {"cutoff": 10**6}])
def test_search_with_a_cutoff_is_no_trial(path, costs, limits):
    costs(0)
    _, _, expected = found(mg.sssp, path, 3, method="near_far", **limits)
    assert found(mg.sssp, path, 3, **limits)[::2] == ("sssp.persistent", expected)


def test_method_names_the_host_and_the_gpu(path, costs):
    costs(0)
    for search in mg.bfs, mg.sssp:
        name = search.__name__
        expected = found(search, path, 3, method="host")
        assert expected[0] == f"{name}.host"
        for _ in range(2):
            assert found(search, path, 3, method="persistent")[::2] == (f"{name}.persistent", expected[2])


def test_host_without_the_memory_leaves_the_search_to_the_gpu(path, costs, monkeypatch):
    costs(0)
    _, _, expected = found(mg.bfs, path, 3, method="step")
    monkeypatch.setattr(HostBackend, "free_bytes", lambda self: 100)
    for _ in range(2):
        assert found(mg.bfs, path, 3)[::2] == ("bfs.persistent", expected)
    with pytest.raises(mg.UsageError, match="could not be made here: host_copy"):
        mg.bfs(path, 3, method="host")


@pytest.mark.parametrize("searches", [[mg.bfs, mg.sssp], [mg.sssp, mg.bfs]])
def test_directed_graph_is_searched_on_the_host_in_any_order_of_algorithms(cluster, searches):
    ends = np.array([(u, v) for u in range(60) for v in range(60) if (u * v) % 3])
    weights = (1 + ends.sum(axis=1) % 9).astype(np.uint8)
    with mg.from_edges(*ends.T, weights, directed=True, cluster=cluster) as g:
        for search in searches:
            expected = found(search, g, 1, method="persistent", return_predecessors=False)
            assert found(search, g, 1, method="host", return_predecessors=False)[2] == expected[2]


@pytest.mark.parametrize(("search", "other"), SEARCHES)
@pytest.mark.parametrize("wide_trials", [0, 10**9])
def test_wide_search_on_the_host_is_given_up(cluster, costs, search, other, wide_trials, monkeypatch):
    """A path of a trial's length leads to a dense part: the CPU searches it for the GPU if that is short."""
    costs(0)
    monkeypatch.setattr(gpu_or_host, "WIDE_TRIALS", wide_trials)
    monkeypatch.setattr(bfs, "MAX_UINT8_LEVELS", DEPTH)
    monkeypatch.setattr(bfs_hybrid, "MAX_PULLED", 10)
    monkeypatch.setattr(sssp_hybrid, "MAX_WAITING", 2)
    name = search.__name__
    ends = [(v, v + 1) for v in range(DEPTH + 20)] + [
        (DEPTH + 20 + u, DEPTH + 20 + v) for u in range(60) for v in range(u)
    ]
    ends += [(DEPTH + 79 + v, DEPTH + 80 + v) for v in range(9)]
    weights = np.resize(np.arange(1, 8, dtype=np.uint8), len(ends))
    with mg.from_edges(*np.transpose(ends), weights, cluster=cluster) as g:
        expected = found(search, g, 0, method=other)[2]
        variant = f"{name}.{'host' if wide_trials else 'persistent'}"
        first, steps, values = found(search, g, 0)
        assert (first, values) == (variant, expected)
        assert "serial" in steps, "the host began to search"
        assert found(search, g, 0)[::2] == (variant, expected)
        assert found(search, g, 0, method="host")[::2] == (f"{name}.host", expected)


def test_search_that_reaches_little_decides_nothing(cluster, costs):
    costs(0, slower=True)
    short = np.arange(DEPTH * 2)
    long = 1000 + np.arange(DEPTH * 4)
    with mg.from_edges([*short, *long], [*(short + 1), *(long + 1)], cluster=cluster) as g:
        assert found(mg.bfs, g, 0)[0] == "bfs.host"
        assert found(mg.bfs, g, 1000, depth_limit=2)[0] == "bfs.host"
        # This one reaches most vertices.
        assert found(mg.bfs, g, 1000)[0] == "bfs.host"
        assert found(mg.bfs, g, 0)[0] == "bfs.persistent"


@pytest.mark.ci
def test_distances_of_32_bits_are_tried_on_the_host_too(cluster, costs, monkeypatch):
    costs(0)
    # One bucket is as wide as the path is long.
    monkeypatch.setattr(sssp, "TRIAL_ROUNDS", 1)
    ends = np.arange(DEPTH * 3)
    weights = np.where(ends == 7, 5 * 10**7, ends % 7)
    with mg.from_edges(ends, ends + 1, weights, cluster=cluster) as g:
        expected = found(mg.sssp, g, 3, method="near_far")[2]
        assert found(mg.sssp, g, 3)[::2] == ("sssp.host", expected)


def test_search_on_the_host_ends_at_its_target(path, costs):
    costs(0)
    whole = found(mg.sssp, path, 3)[2]
    for target in 9, 60:
        assert mg.shortest_path(path, 3, target) == (whole[0][target], list(range(3, target + 1)))


@pytest.mark.ci
@examples(30)
@given(graphs_and_sources(), orders)
def test_results_equal_those_of_the_gpu(drawn, order):
    case, sources = drawn
    with InProcessCluster(1, make_backend=Device) as cluster, graph_of(case, cluster, order) as g:
        for search in [mg.bfs, mg.sssp][: 1 + (g.info.weight_dtype is not None)]:
            assert found(search, g, sources, method="host")[2] == found(search, g, sources, method="persistent")[2]


def test_stopped_call_of_the_gpu_stops_the_cores():
    device = Device()
    host = HostBackend(device)
    assert host.stopped is None
    device.stopped = "the caller was interrupted"
    assert host.stopped == "the caller was interrupted"
    done = np.zeros(1 << 16, np.int64)
    with pytest.raises(CommAborted, match="the caller was interrupted"):
        host.run_ranges(count_items, len(done), done)
    assert not done.any()
    device.stopped = None
    host.run_ranges(count_items, len(done), done)
    assert (done == 1).all()


@inline
def count_items(lo, hi, done):
    for i in range(lo, hi):
        done[i] += 1
