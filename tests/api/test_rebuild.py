"""Graphs that are built again after a loss of ranks: of what, how often, where, and what is refused."""

from __future__ import annotations

import concurrent.futures
import contextlib
import itertools
import logging
import os
import pathlib
import signal
import threading
import time

import dask
import dask.array
import numpy as np
import pytest
import rank_programs as programs
from dask_processes import held_keys, scheduler_by_hand, wait_until, worker_by_hand
from distributed import Client
from interrupts import interrupted_at, of_package
from killer import Killer, exist
from losing_cluster import LosingCluster
from worker_processes import worker_processes

import mgraph as mg
from mgraph.api.columns import Column
from mgraph.api.rebuild import MAX_REBUILDS
from mgraph.errors import GangLost, GraphClosed, InputError, UsageError, WouldNotFit


@pytest.fixture
def losing():
    with LosingCluster() as cluster:
        yield cluster


@pytest.fixture
def on_three():
    with LosingCluster(3, left=2) as cluster:
        yield cluster


def digests(g: mg.Graph) -> list[int]:
    """Return the digests of a search and of components."""
    with mg.bfs(g, 1) as found, mg.connected_components(g) as parts:
        return [column.digest() for column in (*found.columns, *parts.columns)]


@pytest.fixture(scope="module")
def expected():
    with mg.rmat(8) as g:
        return digests(g)


def test_call_is_answered_after_a_loss_with_one_warning(losing, expected, caplog):
    with mg.rmat(8, cluster=losing) as g:
        losing.losses = 1
        with caplog.at_level(logging.WARNING, "mgraph"):
            assert digests(g) == expected
    (record,) = caplog.records
    assert record.getMessage() == (
        "rank 1 on tcp://lost was lost (killed by a test); on_loss='rebuild': rmat8 is built again"
    )


def test_graph_and_results_move_to_the_ranks_that_are_left(on_three, expected):
    g = mg.rmat(8, cluster=on_three)
    on_three.losses = 1
    found = mg.bfs(g, 1)
    left = on_three.remaining()
    assert (g.cluster, g.num_ranks) == (left, 2)
    assert str(g.placement) == "2 of 3 ranks: the ranks that were left after a loss"
    assert [column.digest() for column in found.columns] == expected[:2]
    assert digests(g) == expected
    found.close()
    g.close()
    wait_until(lambda: not any((*left._objects, *on_three._objects)))


def test_last_reference_frees_a_graph_that_was_built_again(losing):
    g = mg.rmat(6, cluster=losing)
    losing.losses = 1
    assert g.labels_of([3]).tolist() == [3]
    mg.degrees(g)
    del g
    wait_until(lambda: not any(losing._objects))


def test_call_gives_up_after_so_many_rebuilds_and_the_next_one_is_answered(losing, expected, caplog):
    with mg.rmat(8, cluster=losing) as g:
        losing.losses = MAX_REBUILDS + 1
        with pytest.raises(GangLost):
            mg.bfs(g, 1)
        assert len(caplog.records) == MAX_REBUILDS
        assert digests(g) == expected


def test_calls_of_several_threads_build_a_lost_graph_once(losing, expected, caplog):
    with mg.rmat(8, cluster=losing) as g, concurrent.futures.ThreadPoolExecutor(4) as pool:
        losing._threads.holds.forget(g._key)
        assert list(pool.map(lambda _: digests(g), range(4))) == [expected] * 4
    assert [record.getMessage() for record in caplog.records] == [
        "a rank was lost in an earlier call; on_loss='rebuild': rmat8 is built again"
    ]


SEVERAL_JOBS = {
    "bridges": mg.bridges,
    "steiner tree": lambda g: mg.steiner_tree(g, [1, 2, 3]),
    "neighborhood": lambda g: [found.tolist() for found in mg.k_hop(g, 1, 2)],
    "neighbors": lambda g: mg.neighbors(g, 1).tolist(),
    "core": lambda g: mg.k_core(g, 2).info,
    "largest component": lambda g: mg.largest_component(g).info,
    "diameter": mg.diameter,
    "radius": mg.radius,
    "eccentricities": mg.eccentricity,
    "some eccentricities": lambda g: mg.eccentricity(g, [5, 2]).tolist(),
    "directed diameter": mg.diameter,
    "directed closeness": mg.closeness,
    "odd cycle": lambda g: mg.is_bipartite(g).odd_cycle,
}


def plain(found):
    """Return a value, or the digests of a result's columns."""
    columns = getattr(found, "columns", (found,))
    return [column.digest() if isinstance(column, Column) else column for column in columns]


