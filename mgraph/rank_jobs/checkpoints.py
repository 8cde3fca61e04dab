"""Keep the state of a call in a folder that all ranks share, and find it there again."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from mgraph.algorithms.common.checkpoints import CheckpointFolder, Checkpoints, KeptState
from mgraph.algorithms.common.traversal import Trace
from mgraph.backends.compile_clock import CLOCK
from mgraph.comm.base import Communicator
from mgraph.errors import InputError
from mgraph.rank_jobs.results import hash_of
from mgraph.shard.shard import Shard, cached_on_shard
from mgraph.store import checkpoint as files
from mgraph.store.checkpoint_writer import PartWriter
from mgraph.types import Array

# The cost of the first state is estimated by that of writing so much, or the state if it is smaller.
PROBE_BYTES = 1 << 20
# Of this many rows at most, over all ranks, the lengths and ends tell a graph from others with equal facts.
MAX_HASHED = 1 << 18


@contextlib.contextmanager
def kept_in(
    folder: CheckpointFolder | None, trace: Trace, shard: Shard, vertex_bytes: int, algorithm: str, **parameters: Any
) -> Iterator[None]:
    """Have a call keep its state in a folder, if one is given, and go on from what is there; in the end delete it.

    The state is of so many bytes for each vertex.
    """
    if folder is None:
        yield
        return
    call = {"algorithm": algorithm, **parameters}
    with trace.phase("checkpoint"):
        trace.checkpoints = checkpoints = FolderCheckpoints(shard, trace.comm, folder, vertex_bytes, call)
    try:
        yield
    finally:
        checkpoints.writer.end()
    checkpoints.discard()


class FolderCheckpoints(Checkpoints):
    """The checkpoints of one call, of which the folder has the last.

    A state is copied, and each rank's thread writes its part while the call goes on; the next state is not kept before.
    The time that counts is that of making and copying a state, for which the call waits, and that which the thread
    computes, during which a rank on the same core cannot. A state is kept when what checkpoints have taken, the hash of
    the graph too, and what this state will take, is less than the share of the call's time so far. That it takes as
    long as the one before is a guess, and so is the first.

    Attributes
    ----------
    writer
        Of this rank's parts.
    """

    is_on = True

    def __init__(
        self, shard: Shard, comm: Communicator, folder: CheckpointFolder, vertex_bytes: int, call: dict[str, Any]
    ) -> None:
        self._began = time.monotonic()
        self._shard = shard
        self._comm = comm
        self._every_s = folder.every_s
        self._share = folder.share
        self._folder = path = pathlib.Path(folder.path)
        info = dataclasses.asdict(shard.info.for_any_ranks)
        about = {**call, "graph": info | {"digest": _digest(shard, comm)}}
        self.writer = PartWriter(path, comm.rank, shard.partition, about)
        # For the part in flight.
        self._waited_s = 0.0
        self._copy: np.ndarray | None = None
        if comm.rank == 0:
            files.require_folder(path)
        comm.barrier()
        self.writer.token = token = _newest_token(path, comm)
        cost_s = 0.0
        if token:
            found = files.read_manifests(path, token, about)
            self.found = _read_part(path, found, shard)
            cost_s = found.cost_s
        state_bytes = max(1, vertex_bytes * shard.num_owned)
        probe_bytes = min(state_bytes, PROBE_BYTES)
        writing_s = files.time_of_writing(path, comm.rank, probe_bytes) * state_bytes / probe_bytes
        self._spent_s, self._cost_s = self._slowest(time.monotonic() - self._began, max(cost_s, writing_s))
        # All ranks have read what there is: what ranks that were killed have left is in the way.
        files.discard_all_but(path, {token}, comm.rank, comm.size)
        self._kept_at = time.monotonic()
        self._put_off()

    def is_due(self) -> bool:
        """Return whether rank 0 wants to keep the state now; raise the error of this rank's thread."""
        written = self.writer.written
        if written is not None:
            if not written.done():
                return False
            self._count()
        return self._comm.rank == 0 and time.monotonic() >= self._due

    def expect(self, passes: int, since: float) -> None:
        self._shard.backend.synchronize()
        self._cost_s += self._slowest(passes * (CLOCK.now() - since))[0]
        self._put_off()

    def keep(self, state: KeptState, since: float | None = None) -> None:
        self._kept_at = time.monotonic()
        if self.writer.written is not None:
            self._count()
        waited_s = time.monotonic() - (self._kept_at if since is None else since)
        # Now the state before is whole: every rank has written its part.
        own = max(time.time_ns(), self.writer.token + 1), int(1e9 * self._spent_s)
        token, spent_ns = self._comm.allreduce(np.array(own), "max").tolist()
        self._spent_s = spent_ns / 1e9
        # Ranks that are late are not: other collectives would wait for them.
        agreed = time.monotonic()
        dtype = files.place_dtype(self._shard.partition)
        parts = {name: self._shard.backend.to_host(edges.astype(dtype)) for name, edges in state.lists.items()}
        parts[files.VALUES] = self._copied(state.values)
        self._waited_s = waited_s + time.monotonic() - agreed
        self.seconds += self._waited_s
        self.writer.begin(token, parts, state.bound, self._waited_s)

    def discard(self) -> None:
        """Delete the checkpoint of a call that is done; collective."""
        self._comm.barrier()
        if self._comm.rank == 0:
            files.discard_all(self._folder)

    def _copied(self, values: Array) -> np.ndarray:
        copy = self._shard.backend.to_host(values)
        if copy is not values:
            return copy
        # The part before is written, and its memory free: fresh pages take longer to get than to fill.
        if self._copy is None or self._copy.dtype != values.dtype:
            self._copy = np.empty_like(values)
        np.copyto(self._copy, values)
        return self._copy

    def _count(self) -> None:
        """Wait for this rank's thread, and count what the state has cost; raise the thread's error."""
        self._cost_s = self._waited_s + self.writer.finish()
        self._spent_s += self._cost_s
        self._put_off()

    def _put_off(self) -> None:
        """Decide when the next state is due."""
        self._due = self._kept_at + self._every_s
        if self._share < 1:
            self._due = max(self._due, self._began + (self._spent_s + self._cost_s) / self._share)

    def _slowest(self, *seconds: float) -> list[float]:
        """Return the seconds of the slowest rank, for which all others wait."""
        return self._comm.allreduce(np.array(seconds), "max").tolist()


