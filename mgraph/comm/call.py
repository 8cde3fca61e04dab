"""The call of a verb: its arguments checked, its bytes counted, and a description that must agree on all ranks.

Ranks that call different verbs, or one verb with different shapes, would exchange garbage or wait for
ever. So every call has a description, which threads and sockets compare between ranks. NCCL has no field to carry it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from mgraph.comm.base import OPERATIONS
from mgraph.errors import CommAborted, CommMismatch, CommTimeout, UsageError
from mgraph.types import Array


class Call(NamedTuple):
    """One call of a verb: its name and shape, and the bytes that it sends to others."""

    description: tuple
    nbytes: int


BARRIER = Call(("barrier",), 0)


def broadcast_call(x: Array, root: int, rank: int, size: int) -> Call:
    """Describe a broadcast."""
    _check_contiguous("broadcast", x)
    if not 0 <= root < size:
        raise UsageError(f"broadcast: root {root} is not one of the ranks 0..{size - 1}")
    return Call(("broadcast", _name(x.dtype), x.size, root), x.nbytes * (size - 1) if rank == root else 0)


def allreduce_call(x: Array, op: str, size: int) -> Call:
    """Describe an allreduce."""
    _check_contiguous("allreduce", x)
    if op not in OPERATIONS:
        raise UsageError(f"allreduce: {op!r} is not one of {', '.join(OPERATIONS)}")
    return _allreduce_call(x.dtype, x.shape, op, x.nbytes if size > 1 else 0)


# As `describe`: the control words of supersteps are reduced by one call again and again.
@lru_cache(maxsize=1024)
def _allreduce_call(dtype: np.dtype, shape: tuple[int, ...], op: str, nbytes: int) -> Call:
    return Call(("allreduce", dtype.name, shape, op), nbytes)


def allgather_call(part: Array, out: Array, size: int) -> Call:
    """Describe an allgather."""
    _check_contiguous("allgather", part, out)
    if out.size != size * part.size or out.dtype != part.dtype:
        raise UsageError(
            f"allgather: out holds {out.size} {out.dtype.name}, but {size} parts of {part.size} {part.dtype.name} go in"
        )
    return Call(("allgather", _name(part.dtype), part.size), part.nbytes if size > 1 else 0)


def alltoallv_call(parts: Sequence[Array], into: Sequence[Array] | None, rank: int, size: int) -> Call:
    """Describe an alltoallv, without its lengths, which may differ between ranks."""
    lists = [parts] if into is None else [parts, into]
    for arrays in lists:
        if len(arrays) != size:
            raise UsageError(
                f"alltoallv: {len(arrays)} parts for {size} ranks; give one a rank, empty where there is nothing"
            )
        _check_contiguous("alltoallv", *arrays)
    dtypes = {_name(part.dtype) for arrays in lists for part in arrays}
    if len(dtypes) > 1:
        raise UsageError(f"alltoallv: parts are of several dtypes ({', '.join(sorted(dtypes))}); make them one")
    has_into = () if into is None else ("into",)
    return Call(("alltoallv", *dtypes, *has_into), sum(part.nbytes for r, part in enumerate(parts) if r != rank))


def copy_into(into: Sequence[Array], received: Sequence[Array]) -> list[Array]:
    """Copy the part of every rank into the caller's array for it; return these arrays."""
    for r, (array, part) in enumerate(zip(into, received, strict=True)):
        check_length(r, array, part)
        array[...] = part
    return list(into)


def check_length(rank: int, array: Array, part: Array) -> None:
    """Refuse an array of another length than the received part."""
    if array.size != part.size:
        raise UsageError(f"alltoallv: rank {rank} sent {part.size} values, but the array for them holds {array.size}")


def mismatch(rank: int, call: str, other: int, other_call: str) -> CommMismatch:
    """Return the error of two ranks that called different verbs."""
    return CommMismatch(
        f"rank {rank} called {call} where rank {other} called {other_call}: "
        "every rank calls the same verbs in the same order, with equal dtypes and shapes"
    )


def timeout_error(verb: str, ranks: Sequence[int], timeout_s: float, names: Sequence[str] = ()) -> CommTimeout:
    """Return the error that names ranks which missed the deadline of a verb."""
    return CommTimeout(
        f"{verb}: {name_ranks(ranks, names)} did not answer within {timeout_s:g} s: {next_step(len(ranks), names)}"
    )


def next_step(count: int, names: Sequence[str]) -> str:
    """Return advice about `count` ranks that did not answer; ranks with names are workers."""
    check = f"see whether {'that worker' if count == 1 else 'those workers'} still run{'s' * (count == 1)}; "
    return (
        f"{check if names else ''}a rank that computes longer between two verbs needs a longer verb_timeout_s "
        "(--verb-timeout)"
    )


def name_ranks(ranks: Sequence[int], names: Sequence[str] = ()) -> str:
    """Format ranks as `rank 2` or `ranks 2, 3`, with the names of their workers if given."""
    named = (f"{r} ({names[r]})" if names else f"{r}" for r in sorted(ranks))
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(named)}"


# A search repeats few calls, and formatting one takes as long as sending it.
@lru_cache(maxsize=1024)
def describe(description: tuple) -> str:
    """Format a call as text: the verb, and its details in parentheses."""
    verb, *details = description
    return f"{verb}({', '.join(map(str, details))})"


def fresh_copy(error: CommAborted | CommTimeout) -> CommAborted | CommTimeout:
    """Copy an error to raise it: many threads raise it, each with its own traceback."""
    return type(error)(*error.args)


@lru_cache(maxsize=64)
def _name(dtype: np.dtype) -> str:
    return dtype.name


def _check_contiguous(verb: str, *arrays: Array) -> None:
    for x in arrays:
        if not x.flags.c_contiguous:
            raise UsageError(f"{verb}: an array of shape {x.shape} is not contiguous; pass a contiguous one")
