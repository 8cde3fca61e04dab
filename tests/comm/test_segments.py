"""Ranks of one host share memory for large payloads, or use their sockets alone; nothing of it is left behind."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import signal
import socket
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import comm_cases
import numpy as np
import pytest
from comm_cases import same
from comm_ranks import AMPLE_S, Gang, check, open_in_process, repeat, run_threads
from dask_processes import wait_until

from mgraph.comm import segments
from mgraph.comm.endpoint import SocketEndpoint
from mgraph.comm.handshake import CHALLENGE, HELLO, MAGIC, NONCE_BYTES, PROOF
from mgraph.comm.segments import NO_OFFER, OFFER, SLOTS, host_identity, map_segment, offer_segment
from mgraph.errors import CommAborted, CommTimeout, RendezvousTimeout

pytestmark = pytest.mark.timeout(120)

LARGE = np.arange(3 << 20, dtype=np.int64)


def close_all(comms) -> None:
    check(run_threads(comms, lambda comm, xp: comm.close()))


def links_of(comms) -> list:
    return [link for comm in comms for link in comm._network._links.values()]


def swap(comm, xp) -> None:
    """Exchange lengths on both sides of a slot's, more than the slots hold, in both directions at once."""
    slot_bytes = segments.MAX_SLOT_BYTES
    for length in (slot_bytes - 1, slot_bytes, slot_bytes + 1, 5 * slot_bytes + 3):
        parts = [np.full(length + r, comm.rank, np.uint8) for r in range(comm.size)]
        for r, part in enumerate(comm.alltoallv(parts)):
            same(part, np.full(length + comm.rank, r, np.uint8))


@pytest.mark.parametrize("transport", ["sockets", "tls"])
def test_large_payloads_leave_the_sockets_of_one_host(transport):
    comms = open_in_process(transport, 3)
    assert all(link.segment for link in links_of(comms))
    sent = []
    for link in links_of(comms):
        link.sock = Counting(link.sock, sent)
    check(run_threads(comms, swap))
    close_all(comms)
    assert sum(sent) < 100_000


class Counting:
    """A socket that records how many bytes it sends."""

    def __init__(self, sock, sent: list[int]) -> None:
        self._sock = sock
        self._sent = sent

    def __getattr__(self, name: str):
        return getattr(self._sock, name)

    def send(self, data) -> int:
        count = self._sock.send(data)
        self._sent.append(count)
        return count


# Agreement.


def refuse(*_: object) -> None:
    raise OSError(errno.ENOSPC, "no room")


FALLBACKS = {
    "no room": lambda patch: patch.setattr(os, "posix_fallocate", refuse),
    "no memory files": lambda patch: patch.delattr(os, "memfd_create"),
    "another host": lambda patch: patch.setattr(segments, "host_identity", lambda: os.urandom(32)),
    "no access": lambda patch: patch.setattr("mgraph.comm.handshake.map_segment", lambda *_: None),
}


@pytest.mark.parametrize("missing", FALLBACKS)
def test_ranks_use_sockets_alone_where_they_cannot_share_memory(monkeypatch, missing):
    FALLBACKS[missing](monkeypatch)
    comms = open_in_process("sockets", 2)
    assert not any(link.segment for link in links_of(comms))
    check(run_threads(comms, swap))
    close_all(comms)


def test_one_pair_may_share_memory_while_another_does_not(monkeypatch):
    memfd_create = os.memfd_create
    made = []

    def create_two(*args: object) -> int:
        if len(made) == 2:
            refuse()
        made.append(args)
        return memfd_create(*args)

    monkeypatch.setattr(os, "memfd_create", create_two)
    comms = open_in_process("sockets", 3)
    assert sum(link.segment is not None for link in links_of(comms)) == 4
    check(run_threads(comms, swap))
    check(run_threads(comms, comm_cases.allreduce_in_rank_order))
    close_all(comms)


def test_segment_is_private_reserved_and_of_fixed_size():
    with offer_segment(2) as (message, segment):
        _, pid, descriptor, token = OFFER.unpack(message)
        status = os.fstat(descriptor)
        assert pid == os.getpid()
        assert stat.S_IMODE(status.st_mode) == 0o600
        assert status.st_blocks * 512 >= status.st_size
        with pytest.raises(PermissionError):
            os.ftruncate(descriptor, 0)
        with pytest.raises(PermissionError):
            os.ftruncate(descriptor, 2 * status.st_size)
        peer = map_segment(message, 2)
        segment.send(LARGE[:1000])
        target = np.zeros(1000, np.int64)
        peer.receive(target)
        peer.take(segment.fill())
        same(target, LARGE[:1000])
    # Only until the handshake ends.
    assert map_segment(message, 2) is None
    assert token != bytes(32)


