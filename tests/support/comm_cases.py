"""Conformance cases of communicators: programs that all ranks run, each checking its results against NumPy.

A case is `case(comm, xp)`: it is called on every rank, with xp the array module of the rank's arrays. Every rank can
generate the data of all others, so that expected results need no communicator.
"""

from __future__ import annotations

import time

import numpy as np
import pytest

from mgraph.errors import UsageError

DTYPES = [np.dtype(name) for name in ("uint8", "int32", "uint32", "int64", "float32", "float64")]
# Empty, one value, odd, and on both sides of each communicator's limit for small arrays; 7 ranks divide them unevenly.
LENGTHS = (0, 1, 7, 1000, 40_001, 300_001)
REDUCTIONS = {"min": np.min, "max": np.max, "sum": np.sum}
LARGE_BYTES = 64 << 20


def data(rank: int, length: int, dtype: np.dtype, op: str = "sum") -> np.ndarray:
    """Return one rank's array: small values for sums, the whole range of the dtype for minima and maxima."""
    rng = np.random.default_rng([rank, length, dtype.num])
    if op == "sum":
        return rng.integers(0 if dtype.kind == "u" else -30, 30, length).astype(dtype)
    if dtype.kind == "f":
        x = rng.standard_normal(length).astype(dtype)
        x[rng.random(length) < 0.2] = np.inf
        return x
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, length, dtype, endpoint=True)


def same(found, expected) -> None:
    """Assert that an array of either module equals a NumPy array in dtype, shape and every bit."""
    host = found.get() if hasattr(found, "get") else found
    assert host.dtype == expected.dtype
    assert host.shape == expected.shape
    assert np.array_equal(host.reshape(-1).view(np.uint8), expected.reshape(-1).view(np.uint8))


def allreduce(comm, xp) -> None:
    for dtype in DTYPES:
        for length in LENGTHS:
            for op, reduce in REDUCTIONS.items():
                x = xp.asarray(data(comm.rank, length, dtype, op))
                assert comm.allreduce(x, op) is x
                same(x, reduce([data(r, length, dtype, op) for r in range(comm.size)], axis=0).astype(dtype))


def allreduce_in_rank_order(comm, xp) -> None:
    """Sum floats in order of rank, so that results are reproducible."""
    for length in LENGTHS:
        arrays = [np.random.default_rng(r).standard_normal(length) * 10.0**r for r in range(comm.size)]
        expected = arrays[0]
        for array in arrays[1:]:
            expected = expected + array
        for _ in range(3):
            same(comm.allreduce(xp.asarray(arrays[comm.rank].copy()), "sum"), expected)


def shapes(comm, xp) -> None:
    x = xp.full((3, 5), comm.rank, np.int32)
    same(comm.allreduce(x, "max"), np.full((3, 5), comm.size - 1, np.int32))
    scalar = xp.full((), comm.rank + 1, np.int64)
    same(comm.allreduce(scalar, "min"), np.ones((), np.int64))
    x = xp.full((2, 2), comm.rank, np.float32)
    same(comm.broadcast(x, 0), np.zeros((2, 2), np.float32))
    out = xp.zeros((comm.size, 4), np.uint8)
    same(
        comm.allgather(xp.full(4, comm.rank, np.uint8), out),
        np.repeat(np.arange(comm.size, dtype=np.uint8), 4).reshape(-1, 4),
    )


def broadcast(comm, xp) -> None:
    for root in range(comm.size):
        for dtype in DTYPES:
            for length in LENGTHS:
                x = xp.asarray(data(comm.rank, length, dtype))
                assert comm.broadcast(x, root) is x
                same(x, data(root, length, dtype))


def allgather(comm, xp) -> None:
    for dtype in [*DTYPES, np.dtype(np.uint16), np.dtype(np.uint64)]:
        for length in LENGTHS:
            expected = np.concatenate([data(r, length, dtype) for r in range(comm.size)])
            out = xp.zeros(comm.size * length, dtype)
            assert comm.allgather(xp.asarray(data(comm.rank, length, dtype)), out) is out
            same(out, expected)
            # In place: the part is the rank's own slice of the whole.
            out = xp.zeros(comm.size * length, dtype)
            own = out[comm.rank * length : (comm.rank + 1) * length]
            own[...] = xp.asarray(data(comm.rank, length, dtype))
            same(comm.allgather(own, out), expected)


