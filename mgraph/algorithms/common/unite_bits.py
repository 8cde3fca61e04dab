"""Unite bits of all states over the ranks."""

from __future__ import annotations

import functools

import numpy as np

from mgraph.backends.base import Backend
from mgraph.comm.base import Communicator
from mgraph.types import Array


def unite_bits(comm: Communicator, backend: Backend, bits: Array) -> None:
    """Set every bit that is set on any rank; each rank unites the bits of its own states."""
    xp = backend.xp
    received = list(xp.empty((comm.size, len(bits) // comm.size), np.uint32))
    received = comm.alltoallv(list(bits.reshape(comm.size, -1)), received)
    comm.allgather(functools.reduce(xp.bitwise_or, received), bits)
