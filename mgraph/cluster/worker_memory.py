"""What Dask allows a worker to use, and what to say of one that has used it.

To Dask all that ranks hold is unmanaged memory: at one fraction of its limit a worker is paused, so that no task of
a call begins on it; at another its nanny ends it.
"""

from __future__ import annotations

import dask
from distributed import Worker

from mgraph.backends.host_memory import FreeMemory
from mgraph.formatting import readable_bytes

NO_LIMIT = "start workers with --memory-limit 0 (in Python memory_limit=0) for all memory of their host"


def free_of_worker(worker: Worker) -> FreeMemory | None:
    """Return what a worker may still take before Dask pauses or ends it; None where it does neither."""
    manager = worker.memory_manager
    # A worker's process has the configuration of its nanny.
    ends_at = dask.config.get("distributed.worker.memory.terminate") if worker.nanny else False
    fractions = [fraction for fraction in (manager.memory_pause_fraction, ends_at) if fraction is not False]
    if not manager.memory_limit or not fractions:
        return None
    limit, fraction = manager.memory_limit, min(fractions)
    left = int(fraction * limit) - worker.monitor.get_process_memory()
    does = "pauses" if fraction == manager.memory_pause_fraction else "ends"
    words = (
        f"Dask {does} its worker at {fraction:.0%} of the worker's memory limit, {readable_bytes(limit)}: {NO_LIMIT}"
    )
    return FreeMemory(left, words)


def ranks_of_process(members: tuple[str, ...]) -> int:
    """Return how many of a gang's ranks are workers of this process."""
    return sum(worker.address in members for worker in list(Worker._instances) if worker.status.name != "closed")
