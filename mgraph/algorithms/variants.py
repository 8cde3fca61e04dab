"""Which form a search takes on these ranks, what it needs first, and its call: what jobs.py does for a traversal.

A form is a rank program of algorithms/. Those through windows take user ids and find where these stand; all others take
the positions of sources from which arcs leave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from mgraph.algorithms.bfs import persistent_kernels as bfs_kernel
from mgraph.algorithms.bfs.persistent import bfs_fused
from mgraph.algorithms.bfs.persistent_multi_gpu import bfs_peers, require_bfs_windows
from mgraph.algorithms.bfs.step import bfs
from mgraph.algorithms.bfs.sweep import bfs_sweep
from mgraph.algorithms.common.dtype_ladder import first_dtypes, is_whole, narrow_cutoff
from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.components.afforest import MOST_LEVELS, find_hub, may_search_giant
from mgraph.algorithms.sssp import persistent_multi_gpu_kernels as sssp_kernel
from mgraph.algorithms.sssp.delta_stepping import sssp_by_weight
from mgraph.algorithms.sssp.near_far import sssp, wants_rows_by_weight
from mgraph.algorithms.sssp.persistent import sssp_fused
from mgraph.algorithms.sssp.persistent_multi_gpu import require_sssp_windows, sssp_peers
from mgraph.algorithms.sssp.sweep import sssp_sweep
from mgraph.backends.base import FusingBackend
from mgraph.backends.rates_file import require_rates
from mgraph.cluster.base import Rank
from mgraph.shard.edge_blocks import require_blocks
from mgraph.shard.in_rows import require_firsts, require_in_rows
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import positions_of, tree_of_users
from mgraph.shard.weight_sorted_rows import require_rows_by_weight
from mgraph.types import LEVEL


@dataclass(frozen=True)
class TraversalSpec:
    """What a traversal is asked for; the same on every rank."""

    algorithm: str  # bfs or sssp
    method: str  # frontier or sweep
    sources: tuple[int, ...]  # user ids
    dtype: np.dtype  # of the state
    limit: float | int | None = None  # depth_limit or cutoff
    predecessors: bool = True


def prepare(shard: Shard, rank: Rank, spec: TraversalSpec) -> None:
    """Build what the method needs beside the rows, once for a graph; know the device, once for all."""
    if spec.method == "frontier" and rank.size == 1 and isinstance(shard.backend, FusingBackend):
        require_rates(shard.backend)
    if spec.method == "sweep":
        require_blocks(shard, rank.comm, spec.dtype)
    if spec.predecessors or len(spec.sources) > 1 or (spec.algorithm, spec.method) == ("bfs", "frontier"):
        require_in_rows(shard, rank.comm)
    if (spec.algorithm, spec.method) == ("bfs", "frontier"):
        fuses = _may_fuse(shard, bfs_kernel.MOST_ROWS)
        if fuses and (rank.size == 1 or require_bfs_windows(shard, rank.comm)):
            require_firsts(shard)
    if (spec.algorithm, spec.method) == ("sssp", "frontier"):
        fuses, dtypes = _may_fuse(shard, sssp_kernel.MOST_ROWS), first_dtypes(shard, spec.dtype, has_windows=True)
        first = (*dtypes, spec.dtype)[0]
        relaxes_light = rank.size == 1 or (fuses and require_sssp_windows(shard, rank.comm, first))
        if relaxes_light and wants_rows_by_weight(shard.info):
            require_rows_by_weight(shard)


def search(shard: Shard, rank: Rank, spec: TraversalSpec, trace: Trace) -> tuple[list[int], Traversal]:
    """Return the positions of the sources, and what a search from them finds; its phase begins when they are known."""
    form = form_of_bfs(shard, rank, spec) if spec.algorithm == "bfs" else form_of_sssp(shard, rank, spec)
    finds_sources = form in (bfs_peers, sssp_peers)
    sources = [] if finds_sources else _find_sources(shard, rank, spec)
    starts = spec.sources if finds_sources else connected(shard, sources)
    with trace.phase("traverse"):
        if spec.algorithm == "bfs":
            found = form(shard, rank.comm, starts, trace, None if spec.limit is None else int(spec.limit))
        else:
            found = _search_narrow_first(form, shard, rank, spec, starts, trace)
    return found.sources or sources, found


def search_giant(shard: Shard, rank: Rank, trace: Trace) -> Traversal | None:
    """Return what a search of few levels from a hub reaches, on ranks that find the giant component sooner so."""
    if rank.size == 1 or not isinstance(shard.backend, FusingBackend) or not may_search_giant(shard):
        return None
    with trace.phase("prepare"):
        spec = TraversalSpec(
            "bfs", "frontier", (find_hub(shard, rank.comm),), LEVEL, limit=MOST_LEVELS, predecessors=False
        )  # fmt: skip
        prepare(shard, rank, spec)
    return search(shard, rank, spec, trace)[1] if form_of_bfs(shard, rank, spec) is bfs_peers else None


def _find_sources(shard: Shard, rank: Rank, spec: TraversalSpec) -> list[int]:
    """Return the positions of the sources; as nearly as may be, all ranks return and begin their search together."""
    positions = positions_of(shard, rank.comm, spec.sources)
    if rank.size > 1:
        rank.comm.barrier()
    return positions


def _search_narrow_first(
    form: Callable[..., Traversal],
    shard: Shard,
    rank: Rank,
    spec: TraversalSpec,
    starts: Sequence[int],
    trace: Trace,
) -> Traversal:
    dtypes = first_dtypes(shard, spec.dtype, has_windows=form is sssp_peers) if spec.method == "frontier" else []
    for narrow in dtypes:
        found = form(shard, rank.comm, starts, trace, narrow, narrow_cutoff(shard.info, narrow, spec.limit))
        if is_whole(shard, rank.comm, found, spec.limit):
            return found
        del found  # a view of its windows
        # What the form needs may be wider now.
        shard.outgrown_bytes = narrow.itemsize
        prepare(shard, rank, spec)
    return form(shard, rank.comm, starts, trace, spec.dtype, spec.limit)


def connected(shard: Shard, positions: list[int]) -> list[int]:
    """Return those from which arcs leave: only they have a state."""
    return [p for p in positions if p < shard.partition.num_positions]


def _may_fuse(shard: Shard, most_rows: int) -> bool:
    """Return whether a loop that takes so many vertices a rank may run in one launch; the same on every rank."""
    return isinstance(shard.backend, FusingBackend) and shard.partition.stride < most_rows


# The answer is put in user ids right behind the search.
_bfs_fused_and_translated = partial(bfs_fused, behind=tree_of_users)


def form_of_bfs(shard: Shard, rank: Rank, spec: TraversalSpec) -> Callable[..., Traversal]:
    """Return the sweep if that is asked for, else the loop that has the host in it least."""
    if spec.method == "sweep":
        return bfs_sweep
    if not _may_fuse(shard, bfs_kernel.MOST_ROWS):
        return bfs
    if rank.size == 1:
        return _bfs_fused_and_translated if spec.predecessors else bfs_fused
    return bfs if rank.comm.windows is None else bfs_peers


def form_of_sssp(shard: Shard, rank: Rank, spec: TraversalSpec) -> Callable[..., Traversal]:
    """Return the sweep if that is asked for, else the loop that has the host in it least."""
    if spec.method == "sweep":
        return sssp_sweep
    if rank.size > 1:
        reaches = _may_fuse(shard, sssp_kernel.MOST_ROWS) and rank.comm.windows is not None
        return sssp_peers if reaches else sssp
    if isinstance(shard.backend, FusingBackend):
        return sssp_fused
    return sssp if shard.by_weight is None else sssp_by_weight
