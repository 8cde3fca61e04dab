"""Whether there is room for what is planned, the same answer on every rank."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from mgraph.backends.base import Backend
from mgraph.comm.base import Communicator
from mgraph.errors import WouldNotFit
from mgraph.formatting import readable_bytes


class Planned(Protocol):
    """A plan of one layout."""

    @property
    def to_allocate_bytes(self) -> int:
        """What is still to be allocated once the order is found."""

    def refusal(self, free_bytes: int) -> str:
        """Say how much is needed, how much there is, and what would fit."""


# What a limit is said in, at most.
MOST_WORDS = 400


def refuse_without_room(what: str, needed: int, backend: Backend, comm: Communicator) -> None:
    """Raise on every rank if any has no room for what each id takes: one huge id is enough for that."""
    least = least_free(backend, comm)
    if needed > least:
        raise WouldNotFit(
            f"{readable_bytes(needed)} is needed on each rank for {what}, "
            f"and {readable_bytes(least)} is free: use ranks with more memory, or fewer vertices: ids need no gaps"
            + what_limits(backend, comm)
        )


def least_free(backend: Backend, comm: Communicator) -> int:
    """Return how much is free on the rank that has the least."""
    return int(comm.allreduce(np.array([backend.free_bytes()], np.int64), "min")[0])


def what_limits(backend: Backend, comm: Communicator) -> str:
    """Return the end of a refusal: which limit leaves no more on the rank that has the least; every rank calls it."""
    words = backend.free_memory().limit.encode()[:MOST_WORDS]
    own = np.frombuffer(words.ljust(MOST_WORDS, b"\0"), np.uint8)
    free = comm.allgather(np.array([backend.free_bytes()], np.int64), np.empty(comm.size, np.int64))
    said = comm.allgather(own, np.empty(comm.size * MOST_WORDS, np.uint8)).reshape(comm.size, MOST_WORDS)
    limit = said[free.argmin()].tobytes().rstrip(b"\0").decode(errors="replace")
    return f"; {limit}" if limit else ""


def refusal(plan: Planned, backend: Backend, comm: Communicator) -> str | None:
    """Return why the plan does not fit on some rank, None if it does on all."""
    free = backend.free_bytes()
    lacking = np.array([plan.to_allocate_bytes - free, -free], np.int64)
    worst, negated_free = comm.allreduce(lacking, "max").tolist()
    return plan.refusal(-negated_free) + what_limits(backend, comm) if worst > 0 else None


def refuse_unless_it_fits(plan: Planned, backend: Backend, comm: Communicator) -> None:
    """Raise on every rank if any of them has too little memory for what is still to be allocated."""
    if why := refusal(plan, backend, comm):
        raise WouldNotFit(why)