def _newest_token(folder: pathlib.Path, comm: Communicator) -> int:
    """Return the token of the state in a folder, 0 for none; refuse a folder that ranks do not share."""
    token = files.newest_token(folder)
    of_all = comm.allgather(np.array([token]), np.empty(comm.size, np.int64))
    if len({*of_all.tolist()}) > 1:
        raise InputError(f"the ranks do not see one checkpoint in {folder}: give a folder that all share")
    return token


def _read_part(folder: pathlib.Path, found: files.Checkpoint, shard: Shard) -> KeptState:
    """Return what a state has of the vertices that this rank owns now."""
    of_rank = (shard.partition, shard.rank)
    values = files.read_owned(folder, found, *of_rank)
    lists = {
        name: shard.backend.to_device(files.read_list(folder, found, name, *of_rank).astype(np.int64))
        for name in found.checksums
        if name != files.VALUES
    }
    return KeptState(shard.backend.to_device(values), found.bound, lists)


@cached_on_shard
def _digest(shard: Shard, comm: Communicator) -> int:
    """Return a hash of some rows, the same on any number of ranks: of their lengths, ends and weights there."""
    backend = shard.backend
    partition = shard.partition
    some = np.arange(0, partition.num_positions, -(-partition.num_positions // MAX_HASHED) or 1)
    positions = some[partition.owner(some) == comm.rank]
    local = backend.to_device(partition.local(positions))
    columns = [shard.degrees[local].astype(np.int64)]
    if shard.has_rows:
        rows = shard.rows
        # In a row without arcs, any arc: it has the length 0.
        for at in (rows.indptr[local], rows.indptr[local + 1] - 1):
            arcs = backend.xp.clip(at, 0, max(len(rows.targets) - 1, 0))
            full = columns[0] > 0
            columns.append(partition.position(rows.targets[arcs].astype(np.int64)) * full)
            if rows.weights is not None:
                columns.append(rows.weights[arcs] * full.astype(rows.weights.dtype))
    hashes = [hash_of(backend.xp, backend.to_device(positions), column) for column in columns]
    # In halves: a sum of ranks must not exceed 64 bits.
    halves = comm.sum(*(half for one in hashes for half in (one & 0xFFFFFFFF, one >> 32)))
    value = 0
    for low, high in zip(halves[::2], halves[1::2], strict=True):
        value = (value * 31 + low + (high << 32)) % 2**64
    return value
