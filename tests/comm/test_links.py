"""Linking of ranks: unauthenticated peers ("strangers") run no code, learn nothing and delay no rank."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pathlib
import select
import socket
import struct
import threading
import time

import comm_cases
import numpy as np
import pytest
from comm_ranks import AMPLE_S, HOST, SECRET, check, run_threads
from distributed.comm import connect
from distributed.protocol import ToPickle

from mgraph.comm import endpoint as endpoints_module
from mgraph.comm.endpoint import SocketEndpoint
from mgraph.comm.handshake import ANSWER, CHALLENGE, HELLO, MAGIC, PROOF, Identity
from mgraph.comm.links import ABORT, DATA, HEAD, MAX_DESCRIPTION_BYTES, MAX_PAYLOAD_BYTES
from mgraph.comm.segments import NO_OFFER
from mgraph.comm.sockets import open_sockets
from mgraph.errors import CommAborted, RendezvousTimeout, UsageError

pytestmark = pytest.mark.timeout(120)


def make_endpoints(size: int, **options) -> list[SocketEndpoint]:
    return [SocketEndpoint(rank, size, host=HOST, secret=SECRET, **options) for rank in range(size)]


def open_all(endpoints: list[SocketEndpoint], timeout_s: float = AMPLE_S) -> list:
    addresses = [endpoint.address for endpoint in endpoints]
    return check(run_threads(endpoints, lambda endpoint, xp: open_sockets(endpoint, addresses, timeout_s)))


def close_all(comms: list) -> None:
    check(run_threads(comms, lambda comm, xp: comm.close()))


def connect_to(endpoint: SocketEndpoint) -> socket.socket:
    host, port = endpoint.address.split(":")
    sock = socket.create_connection((host, int(port)), timeout=20)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def read(sock: socket.socket, count: int) -> bytes:
    """Receive `count` bytes, or fewer if the connection ends before."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while len(found) < count and (more := sock.recv(count - len(found))):
            found += more
    return found


class Linking:
    """One rank that links in a thread, while the test plays its peers."""

    def __init__(self, endpoint: SocketEndpoint, timeout_s: float = AMPLE_S) -> None:
        addresses = [endpoint.address if r == endpoint.rank else "127.0.0.1:1" for r in range(endpoint.size)]
        self.result: list = []
        self.thread = threading.Thread(target=self._link, args=(endpoint, addresses, timeout_s), daemon=True)
        self.thread.start()

    def _link(self, endpoint, addresses, timeout_s) -> None:
        try:
            self.result.append(open_sockets(endpoint, addresses, timeout_s))
        except Exception as error:
            self.result.append(error)

    def wait(self):
        self.thread.join(30)
        (result,) = self.result
        return result


def prove_as(identity: Identity, sock: socket.socket, caller: int, listener: int) -> bytes:
    """Run the connecting side of a handshake; return the listener's answer."""
    nonce = os.urandom(32)
    sock.sendall(HELLO.pack(MAGIC, caller, listener, nonce))
    _, other = CHALLENGE.unpack(read(sock, CHALLENGE.size))
    sock.sendall(PROOF.pack(identity.prove(b"caller", caller, listener, nonce + other + NO_OFFER), NO_OFFER))
    return read(sock, ANSWER.size)


# Strangers.


