"""Faults that only sockets can have: blocked large messages, ends inside a message, leaks, forked children."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time

import comm_cases
import numpy as np
import pytest
from comm_cases import same
from comm_ranks import AMPLE_S, Gang, Raised, check, open_in_process, open_socket_threads, repeat, run_threads

from mgraph.comm.exchange import FAREWELL_S
from mgraph.comm.links import BUFFER_BYTES, CHUNK_BYTES, JOIN_BYTES
from mgraph.comm.sockets import SMALL_BYTES
from mgraph.comm.threads import open_threads
from mgraph.errors import CommAborted, CommTimeout

pytestmark = pytest.mark.timeout(180)

TRANSPORTS = ("sockets", "tls")
# The sizes at which the implementation changes its method; lengths on both sides of each are tested.
LIMITS = (1, 512, JOIN_BYTES, BUFFER_BYTES, SMALL_BYTES, CHUNK_BYTES)
DTYPES = ("uint8", "int32", "int64", "float64")
NUM_VERBS = 40


def shrink_socket_buffers(comms) -> None:
    """Give every link small socket buffers, so that both ends of an exchange often wait for each other."""
    for comm in comms:
        for link in comm._network._links.values():
            link.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32 << 10)
            link.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)


def draw_verbs(rng: np.random.Generator, size: int) -> list[tuple]:
    """Draw verbs with lengths around the limits, the same on every rank."""
    drawn = []
    for _ in range(NUM_VERBS):
        dtype = np.dtype(DTYPES[rng.integers(len(DTYPES))])
        limit = LIMITS[rng.integers(len(LIMITS))] // dtype.itemsize
        verb = ("barrier", "broadcast", "allreduce", "allgather", "alltoallv", "alltoallv_into")[rng.integers(6)]
        lengths = np.maximum(0, limit + rng.integers(-2, 3, (size, size)))
        lengths[rng.random((size, size)) < 0.3] = 0
        drawn.append((verb, dtype, lengths, int(rng.integers(size)), ("min", "max", "sum")[rng.integers(3)]))
    return drawn


def run_verbs(comm, xp, drawn: list[tuple], seed: int) -> list[np.ndarray]:
    """Run the verbs on data of this rank; return all results."""
    rng = np.random.default_rng([seed, comm.rank])
    found = []
    for verb, dtype, lengths, root, op in drawn:
        if rng.random() < 0.2:
            time.sleep(rng.random() * 0.003)
        here = comm.rank
        x = (rng.integers(0, 100, lengths[0, 0]) * (1.5 if dtype.kind == "f" else 1)).astype(dtype)
        parts = [rng.integers(0, 100, lengths[here, r]).astype(dtype) for r in range(comm.size)]
        if verb == "barrier":
            comm.barrier()
        elif verb == "broadcast":
            found.append(comm.broadcast(x, root))
        elif verb == "allreduce":
            found.append(comm.allreduce(x, op))
        elif verb == "allgather":
            found.append(comm.allgather(x, np.empty(x.size * comm.size, dtype)))
        elif verb == "alltoallv":
            found += comm.alltoallv(parts)
        else:
            found += comm.alltoallv(parts, [np.empty(lengths[r, here], dtype) for r in range(comm.size)])
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_random_verbs_give_the_same_results_as_among_threads(transport, seed):
    size = 2 + seed % 3
    drawn = draw_verbs(np.random.default_rng(seed), size)
    expected = check(run_threads(open_threads(size, AMPLE_S), run_verbs, drawn, seed))
    comms = open_in_process(transport, size, AMPLE_S)
    if seed % 2:
        shrink_socket_buffers(comms)
    found = check(run_threads(comms, run_verbs, drawn, seed))
    check(run_threads(comms, lambda comm, xp: comm.close()))
    for of_rank, expected_of_rank in zip(found, expected, strict=True):
        for array, expected_array in zip(of_rank, expected_of_rank, strict=True):
            same(array, expected_array)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_large_messages_in_both_directions_do_not_block_each_other(transport):
    """All ranks send first, more than the socket buffers hold."""
    comms = open_in_process(transport, 3, AMPLE_S)
    shrink_socket_buffers(comms)

    def swap(comm, xp):
        parts = [np.full((2 << 20) + r, comm.rank, np.uint8) for r in range(comm.size)]
        for r, part in enumerate(comm.alltoallv(parts)):
            same(part, np.full((2 << 20) + comm.rank, r, np.uint8))

    check(run_threads(comms, swap))
    check(run_threads(comms, lambda comm, xp: comm.close()))


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_abort_ends_a_send_that_is_not_read(transport):
    """Rank 1 reads nothing: the message to it fills the link long before the abort, and is dropped."""
    comms = open_in_process(transport, 2, AMPLE_S)
    errors = []

    def send() -> None:
        try:
            comms[0].allreduce(np.zeros(64 << 20, np.uint8), "max")
        except CommAborted as error:
            errors.append(str(error))

    sending = threading.Thread(target=send)
    sending.start()
    time.sleep(0.3)
    comms[0].abort("had enough")
    sending.join(FAREWELL_S + 20)
    assert errors == ["had enough"]
    # A link that ended inside a message carries no cause.
    with pytest.raises(CommAborted, match=r"rank 0 is gone|had enough"):
        comms[1].allreduce(np.zeros(64 << 20, np.uint8), "max")


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_abort_in_the_middle_of_a_large_exchange_reaches_all_ranks_with_its_cause(transport):
    comms = open_in_process(transport, 3, AMPLE_S)
    threading.Timer(0.2, comms[1].abort, ("had enough",)).start()

    def exchange(comm, xp):
        with pytest.raises(CommAborted) as caught:
            repeat(comm.allreduce, np.zeros(8 << 20, np.uint8), "max")
        return str(caught.value)

    assert check(run_threads(comms, exchange)) == ["had enough"] * 3


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_cause_reaches_a_rank_that_calls_a_verb_after_the_abort(transport):
    comms = open_in_process(transport, 3, AMPLE_S)
    comms[1].abort("had enough")
    for comm in (comms[0], comms[2]):
        with pytest.raises(CommAborted, match="had enough"):
            comm.allreduce(np.zeros(1 << 20, np.uint8), "max")


def test_late_rank_raises_the_timeout_of_the_others():
    comms = open_socket_threads(2, 0.3, names=("tcp://a", "tcp://b"))
    late = (
        r"barrier: rank 1 \(tcp://b\) did not answer within 0.3 s: see whether that worker still runs; .*--verb-timeout"
    )
    with pytest.raises(CommTimeout, match=late):
        comms[0].barrier()
    with pytest.raises(CommTimeout, match=late):
        comms[1].barrier()


def test_deadline_may_be_infinite():
    comms = open_socket_threads(2, float("inf"))
    check(run_threads(comms, comm_cases.control_words))
    check(run_threads(comms, lambda comm, xp: comm.close()))


def test_interrupted_verb_ends_the_communicator_everywhere():
    """After a Ctrl-C inside a message no verb continues with a partial message."""
    comms = open_socket_threads(2, AMPLE_S)
    timer = threading.Timer(0.3, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            comms[0].allreduce(np.zeros(8 << 20, np.uint8), "max")
    finally:
        signal.signal(signal.SIGINT, before)
    for comm in comms:
        with pytest.raises(CommAborted):
            comm.barrier()


def descriptors() -> dict[str, str]:
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[name] = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
    return found


@pytest.mark.parametrize("end", ["close", "abort", "one aborts", "never linked"])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_no_thread_descriptor_or_port_is_left_behind(transport, end):
    """Opening and verbs need no thread either."""
    threads = set(threading.enumerate())
    before = descriptors()
    if end == "never linked":
        from mgraph.comm.endpoint import SocketEndpoint

        SocketEndpoint(0, 2, host="127.0.0.1", secret=bytes(32)).close()
    else:
        comms = open_in_process(transport, 3, AMPLE_S)
        check(run_threads(comms, comm_cases.control_words))
        # A clock of the test before this one may have ended.
        assert set(threading.enumerate()) <= threads
        if end == "one aborts":
            comms[0].abort()
            for comm in comms[1:]:
                with pytest.raises(CommAborted):
                    comm.barrier()
        else:
            check(run_threads(comms, lambda comm, xp: comm.close() if end == "close" else comm.abort()))
    assert set(threading.enumerate()) <= threads
    assert descriptors() == before


# Forked children.


def in_child(work) -> int:
    """Run `work` in a forked child; return its exit code, 0 if it returned True."""
    pid = os.fork()
    if not pid:
        code = 1
        try:
            code = 0 if work() else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_forked_child_does_not_touch_the_links_of_its_parent(transport):
    comms = open_in_process(transport, 2, AMPLE_S)
    numbers = [link.fd for comm in comms for link in comm._network._links.values()]

    def misuse() -> bool:
        for comm in comms:
            try:
                comm.barrier()
                return False
            except CommAborted as error:
                if "forked" not in str(error):
                    return False
            comm.abort("from the child")
            comm.close()
        return not any(os.path.exists(f"/proc/self/fd/{number}") for number in numbers)

    assert in_child(misuse) == 0
    check(run_threads(comms, comm_cases.alltoallv))
    check(run_threads(comms, lambda comm, xp: comm.close()))


def die_with_a_child(comm, xp, victim: int):
    """Kill a rank that has a forked child with copies of all its descriptors."""
    comm.barrier()
    if comm.rank == victim:
        if not os.fork():
            time.sleep(16)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)
    start = time.monotonic()
    with pytest.raises(CommAborted) as caught:
        repeat(comm.allreduce, np.zeros(8, np.uint8), "max")
    return str(caught.value), time.monotonic() - start


@pytest.mark.ci
def test_killed_rank_is_noticed_while_its_forked_child_lives():
    gang = Gang("sockets", 2, AMPLE_S)
    try:
        results = gang.run(die_with_a_child, 1)
    finally:
        gang.kill()
    assert isinstance(results[1], Raised)
    cause, seconds = check([results[0]])[0]
    assert "rank 1 is gone" in cause
    # Well before the child ends, even on a busy machine.
    assert seconds < 13
