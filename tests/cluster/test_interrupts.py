"""Interrupts at any instruction of a caller: no lock stays held, and no object stays on the ranks."""

from __future__ import annotations

import concurrent.futures
import itertools
import os
import signal
import threading
import time
import weakref

import numpy as np
import pytest
import rank_programs as programs
from dask_processes import held_keys, wait_until
from interrupts import interrupt_often, interrupted_at, of_package
from local_clusters import GPU, local_cluster
from tiers import by_tier

import mgraph as mg
from mgraph.backends.all_cores import on_all_cores
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.numba_barrier import wait_often
from mgraph.backends.totals import total
from mgraph.cluster.base import ERROR_WAIT_S, MAX_FORGOTTEN, Objects
from mgraph.cluster.dask import DaskCluster
from mgraph.cluster.in_process import InProcessCluster
from mgraph.errors import GraphClosed

# How long ranks sleep after their last verb.
LATE_S = 3.0
KINDS = [1, 2, GPU]
THREADS = [f"cluster/{name}.py" for name in ("in_process", "local_ranks", "rank_threads", "caller_thread")]
CALLS = {
    "build": lambda g: mg.rmat(4, cluster=g.cluster),
    "bfs": lambda g: mg.bfs(g, 0),
    "bfs_many": lambda g: mg.bfs_many(g, [0, 1]),
    "bfs_together": lambda g: mg.bfs_together(g, [0, 1]),
    "components": mg.connected_components,
    "forest": mg.minimum_spanning_forest,
    "bridges": mg.bridges,
    "core": mg.k_core,
    "column": lambda g: mg.bfs(g, 0).distances.to_numpy(),
}


@pytest.mark.parametrize("kind", [2, *(pytest.param(kind, marks=pytest.mark.ci) for kind in (1, GPU))])
def test_call_interrupted_at_any_instruction_frees_the_ranks(kind):
    files = (*of_package("signals.py", *THREADS), programs.__file__)
    handler = signal.getsignal(signal.SIGINT)
    with local_cluster(kind, timeout_s=20) as cluster:
        num_ranks = cluster.num_ranks
        for step in itertools.count():
            was_interrupted = interrupted_at(step, lambda: cluster.run(programs.keep, "answer", 1), files)
            assert signal.getsignal(signal.SIGINT) is handler
            if not was_interrupted:
                break
            wait_until(lambda: not any(cluster._objects))
            assert len(cluster.run(programs.total)) == num_ranks
        assert step > 50
        assert cluster.run(programs.recall, "answer") == [1] * num_ranks


@pytest.mark.covering
@pytest.mark.widens
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", KINDS)
def test_result_interrupted_at_any_line_leaves_nothing_on_the_ranks(kind, name):
    with local_cluster(kind, timeout_s=20) as cluster, mg.rmat(4, weights="float32", cluster=cluster) as g:
        CALLS[name](g)
        # Primes, so that interrupts reach every line of a loop. One rank runs many more lines in this thread, and the
        # emulator's launches take long.
        by_kind = {1: by_tier(31, 13, 3), 2: by_tier(7, 3, 1), GPU: by_tier(1511, 1511, 257)}
        for step in itertools.count(0, by_kind[kind]):
            if not interrupted_at(step, lambda: CALLS[name](g), of_package(), by_line=True):
                break
            wait_until(lambda: [set(objects) for objects in cluster._objects] == [{g._key}] * cluster.num_ranks)
        assert step > 50
        assert len(cluster.run(programs.total)) == cluster.num_ranks


@pytest.mark.parametrize("kind", KINDS)
def test_close_interrupted_at_any_instruction_can_be_repeated(kind):
    files = of_package(*THREADS)
    for step in itertools.count():
        cluster = local_cluster(kind)
        cluster.run(programs.keep, "graph", 1)
        was_interrupted = interrupted_at(step, cluster.close, files)
        cluster.close()
        assert not any(cluster._objects)
        if not was_interrupted:
            break
    assert step > 20