def test_only_a_segment_with_its_token_is_mapped(tmp_path):
    with offer_segment(2) as (message, _):
        host, pid, descriptor, token = OFFER.unpack(message)
        assert map_segment(NO_OFFER, 2) is None
        assert map_segment(message, 7) is not None  # of two and of seven ranks slots have one size
        assert map_segment(message, 700) is None
        assert map_segment(OFFER.pack(bytes(32), pid, descriptor, token), 2) is None
        assert map_segment(OFFER.pack(host, pid, descriptor, bytes(32)), 2) is None
        assert map_segment(OFFER.pack(host, 2**32 - 1, descriptor, token), 2) is None
        size = os.fstat(descriptor).st_size
        # A file that another could truncate, and a memory file without seals.
        with open(tmp_path / "file", "w+b") as file:
            file.write(token)
            file.truncate(size)
            assert map_segment(OFFER.pack(host, pid, file.fileno(), token), 2) is None
        unsealed = os.memfd_create("unsealed", os.MFD_ALLOW_SEALING)
        os.write(unsealed, token)
        os.ftruncate(unsealed, size)
        assert map_segment(OFFER.pack(host, pid, unsealed, token), 2) is None
        fcntl.fcntl(unsealed, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        assert map_segment(OFFER.pack(host, pid, unsealed, token), 2) is not None
        os.close(unsealed)
    assert host == host_identity()


def test_memory_of_one_rank_is_bounded():
    for size in (2, 3, 16, 17, 64, 500):
        with offer_segment(size) as (message, _):
            slots_bytes = os.fstat(OFFER.unpack(message)[2]).st_size - mmap.PAGESIZE
        assert slots_bytes % (2 * SLOTS * mmap.PAGESIZE) == 0
        assert slots_bytes <= 2 * SLOTS * segments.MAX_SLOT_BYTES
        assert slots_bytes * (size - 1) <= segments.RANK_BYTES


def test_impossible_slots_are_refused():
    with offer_segment(2) as (message, segment):
        peer = map_segment(message, 2)
    with pytest.raises(CommAborted, match="slot of 8 bytes"):
        peer.take(8)
    with pytest.raises(CommAborted, match="was free"):
        segment.return_slot()
    peer.receive(np.zeros(4, np.uint8))
    for nbytes in (0, 5):
        with pytest.raises(CommAborted, match=f"slot of {nbytes} bytes"):
            peer.take(nbytes)


# Failures.


def test_rank_that_receives_nothing_is_named_at_the_deadline():
    comms = open_in_process("sockets", 2, 0.5)
    with pytest.raises(CommTimeout, match=r"rank 1 did not answer within 0.5 s"):
        comms[0].broadcast(LARGE.copy(), 0)
    with pytest.raises(CommTimeout):
        comms[1].broadcast(LARGE.copy(), 0)


def test_abort_by_another_rank_wakes_one_that_waits_for_a_slot():
    comms = open_in_process("sockets", 3)
    threading.Timer(0.3, comms[2].abort, ("had enough",)).start()
    start = time.monotonic()
    with pytest.raises(CommAborted, match="had enough"):
        comms[0].broadcast(LARGE.copy(), 0)
    assert time.monotonic() - start < 5
    for comm in comms[1:]:
        comm.abort()


def fall_silent(comm, xp, how: signal.Signals):
    """Exchange large arrays until rank 1 is killed or stopped in the middle."""
    if comm.rank == 1:
        threading.Timer(0.3, os.kill, (os.getpid(), how)).start()
    start = time.monotonic()
    try:
        repeat(comm.allreduce, LARGE.copy(), "max")
    except (CommAborted, CommTimeout) as error:
        return type(error).__name__, str(error), time.monotonic() - start
    return None


SILENCES = {
    signal.SIGKILL: ("CommAborted", "rank 1 is gone"),
    signal.SIGSTOP: ("CommTimeout", "rank 1 did not answer within 2 s"),
}


@pytest.mark.ci
@pytest.mark.covering(every=2)
@pytest.mark.parametrize("how", SILENCES, ids=lambda how: how.name)
def test_rank_that_is_killed_or_stopped_in_a_large_exchange_is_named(how):
    gang = Gang("sockets", 2, 2.0)
    try:
        gang.pipes[1].send((fall_silent, (how,), True))
        gang.pipes[0].send((fall_silent, (how,), True))
        kind, cause, seconds = check([gang._receive(0)])[0]
    finally:
        gang.kill()
    assert (kind, SILENCES[how][1] in cause) == (SILENCES[how][0], True), cause
    assert seconds < 10


def mapped() -> int:
    with open("/proc/self/maps") as maps:
        return maps.read().count("/memfd:mgraph")


@pytest.mark.parametrize("end", ["close", "abort"])
def test_segments_are_unmapped_when_the_communicator_ends(end):
    before = mapped()
    comms = open_in_process("sockets", 3, AMPLE_S)
    assert mapped() == before + 6
    check(run_threads(comms, swap))
    check(run_threads(comms, lambda comm, xp: getattr(comm, end)()))
    assert mapped() == before


@pytest.mark.parametrize("linked", [False, True])
def test_segments_are_unmapped_if_linking_fails(linked):
    """At once, although the error lives on, and with it every frame that it went through."""
    before = mapped()
    zero, one, two = endpoints = [SocketEndpoint(r, 3, host="127.0.0.1", secret=bytes(range(32))) for r in range(3)]
    addresses = [endpoint.address for endpoint in endpoints]
    with ThreadPoolExecutor(2) as pool, contextlib.ExitStack() as stack:
        linking = [pool.submit(two.link, addresses, 3.0 if linked else 60.0)]
        if linked:
            # Rank 2 links with rank 0, and waits for rank 1 until its deadline.
            linking.append(pool.submit(zero.link, addresses, 3.0))
            wait_until(lambda: zero.links and two.links)
            assert mapped() == before + 2
        else:
            # Rank 1 reads the offer of rank 2, and does not answer.
            one.listener.setblocking(True)
            peer = stack.enter_context(one.listener.accept()[0])
            peer.recv(HELLO.size, socket.MSG_WAITALL)
            peer.sendall(CHALLENGE.pack(MAGIC, bytes(NONCE_BYTES)))
            peer.recv(PROOF.size, socket.MSG_WAITALL)
            assert mapped() == before + 1
            two.close()
        errors = [link.exception() for link in linking]
    zero.close()
    one.close()
    assert {type(error) for error in errors} == {RendezvousTimeout if linked else CommAborted}
    assert mapped() == before