def alltoallv(comm, xp) -> None:
    """Lengths depend on source and target; some parts, all parts of some ranks, and once all parts, are empty."""
    lengths = {
        "unequal": lambda source, target: 10 * source + target,
        "some empty": lambda source, target: 1000 if (source + target) % 2 else 0,
        "one sends": lambda source, target: 300_001 if source == comm.size - 1 else 0,
        "one receives": lambda source, target: 50_003 if target == 0 else 0,
        "all empty": lambda source, target: 0,
    }
    for dtype in DTYPES:
        for length in lengths.values():
            parts = [xp.asarray(data(comm.rank * 8 + r, length(comm.rank, r), dtype)) for r in range(comm.size)]
            received = comm.alltoallv(parts)
            assert len(received) == comm.size
            assert received[comm.rank] is parts[comm.rank]
            for r in range(comm.size):
                same(received[r], data(r * 8 + comm.rank, length(r, comm.rank), dtype))
                received[r][...] = 0  # the receiver may write to them


def alltoallv_into(comm, xp) -> None:
    """Receive all parts, the own one too, into given arrays; lengths are known, some are 0."""
    dtype = np.dtype(np.int32)
    for length in (lambda source, target: 1000 * source + target, lambda source, target: (source + target) % 2):
        for module in (xp, np):
            parts = [module.asarray(data(comm.rank * 8 + r, length(comm.rank, r), dtype)) for r in range(comm.size)]
            ends = np.cumsum([0, *(length(r, comm.rank) for r in range(comm.size))])
            out = module.full(int(ends[-1]), -1, dtype)
            into = [out[ends[r] : ends[r + 1]] for r in range(comm.size)]
            received = comm.alltoallv(parts, into)
            for r in range(comm.size):
                assert received[r] is into[r]
                parts[r][...] = 0
            same(out, np.concatenate([data(r * 8 + comm.rank, length(r, comm.rank), dtype) for r in range(comm.size)]))


def reuse(comm, xp) -> None:
    """Overwrite arrays as soon as their verb has returned, however slow the other ranks are."""
    for repetition in range(4):
        for length in (10, 100_003):
            x = xp.full(length, repetition, np.int32)
            comm.broadcast(x, repetition % comm.size)
            x[...] = -1
            parts = [xp.full(length, repetition + comm.rank, np.int32) for _ in range(comm.size)]
            received = comm.alltoallv(parts)
            for part in (parts[r] for r in range(comm.size) if r != comm.rank):
                part[...] = -1
            time.sleep(0.002 * ((comm.rank + repetition) % comm.size))
            for r in range(comm.size):
                same(received[r], np.full(length, repetition + r, np.int32))
            out = xp.zeros(length * comm.size, np.int32)
            own = xp.full(length, comm.rank, np.int32)
            comm.allgather(own, out)
            own[...] = -1
            same(out, np.repeat(np.arange(comm.size, dtype=np.int32), length))


