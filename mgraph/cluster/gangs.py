"""The scheduler's records: places of ranks, gangs, sessions that use them, and running calls."""

from __future__ import annotations

import asyncio
import secrets
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from mgraph.cluster.messages import Ticket
from mgraph.errors import UsageError


@dataclass(frozen=True, order=True)
class Place:
    """Where a worker runs; places are ordered, and this order numbers the ranks."""

    host: str
    index: int
    worker: str
    gpu: str
    # Equal for workers of one process; empty if unknown.
    process: str = ""


@dataclass(eq=False)
class Gang:
    """Workers that are ranks together, until one of them is lost."""

    members: tuple[Place, ...]
    backend: str
    # Of its network.
    verb_timeout_s: float
    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    # Authenticates the ranks to each other.
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    epoch: int = 0
    # By rank, the addresses reported for the communicator of this epoch; `all_ready` is done when all have reported.
    ready: dict[int, str] = field(default_factory=dict)
    all_ready: asyncio.Future = field(default_factory=asyncio.Future)
    # Done with (rank, worker, cause) when a member is lost.
    lost: asyncio.Future = field(default_factory=asyncio.Future)

    def describe_wait(self, is_silent: Callable[[str], bool]) -> str:
        """Describe the ranks that others wait for: those that have not reported ready, or those of silent workers."""
        ranks = list(enumerate(self.workers))
        # Before the first one reports ready, all may wait for their parts of an input.
        if self.ready and not self.all_ready.done():
            late = [(rank, worker) for rank, worker in ranks if rank not in self.ready]
        else:
            late = [(rank, worker) for rank, worker in ranks if is_silent(worker)]
        listed = ", ".join(f"rank {rank} on {worker}" for rank, worker in late)
        return listed and f"{listed} to {'answer' if self.all_ready.done() else 'report ready'}"

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
    # How the previous gang was lost: rank, worker, cause.
    loss: tuple[int, str, str] | None = None


@dataclass(eq=False)
class Call:
    """One call of `run`: its lease, and the keys of its tasks. Direct calls have no tasks, and share a lease."""

    lease: str
    session: Session
    keys: tuple[str, ...]
    # The name of its function, or of the first one under a lease that is kept.
    job: str = ""
    granted: asyncio.Future = field(default_factory=asyncio.Future)
    # Done when another call waits for the lease, or when it has ended.
    asked: asyncio.Future = field(default_factory=asyncio.Future)
    ended: asyncio.Future = field(default_factory=asyncio.Future)
    # Whether its client keeps the lease for direct calls, until it is asked.
    is_kept: bool = False
    gang: Gang | None = None
    # Whether its client fetches the results; otherwise they stay on the workers.
    gather: bool = True
    aborted: bool = False
    # Whether a task failed. The client sees the error, and sends mgraph-end when it needs the call no more.
    failed: bool = False
    # By the monotonic clock.
    requested: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        # Keys of tasks that have not finished, and of tasks that the scheduler has not forgotten.
        self.pending = set(self.keys)
        self.remembered = set(self.keys)

    @property
    def is_lost(self) -> bool:
        """Whether the worker of one of its ranks was lost."""
        return self.gang is not None and self.gang.lost.done()

    @property
    def is_over(self) -> bool:
        """Whether the client has received and released all results."""
        return not (self.remembered or self.failed)

    def ticket(self) -> Ticket:
        """Return the ticket of this call for the gang's current epoch."""
        assert self.gang is not None
        hosts = [place.host for place in self.gang.members]
        return Ticket(
            gang=self.gang.name,
            epoch=self.gang.epoch,
            session=self.session.name,
            members=self.gang.workers,
            backend=self.gang.backend,
            local_ranks=tuple(hosts.count(host) for host in hosts),
            open_timeout_s=self.session.open_timeout_s,
            verb_timeout_s=self.gang.verb_timeout_s,
            one_process=self.gang.in_one_process,
            secret=self.gang.secret,
        )


def choose_backend(requested: str, places: list[Place] | tuple[Place, ...]) -> str:
    """Return cuda if every worker has its own GPU, else cpu; refuse cuda where that is impossible."""
    worker_of_gpu: dict[str, str] = {}
    for place in places:
        if place.gpu and place.gpu not in worker_of_gpu:
            worker_of_gpu[place.gpu] = place.worker
        elif requested == "cuda":
            why = f"shares its GPU with {worker_of_gpu[place.gpu]}" if place.gpu else "has no GPU, or no CuPy"
            raise UsageError(f"backend 'cuda' wants a GPU for each worker: {place.worker} {why}")
    return "cuda" if requested != "cpu" and len(worker_of_gpu) == len(places) else "cpu"
