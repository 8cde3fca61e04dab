"""Plan the memory of the layout `host`: which blocks stay on the device, and how the others are built through it."""

from __future__ import annotations

import math
import os
import socket
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np

from mgraph.backends.base import Backend, PersistentBackend
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.host_link import NUM_BUFFERS
from mgraph.backends.host_memory import FreeMemory, free_memory
from mgraph.comm.base import Communicator
from mgraph.formatting import readable_bytes
from mgraph.ingest.compact_plan import MIN_BUFFER_KEYS, MIN_BUFFER_SHARE, CompactPlan
from mgraph.ingest.memory_check import limit_suffix
from mgraph.shard.host_blocks import part_bytes
from mgraph.shard.shard import BlockShape

# A plan may be short by a few per cent, and a memory pool has gaps: a share of what is free is left so.
SPARE_SHARE = 32
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class InUse:
    """Bytes of a device that stay free of edges.

    Attributes
    ----------
    needed
        What searches take.
    wanted
        Also what forests, validations and lightest arcs take, as far as the layout has them.
    """

    needed: int
    wanted: int


@dataclass(frozen=True)
class HostPlan:
    """Bytes on the fullest rank, by purpose.

    Attributes
    ----------
    compact
        The plan of the same graph with all blocks on the device.
    num_edges, edge_bytes
        Of a rank: edges with parallel ones, and the bytes of a word and a weight.
    staging
        The buffers through which host parts are streamed.
    searches
        What runs on the graph, with its results.
    """

    compact: CompactPlan
    num_edges: int
    edge_bytes: int
    staging: int
    searches: int

    @property
    def tables(self) -> int:
        """The bytes of the tables of the vertex order."""
        return self.compact.tables

    @property
    def blocks(self) -> int:
        """The bytes of all blocks."""
        return self.compact.words + self.compact.headers

    @property
    def per_edge(self) -> float:
        """The bytes of an edge with its share of the headers."""
        return self.blocks / max(self.num_edges, 1)

    @property
    def temporary(self) -> int:
        """The bytes beside the blocks that are built at once."""
        return max(self.compact.place, self.compact.sort, self.compact.count)

    @property
    def in_use(self) -> int:
        """The bytes of the device that are not free for blocks once the graph is built."""
        kept = self.compact.own_tables + self.compact.degrees
        return kept + self.staging + self.searches

    def least_bytes(self) -> int:
        """Return the least bytes of the device, tables included, with all blocks in host memory."""
        least = min(self.num_edges, max(self.num_edges // MIN_BUFFER_SHARE, MIN_BUFFER_KEYS))
        build = self.compact.tables + self.temporary + math.ceil(least * self.built_bytes)
        return max(self.compact.order, build, self.in_use)

    def peak_bytes(self, free_bytes: int) -> int:
        """Return the build's high-water mark, where this much is free beside the tables: it uses what there is."""
        whole = self.compact.tables + self.temporary + math.ceil(self.num_edges * self.built_bytes)
        return max(self.least_bytes(), min(whole, self.compact.tables + free_bytes))

    @property
    def built_bytes(self) -> float:
        """The bytes of an edge while it is built: half of the keys are in a buffer, the others where words will be."""
        return self.per_edge + (4 + self.edge_bytes) / 2

    def edges_at_once(self, free_bytes: int) -> int:
        """Return how many edges a reading of the input can build, where this much is free beside the tables."""
        return max(int((free_bytes - free_bytes // SPARE_SHARE - self.temporary) / self.built_bytes), 1)

    def resident_bytes(self, free_bytes: int) -> int:
        """Return the bytes of blocks that can stay on the device, where this much is free beside the tables."""
        left = free_bytes + self.compact.tables - self.in_use
        # What sorts and places the last of them is freed before anything runs.
        building = free_bytes - self.temporary - (4 + self.edge_bytes) * MIN_BUFFER_KEYS
        return max(min(min(left, building) - free_bytes // SPARE_SHARE, self.blocks), 0)

    def resident_edges(self, free_bytes: int) -> int:
        """Return the number of edges of these blocks."""
        return self.num_edges * min(self.resident_bytes(free_bytes), self.blocks) // max(self.blocks, 1)

    def host_bytes(self, free_bytes: int) -> int:
        """Return the bytes of blocks in host memory, where this much of the device is free beside the tables."""
        return max(self.blocks - self.resident_bytes(free_bytes), 0)


def host_plan(compact: CompactPlan, num_edges: int, edge_bytes: int, shape: BlockShape, searches: int) -> HostPlan:
    """Return the plan of a rank with this many edges."""
    staging = NUM_BUFFERS * part_bytes(compact.words + compact.headers, edge_bytes, shape)
    return HostPlan(compact, num_edges, edge_bytes, staging, searches)


class Hosted(Protocol):
    """The memory plan of a layout that has a part of the graph in host memory."""

    @property
    def tables(self) -> int:
        """The bytes of the tables of the vertex order, which are allocated already."""

    def least_bytes(self) -> int:
        """Return the least bytes of the device, tables included."""

    def resident_bytes(self, free_bytes: int) -> int:
        """Return the bytes of edges that can stay on the device, where this much is free beside the tables."""

    def host_bytes(self, free_bytes: int) -> int:
        """Return the bytes of edges in host memory."""


HostedT = TypeVar("HostedT", bound=Hosted)
Refusal = TypeVar("Refusal", str | None, bool)


def choose_plan(
    plan_of: Callable[[int], HostedT], in_use: InUse, refuse: Callable[[HostedT], Refusal]
) -> tuple[HostedT, Refusal]:
    """Return the plan that leaves free what is wanted, if that is not refused, else what is needed; and its refusal."""
    plan = plan_of(in_use.wanted)
    refusal = refuse(plan)
    if refusal:
        plan = plan_of(in_use.needed)
        refusal = refuse(plan)
    return plan, refusal


def fitting_plan(
    plan_of: Callable[[int], HostedT], in_use: InUse, backend: Backend, comm: Communicator
) -> tuple[HostedT, str | None]:
    """Choose the plan for these ranks; return it, and why it does not fit, None if it does. Every rank calls it."""
    return choose_plan(plan_of, in_use, lambda plan: host_refusal(plan, backend, comm))


def host_refusal(plan: Hosted, backend: Backend, comm: Communicator) -> str | None:
    """Return why the plan does not fit on some rank, None if it fits on all; beside it are the tables of the order."""
    free = backend.free_bytes()
    host = free_on_host(plan, backend, comm)
    needed = plan.least_bytes() - plan.tables
    stored = plan.host_bytes(free)
    lacking = np.array([needed - free, -free, stored - host, stored, -host], np.int64)
    on_device, negated_free, on_host, stored, negated_host = comm.allreduce(lacking, "max").tolist()
    if on_device > 0:
        return (
            f"the graph with its edges in host memory takes {readable_bytes(needed)} more of the device on each rank, "
            f"and {readable_bytes(-negated_free)} is free: use ranks with more memory, or fewer vertices"
            + limit_suffix(backend, comm)
        )
    if on_host > 0:
        taken = f"the edges that the device cannot hold take {readable_bytes(stored)} of host memory on each rank"
        if negated_host >= 0:
            return f"{taken}, and none is free: use ranks on further hosts, or fewer edges"
        share = max(math.ceil(stored / -negated_host * comm.size), comm.size + 1)
        return f"{taken}, and {readable_bytes(-negated_host)} is free: use {share} ranks with as much, or fewer edges"
    return None


def free_on_host(plan: Hosted, backend: Backend, comm: Communicator) -> int:
    """Return the bytes of this rank's share of its host's memory that edges may take; every rank calls it."""
    free = memory_of_host(backend, comm).num_bytes
    if not isinstance(backend, CpuBackend):
        return free
    beside = plan.least_bytes() - plan.tables + plan.resident_bytes(backend.free_bytes())
    return free - min(beside, backend.free_bytes())


def memory_of_host(backend: Backend, comm: Communicator) -> FreeMemory:
    """Return this rank's share of the free memory of its host; every rank calls it."""
    sharers = ranks_of_host(comm)
    if isinstance(backend, CpuBackend):
        return backend.host_memory()
    assert isinstance(backend, PersistentBackend), "there is no other device"
    return free_memory(sharers, ranks_of_process(comm), backend.own_limit)


def ranks_of_host(comm: Communicator) -> int:
    """Return how many ranks share this rank's host; every rank calls it."""
    return _ranks_with(comm, _host())


def ranks_of_process(comm: Communicator) -> int:
    """Return how many ranks share this rank's process; every rank calls it."""
    return _ranks_with(comm, f"{_host()} {socket.gethostname()} {os.getpid()}")


def _host() -> str:
    """Return a name of this host, the same in all of its containers."""
    return BOOT_ID.read_text() if BOOT_ID.exists() else socket.gethostname()


def _ranks_with(comm: Communicator, name: str) -> int:
    own = np.array([zlib.crc32(name.encode())], np.int64)
    return int((comm.allgather(own, np.empty(comm.size, np.int64)) == own[0]).sum())
