"""Create the backend of a rank by its name."""

from __future__ import annotations

from mgraph.backends.base import Backend
from mgraph.backends.cpu import CpuBackend, available_cores
from mgraph.backends.host_memory import OwnLimit, require_room_for_kernels
from mgraph.errors import UsageError


def make_backend(
    name: str, *, sharers: int = 1, sharers_of_process: int | None = None, own_limit: OwnLimit | None = None
) -> Backend:
    """Make the backend called `name`: cuda on the current device, or cpu with its share of the host.

    Parameters
    ----------
    sharers, sharers_of_process
        Ranks on this host, and in this process: by default all of those on the host.
    own_limit
        A limit of this process's memory in addition to those of the host and of the process itself (ulimit).
    """
    if name == "cpu":
        require_room_for_kernels()
        threads = max(1, available_cores() // sharers)
        return CpuBackend(threads, sharers=sharers, sharers_of_process=sharers_of_process, own_limit=own_limit)
    if name == "cuda":
        from mgraph.backends.cuda import CudaBackend

        made = CudaBackend()
        made.own_limit = own_limit
        return made
    raise UsageError(f"backend {name!r} is not one of cpu, cuda")
