"""Runs cases on the ranks of a communicator: threads of this process, or processes.

`run_threads` runs each communicator in a thread. A `Gang` is p processes that run many cases one after another,
because a process takes a second to start and NCCL several to open. Every wait has a deadline.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

HOST = "127.0.0.1"
# The secret of all networks of a test.
SECRET = bytes(range(32))
# Longer than the slowest case needs on two busy cores.
CASE_S = 60.0
# A deadline that no verb of a correct program reaches, even on a slow machine.
AMPLE_S = 60.0
# How long verbs are repeated until a failure is noticed; it takes about a millisecond.
REPEAT_S = 20.0


class Raised:
    """The result of a rank that raised an error."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __repr__(self) -> str:
        return f"raised {self.error!r}"


def run_threads(comms: Sequence[Any], case: Callable, *args: Any) -> list[Any]:
    """Run case(comm, numpy, *args) in a thread for each communicator; return values or Raised."""
    results: list[Any] = [Raised(TimeoutError(f"still running after {CASE_S} s"))] * len(comms)

    def run(rank: int) -> None:
        try:
            results[rank] = case(comms[rank], np, *args)
        except BaseException as error:
            results[rank] = Raised(error)
            # As a cluster does: the other ranks need not wait for one that failed.
            comms[rank].abort(f"rank {rank} failed: {error!r}")

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(len(comms))]
    deadline = time.monotonic() + CASE_S
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return results


def check(results: Sequence[Any]) -> list[Any]:
    """Return the values, or raise the first error that does not follow from another rank's."""
    errors = [result.error for result in results if isinstance(result, Raised)]
    if errors:
        raise next((error for error in errors if type(error).__name__ != "CommAborted"), errors[0])
    return list(results)


def open_socket_threads(size: int, timeout_s: float, **options: Any) -> list[Any]:
    """Open the socket communicators of ranks in this process."""
    from mgraph.comm.endpoint import SocketEndpoint
    from mgraph.comm.sockets import open_sockets

    endpoints = [SocketEndpoint(rank, size, host=HOST, secret=SECRET, **options) for rank in range(size)]
    addresses = [endpoint.address for endpoint in endpoints]
    opened: list[Any] = [None] * size

    def open_one(rank: int) -> None:
        opened[rank] = open_sockets(endpoints[rank], addresses, timeout_s)

    threads = [threading.Thread(target=open_one, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return opened


def open_in_process(transport: str, size: int, timeout_s: float = AMPLE_S) -> list[Any]:
    """Open the communicators of ranks in this process."""
    from mgraph.comm.threads import open_threads

    return {"threads": open_threads, "sockets": open_socket_threads, "tls": open_tls}[transport](size, timeout_s)


def open_tls(size: int, timeout_s: float) -> list[Any]:
    """Open socket communicators that use TLS with a temporary certificate."""
    from distributed import Security

    from mgraph.comm.endpoint import TlsContexts

    security = Security.temporary()
    connect = security.get_connection_args("worker")
    listen = security.get_listen_args("worker")
    contexts = TlsContexts(connect["ssl_context"], listen["ssl_context"])
    return open_socket_threads(size, timeout_s, tls=contexts)


def repeat(verb: Callable, *args: Any) -> None:
    """Call a verb until it raises: the first calls may still succeed."""
    end = time.monotonic() + REPEAT_S
    while time.monotonic() < end:
        verb(*args)


class Gang:
    """`size` processes, each with one rank's communicator, that run cases one after another."""

    def __init__(self, transport: str, size: int, timeout_s: float) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipes = []
        self.processes = []
        try:
            for rank in range(size):
                ours, theirs = context.Pipe()
                process = context.Process(target=_serve, args=(theirs, transport, rank, size, timeout_s), daemon=True)
                process.start()
                theirs.close()
                self.pipes.append(ours)
                self.processes.append(process)
            names = [self._receive(rank) for rank in range(size)]
            for pipe in self.pipes:
                pipe.send(names)
            check([self._receive(rank) for rank in range(size)])
        except BaseException:
            self.kill()
            raise

    def run(self, case: Callable, *args: Any, on_host: bool = True) -> list[Any]:
        """Run a case on every rank; return values or Raised."""
        for pipe in self.pipes:
            pipe.send((case, args, on_host))
        return [self._receive(rank) for rank in range(len(self.pipes))]

    def close(self) -> None:
        """Close the communicator on every rank, and end the processes."""
        for pipe in self.pipes:
            pipe.send(None)
        ended = [self._receive(rank) for rank in range(len(self.pipes))]
        deadline = time.monotonic() + CASE_S
        for process in self.processes:
            # A process releases its GPU on exit, which is slow when many exit at the same time.
            process.join(max(0.0, deadline - time.monotonic()))
        codes = [process.exitcode for process in self.processes]
        self.kill()
        assert check(ended) == [None] * len(ended)
        assert codes == [0] * len(codes)

    def kill(self) -> None:
        """Kill the processes."""
        for process in self.processes:
            process.kill()
            process.join()

    def _receive(self, rank: int) -> Any:
        if not self.pipes[rank].poll(CASE_S):
            return Raised(TimeoutError(f"rank {rank} is still running after {CASE_S} s"))
        try:
            return self.pipes[rank].recv()
        except EOFError:
            self.processes[rank].join(10)
            return Raised(EOFError(f"rank {rank} ended with {self.processes[rank].exitcode}"))


def _serve(pipe: Any, transport: str, rank: int, size: int, timeout_s: float) -> None:
    """Open one rank's communicator and run the cases received through the pipe."""
    try:
        comm, device_module = {"sockets": _open_sockets, "nccl": _open_nccl}[transport](pipe, rank, size, timeout_s)
    except BaseException as error:
        pipe.send(Raised(error))
        return
    pipe.send(None)
    while (work := pipe.recv()) is not None:
        case, args, on_host = work
        try:
            pipe.send(case(comm, np if on_host else device_module, *args))
        except BaseException as error:
            comm.abort(f"rank {rank} failed: {error!r}")
            pipe.send(Raised(error))
    comm.close()
    pipe.send(None)


def _open_sockets(pipe: Any, rank: int, size: int, timeout_s: float) -> tuple[Any, Any]:
    from mgraph.comm.endpoint import SocketEndpoint
    from mgraph.comm.sockets import open_sockets

    endpoint = SocketEndpoint(rank, size, host=HOST, secret=SECRET)
    pipe.send(endpoint.address)
    return open_sockets(endpoint, pipe.recv(), timeout_s), np


def _open_nccl(pipe: Any, rank: int, size: int, timeout_s: float) -> tuple[Any, Any]:
    import cupy

    from mgraph.comm.nccl import new_unique_id, open_nccl

    cupy.cuda.runtime.setDevice(rank)
    pipe.send(new_unique_id() if rank == 0 else None)
    return open_nccl(rank, size, pipe.recv()[0], timeout_s), cupy


def open_nccl_alone(pipe: Any, timeout_s: float) -> None:
    """Open rank 0 of two NCCL ranks without a second one; send the error, and exit."""
    import cupy

    from mgraph.comm.nccl import new_unique_id, open_nccl

    try:
        pipe.send(open_nccl(0, 2, new_unique_id(), timeout_s))
    except BaseException as error:
        pipe.send((error, int(cupy.arange(4).sum())))
    os._exit(0)
