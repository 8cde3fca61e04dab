"""What travels between client, scheduler and workers: frozen, and small."""

from __future__ import annotations

from dataclasses import dataclass, field

# The name under which both plugins are registered, and the executor in which rank functions run.
PLUGIN = "mgraph"


@dataclass(frozen=True)
class Ticket:
    """What a worker must know to take part in a call, given with the lease.

    `epoch` numbers the communicators of a gang: it rises whenever one is aborted, so that every rank
    sees for itself whether the one it has is the one that is meant.
    """

    gang: str
    epoch: int
    session: str
    members: tuple[str, ...]
    backend: str
    # How many ranks share the host, and so its cores, with each rank.
    neighbours: tuple[int, ...]
    open_timeout_s: float
    verb_timeout_s: float
    # Whether the ranks are threads of one process.
    one_process: bool
    # By which the ranks of a gang know each other; not for logs.
    secret: bytes = field(repr=False)

    @property
    def size(self) -> int:
        """The number of ranks."""
        return len(self.members)


def rank_key(name: str, lease: str, index: int) -> str:
    """Return the key of a rank's task; the dashboard shows the part before the lease."""
    return f"{name}-{lease}-{index}"
