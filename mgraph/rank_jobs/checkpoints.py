"""Keep the state of a search in a folder that all ranks share, and find it there again."""

from __future__ import annotations

import dataclasses
import pathlib
import time
import zlib
from typing import Any

import numpy as np

from mgraph.algorithms.common.checkpoints import Checkpoints, SearchState
from mgraph.algorithms.variant import TraversalSpec
from mgraph.comm.base import Communicator
from mgraph.errors import InputError
from mgraph.rank_jobs.results import hash_of
from mgraph.shard.shard import Shard, cached_on_shard
from mgraph.store import checkpoint as files

# Between two checkpoints a search runs for this many times as long as the last one took: they take less than 2 %.
SPACING = 60
# Of so many rows at most, over all ranks, the lengths and ends tell a graph from others with equal facts.
MAX_HASHED = 1 << 20


class FolderCheckpoints(Checkpoints):
    """The checkpoints of one search, of which the folder has the last."""

    def __init__(self, shard: Shard, comm: Communicator, spec: TraversalSpec) -> None:
        assert spec.checkpoint is not None
        self._shard = shard
        self._comm = comm
        self._every_s = spec.checkpoint_every_s
        self._folder = folder = pathlib.Path(spec.checkpoint)
        info = dataclasses.asdict(shard.info.for_any_ranks)
        self._about: dict[str, Any] = {
            "algorithm": spec.algorithm,
            "sources": sorted(spec.sources),
            "limit": spec.limit,
            "dtype": spec.dtype.name,
            "graph": info | {"digest": _digest(shard, comm)},
        }
        if comm.rank == 0:
            files.require_folder(folder)
        comm.barrier()
        text = files.manifest_bytes(folder)
        self._require_same(text)
        if text is not None:
            found = files.parse_manifest(folder, text, self._about)
            owned = files.read_owned(folder, found, shard.partition, comm.rank)
            self.found = SearchState(shard.backend.to_device(owned), found.bound)
        self._due = time.monotonic() + self._every_s

    def is_due(self) -> bool:
        return time.monotonic() >= self._due

    def keep(self, state: SearchState) -> None:
        began = time.monotonic()
        shard = self._shard
        comm = self._comm
        token = f"{comm.sum(time.time_ns() if comm.rank == 0 else 0)[0]:x}"
        own = files.write_part(self._folder, token, comm.rank, shard.backend.to_host(state.distances))
        # A barrier too: every file is on the disk.
        checksums = comm.allgather(np.array([own], np.int64), np.empty(comm.size, np.int64))
        if comm.rank == 0:
            dtype = state.distances.dtype.name
            files.put_manifest(
                self._folder,
                files.Checkpoint(self._about, token, shard.partition, dtype, state.bound, checksums.tolist()),
            )
        # By the slowest rank, for which all others wait.
        (took,) = comm.allreduce(np.array([time.monotonic() - began]), "max").tolist()
        self.seconds += took
        self._due = time.monotonic() + max(self._every_s, SPACING * took)

    def discard(self) -> None:
        """Delete the checkpoint of a search that is done."""
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
