"""The messages between client, scheduler and workers: frozen, and small."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from distributed.protocol import pickle, to_serialize

# The name of both plugins, and of the executor that runs rank functions.
PLUGIN = "mgraph"


@dataclass(frozen=True)
class Ticket:
    """The data that a worker needs for a call; the scheduler sends it with the lease.

    `epoch` numbers the communicators of a gang. It increases whenever one is aborted, so that every rank can check
    whether the communicator it has open is the current one.
    """

    gang: str
    epoch: int
    session: str
    members: tuple[str, ...]
    backend: str
    # By rank: how many ranks of the gang run on its host, itself included, and share the host's cores.
    local_ranks: tuple[int, ...]
    open_timeout_s: float
    verb_timeout_s: float
    # Whether the ranks are threads of one process.
    one_process: bool
    # Authenticates the ranks of the gang to each other; not printed.
    secret: bytes = field(repr=False)

    @property
    def size(self) -> int:
        """The number of ranks."""
        return len(self.members)


def packed(result: Any) -> Any:
    """Return a rank's result as a part of a message: its pickle, or if it has arrays, what Dask sends without a copy.

    Small results are pickled here, since Dask's serialization of an object takes several times as long.
    """
    buffers: list[Any] = []
    pickled = pickle.dumps(result, buffer_callback=buffers.append)
    return to_serialize(result) if buffers else pickled


def unpacked(part: Any) -> Any:
    """Return the result that was packed."""
    return pickle.loads(part) if isinstance(part, bytes) else part


def rank_key(name: str, lease: str, index: int) -> str:
    """Return the key of a rank's task; Dask's dashboard shows the part before the lease."""
    return f"{name}-{lease}-{index}"
