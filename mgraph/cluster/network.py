"""Opens a gang's communicator: a rendezvous of all ranks first, then the connections, each under a deadline.

Ranks on GPUs connect through NCCL. Ranks that are threads of one process share its memory and open no port. All others
connect through sockets, with TLS if the Dask cluster uses TLS.
"""

from __future__ import annotations

import copy
import logging
import os
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TYPE_CHECKING, Any

from mgraph.cluster.log import log_of
from mgraph.cluster.messages import Ticket
from mgraph.comm.base import Communicator
from mgraph.comm.threads import open_threads
from mgraph.errors import ClusterError, CommTimeout
from mgraph.signals import run_in_thread

if TYPE_CHECKING:
    from distributed import Worker

# The exit code of a worker that ends itself.
EXIT_CODE = 70
# Added to the deadline of opening, so that the communicator's own timeout, which names the missing ranks, is first.
GRACE_S = 1.0
_TOKEN = uuid.uuid4().hex


def process_token() -> str:
    """Return a string that is equal for the workers of this process, and differs for all others."""
    # With the pid, since a forked child inherits _TOKEN.
    return f"{_TOKEN}-{os.getpid()}"


class ThreadGroups:
    """Communicators of gangs in this process: opened by the first rank, held until the last has received its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # By gang and epoch, the communicators of the ranks that have not requested theirs.
        self._comms: dict[tuple[str, int], dict[int, Communicator]] = {}

    def take(self, ticket: Ticket, index: int) -> Communicator:
        """Return one rank's communicator of the ticket's gang and epoch; the first rank opens them all."""
        key = ticket.gang, ticket.epoch
        with self._lock:
            if key not in self._comms:
                opened = open_threads(ticket.size, ticket.verb_timeout_s, ticket.members)
                self._comms[key] = dict(enumerate(opened))
            comm = self._comms[key].pop(index)
            if not self._comms[key]:
                del self._comms[key]
        return comm

    def drop(self, ticket: Ticket) -> None:
        """Drop the remaining communicators of a gang that was aborted."""
        with self._lock:
            self._comms.pop((ticket.gang, ticket.epoch), None)


# Global to the process, since each of its ranks is a worker of its own.
GROUPS = ThreadGroups()


def open_network(
    ticket: Ticket, index: int, worker: Worker, rendezvous: Callable[[str], list[str]], aborted: Future
) -> Communicator:
    """Open this rank's communicator of a gang, and connect it.

    Parameters
    ----------
    rendezvous
        Sends this rank's address to the other ranks, and returns the addresses of all when every rank has reported
        ready; raises RendezvousTimeout, which names the missing ranks. No step before it can block for ever, as
        NCCL can when a rank is missing.
    aborted
        Receives the error of a gang that is lost while it opens.
    """
    if ticket.size == 1:
        return open_threads(1)[0]
    connect = _opener(ticket)(ticket, index, worker, rendezvous, aborted)
    opening: Future[Communicator] = Future()
    threading.Thread(
        target=_connect, args=(connect, ticket.size, opening, aborted), name="mgraph-open", daemon=True
    ).start()
    done, _ = wait((opening, aborted), ticket.open_timeout_s + GRACE_S, FIRST_COMPLETED)
    if opening in done and aborted not in done:
        return opening.result()
    opening.add_done_callback(_abandon)
    if aborted in done:
        raise copy.copy(aborted.result())
    why = f"rank {index} on {worker.address} did not connect to its gang within {ticket.open_timeout_s:g} s"
    if ticket.backend == "cuda":
        _end_worker(worker, index, why)
    raise CommTimeout(why)


def _opener(ticket: Ticket) -> Callable[..., Callable[[], Communicator]]:
    """Return the function that opens the ticket's kind of communicator, up to and with the rendezvous."""
    if ticket.backend == "cuda":
        return _open_nccl
    return _open_threads if ticket.one_process else _open_sockets


def _open_threads(
    ticket: Ticket, index: int, worker: Worker, rendezvous: Callable[[str], list[str]], aborted: Future
) -> Callable[[], Communicator]:
    rendezvous(worker.address)

    def take() -> Communicator:
        # Dropped before and after `take`, so that an abort at any time leaves no group behind.
        aborted.add_done_callback(lambda _: GROUPS.drop(ticket))
        comm = GROUPS.take(ticket, index)
        if aborted.done():
            GROUPS.drop(ticket)
        return comm

    return take


def _open_sockets(
    ticket: Ticket, index: int, worker: Worker, rendezvous: Callable[[str], list[str]], aborted: Future
) -> Callable[[], Communicator]:
    from mgraph.comm.endpoint import SocketEndpoint, TlsContexts
    from mgraph.comm.sockets import open_sockets

    tls = None
    # Ranks use TLS if their workers do.
    if worker.address.startswith("tls://"):
        connect = worker.security.get_connection_args("worker")
        listen = worker.security.get_listen_args("worker")
        tls = TlsContexts(connect["ssl_context"], listen["ssl_context"])
    endpoint = SocketEndpoint(
        index,
        ticket.size,
        host=worker.ip,
        secret=ticket.secret,
        network=f"{ticket.gang}/{ticket.epoch}",
        tls=tls,
        names=ticket.members,
    )
    # The loss of the gang closes the port, and ends a thread that waits for the remaining ranks.
    aborted.add_done_callback(lambda _: endpoint.close())
    try:
        addresses = rendezvous(endpoint.address)
    except BaseException:
        endpoint.close()
        raise
    return lambda: open_sockets(endpoint, addresses, ticket.verb_timeout_s, open_timeout_s=ticket.open_timeout_s)


def _open_nccl(
    ticket: Ticket, index: int, worker: Worker, rendezvous: Callable[[str], list[str]], aborted: Future
) -> Callable[[], Communicator]:
    from mgraph.comm.nccl import new_unique_id, open_nccl

    unique_id = bytes.fromhex(rendezvous(new_unique_id().hex() if index == 0 else "")[0])
    return lambda: open_nccl(index, ticket.size, unique_id, ticket.verb_timeout_s, ticket.members)


def _connect(connect: Callable[[], Communicator], size: int, opening: Future[Any], aborted: Future) -> None:
    try:
        comm = connect()
        # The first verb may wait for a lost rank, so an abort must end it; once opened, the plugin aborts it. In a
        # thread, since this callback runs on the worker's event loop.
        aborted.add_done_callback(
            lambda done: None if opening.done() else run_in_thread(comm.abort, str(done.result()))
        )
        # NCCL connects in its first collective: 2-3 s that must not fall into a job.
        if comm.sum(1) != [size]:
            raise ClusterError(f"the first sum over {size} ranks was wrong: the network is unreliable")
    except BaseException as error:
        opening.set_exception(error)
    else:
        opening.set_result(comm)


def _abandon(opening: Future[Communicator]) -> None:
    if not opening.exception():
        opening.result().abort("the gang was lost while it opened")


def _end_worker(worker: Worker, index: int, why: str) -> None:
    """End a worker with a thread blocked inside NCCL, if it has a nanny that starts another."""
    if worker.nanny is None:
        return
    log_of(index, "open_network").error("%s; ending this worker, its nanny starts another", why)
    logging.shutdown()
    os._exit(EXIT_CODE)
