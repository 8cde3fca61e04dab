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
from mgraph.comm.base import Communicator
from mgraph.errors import InputError
from mgraph.rank_jobs.results import hash_of
from mgraph.shard.shard import Shard, cached_on_shard
from mgraph.store import checkpoint as files

# Between two checkpoints a call runs for this many times as long as the last one took: they take less than 2 %.
SPACING = 60
# Of this many rows at most, over all ranks, the lengths and ends tell a graph from others with equal facts.
MAX_HASHED = 1 << 20


def use_checkpoints(
    trace: Trace, shard: Shard, folder: CheckpointFolder | None, algorithm: str, **parameters: Any
) -> None:
    """Have a call keep its state in a folder, if one is given, and go on from what is there."""
    if folder is not None:
        with trace.phase("checkpoint"):
            trace.checkpoints = FolderCheckpoints(shard, trace.comm, folder, {"algorithm": algorithm, **parameters})


class FolderCheckpoints(Checkpoints):
    """The checkpoints of one call, of which the folder has the last."""

    is_on = True

    def __init__(self, shard: Shard, comm: Communicator, folder: CheckpointFolder, call: dict[str, Any]) -> None:
        self._shard = shard
        self._comm = comm
        self._every_s = folder.every_s
        self._folder = path = pathlib.Path(folder.path)
        info = dataclasses.asdict(shard.info.for_any_ranks)
        self._about = {**call, "graph": info | {"digest": _digest(shard, comm)}}
        if comm.rank == 0:
            files.require_folder(path)
        comm.barrier()
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
        self._due = time.monotonic() + self._every_s

    def is_due(self) -> bool:
        return time.monotonic() >= self._due

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
            facts = (shard.partition, state.values.dtype.name, state.bound, of_ranks)
            files.put_manifest(self._folder, files.Checkpoint(self._about, token, *facts))
        # By the slowest rank, for which all others wait.
        (took,) = comm.allreduce(np.array([time.monotonic() - began]), "max").tolist()
        self.seconds += took
        self._due = time.monotonic() + max(self._every_s, SPACING * took)

    def discard(self) -> None:
        """Delete the checkpoint of a call that is done."""
        self._comm.barrier()
        if self._comm.rank == 0:
            files.discard_all(self._folder)

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
    if not shard.is_compact:
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
