"""What the scheduler knows: the places of ranks, the gangs they form, who uses them, and the calls under way."""

from __future__ import annotations

import asyncio
import secrets
import uuid
from dataclasses import dataclass, field

from mgraph.cluster.messages import Ticket
from mgraph.errors import UsageError


@dataclass(frozen=True, order=True)
class Place:
    """Where a worker runs: ranks are numbered in this order."""

    host: str
    index: int
    worker: str
    gpu: str
    # Equal for workers that are in one process; empty where that is not known.
    process: str = ""


@dataclass(eq=False)
class Gang:
    """Workers that act as ranks together, until one of them is lost."""

    members: tuple[Place, ...]
    backend: str
    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    # Ranks prove with it that they belong to this gang.
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    epoch: int = 0
    # Addresses reported for the communicator of this epoch, by rank.
    ready: dict[int, str] = field(default_factory=dict)
    met: asyncio.Future = field(default_factory=asyncio.Future)
    lost: asyncio.Future = field(default_factory=asyncio.Future)

    @property
    def workers(self) -> tuple[str, ...]:
        """The addresses of the members, by rank."""
        return tuple(place.worker for place in self.members)

    @property
    def in_one_process(self) -> bool:
        """Whether the members are workers of one process."""
        processes = {place.process for place in self.members}
        return len(processes) == 1 and processes != {""}


@dataclass(eq=False)
class Session:
    """One Cluster of one client."""

    name: str
    num_ranks: int
    backend: str
    open_timeout_s: float
    verb_timeout_s: float
    client: str
    gang: Gang | None = None
    # How the last one was lost: rank, worker, cause.
    loss: tuple[int, str, str] | None = None


@dataclass(eq=False)
class Call:
    """One `run`: its lease, and the keys of its tasks."""

    lease: str
    session: Session
    keys: tuple[str, ...]
    granted: asyncio.Future = field(default_factory=asyncio.Future)
    gang: Gang | None = None
    # Whether its client fetches the results, and does not keep them on the workers.
    gather: bool = True
    broken: bool = False
    # Whether a task of it did not end well, of which the client will hear, and say when it needs no more.
    failed: bool = False

    def __post_init__(self) -> None:
        # Those that have not yet left their workers, and those that the scheduler has not yet forgotten.
        self.pending, self.remembered = set(self.keys), set(self.keys)

    @property
    def is_lost(self) -> bool:
        """Whether a worker was lost that has a rank of it."""
        return self.gang is not None and self.gang.lost.done()

    @property
    def is_over(self) -> bool:
        """Whether the client got all results, and has let them go."""
        return not (self.remembered or self.failed)

    def ticket(self) -> Ticket:
        """Return what the ranks must know, as the gang is now."""
        assert self.gang is not None
        hosts = [place.host for place in self.gang.members]
        return Ticket(
            gang=self.gang.name,
            epoch=self.gang.epoch,
            session=self.session.name,
            members=self.gang.workers,
            backend=self.gang.backend,
            neighbours=tuple(hosts.count(host) for host in hosts),
            open_timeout_s=self.session.open_timeout_s,
            verb_timeout_s=self.session.verb_timeout_s,
            one_process=self.gang.in_one_process,
            secret=self.gang.secret,
        )


def settle_backend(wanted: str, places: list[Place] | tuple[Place, ...]) -> str:
    """Return cuda when every worker has a GPU that is its own, else cpu; refuse cuda where it cannot be."""
    seen: dict[str, str] = {}
    for place in places:
        if place.gpu and place.gpu not in seen:
            seen[place.gpu] = place.worker
        elif wanted == "cuda":
            why = f"shares its GPU with {seen[place.gpu]}" if place.gpu else "has no GPU, or no CuPy"
            raise UsageError(f"backend 'cuda' wants a GPU for each worker: {place.worker} {why}")
    return "cuda" if wanted != "cpu" and len(seen) == len(places) else "cpu"