def control_words(comm, xp) -> None:
    comm.barrier()
    assert comm.any(comm.rank == comm.size - 1)
    assert not comm.any(False)
    assert comm.sum(1, comm.rank, 2**40) == [comm.size, comm.size * (comm.size - 1) // 2, comm.size * 2**40]


def host_arrays(comm, xp) -> None:
    """Every communicator accepts NumPy arrays, small ones and ones larger than its staging memory."""
    for length in (3, 300_001):
        x = np.full(length, comm.rank, np.int64)
        same(comm.allreduce(x, "max"), np.full(length, comm.size - 1))
        out = np.zeros(length * comm.size, np.int64)
        same(comm.allgather(np.full(length, comm.rank), out), np.repeat(np.arange(comm.size), length))
        same(comm.broadcast(np.full(length, comm.rank), 0), np.zeros(length, np.int64))
        for r, part in enumerate(comm.alltoallv([np.full(length, comm.rank)] * comm.size)):
            same(part, np.full(length, r))


def paces(comm, xp) -> None:
    """Results do not depend on which ranks are late, at which verbs."""
    rng = np.random.default_rng(comm.rank)
    for i in range(30):
        if rng.random() < 0.3:
            time.sleep(rng.random() * 0.004)
        assert comm.sum(i)[0] == i * comm.size
        if i % 3 == 0:
            root = i % comm.size
            same(comm.broadcast(xp.full(9, comm.rank * i, np.int32), root), np.full(9, root * i, np.int32))


def bytes_sent(comm, xp) -> None:
    others = comm.size - 1
    start = comm.bytes_sent
    comm.allreduce(xp.zeros(100, np.int32), "sum")
    comm.allgather(xp.zeros(10, np.int64), xp.zeros(10 * comm.size, np.int64))
    comm.broadcast(xp.zeros(5, np.uint8), 0)
    comm.alltoallv([xp.zeros(r + 1, np.float64) for r in range(comm.size)])
    routed = 8 * sum(r + 1 for r in range(comm.size) if r != comm.rank)
    expected = (480 if others else 0) + (5 * others if comm.rank == 0 else 0) + routed
    assert comm.bytes_sent - start == expected


def usage(comm, xp) -> None:
    """Wrong arguments are refused before anything is sent; the communicator stays usable."""
    x = xp.zeros((4, 4), np.int32)
    with pytest.raises(UsageError, match="'prod' is not one of min, max, sum"):
        comm.allreduce(x, "prod")
    with pytest.raises(UsageError, match="not contiguous"):
        comm.allreduce(x[:, 1], "min")
    with pytest.raises(UsageError, match=f"root {comm.size} is not"):
        comm.broadcast(x, comm.size)
    with pytest.raises(UsageError, match="17 int32"):
        comm.allgather(x, xp.zeros(17, np.int32))
    with pytest.raises(UsageError, match="float32"):
        comm.allgather(x, xp.zeros(16 * comm.size, np.float32))
    with pytest.raises(UsageError, match=f"{comm.size + 1} parts"):
        comm.alltoallv([x] * (comm.size + 1))
    if comm.size > 1:
        with pytest.raises(UsageError, match="several dtypes"):
            comm.alltoallv([x, *[xp.zeros(1, np.int64)] * (comm.size - 1)])
    with pytest.raises(UsageError, match="several dtypes"):
        comm.alltoallv([x] * comm.size, [xp.zeros(16, np.int64)] * comm.size)
    with pytest.raises(UsageError, match=f"{comm.size + 1} parts"):
        comm.alltoallv([x] * comm.size, [x] * (comm.size + 1))
    comm.barrier()


def large(comm, xp) -> None:
    """64 MiB through every verb."""
    length = LARGE_BYTES // 4
    places = np.arange(length, dtype=np.int32)
    arrays = [places ^ np.int32(0x5BD1E9 * r) for r in range(comm.size)]
    # A copy, since verbs write to it.
    own = xp.array(arrays[comm.rank])
    share = length // comm.size
    out = xp.empty(share * comm.size, np.int32)
    same(comm.allgather(own[:share], out), np.concatenate([array[:share] for array in arrays]))
    same(comm.allreduce(own, "min"), np.minimum.reduce(arrays))
    own[...] = xp.asarray(arrays[comm.rank])
    same(comm.broadcast(own, comm.size - 1), arrays[-1])
    parts = [xp.asarray(arrays[comm.rank][r * share : (r + 1) * share - r]) for r in range(comm.size)]
    lo = comm.rank * share
    hi = (comm.rank + 1) * share - comm.rank
    for r, part in enumerate(comm.alltoallv(parts)):
        same(part, arrays[r][lo:hi])


CASES = [
    allreduce, shapes, broadcast, allgather, alltoallv, alltoallv_into, reuse, control_words, host_arrays, paces,
    bytes_sent, usage,
]  # fmt: skip
