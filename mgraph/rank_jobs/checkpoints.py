"""Keep the state of a call in a folder that all ranks share, and find it there again."""

from __future__ import annotations

import dataclasses
import pathlib
import time
import zlib
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

# The seconds of the first state are estimated by those of writing so much, or the state if it is smaller.
PROBE_BYTES = 4 << 20
# Of this many rows at most, over all ranks, the lengths and ends tell a graph from others with equal facts.
MAX_HASHED = 1 << 20


def use_checkpoints(
    trace: Trace, shard: Shard, folder: CheckpointFolder | None, vertex_bytes: int, algorithm: str, **parameters: Any
) -> None:
    """Have a call keep its state in a folder, if one is given, and go on from what is there.

    The state is of so many bytes for each vertex.
    """
    if folder is not None:
        call = {"algorithm": algorithm, **parameters}
        with trace.phase("checkpoint"):
            trace.checkpoints = FolderCheckpoints(shard, trace.comm, folder, vertex_bytes, call)


class FolderCheckpoints(Checkpoints):
    """The checkpoints of one call, of which the folder has the last.

    A state is kept when what checkpoints have taken, the hash of the graph too, and what this state will take, is less
    than the share of the call's time so far. That it takes as long as the one before is a guess, and so is the first.
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
        self._about = {**call, "graph": info | {"digest": _digest(shard, comm)}}
        if comm.rank == 0:
            files.require_folder(path)
        comm.barrier()
        state_bytes = max(1, vertex_bytes * shard.num_owned)
        probe_bytes = min(state_bytes, PROBE_BYTES)
        writing_s = files.time_of_writing(path, comm.rank, probe_bytes) * state_bytes / probe_bytes
        self._spent_s, self._cost_s = self._slowest(time.monotonic() - self._began, writing_s)
        text = files.manifest_bytes(path)
        self._require_same(text)
        if text is not None:
            found = files.parse_manifest(path, text, self._about)
            of_rank = (shard.partition, comm.rank)
            values = files.read_owned(path, found, *of_rank)
            lists = {
                name: shard.backend.to_device(files.read_list(path, found, name, *of_rank).astype(np.int64))
                for name in found.checksums
                if name != files.VALUES
            }
            self.found = KeptState(shard.backend.to_device(values), found.bound, lists)
            self._cost_s = max(self._cost_s, found.cost_s)
        self._put_off()

    def is_due(self) -> bool:
        return time.monotonic() >= self._due

    def expect(self, passes: int, since: float) -> None:
        self._shard.backend.synchronize()
        self._cost_s += self._slowest(passes * (CLOCK.now() - since))[0]
        self._put_off()

    def keep(self, state: KeptState, since: float | None = None) -> None:
        began = time.monotonic() if since is None else since
        shard = self._shard
        comm = self._comm
        token = f"{comm.sum(time.time_ns() if comm.rank == 0 else 0)[0]:x}"
        dtype = files.place_dtype(shard.partition)
        parts = {files.VALUES: state.values, **{name: edges.astype(dtype) for name, edges in state.lists.items()}}
        own = [
            files.write_part(self._folder, name, token, comm.rank, shard.backend.to_host(part))
            for name, part in parts.items()
        ]
        # A barrier too: every file is on the disk.
        checksums = comm.allgather(np.array(own, np.int64), np.empty(comm.size * len(own), np.int64))
        if comm.rank == 0:
            of_ranks = dict(zip(parts, checksums.reshape(comm.size, -1).T.tolist(), strict=True))
            facts = (shard.partition, state.values.dtype.name, state.bound, of_ranks, time.monotonic() - began)
            files.put_manifest(self._folder, files.Checkpoint(self._about, token, *facts))
        (self._cost_s,) = self._slowest(time.monotonic() - began)
        self._spent_s += self._cost_s
        self.seconds += self._cost_s
        self._put_off()

    def discard(self) -> None:
        """Delete the checkpoint of a call that is done."""
        self._comm.barrier()
        if self._comm.rank == 0:
            files.discard_all(self._folder)

    def _put_off(self) -> None:
        """Decide when the next state is due."""
        self._due = time.monotonic() + self._every_s
        if self._share < 1:
            self._due = max(self._due, self._began + (self._spent_s + self._cost_s) / self._share)

    def _slowest(self, *seconds: float) -> list[float]:
        """Return the seconds of the slowest rank, for which all others wait."""
        return self._comm.allreduce(np.array(seconds), "max").tolist()

    def _require_same(self, text: bytes | None) -> None:
        """Refuse a folder that ranks do not share: they must find one manifest, or none."""
        own = np.array([-1 if text is None else zlib.crc32(text)], np.int64)
        of_all = self._comm.allgather(own, np.empty(self._comm.size, np.int64))
        if len({*of_all.tolist()}) > 1:
            raise InputError(f"the ranks do not see one checkpoint in {self._folder}: give a folder that all share")


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
