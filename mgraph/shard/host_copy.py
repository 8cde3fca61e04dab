"""A copy of a GPU's rows in host memory, for searches that are sooner done by the CPU; built on first use."""

from __future__ import annotations

from dataclasses import replace

from mgraph.backends.base import Backend
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.host_memory import free_memory
from mgraph.shard.shard import Rows, Shard, cached_on_shard


class HostBackend(CpuBackend):
    """The CPU cores beside a GPU; what stops the calls of the GPU stops those of the cores."""

    def __init__(self, device: Backend) -> None:
        super().__init__()
        self._device = device

    @property
    def stopped(self) -> str | None:  # type: ignore[override]
        return self._device.stopped


@cached_on_shard
def host_copy(shard: Shard) -> Shard:
    """Return a shard with copies of the rows, and of the in-rows where there are some, in host memory.

    Raise MemoryError where they do not fit.
    """
    if _copied_bytes(shard) > free_memory(1, 1).num_bytes:
        raise MemoryError(f"a copy of the rows in host memory takes {_copied_bytes(shard)} bytes")
    return replace(
        shard,
        backend=HostBackend(shard.backend),
        stored_rows=_copied(shard.backend, shard.rows),
        in_rows=_copied(shard.backend, shard.in_rows),
        # Results are translated where they are served, on the GPU.
        user_of_local=None,
        position_of_user=None,
        labels=None,
        weight_sorted_rows=None,
        blocks={},
        kept={},
        made_over=None,
    )


def _copied_bytes(shard: Shard) -> int:
    return sum(rows.nbytes for rows in (shard.rows, shard.in_rows) if rows is not None)


def _copied(run: Backend, rows: Rows | None) -> Rows | None:
    if rows is None:
        return None
    weights = None if rows.weights is None else run.to_host(rows.weights)
    return Rows(run.to_host(rows.indptr), run.to_host(rows.targets), weights)
