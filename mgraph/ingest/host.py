"""The layout `host`: blocks as in the compact layout, of which the device holds the first and host memory the rest.

    passes 1 and 2:   as for the compact layout: order, edges by bucket
    for each stretch of buckets that the device can build at once, the last first:
                      read the input, sort the edges into blocks, copy these to host parts
    last:             build the first buckets, as many as the device can keep, in passes as the compact layout

The whole graph is never on the device. Buckets are in order of windows, so that in degree order the edges between hubs
stay there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.host_link import NUM_BUFFERS
from mgraph.comm.base import Communicator
from mgraph.errors import WouldNotFit
from mgraph.ingest.compact import Sorting, finish_shard, prepare_sorting
from mgraph.ingest.compact_plan import MIN_BUFFER_KEYS, plan_compact
from mgraph.ingest.fill import Filler
from mgraph.ingest.host_plan import SPARE_SHARE, HostPlan, InUse, fitting_plan, host_plan
from mgraph.ingest.keys import Pass, key_layout, plan_passes
from mgraph.ingest.plan import state_bytes
from mgraph.ingest.survey import Survey
from mgraph.shard.block_headers import choose_shape
from mgraph.shard.host_blocks import HostBlocks, HostPart, to_host_parts
from mgraph.shard.shard import Blocks, BlockShape, Shard


def host_would_fit(survey: Survey, backend: Backend, comm: Communicator, num_chunks: int, in_use: InUse) -> bool:
    """Return whether the layout would fit if the ranks had equal shares of the edges."""
    edges = -(-survey.num_input_edges // comm.size)
    return plan_of_edges(survey, backend, comm, num_chunks, edges, in_use)[1] is None


def plan_of_edges(
    survey: Survey, backend: Backend, comm: Communicator, num_chunks: int, edges: int, in_use: InUse
) -> tuple[HostPlan, str | None]:
    """Return the plan of a rank with this many edges, and why it does not fit, None if it does."""
    width = state_bytes(survey.weight_dtype, survey.source.num_vertices, survey.totals.max_weight)
    shape = choose_shape(backend, width)
    partition = survey.partition
    layout = key_layout(shape, partition.num_states, range(partition.stride), edges)
    sizes = survey.sizes(edges)
    compact = plan_compact(sizes, partition, layout, backend.limits, num_chunks, width)
    plan_of = partial(host_plan, compact, edges, 4 + sizes.weight_bytes, shape)
    plan, error = fitting_plan(plan_of, in_use, backend, comm)
    too_many = None if layout.fits else f"{partition.num_positions:,} vertices with edges are too many"
    return plan, error or too_many


def build_host(
    survey: Survey,
    backend: Backend,
    comm: Communicator,
    num_chunks: int,
    in_use: InUse,
    shape: BlockShape | None = None,
) -> Shard:
    """Build this rank's shard; every rank calls it.

    Parameters
    ----------
    in_use
        The bytes of the device to leave free for what runs on the graph.
    """
    sorting = prepare_sorting(survey, backend, comm, num_chunks, shape)
    sizes = survey.sizes(sorting.fullest)
    compact = plan_compact(sizes, survey.partition, sorting.layout, backend.limits, num_chunks, sorting.width)
    backend.release()
    plan_of = partial(host_plan, compact, sorting.fullest, 4 + sizes.weight_bytes, sorting.layout.shape)
    plan, error = fitting_plan(plan_of, in_use, backend, comm)
    if error:
        raise WouldNotFit(error)
    most = plan.staging // NUM_BUFFERS
    stretches = _plan_stretches(sorting, plan, backend.free_bytes())
    parts: list[HostPart] = []
    resident: Blocks | None = None
    # Later stretches first: what stays on the device is built last, and would take memory from them.
    for stretch, blocks in _built(survey, backend, comm, sorting, stretches):
        if stretch.stays:
            resident = blocks
        else:
            parts[:0] = to_host_parts(backend, blocks, most)
        del blocks
    assert resident is not None, "the last stretch stays, perhaps empty"
    largest = max((part.memory.nbytes for part in parts), default=0)
    whole = HostBlocks(sorting.layout.shape, resident, parts, backend.link.staging(largest))
    return finish_shard(survey, backend, comm, sorting, whole, "host")


@dataclass(frozen=True)
class Stretch:
    """Buckets that are built at once, the number of edges up to each, and the passes over the input."""

    ends: np.ndarray
    passes: list[Pass]
    batch_keys: int
    stays: bool


def _plan_stretches(sorting: Sorting, plan: HostPlan, free_bytes: int) -> list[Stretch]:
    """Divide the buckets into stretches for host memory, the last first, and one that stays on the device."""
    ends = sorting.ends
    batch = plan.compact.batch_keys
    resident = plan.resident_edges(free_bytes)
    first = int(np.searchsorted(ends, resident, side="right")) - 1
    at_once = plan.edges_at_once(free_bytes)
    key_bytes = 4 + plan.edge_bytes
    buckets = np.diff(ends)
    stretches = []
    last = len(ends) - 1
    while last > first and ends[last] > ends[first]:
        earliest = max(min(int(np.searchsorted(ends, ends[last] - at_once)), last - 1), first)
        # The buffer has half of the keys and one bucket more, so that one pass is enough. For each bucket at which the
        # stretch may begin: the largest bucket of the stretch, and the memory of all as a number of edges. It is less
        # the later the stretch begins. A bucket that exceeds the memory is a stretch of its own.
        largest = np.maximum.accumulate(buckets[earliest:last][::-1])[::-1]
        edges = ends[last] - ends[earliest:last] + key_bytes * largest / plan.built_bytes
        begin = min(earliest + int(np.count_nonzero(edges > at_once)), last - 1)
        buffer = int(ends[last] - ends[begin]) // 2 + int(largest[begin - earliest])
        stretches.append(_stretch(ends, begin, last, buffer, batch, stays=False))
        last = begin
    beside = free_bytes - free_bytes // SPARE_SHARE - plan.temporary - int(plan.per_edge * int(ends[first]))
    buffer = max(beside // key_bytes, MIN_BUFFER_KEYS)
    stretches.append(_stretch(ends, 0, first, min(buffer, int(ends[first])), batch, stays=True))
    return stretches


def _stretch(ends: np.ndarray, begin: int, last: int, buffer_keys: int, batch_keys: int, *, stays: bool) -> Stretch:
    """Plan the passes of the buckets begin .. last."""
    own = ends[begin : last + 1] - ends[begin]
    # A bucket larger than the memory of a pass needs a larger buffer.
    while (passes := plan_passes(own, buffer_keys, batch_keys)) is None:
        buffer_keys *= 2
    shifted = [Pass(p.first + begin, p.middle + begin, p.last + begin) for p in passes]
    return Stretch(np.clip(ends, ends[begin], ends[last]) - ends[begin], shifted, batch_keys, stays)


def _built(
    survey: Survey, backend: Backend, comm: Communicator, sorting: Sorting, stretches: list[Stretch]
) -> Iterator[tuple[Stretch, Blocks]]:
    """Yield the blocks of each stretch; ranks with fewer passes than others take part in theirs at the end."""
    own = sum(len(stretch.passes) for stretch in stretches)
    most = int(comm.allreduce(np.array([own], np.int64), "max")[0])
    for stretch in stretches:
        how = survey.weight_dtype, stretch.passes, stretch.batch_keys
        filler = Filler(backend, sorting.layout, stretch.ends, *how)
        for todo in stretch.passes:
            filler.fill(todo, sorting.edges)
        blocks = filler.finish()
        del filler
        yield stretch, blocks
        del blocks
        backend.release()
    for _ in range(most - own):
        for _ in sorting.edges:
            pass
