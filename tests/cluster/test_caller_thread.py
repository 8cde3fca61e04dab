"""Calls of one rank run in their callers' threads: one by one, under signals, and with the caller's device restored."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
import types

import pytest
import rank_programs as programs
from dask_processes import wait_until
from emulator.backend import EmulatedBackend
from local_clusters import GPU, emulated_gpu, local_cluster

import mgraph as mg
from mgraph.cluster.in_process import InProcessCluster
from mgraph.errors import ClusterError, CommAborted


@pytest.fixture(params=[1, GPU])
def cluster(request):
    with local_cluster(request.param) as cluster:
        yield cluster


@pytest.fixture
def handle():
    """Set the handler of a signal until the end of the test."""
    before = {}

    def handle(number, handler):
        before.setdefault(number, signal.getsignal(number))
        signal.signal(number, handler)

    yield handle
    for number, handler in before.items():
        signal.signal(number, handler)


def in_background(function, *args):
    thread = threading.Thread(target=function, args=args)
    thread.start()
    return thread


def job_that(act):
    """Return a job that does this in its thread, and then runs until it is stopped."""

    def job(rank, marker):
        act()
        programs.launch_on_and_on(rank, marker)

    return job


def test_call_runs_in_the_thread_of_its_caller(cluster):
    found = []
    thread = in_background(lambda: found.extend([cluster.run(programs.where)[0][1], threading.get_ident()]))
    thread.join(30)
    assert found[0] == found[1] != threading.get_ident()
    assert cluster.run(programs.where)[0][1] == threading.get_ident()


@pytest.mark.parametrize("options", [{}, {"make_backend": emulated_gpu}], ids=["cpu", "gpu"])
def test_several_ranks_have_threads_of_their_own(options):
    with InProcessCluster(2, **options) as cluster:
        assert threading.get_ident() not in {ident for _, ident, *_ in cluster.run(programs.where)}


class Stop(Exception):
    pass


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_error_of_any_handler_ends_the_call_and_is_raised_by_it(cluster, handle, tmp_path, number):
    def stop(number, frame):
        raise Stop(number)

    handle(number, stop)
    with pytest.raises(Stop) as raised:
        cluster.run(job_that(lambda: os.kill(os.getpid(), number)), str(tmp_path / "m"))
    assert raised.value.args == (number,)
    assert signal.getsignal(number) is stop
    assert cluster.run(programs.total)[0][2] == 1


def test_alarm_of_a_timer_ends_a_call_that_does_not_end(cluster, handle, tmp_path):
    """As pytest-timeout does it."""

    def alarm(number, frame):
        pytest.fail("too long")

    left, _ = signal.getitimer(signal.ITIMER_REAL)
    handle(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(pytest.fail.Exception, match="too long"):
            cluster.run(programs.launch_on_and_on, str(tmp_path / "m"))
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)
    assert cluster.run(programs.total)[0][2] == 1


def test_handler_that_returns_is_called_at_once_and_leaves_the_call_alone(cluster, handle):
    called = []
    handle(signal.SIGUSR1, lambda number, frame: called.append(number))

    def job(rank):
        os.kill(os.getpid(), signal.SIGUSR1)
        wait_until(lambda: called)
        return rank.comm.sum(5)

    assert cluster.run(job) == [[5]]
    assert called == [signal.SIGUSR1]


def test_objects_of_an_interrupted_call_are_dropped(cluster):
    def job(rank):
        rank.objects["answer"] = 1
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        cluster.run(job)
    wait_until(lambda: not any(cluster._objects))
    assert cluster.run(programs.total)[0][2] == 1


def test_objects_of_a_failed_call_are_dropped_and_its_communicator_is_replaced(cluster):
    communicators = []

    def job(rank):
        communicators.append(rank.comm)
        rank.objects["answer"] = 1
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            cluster.run(job)
        assert not any(cluster._objects)
    assert communicators[0] is not communicators[1]
    with pytest.raises(CommAborted, match="ZeroDivisionError"):
        communicators[0].barrier()


def test_calls_of_several_threads_run_in_their_order(cluster):
    order = []
    go = threading.Event()

    def wait(rank):
        assert go.wait(30)

    threads = [in_background(cluster.run, wait)]
    wait_until(lambda: len(cluster._threads._turns._waiting) == 1)
    for i in range(5):
        threads.append(in_background(cluster.run, lambda rank, i=i: order.append(i)))
        wait_until(lambda i=i: len(cluster._threads._turns._waiting) == i + 2)
    go.set()
    for thread in threads:
        thread.join(30)
    assert order == list(range(5))


def test_interrupt_while_a_caller_waits_for_its_turn_leaves_the_others_alone(cluster):
    go = threading.Event()
    first = in_background(cluster.run, lambda rank: go.wait(30))
    wait_until(lambda: cluster._threads.running)
    last = []
    others = []

    def interrupt():
        wait_until(lambda: len(cluster._threads._turns._waiting) == 2)
        others.append(in_background(lambda: last.extend(cluster.run(programs.total))))
        wait_until(lambda: len(cluster._threads._turns._waiting) == 3)
        os.kill(os.getpid(), signal.SIGINT)

    interrupter = in_background(interrupt)
    with pytest.raises(KeyboardInterrupt):
        cluster.run(programs.keep, "answer", 1)
    assert first.is_alive()
    go.set()
    for thread in (first, interrupter, *others):
        thread.join(30)
        assert not thread.is_alive()
    assert len(last) == 1
    assert not any(cluster._objects)


def test_close_in_another_thread_ends_the_call_and_refuses_those_that_wait(cluster, tmp_path):
    refused = []

    def wait():
        with pytest.raises(ClusterError, match="closed") as caught:
            cluster.run(programs.nothing)
        refused.append(caught.type)

    threads = []

    def close():
        wait_until(lambda: (tmp_path / "m-0").exists())
        threads.extend(in_background(wait) for _ in range(2))
        wait_until(lambda: len(cluster._threads._turns._waiting) == 3)
        cluster.close()

    closer = in_background(close)
    with pytest.raises(CommAborted, match="closed"):
        cluster.run(programs.launch_on_and_on, str(tmp_path / "m"))
    for thread in (closer, *threads):
        thread.join(30)
        assert not thread.is_alive()
    assert len(refused) == 2
    with pytest.raises(ClusterError, match="closed"):
        cluster.run(programs.nothing)


def test_handler_may_close_the_cluster_during_a_call_but_not_call_it(cluster, handle, tmp_path):
    errors = []

    def use(number, frame):
        with pytest.raises(mg.UsageError, match="called its own cluster") as caught:
            cluster.run(programs.nothing)
        errors.append(caught.type)
        cluster.close()

    handle(signal.SIGUSR1, use)
    with pytest.raises(CommAborted, match="closed"):
        cluster.run(job_that(lambda: os.kill(os.getpid(), signal.SIGUSR1)), str(tmp_path / "m"))
    assert errors == [mg.UsageError]


def test_interrupt_during_a_call_within_a_call_of_another_cluster_ends_both(cluster, tmp_path):
    handler = signal.getsignal(signal.SIGINT)
    with local_cluster(GPU) as other:

        def job(rank):
            other.run(job_that(lambda: os.kill(os.getpid(), signal.SIGINT)), str(tmp_path / "m"))

        with pytest.raises(KeyboardInterrupt):
            cluster.run(job)
        assert signal.getsignal(signal.SIGINT) is handler
        assert other.run(programs.total) == cluster.run(programs.total)


def test_device_of_the_caller_is_restored_however_the_call_ends():
    current = types.SimpleNamespace(device=7)

    class OnDevice3(EmulatedBackend):
        def enter_thread(self):
            pass

        def borrow_thread(self):
            before = current.device
            current.device = 3
            return lambda: setattr(current, "device", before)

    def interrupt(rank):
        os.kill(os.getpid(), signal.SIGINT)

    with InProcessCluster(1, make_backend=OnDevice3) as cluster:
        assert cluster.run(lambda rank: current.device) == [3]
        assert current.device == 7
        for job, error in ((programs.fail_alike, ZeroDivisionError), (interrupt, KeyboardInterrupt)):
            with pytest.raises(error):
                cluster.run(job)
            assert current.device == 7


@pytest.mark.gpu
def test_device_and_stream_of_the_caller_are_restored():
    import cupy

    def streams(rank):
        return cupy.cuda.runtime.getDevice(), cupy.cuda.get_current_stream().ptr

    with InProcessCluster(1, backend="cuda") as cluster, cupy.cuda.Stream(non_blocking=True) as stream:
        assert cluster.run(streams) == [(cupy.cuda.runtime.getDevice(), 0)]
        assert cupy.cuda.get_current_stream() == stream


def test_read_waits_for_the_call_that_runs_and_one_without_a_call_takes_no_turn(cluster):
    order = []
    begun = threading.Event()
    go_on = threading.Event()

    def call(rank):
        begun.set()
        go_on.wait(30)
        order.append("call")

    thread = in_background(cluster.run, call)
    begun.wait(30)
    reader = in_background(cluster.read, lambda rank: order.append("read"))
    time.sleep(0.1)
    assert not order
    go_on.set()
    thread.join(30)
    reader.join(30)
    assert order == ["call", "read"]
    assert cluster.read(programs.where)[0][1] == threading.get_ident()


def test_interrupted_read_raises_and_leaves_the_cluster_usable(cluster):
    def read(rank):
        os.kill(os.getpid(), signal.SIGINT)
        wait_until(lambda: rank.backend.stopped is not None)

    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            cluster.read(read)
        assert cluster.run(programs.total)[0][2] == 1
        assert cluster.read(programs.where)[0][1] == threading.get_ident()


def test_handler_may_close_the_cluster_during_a_read_but_not_call_it(cluster, handle):
    refused = []

    def stop(number, frame):
        with pytest.raises(ClusterError if cluster.closed else mg.UsageError) as raised:
            cluster.run(programs.total)
        refused.append(raised.value)
        cluster.close()

    handle(signal.SIGUSR1, stop)
    cluster.read(lambda rank: (os.kill(os.getpid(), signal.SIGUSR1), wait_until(lambda: refused)))
    assert "its own cluster" in str(refused[0])
    for run in (cluster.read, cluster.run):
        with pytest.raises(ClusterError, match="closed"):
            run(programs.total)


def test_key_of_a_collected_owner_is_forgotten_without_a_call_and_before_the_next(cluster):
    def hold(key):
        owner = threading.Event()
        cluster.run(programs.keep, key, 1)
        assert cluster.hold(owner, key).alive

    hold("first")
    wait_until(lambda: not any(cluster._objects))
    hold("second")
    assert cluster.run(lambda rank: list(rank.objects)) == [[]]
    assert not cluster._threads.holds.by_key


def test_thread_beside_ends_with_the_cluster():
    before = set(threading.enumerate())
    cluster = local_cluster(GPU)
    cluster.run(programs.keep, "graph", 1)
    del cluster
    wait_until(lambda: set(threading.enumerate()) <= before)


def test_failure_to_start_the_thread_beside_raises_an_error(monkeypatch):
    def start(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(ClusterError, match=r"1 rank in this process need a thread each \(can't start"):
        local_cluster(GPU)


@pytest.mark.parametrize("num_signals", [1, 3])
def test_error_keeps_nothing_of_the_interrupted_call(cluster, num_signals):
    gc.collect()
    gc.disable()
    try:

        def job(rank, held):
            for _ in range(num_signals):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.001)

        with pytest.raises(KeyboardInterrupt) as caught:
            cluster.run(job, programs.Tracked())
        error = caught.value
        error.__traceback__ = None
        del caught
        wait_until(lambda: not programs.Tracked.living)
    finally:
        gc.enable()
