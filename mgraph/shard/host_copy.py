"""A copy of a GPU's rows in host memory, for searches that are sooner done by the CPU; built on first use."""

from __future__ import annotations

from dataclasses import replace

from mgraph.backends.base import Backend, PersistentBackend
from mgraph.backends.host import HostBackend
from mgraph.shard.shard import Rows, Shard, cached_on_shard

# Bytes of a search for each vertex, at most: distances, predecessors, and a queue of entries and their links.
SEARCH_BYTES = 64


def host_copy(shard: Shard) -> Shard:
    """Return a shard with copies of the rows, and of the in-rows if there are any by now, in host memory.

    Raise MemoryError where they do not fit.
    """
    copy = _copy_of_rows(shard)
    if copy.in_rows is None and shard.in_rows is not None:
        copy.in_rows = _copied(shard.backend, shard.in_rows, copy.backend, shard.num_owned)
    return copy


@cached_on_shard
def _copy_of_rows(shard: Shard) -> Shard:
    assert isinstance(shard.backend, PersistentBackend), "no other has the CPU of a host"
    host = HostBackend(shard.backend)
    return replace(
        shard,
        backend=host,
        stored_rows=_copied(shard.backend, shard.rows, host, shard.num_owned),
        in_rows=None,
        # Results are translated where they are served, on the GPU.
        user_of_local=None,
        position_of_user=None,
        labels=None,
        lightest_arcs=None,
        blocks={},
        kept={},
        made_over=None,
    )


def _copied(backend: Backend, rows: Rows, host: Backend, num_owned: int) -> Rows:
    """Copy rows, if that leaves memory for a search."""
    needed = rows.nbytes + rows.host_bytes + SEARCH_BYTES * num_owned
    if needed > host.free_bytes():
        raise MemoryError(f"a copy of the rows in host memory, with a search, takes {needed} bytes")
    weights = None if rows.weights is None else backend.to_host(rows.weights)
    return Rows(backend.to_host(rows.indptr), backend.to_host(rows.targets), weights)
