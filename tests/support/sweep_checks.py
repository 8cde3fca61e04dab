"""Run sweeps in tests; block shapes so small that small graphs have several of each part."""

from __future__ import annotations

import numpy as np
from naive_shard import by_user, positions_of
from on_ranks import run_on_ranks

from mgraph.algorithms.common.traversal import Trace
from mgraph.shard.edge_blocks import build_blocks
from mgraph.shard.light_units import require_light_units
from mgraph.shard.shard import BlockShape, Shard
from mgraph.types import unreached_of

# Segments of 8, sub-windows of 4 in windows of 16, units of 5 edges; and one segment, one window, one unit a rank.
TINY = BlockShape(segment_bits=3, subwindow_bits=2, window_bits=4, unit_size=5)
WHOLE = BlockShape(segment_bits=15, subwindow_bits=17, window_bits=22, unit_size=1 << 17)
# As large, for states of 8 bytes: a segment of more would not fit the shared memory of a GPU.
WHOLE_WIDE = BlockShape(segment_bits=14, subwindow_bits=18, window_bits=22, unit_size=1 << 17)


def on_all(rank: int) -> bool:
    """Units are divided on every rank."""
    return True


def on_some(rank: int) -> bool:
    """Units are not divided on the first rank."""
    return rank > 0


def run_sweep(program, shards: list[Shard], sources: list[int], *args, shape: BlockShape = TINY, divided=on_all):
    """Run a sweep; return its results in owner layout, and the supersteps of every rank.

    Units are divided by weight on the ranks for which `divided` is true.
    """
    with_state = [p for p in positions_of(shards)[sources].tolist() if p < shards[0].partition.num_positions]

    def run(shard: Shard, comm):
        shard.blocks = {width: build_blocks(shard, comm, shape) for width in (4, 8)}
        for blocks in shard.blocks.values():
            if divided(comm.rank):
                require_light_units(shard, blocks)
        trace = Trace(shard.backend, comm)
        return program(shard, comm, with_state, trace, *args), trace.supersteps

    results = run_on_ranks(run, shards)
    return [traversal for traversal, _ in results], [steps for _, steps in results]


def of_users(shards: list[Shard], sources: list[int], parts: list) -> np.ndarray:
    """Return distances by user id as the oracles give them: -1 where an integer is unreached."""
    parts = [shard.backend.to_host(part) for shard, part in zip(shards, parts, strict=True)]
    top = unreached_of(parts[0].dtype)
    whole = by_user(shards, parts, missing=top)
    # An isolated source has no state on any rank; its distance is 0.
    whole[sources] = 0
    if whole.dtype.kind == "f":
        return whole
    return np.where(whole == top, -1, whole.astype(np.int64))
