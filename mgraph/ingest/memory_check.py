"""Check planned allocations against free memory; every rank receives the same result."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from mgraph.backends.base import Backend
from mgraph.comm.base import Communicator
from mgraph.errors import WouldNotFit
from mgraph.formatting import readable_bytes


class Planned(Protocol):
    """The memory plan of one layout."""

    @property
    def to_allocate_bytes(self) -> int:
        """The bytes still to be allocated once the vertex order is computed."""

    def refusal(self, free_bytes: int) -> str:
        """Return the error text: bytes needed, bytes free, and what would fit."""


# Maximal bytes of the description of a limit, exchanged as an array of this length.
MAX_LIMIT_BYTES = 400


def require_memory_for_ids(what: str, needed: int, backend: Backend, comm: Communicator) -> None:
    """Raise on every rank if any lacks memory for an array over all ids, which one huge id makes large."""
    least = min_free_bytes(backend, comm)
    if needed > least:
        raise WouldNotFit(
            f"{readable_bytes(needed)} is needed on each rank for {what}, "
            f"and {readable_bytes(least)} is free: use ranks with more memory, or fewer vertices: ids need no gaps"
            + limit_suffix(backend, comm)
        )


def min_free_bytes(backend: Backend, comm: Communicator) -> int:
    """Return the free bytes of the rank with the least."""
    return int(comm.allreduce(np.array([backend.free_bytes()], np.int64), "min")[0])


def limit_suffix(backend: Backend, comm: Communicator) -> str:
    """Return the end of an error text: the limit on the rank with the least free memory; every rank calls it."""
    text = backend.free_memory().limit.encode()[:MAX_LIMIT_BYTES]
    own = np.frombuffer(text.ljust(MAX_LIMIT_BYTES, b"\0"), np.uint8)
    free = comm.allgather(np.array([backend.free_bytes()], np.int64), np.empty(comm.size, np.int64))
    texts = comm.allgather(own, np.empty(comm.size * MAX_LIMIT_BYTES, np.uint8)).reshape(comm.size, MAX_LIMIT_BYTES)
    limit = texts[free.argmin()].tobytes().rstrip(b"\0").decode(errors="replace")
    return f"; {limit}" if limit else ""


def refusal(plan: Planned, backend: Backend, comm: Communicator) -> str | None:
    """Return the error text if the plan does not fit on some rank, None if it fits on all."""
    free = backend.free_bytes()
    lacking = np.array([plan.to_allocate_bytes - free, -free], np.int64)
    worst, negated_free = comm.allreduce(lacking, "max").tolist()
    return plan.refusal(-negated_free) + limit_suffix(backend, comm) if worst > 0 else None


def require_plan_fits(plan: Planned, backend: Backend, comm: Communicator) -> None:
    """Raise on every rank if the plan does not fit on some rank."""
    if error := refusal(plan, backend, comm):
        raise WouldNotFit(error)
