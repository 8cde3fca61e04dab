"""The memory that Dask allows a worker to use.

Dask counts the objects of ranks as unmanaged memory. At one fraction of the worker's limit Dask pauses the worker, so
that no task of a call begins on it; at another fraction its nanny kills it.
"""

from __future__ import annotations

import dask
from distributed import Worker

from mgraph.backends.host_memory import FreeMemory
from mgraph.formatting import readable_bytes

NO_LIMIT = "start workers with --memory-limit 0 (in Python memory_limit=0) for all memory of their host"


def free_of_worker(worker: Worker) -> FreeMemory | None:
    """Return the memory left before Dask pauses or ends a worker; None if it does neither."""
    manager = worker.memory_manager
    # A worker's process inherits the configuration of its nanny.
    ends_at = dask.config.get("distributed.worker.memory.terminate") if worker.nanny else False
    fractions = [fraction for fraction in (manager.memory_pause_fraction, ends_at) if fraction is not False]
    if not manager.memory_limit or not fractions:
        return None
    limit = manager.memory_limit
    fraction = min(fractions)
    left = int(fraction * limit) - worker.monitor.get_process_memory()
    action = "pauses" if fraction == manager.memory_pause_fraction else "ends"
    reason = (
        f"Dask {action} its worker at {fraction:.0%} of the worker's memory limit, {readable_bytes(limit)}: {NO_LIMIT}"
    )
    return FreeMemory(left, reason)


def ranks_of_process(members: tuple[str, ...]) -> int:
    """Count the ranks of a gang on workers of this process."""
    return sum(worker.address in members for worker in list(Worker._instances) if worker.status.name != "closed")