class Evil:
    """An object that creates a folder when it is unpickled."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = str(folder)

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def test_pickle_in_the_first_bytes_runs_no_code(tmp_path):
    endpoints = make_endpoints(2)
    evil = {"x": ToPickle(Evil(tmp_path / "made"))}

    async def attack() -> None:
        with contextlib.suppress(OSError):
            await connect(f"tcp://{endpoints[0].address}", timeout=3, deserialize=False, handshake_overrides=evil)

    stranger = threading.Thread(target=asyncio.run, args=(attack(),))
    stranger.start()
    time.sleep(0.3)
    comms = open_all(endpoints)
    check(run_threads(comms, comm_cases.control_words))
    stranger.join(20)
    close_all(comms)
    assert not (tmp_path / "made").exists()


STRANGERS = {
    "nothing": b"",
    "http": b"GET / HTTP/1.1\r\n\r\n" * 10,
    "lengths": b"\xff" * 256,
    "zeros": bytes(4096),
    "part of a hello": HELLO.pack(MAGIC, 1, 0, bytes(32))[:-1],
    "hello and no proof": HELLO.pack(MAGIC, 1, 0, bytes(32)),
    "hello and noise": HELLO.pack(MAGIC, 1, 0, bytes(32)) + bytes(32),
    "hello of no rank": HELLO.pack(MAGIC, 2**32 - 1, 0, bytes(32)) + bytes(32),
}


@pytest.mark.parametrize("sent", STRANGERS.values(), ids=STRANGERS.keys())
def test_stranger_does_not_prevent_linking(sent):
    endpoints = make_endpoints(3)
    with contextlib.ExitStack() as stack:
        for endpoint in endpoints:
            stack.enter_context(connect_to(endpoint)).sendall(sent)
        comms = open_all(endpoints)
        check(run_threads(comms, comm_cases.control_words))
        close_all(comms)


def test_silent_stranger_is_disconnected_after_its_deadline(monkeypatch):
    monkeypatch.setattr(endpoints_module, "STRANGER_S", 0.3)
    endpoint = SocketEndpoint(0, 2, host=HOST, secret=SECRET)
    linking = Linking(endpoint)
    with connect_to(endpoint) as silent:
        assert read(silent, 1) == b""
    endpoint.close()
    assert "closed while it linked" in str(linking.wait())


def test_ranks_link_among_many_strangers(monkeypatch):
    """The number of pending connections is bounded, and a rank displaced by them connects again."""
    monkeypatch.setattr(endpoints_module, "MAX_PENDING", 5)
    endpoints = make_endpoints(3)
    with contextlib.ExitStack() as stack:
        strangers = [stack.enter_context(connect_to(endpoints[0])) for _ in range(200)]
        comms = open_all(endpoints)
        check(run_threads(comms, comm_cases.control_words))
        close_all(comms)
        assert all(read(stranger, 1) == b"" for stranger in strangers)


def test_number_of_pending_strangers_is_bounded(monkeypatch):
    monkeypatch.setattr(endpoints_module, "MAX_PENDING", 5)
    endpoint = SocketEndpoint(0, 2, host=HOST, secret=SECRET)
    linking = Linking(endpoint)
    with contextlib.ExitStack() as stack:
        strangers = [stack.enter_context(connect_to(endpoint)) for _ in range(40)]
        # The oldest are closed long before their deadline; the youngest stay open.
        for stranger in strangers[:33]:
            assert read(stranger, 1) == b""
        assert not select.select(strangers[33:], [], [], 0.2)[0]
        endpoint.close()
        linking.wait()


def test_replayed_and_foreign_proofs_are_refused():
    """A recorded proof, another gang's secret, another epoch, a wrong rank, the listener's own proof."""
    endpoint = SocketEndpoint(0, 3, host=HOST, secret=SECRET, network="gang/1")
    right = Identity(1, 3, "gang/1", SECRET)
    linking = Linking(endpoint)
    refused = ANSWER.pack(0, bytes(32))
    with connect_to(endpoint) as sock:
        nonce = os.urandom(32)
        sock.sendall(HELLO.pack(MAGIC, 1, 0, nonce))
        _, other = CHALLENGE.unpack(read(sock, CHALLENGE.size))
        recorded = right.prove(b"caller", 1, 0, nonce + other + NO_OFFER)
        # The listener's proof instead of the caller's.
        sock.sendall(PROOF.pack(right.prove(b"listener", 1, 0, nonce + other + NO_OFFER), NO_OFFER))
        assert read(sock, ANSWER.size) == refused
        assert read(sock, 1) == b""
    with connect_to(endpoint) as sock:
        sock.sendall(HELLO.pack(MAGIC, 1, 0, nonce))
        _, again = CHALLENGE.unpack(read(sock, CHALLENGE.size))
        assert again != other
        sock.sendall(PROOF.pack(recorded, NO_OFFER))
        assert read(sock, ANSWER.size) == refused
    for identity, caller, listener in (
        (Identity(1, 3, "gang/1", bytes(32)), 1, 0),
        (Identity(1, 3, "gang/0", SECRET), 1, 0),
        (right, 1, 2),
        (right, 0, 0),
        (right, 3, 0),
    ):
        with connect_to(endpoint) as sock:
            assert prove_as(identity, sock, caller, listener) == refused
    with connect_to(endpoint) as first, connect_to(endpoint) as second, connect_to(endpoint) as third:
        admitted, proof = ANSWER.unpack(prove_as(right, first, 1, 0))
        assert admitted == 1
        assert proof not in (recorded, bytes(32))
        # This rank is linked already.
        assert prove_as(right, second, 1, 0) == refused
        assert prove_as(right, third, 2, 0)[0] == 1
        comm = linking.wait()
        comm.abort()


def test_listener_without_the_secret_is_refused():
    endpoint = SocketEndpoint(1, 2, host=HOST, secret=SECRET)
    with socket.create_server((HOST, 0)) as fake:
        address = "{}:{}".format(*fake.getsockname())
        results: list = []

        def link() -> None:
            try:
                open_sockets(endpoint, [address, endpoint.address], AMPLE_S)
            except CommAborted as error:
                results.append(str(error))

        linking = threading.Thread(target=link)
        linking.start()
        sock, _ = fake.accept()
        with sock:
            hello = HELLO.unpack(read(sock, HELLO.size))
            assert hello[:3] == (MAGIC, 1, 0)
            sock.sendall(CHALLENGE.pack(MAGIC, bytes(32)))
            proof, _ = PROOF.unpack(read(sock, PROOF.size))
            # Reflect the other side's proof: a listener without the secret has nothing else.
            sock.sendall(ANSWER.pack(1, proof))
            linking.join(20)
    assert "did not prove" in results[0]


def test_short_secrets_are_refused_and_secrets_are_not_printed():
    with pytest.raises(UsageError, match="a secret of 3 bytes can be guessed"):
        SocketEndpoint(0, 2, host=HOST, secret=b"abc")
    shown = repr(Identity(0, 2, "gang/0", b"0123456789abcdef"))
    assert "gang/0" in shown
    assert "0123456789abcdef" not in shown


# Ranks that are missing, or of another gang.


def test_missing_endpoint_is_named_at_the_deadline():
    endpoints = make_endpoints(3, names=("tcp://a", "tcp://b", "tcp://c"))
    addresses = [endpoint.address for endpoint in endpoints]
    endpoints[0].close()

    def open_one(endpoint, xp):
        with pytest.raises((RendezvousTimeout, CommAborted)) as caught:
            open_sockets(endpoint, addresses, timeout_s=1.0)
        return str(caught.value)

    start = time.monotonic()
    texts = check(run_threads(endpoints[1:], open_one))
    assert all(f"rank 0 (tcp://a) did not connect within 1 s ({addresses[0]}: " in text for text in texts)
    assert time.monotonic() - start < 10


def test_rank_of_another_gang_is_refused():
    old = make_endpoints(2, network="gang/0")
    new = SocketEndpoint(1, 2, host=HOST, secret=SECRET, network="gang/1")
    stale = [old[0].address, new.address]

    def open_one(endpoint, xp):
        if endpoint is old[0]:
            with pytest.raises(RendezvousTimeout, match="rank 1 did not connect"):
                open_sockets(endpoint, [endpoint.address, old[1].address], timeout_s=1.5)
        else:
            with pytest.raises(CommAborted, match=r"rank 0 at .* refused.* it belongs to another gang"):
                open_sockets(endpoint, stale, timeout_s=1.5)

    check(run_threads([old[0], new], open_one))
    old[1].close()


def test_addresses_without_the_own_one_are_refused():
    endpoint = SocketEndpoint(0, 2, host=HOST, secret=SECRET)
    with pytest.raises(UsageError, match="not its own"):
        open_sockets(endpoint, ["127.0.0.1:1", "127.0.0.1:2"])


# Invalid frames of an authenticated peer.


def pack(kind: int, number: int, description: bytes, nbytes: int, rest: bytes = b"") -> bytes:
    return HEAD.pack(kind, len(description), number, nbytes) + description + rest


BAD_FRAMES = {
    "kind": (pack(77, 1, b"barrier()", 0), "kind 77"),
    "description": (HEAD.pack(DATA, MAX_DESCRIPTION_BYTES + 1, 1, 0), "which no rank sends"),
    "payload": (pack(DATA, 1, b"alltoallv(int64)", MAX_PAYLOAD_BYTES + 1), "which no rank sends"),
    "part of a value": (pack(DATA, 1, b"alltoallv(int64)", 9, bytes(9)), "9 bytes .* where 8 a value are expected"),
    "longer than expected": (
        pack(DATA, 1, b"allreduce(int64, (2,), sum)", 24, bytes(24)),
        "24 bytes .* where 16 are expected",
    ),
    "another verb": (pack(DATA, 1, b"barrier()", 0), r"rank 0 called allreduce\(.* where rank 1 called barrier\(\)"),
    "unknown error": (pack(ABORT, 0, b"SystemExit\nbye", 0), "^bye$"),
    "half": (pack(DATA, 1, b"allreduce(int64, (2,), sum)", 16, bytes(3)), "rank 1 is gone"),
}


@pytest.mark.parametrize(("sent", "error"), BAD_FRAMES.values(), ids=BAD_FRAMES.keys())
def test_invalid_frame_ends_the_communicator_and_names_its_sender(sent, error):
    def verb(comm):
        if b"alltoallv" in sent:
            comm.alltoallv([np.zeros(2, np.int64)] * 2)
        else:
            comm.allreduce(np.zeros(2, np.int64), "sum")

    endpoint = SocketEndpoint(0, 2, host=HOST, secret=SECRET)
    linking = Linking(endpoint)
    with connect_to(endpoint) as peer:
        assert prove_as(Identity(1, 2, "", SECRET), peer, 1, 0)[0] == 1
        comm = linking.wait()
        peer.sendall(sent)
        peer.shutdown(socket.SHUT_WR)
        with pytest.raises(CommAborted, match=error):
            verb(comm)
        # The cause is sent to the peer.
        kind, length, _, nbytes = struct.unpack("!BxxxIQQ", read(peer, HEAD.size))
        while kind == DATA:
            read(peer, length + nbytes)
            kind, length, _, nbytes = struct.unpack("!BxxxIQQ", read(peer, HEAD.size))
        assert kind == ABORT
        assert nbytes == 0
        assert read(peer, length).partition(b"\n")[0] in (b"CommAborted", b"CommMismatch")