@pytest.mark.parametrize("name", SEVERAL_JOBS)
def test_call_of_several_jobs_is_answered_after_a_loss_in_any_of_them(losing, name, tmp_path, caplog):
    call = SEVERAL_JOBS[name]
    path = tmp_path / "edges.el"
    # A ring with a chord, and a bridge.
    path.write_text("0 1\n1 2\n2 3\n3 4\n4 5\n5 6\n6 0\n0 3\n6 7\n7 6\n")
    with mg.read(path, directed=name.startswith("directed"), cluster=losing) as g:
        losing.jobs = 0
        expected = plain(call(g))
        # With those that read what was found.
        num_jobs = losing.jobs
        assert num_jobs > 1
        for lost in range(1, num_jobs + 1):
            losing.jobs = 0
            losing.lost_job = lost
            found = call(g)
            was_lost = losing.jobs >= lost
            losing.lost_job = 0
            assert plain(found) == expected
            del found
            if not was_lost:
                break
        assert len(caplog.records) == lost - 1 + was_lost > 1
        g.close()
        wait_until(lambda: not any(losing._objects))


def test_call_of_several_jobs_gives_up_after_so_many_rebuilds(losing, caplog):
    with mg.grid(3, 4, cluster=losing) as g:
        losing.losses = 10 * MAX_REBUILDS
        with pytest.raises(GangLost):
            mg.bridges(g)
        assert len(caplog.records) == MAX_REBUILDS


@pytest.mark.parametrize("edges", ["wel", "npz", "parquet"])
def test_files_that_have_not_changed_are_read_again(losing, tmp_path, edges):
    path = tmp_path / f"edges.{edges}"
    with mg.rmat(7) as g:
        g.edges.write(path)
    with mg.read(path) as g:
        expected = digests(g)
    with mg.read(path, cluster=losing) as g:
        losing.losses = 1
        assert digests(g) == expected
        losing.losses = 1
        path.write_bytes(path.read_bytes())
        with pytest.raises(InputError, match=rf"cannot be built again: {path} has changed since it was read"):
            mg.bfs(g, 1)


def test_saved_graph_is_loaded_again_unless_it_was_replaced(losing, tmp_path, expected):
    with mg.rmat(8) as g:
        g.save(tmp_path / "saved")
    with mg.load(tmp_path / "saved", cluster=losing) as g:
        (tmp_path / "saved" / "note").write_text("another file is no change")
        losing.losses = 1
        assert digests(g) == expected
        with mg.rmat(8, seed=2) as other:
            (tmp_path / "saved" / "note").unlink()
            other.save(tmp_path / "saved", overwrite=True)
        losing.losses = 1
        with pytest.raises(InputError, match=r"cannot be built again: .*mgraph\.json has changed"):
            mg.bfs(g, 1)


def test_save_is_repeated_and_leaves_no_other_folder(losing, tmp_path, expected):
    with mg.rmat(8, cluster=losing) as g:
        save = losing.run_on_stored

        def lose_after(function, *args):
            found = save(function, *args)
            if losing.losses == -1:
                losing.lose()
            return found

        losing.losses = -1
        losing.run_on_stored = lose_after
        g.save(tmp_path / "saved")
    assert os.listdir(tmp_path) == ["saved"]
    with mg.load(tmp_path / "saved") as g:
        assert digests(g) == expected


def test_edges_in_memory_are_refused_before_a_build(losing):
    with pytest.raises(UsageError, match=r"in memory and cannot be built again .* save it .* and load it"):
        mg.from_edges([0], [1], cluster=losing)
    assert not any(losing._objects)


def test_partitions_of_dask_are_refused_before_they_are_computed(losing):
    pairs = dask.array.from_delayed(dask.delayed(pytest.fail)("it was computed"), (2, 2), np.int64)
    with pytest.raises(UsageError, match="cannot be built again"):
        mg.from_dask(pairs, cluster=losing)


def test_result_of_a_lost_rank_is_not_built_again(losing):
    with mg.rmat(6, cluster=losing) as g, mg.bfs(g, 1) as found:
        losing.losses = 1
        mg.degrees(g)
        with pytest.raises(GraphClosed, match="build the graph and compute the result again"):
            found.distances.to_numpy()


def test_closed_graph_is_not_built_again(losing):
    g = mg.rmat(6, cluster=losing)
    g.close()
    with pytest.raises(GraphClosed, match="was closed: build it again"):
        mg.bfs(g, 1)


def test_graph_without_a_recipe_fails_as_before():
    with LosingCluster() as cluster:
        cluster.on_loss = "error"
        with mg.rmat(6, cluster=cluster) as g:
            cluster.losses = 1
            with pytest.raises(GangLost):
                mg.bfs(g, 1)


def test_graph_that_does_not_fit_the_ranks_that_are_left_is_refused(on_three, monkeypatch):
    with mg.rmat(6, cluster=on_three) as g:
        on_three.losses = 1

        def refuse(*args):
            raise WouldNotFit("too large for two ranks")

        monkeypatch.setattr("mgraph.api.graph.refuse_what_cannot_fit", refuse)
        with pytest.raises(WouldNotFit, match="too large for two ranks"):
            mg.bfs(g, 1)


def test_build_that_loses_a_rank_is_begun_again(losing, expected, monkeypatch):
    run = losing._threads.run
    lost = []

    def lose_once(function, *args):
        if function.__name__ == "build_graph" and not lost:
            lost.append(1)
            raise GangLost(0, "tcp://lost", "killed by a test")
        return run(function, *args)

    monkeypatch.setattr(losing._threads, "run", lose_once)
    with mg.rmat(8, cluster=losing) as g:
        assert digests(g) == expected
    assert lost