def test_launch_interrupted_at_any_instruction_does_not_block_the_next_one():
    # The thread libraries too, which leave locks held if they are interrupted.
    files = *of_package("backends"), threading.__file__, os.path.dirname(concurrent.futures.__file__)
    values = np.arange(1 << 16)
    backend = CpuBackend(3)
    expected = int(values.sum())
    for step in itertools.count():
        was_interrupted = interrupted_at(step, lambda: total(backend, values), files)
        assert total(backend, values) == expected
        if not was_interrupted:
            break
    assert step > 50
    backend.close()
    assert total(backend, values) == expected


def test_loop_of_all_cores_interrupted_at_any_instruction_leaves_no_core_waiting():
    backend = CpuBackend(3)

    def pass_barriers():
        passed = []
        on_all_cores(backend, 3, lambda core, barrier: passed.append(wait_often(barrier, 3, 10)))
        return passed

    for step in itertools.count():
        was_interrupted = interrupted_at(step, pass_barriers, of_package("backends"))
        assert pass_barriers() == [True] * 3
        if not was_interrupted:
            break
    assert step > 50
    backend.close()


@pytest.mark.ci
@pytest.mark.widens
@pytest.mark.parametrize("scale", [8, 14])
@pytest.mark.parametrize("num_ranks", [1, 2])
def test_searches_succeed_after_many_interrupts(num_ranks, scale):
    interrupt_often(
        "from mgraph.rank_jobs.build import free_bytes\n"
        f"cluster = mg.connect(num_ranks={num_ranks}, backend='cpu'); g = mg.rmat({scale}, cluster=cluster)\n"
        "mg.bfs(g, 0)",
        "mg.bfs(g, 0)",
        "time.sleep(1); cluster.run(free_bytes)\n"
        f"assert [set(objects) for objects in cluster._objects] == [{{g._key}}] * {num_ranks}, cluster._objects",
        times=by_tier(60, 300),
    )


@pytest.mark.ci
@pytest.mark.widens
@pytest.mark.parametrize("threads", [1, 3])
def test_searches_of_one_gpu_succeed_after_many_interrupts(threads):
    """With several threads the main one also waits for its turn when it is interrupted."""
    interrupt_often(
        "import threading; from local_clusters import local_cluster; from mgraph.rank_jobs.build import free_bytes\n"
        "cluster = local_cluster('gpu'); g = mg.rmat(5, weights='float32', cluster=cluster)\n"
        "finds = mg.connected_components, mg.minimum_spanning_forest, lambda g: mg.bfs(g, 0), lambda g: mg.sssp(g, 0)\n"
        "find = lambda: [column for find in finds for column in find(g).columns]\n"
        "expected = [column.digest() for column in find()]\n"
        "is_over = []\n"
        "def search():\n"
        "    assert [column.digest() for column in find()] == expected\n"
        "def search_on():\n"
        "    while not is_over: search()\n"
        f"others = [threading.Thread(target=search_on) for _ in range({threads - 1})]\n"
        "for other in others: other.start()",
        "search(); assert signal.getsignal(signal.SIGINT) in (interrupt, signal.SIG_IGN)",
        "is_over.append(1)\n"
        "for other in others: other.join(30); assert not other.is_alive()\n"
        "time.sleep(1); cluster.run(free_bytes)\n"
        "assert [set(objects) for objects in cluster._objects] == [{g._key}], cluster._objects",
        times=by_tier(60, 400),
    )


def test_ranks_that_call_no_verb_stop_when_their_caller_is_interrupted(cluster, tmp_path):
    num_ranks = cluster.num_ranks
    interrupter = threading.Thread(target=interrupt_when_filled, args=(tmp_path, num_ranks))
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        cluster.run(programs.launch_on_and_on, str(tmp_path / "m"))
    interrupter.join()
    assert len(cluster.run(programs.total)) == num_ranks
    mg.rmat(4, cluster=cluster).close()


