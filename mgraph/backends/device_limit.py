"""The most memory of its device that a rank may use: the setting `mgraph.device-memory`."""

from __future__ import annotations

from mgraph.backends.host_memory import FreeMemory
from mgraph.config import settings
from mgraph.formatting import readable_bytes


def device_limit() -> FreeMemory | None:
    """Return the limit of this process's configuration, None if there is none."""
    limit = settings.num_bytes("device-memory")
    return None if limit is None else FreeMemory(limit, f"the setting mgraph.device-memory is {readable_bytes(limit)}")