def test_unknown_choice_is_refused():
    with pytest.raises(UsageError, match="on_loss 'retry' is not one of error, rebuild"):
        mg.connect(on_loss="retry")
    with dask.config.set({"mgraph.on-loss": "retry"}), pytest.raises(UsageError, match="ON_LOSS"):
        mg.connect()


@pytest.mark.ci
def test_call_interrupted_anywhere_in_a_rebuild_leaves_the_next_one_answered(losing, expected):
    files = of_package("api/rebuild.py", "api/graph.py", "io/identities.py")
    with mg.rmat(8, cluster=losing) as g:
        for step in itertools.count():
            losing.losses = 1
            was_interrupted = interrupted_at(step, lambda: mg.bfs(g, 1).close(), files)
            losing.losses = 0
            assert digests(g) == expected
            if not was_interrupted:
                break
        assert step > 50
    wait_until(lambda: not any(losing._objects))


# Real processes.


@pytest.fixture(scope="module")
def workers():
    with worker_processes() as workers:
        yield workers


@pytest.fixture
def ranks(workers):
    with Client(workers, set_as_default=False) as client, mg.connect(client, num_ranks=2, on_loss="rebuild") as ranks:
        yield ranks


@pytest.mark.ci
def test_killed_worker_comes_back_and_calls_in_flight_and_later_are_answered(ranks, tmp_path, expected):
    marker = str(tmp_path / "m")
    with mg.grid(9, 9) as g:
        num_components = mg.connected_components(g).num_components
    pids = [found[0] for found in ranks.run(programs.where)]
    with mg.rmat(8, cluster=ranks) as g, mg.grid(9, 9, cluster=ranks) as other:
        killer = Killer(pids[1], exist(f"{marker}-2-0", f"{marker}-2-1"))
        over = threading.Timer(0, lambda: (killer.join(), pathlib.Path(f"{marker}-over").write_text("")))
        over.start()
        assert g._ask(programs.wait_once, marker) == [256, 256]
        over.join()
        assert ranks.run(programs.where)[1][0] != pids[1]
        assert digests(g) == expected
        # Lost with the same worker, and called only now.
        assert mg.connected_components(other).num_components == num_components
        held = {key for keys in ranks.client.run(held_keys).values() for key in keys if key.startswith("graph")}
        assert held == {g._key, other._key}


@pytest.mark.ci
@pytest.mark.timeout(240)
def test_interrupt_while_a_lost_worker_is_awaited(ranks, expected, caplog):
    with mg.rmat(8, cluster=ranks) as g:
        os.kill(ranks.run(programs.where)[0][0], signal.SIGKILL)
        timer = threading.Thread(target=interrupt_when, args=(lambda: "built again" in caplog.text,))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            mg.bfs(g, 1)
        timer.join()
        assert digests(g) == expected


def interrupt_when(condition) -> None:
    wait_until(condition)
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.ci
@pytest.mark.timeout(300)
@pytest.mark.parametrize("delay_s", [0.02, *[pytest.param(delay, marks=pytest.mark.long) for delay in (0.1, 0.3)], 0.6])
@pytest.mark.parametrize(
    "find",
    [lambda g: mg.bfs(g, 1), lambda g: mg.sssp(g, 1), mg.connected_components, mg.minimum_spanning_forest, mg.bridges],
)
def test_searches_are_answered_while_a_worker_is_killed(ranks, find, delay_s):
    with mg.rmat(15) as g, find(g) as found:
        expected = [column.digest() for column in found.columns]
    ranks.client.wait_for_workers(2, timeout=30)
    with mg.rmat(15, cluster=ranks) as g:
        pid = ranks.run(programs.where)[1][0]
        find(g)
        began = time.monotonic()
        killer = Killer(pid, lambda: time.monotonic() - began > delay_s)
        answered = 0
        while not answered or killer.is_alive() or not killer.at:
            with find(g) as found, contextlib.suppress(GraphClosed, GangLost):
                # Of a result that is lost before it is read nothing is known.
                assert [column.digest() for column in found.columns] == expected
                answered += 1
        with find(g) as found:
            assert [column.digest() for column in found.columns] == expected


@pytest.mark.ci
@pytest.mark.timeout(240)
def test_graph_is_built_on_the_workers_that_are_left(tmp_path, expected):
    with (
        scheduler_by_hand(tmp_path) as (_, file),
        worker_by_hand(file),
        worker_by_hand(file) as second,
        Client(scheduler_file=file) as client,
    ):
        client.wait_for_workers(2, timeout=60)
        with mg.connect(client, num_ranks=2, open_timeout_s=5, on_loss="rebuild") as ranks:
            g = mg.rmat(8, cluster=ranks)
            os.kill(second.pid, signal.SIGKILL)
            assert digests(g) == expected
            assert str(g.placement) == "1 of 2 ranks: the ranks that were left after a loss"
            g.close()
            wait_until(lambda: not any(client.run(held_keys).values()))