def interrupt_when_filled(folder, count):
    wait_until(lambda: len(list(folder.iterdir())) == count)
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture(params=[*KINDS, "dask"])
def cluster(request):
    if request.param == "dask":
        with DaskCluster(request.getfixturevalue("client"), open_timeout_s=30) as cluster:
            yield cluster
    else:
        with local_cluster(request.param) as cluster:
            yield cluster


def keys_of_ranks(cluster):
    """Return the keys that each rank stores, in this process or on its worker."""
    if isinstance(cluster, InProcessCluster):
        return [set(objects) for objects in cluster._objects]
    return list(cluster.client.run(held_keys).values())


def test_no_interrupt_is_lost_where_an_owner_is_collected(cluster):
    """Python drops what a finalizer raises: the key would stay."""

    class Owner:
        pass

    def collect():
        owners.clear()

    cluster.run(programs.keep, "answer", 1)
    owners = [Owner()]
    cluster.hold(owners[0], "answer")
    files = (*of_package(), weakref.__file__)
    assert not interrupted_at(0, collect, files), "Python code ran"
    wait_until(lambda: not any("answer" in keys for keys in keys_of_ranks(cluster)))
    # The next call may need the memory, and begins without what was collected before it.
    cluster.run(programs.keep, "answer", 1)
    owners = [Owner()]
    cluster.hold(owners[0], "answer")
    owners.clear()
    with pytest.raises(GraphClosed):
        cluster.run(programs.recall, "answer")


@pytest.mark.ci
def test_result_abandoned_after_the_last_verb_is_dropped(cluster):
    with mg.rmat(4, cluster=cluster) as g:
        # Opens the gang.
        mg.bfs(g, 0).close()
        threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            g._run(programs.keep_late, [], "answer", LATE_S)
        # It was abandoned while the ranks slept; but in its caller's thread a job ends by its next verb or launch.
        assert (time.monotonic() - began < LATE_S) == (cluster.num_ranks > 1)
        wait_until(lambda: keys_of_ranks(cluster) == [{g._key}] * cluster.num_ranks)
        cluster.run(programs.total)
        assert keys_of_ranks(cluster) == [{g._key}] * cluster.num_ranks


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("cluster", [2, "dask"], indirect=True)
def test_objects_of_a_call_that_failed_on_another_rank_are_dropped(cluster):
    with pytest.raises(ZeroDivisionError):
        cluster.run(programs.keep_behind_a_failure, "answer", ERROR_WAIT_S + 1)
    cluster.run(programs.total)
    assert not any(keys_of_ranks(cluster))


def test_key_forgotten_before_its_call_adds_it_is_dropped_when_the_call_ends():
    objects = Objects()
    objects["kept"] = 1
    with objects.transaction():
        objects["answer"] = 2
        objects.forget("late")
        objects["late"] = 3
    assert objects == {"kept": 1, "answer": 2}


def test_key_forgotten_before_its_call_begins_is_dropped_when_the_call_ends():
    """The message of a client that gave up may overtake the call, which is sent to the worker itself."""
    objects = Objects()
    objects.forget("late")
    with objects.transaction():
        objects["late"] = 1
        objects["answer"] = 2
    assert objects == {"answer": 2}
    for i in range(2 * MAX_FORGOTTEN):
        objects.forget(f"{i}")
    assert len(objects._forgotten) <= MAX_FORGOTTEN


def test_keys_of_a_failed_call_are_dropped():
    objects = Objects()
    objects["kept"] = 1

    def add_and_fail():
        with objects.transaction():
            objects["answer"] = 2
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        add_and_fail()
    assert objects == {"kept": 1}


@pytest.mark.ci
@pytest.mark.parametrize("kind", KINDS)
def test_call_of_a_rank_on_its_own_cluster_is_refused(kind):
    with local_cluster(kind) as cluster:
        num_ranks = cluster.num_ranks
        with pytest.raises(mg.UsageError, match="called its own cluster"):
            cluster.run(lambda rank: cluster.run(programs.total))
        assert len(cluster.run(programs.total)) == num_ranks
