"""Measure verbs between ranks in different processes, and a ping-pong over a blocking socket.

    python bench/verbs.py

It prints medians of one run on this machine, in microseconds, as one JSON line. Compare the verbs with the ping-pong:
the cost of a message differs between machines by more than ten times.
"""

from __future__ import annotations

import json
import multiprocessing
import secrets
import socket
import statistics
import time
from collections.abc import Callable
from typing import Any

import click
import numpy as np

from mgraph.comm.endpoint import SocketEndpoint
from mgraph.comm.sockets import open_sockets

HOST = "127.0.0.1"
LARGE_BYTES = 64 << 20


@click.command(help=__doc__)
@click.option("--turns", type=click.IntRange(min=10), default=2000, show_default=True, help="Number of small messages.")
@click.option(
    "--large-turns", type=click.IntRange(min=3), default=9, show_default=True, help="Number of messages of 64 MiB."
)
def main(turns: int, large_turns: int) -> None:
    two = run(2, turns, large_turns)
    four = run(4, turns // 4, 0)
    found = {
        "ping_pong_us": ping_pong(turns, 8),
        "allreduce_8_bytes_2_ranks_us": two["small"],
        "barrier_4_ranks_us": four["barrier"],
        "ping_pong_64_mib_us": ping_pong(large_turns, LARGE_BYTES),
        "allreduce_64_mib_2_ranks_us": two["large"],
    }
    print(json.dumps({name: round(seconds * 1e6, 1) for name, seconds in found.items()}))


def run(size: int, turns: int, large_turns: int) -> dict[str, float]:
    """Measure the verbs on ranks in separate processes; return the times of rank 0."""
    ends = []
    processes = []
    secret = secrets.token_bytes(32)
    for rank in range(size):
        end, process = start(serve_rank, rank, size, secret, (turns, large_turns))
        ends.append(end)
        processes.append(process)
    addresses = [end.recv() for end in ends]
    for end in ends:
        end.send(addresses)
    found, *_ = [end.recv() for end in ends]
    for process in processes:
        process.join()
    return found


def serve_rank(end: Any, rank: int, size: int, secret: bytes, turns: tuple[int, int]) -> None:
    """Run one rank."""
    endpoint = SocketEndpoint(rank, size, host=HOST, secret=secret)
    end.send(endpoint.address)
    comm = open_sockets(endpoint, end.recv())
    word = np.ones(1, np.int64)
    large = np.zeros(LARGE_BYTES if turns[1] else 0, np.uint8)
    found = {
        "small": median(turns[0], lambda: comm.allreduce(word, "min")),
        "barrier": median(turns[0], comm.barrier),
        "large": median(turns[1], lambda: comm.allreduce(large, "max")) if turns[1] else 0.0,
    }
    comm.close()
    end.send(found)


def ping_pong(turns: int, nbytes: int) -> float:
    """Return the seconds of a round trip to another process over a socket."""
    with socket.create_server((HOST, 0)) as listener:
        _, process = start(serve_echo, listener.getsockname(), turns, nbytes)
        link, _ = listener.accept()
    with link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        message = bytes(nbytes)
        answer = memoryview(bytearray(nbytes))

        def once() -> None:
            link.sendall(message)
            receive(link, answer)

        seconds = median(turns, once)
    process.join()
    return seconds


def serve_echo(_: Any, address: tuple, turns: int, nbytes: int) -> None:
    """Echo every message."""
    with socket.create_connection(address) as link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        message = memoryview(bytearray(nbytes))
        for _ in range(turns):
            receive(link, message)
            link.sendall(message)


def receive(link: socket.socket, into: memoryview) -> None:
    """Fill `into`."""
    while len(into):
        into = into[link.recv_into(into) :]


def median(turns: int, once: Callable[[], object]) -> float:
    """Return the median seconds of a call."""
    seconds = []
    for _ in range(turns):
        start = time.perf_counter()
        once()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def start(serve: Callable, *args: Any) -> tuple[Any, Any]:
    """Start a process with a pipe to this one."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs, *args), daemon=True)
    process.start()
    return ours, process


if __name__ == "__main__":
    main()
