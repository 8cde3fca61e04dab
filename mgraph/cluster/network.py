"""Opening a gang's communicator: report ready first, then connect, each under a deadline.

Ranks on GPUs connect through NCCL, ranks of one process share its memory and open no port, and all others link up
through sockets, with TLS where the cluster speaks TLS.
"""

from __future__ import annotations

import copy
import os
import sys
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TYPE_CHECKING, Any

from mgraph.cluster.messages import Ticket
from mgraph.comm.base import Communicator
from mgraph.comm.threads import open_threads
from mgraph.errors import ClusterError, CommTimeout
from mgraph.signals import run_aside

if TYPE_CHECKING:
    from distributed import Worker

# Of a worker that ended itself.
EXIT_CODE = 70
# What a rank that does not connect may take beyond its deadline, to say by itself which rank is missing.
GRACE_S = 1.0
_TOKEN = uuid.uuid4().hex


def process_token() -> str:
    """Return what is equal for all workers of this process, and for no others."""
    # A forked child has its parent's memory.
    return f"{_TOKEN}-{os.getpid()}"


class ThreadGroups:
    """The communicators of gangs whose ranks share this process, from the first rank that takes its end to the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: dict[tuple[str, int], dict[int, Communicator]] = {}

    def take(self, ticket: Ticket, index: int) -> Communicator:
        """Return one rank's end of the communicator of the ticket's gang and epoch, opened by whichever comes first."""
        key = ticket.gang, ticket.epoch
        with self._lock:
            if key not in self._ends:
                opened = open_threads(ticket.size, ticket.verb_timeout_s, ticket.members)
                self._ends[key] = dict(enumerate(opened))
            end = self._ends[key].pop(index)
            if not self._ends[key]:
                del self._ends[key]
        return end

    def drop(self, ticket: Ticket) -> None:
        """Forget the ends that were not taken: their ranks do not come any more."""
        with self._lock:
            self._ends.pop((ticket.gang, ticket.epoch), None)


# Of this process and not of a worker, since its ranks are workers of their own.
GROUPS = ThreadGroups()


def open_network(
    ticket: Ticket, index: int, worker: Worker, meet: Callable[[str], list[str]], aborted: Future
) -> Communicator:
    """Open this rank's end of the gang's communicator, connected.

    Parameters
    ----------
    meet
        Gives this rank's address to the others and returns all of theirs when every rank has
        reported ready, or raises RendezvousTimeout, which names the missing. Nothing that can block for
        ever, as NCCL can when a rank is missing, happens before.
    aborted
        Carries the error of a gang that is lost while it opens.
    """
    if ticket.size == 1:
        return open_threads(1)[0]
    connect = _opener(ticket)(ticket, index, worker, meet, aborted)
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
        _end_worker(worker, why)
    raise CommTimeout(why)


def _opener(ticket: Ticket) -> Callable[..., Callable[[], Communicator]]:
    if ticket.backend == "cuda":
        return _open_nccl
    return _open_threads if ticket.one_process else _open_sockets


def _open_threads(
    ticket: Ticket, index: int, worker: Worker, meet: Callable[[str], list[str]], aborted: Future
) -> Callable[[], Communicator]:
    meet(worker.address)

    def take() -> Communicator:
        # Before the end is taken and after: an abort at any time leaves no group behind.
        aborted.add_done_callback(lambda _: GROUPS.drop(ticket))
        end = GROUPS.take(ticket, index)
        if aborted.done():
            GROUPS.drop(ticket)
        return end

    return take


def _open_sockets(
    ticket: Ticket, index: int, worker: Worker, meet: Callable[[str], list[str]], aborted: Future
) -> Callable[[], Communicator]:
    from mgraph.comm.endpoint import SocketEndpoint, TlsContexts
    from mgraph.comm.sockets import open_sockets

    tls = None
    # The way workers reach each other is the way ranks do.
    if worker.address.startswith("tls://"):
        connect, listen = worker.security.get_connection_args("worker"), worker.security.get_listen_args("worker")
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
    # A gang that is lost leaves no port open, and no thread that waits for the ranks that are left.
    aborted.add_done_callback(lambda _: endpoint.close())
    try:
        addresses = meet(endpoint.address)
    except BaseException:
        endpoint.close()
        raise
    return lambda: open_sockets(endpoint, addresses, ticket.verb_timeout_s, open_timeout_s=ticket.open_timeout_s)


def _open_nccl(
    ticket: Ticket, index: int, worker: Worker, meet: Callable[[str], list[str]], aborted: Future
) -> Callable[[], Communicator]:
    from mgraph.comm.nccl import new_unique_id, open_nccl

    unique_id = bytes.fromhex(meet(new_unique_id().hex() if index == 0 else "")[0])
    return lambda: open_nccl(index, ticket.size, unique_id, ticket.verb_timeout_s, ticket.members)


def _connect(connect: Callable[[], Communicator], size: int, opening: Future[Any], aborted: Future) -> None:
    try:
        comm = connect()
        # Its first verb may wait for a rank that is lost. Once it is open, the plugin aborts it. Not on the event loop.
        aborted.add_done_callback(lambda done: None if opening.done() else run_aside(comm.abort, str(done.result())))
        # The first collective is what really connects NCCL: 2-3 s that no job should meet.
        if comm.sum(1) != [size]:
            raise ClusterError(f"the first sum over {size} ranks was wrong: the network is not to be trusted")
    except BaseException as error:
        opening.set_exception(error)
    else:
        opening.set_result(comm)


def _abandon(opening: Future[Communicator]) -> None:
    if not opening.exception():
        opening.result().abort("the gang was lost while it opened")


def _end_worker(worker: Worker, why: str) -> None:
    """End a worker whose thread NCCL does not give back, if a nanny is there to start it again."""
    if worker.nanny is None:
        return
    print(f"mgraph: {why}; ending this worker, its nanny starts another", file=sys.stderr, flush=True)
    os._exit(EXIT_CODE)
