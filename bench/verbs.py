"""Measure verbs between ranks in different processes, through shared memory and sockets, and a ping-pong.

    python bench/verbs.py --record

It prints a table of medians of one run on this machine, in microseconds, or with `--json` one line. Compare the verbs
with the ping-pong over a blocking socket: the cost of a message differs between machines by more than ten times. Of a
size in bytes, each of two ranks has an array: an allreduce reduces it, an allgather concatenates both.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import secrets
import socket
import statistics
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import click
import numpy as np
import record

from mgraph.comm import handshake
from mgraph.comm.endpoint import SocketEndpoint
from mgraph.comm.sockets import open_sockets

HOST = "127.0.0.1"
SIZES = {"8 bytes": 8, "1 MiB": 1 << 20, "64 MiB": 64 << 20}


@click.command(help=__doc__)
@click.option("--turns", type=click.IntRange(min=10), default=2000, show_default=True, help="Number of small messages.")
@click.option(
    "--large-turns", type=click.IntRange(min=3), default=9, show_default=True, help="Number of messages of 64 MiB."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line.")
@click.option("--record", "is_recorded", is_flag=True, help="Append to bench/results.")
def main(turns: int, large_turns: int, as_json: bool, is_recorded: bool) -> None:
    turns_of = dict(zip(SIZES, (turns, max(3, turns // 10), large_turns), strict=True))
    found: dict[str, dict[str, float]] = {}
    for name, nbytes in SIZES.items():
        found[f"ping-pong, {name}"] = {"blocking socket": ping_pong(turns_of[name], nbytes)}
    for ranks in (2, 4):
        for way in ("shared memory", "sockets"):
            for verb, seconds in run(ranks, turns_of if ranks == 2 else {"8 bytes": turns // 4}, way).items():
                found.setdefault(f"{verb}, {ranks} ranks", {})[way] = seconds
    in_us = {name: {way: _us(s) for way, s in of.items()} for name, of in found.items()}
    if is_recorded:
        record.append("cpu", None, {"bench": "verbs", "us": in_us, "load": round(os.getloadavg()[0], 1)})
    if as_json:
        print(json.dumps(in_us))
        return
    ways = ("blocking socket", "shared memory", "sockets")
    print(f"{'us':26}" + "".join(f"{way:>18}" for way in ways))
    for name, of in in_us.items():
        print(f"{name:26}" + "".join(f"{of.get(way, ''):>18}" for way in ways))


def _us(seconds: float) -> float:
    return round(seconds * 1e6, 1)


def run(size: int, turns_of: dict[str, int], way: str) -> dict[str, float]:
    """Measure the verbs on ranks in separate processes; return the times of rank 0."""
    ends = []
    processes = []
    secret = secrets.token_bytes(32)
    for rank in range(size):
        end, process = start(serve_rank, rank, size, secret, turns_of, way)
        ends.append(end)
        processes.append(process)
    addresses = [end.recv() for end in ends]
    for end in ends:
        end.send(addresses)
    found, *_ = [end.recv() for end in ends]
    for process in processes:
        process.join()
    return found


def serve_rank(end: Any, rank: int, size: int, secret: bytes, turns_of: dict[str, int], way: str) -> None:
    """Run one rank."""
    endpoint = SocketEndpoint(rank, size, host=HOST, secret=secret)
    end.send(endpoint.address)
    with contextlib.ExitStack() as stack:
        if way == "sockets":
            stack.enter_context(mock.patch.object(handshake, "map_segment", return_value=None))
        comm = open_sockets(endpoint, end.recv())
    found = {"barrier": median(max(turns_of.values()), comm.barrier)}
    for name, turns in turns_of.items():
        x = np.ones(SIZES[name] // 8, np.int64)
        out = np.empty(x.size * size, np.int64)
        found[f"allreduce, {name}"] = median(turns, lambda x=x: comm.allreduce(x, "min"))
        found[f"allgather, {name}"] = median(turns, lambda x=x, out=out: comm.allgather(x, out))
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
