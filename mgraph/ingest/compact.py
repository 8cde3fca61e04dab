"""The compact layout: build blocks directly from the input, without rows.

    pass 1:           degrees, vertex order (survey.py)
    pass 2:           count this rank's edges by bucket, a range of sort keys
    for each pass:    read the input; send each edge to the owner of its start, which stores the keys of the
                      pass's buckets; sort them a batch at a time, drop parallel edges, append words and weights
    last:             count degrees in the blocks

The start of an edge is the same end as in blocks from rows, and sorting by key gives the same order: on one rank both
kinds of blocks are equal. On several ranks, each has the edges that start at its own vertices, so that shares are not
quite equal. (In natural order every other edge starts at its smaller end, see `by_parity`.)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from mgraph.backends.base import Backend
from mgraph.comm.base import Communicator
from mgraph.errors import UsageError
from mgraph.ingest.chunks import begin_phase, read_chunk, steps
from mgraph.ingest.compact_kernels import count_ends, orient_edges
from mgraph.ingest.compact_plan import plan_compact
from mgraph.ingest.fill import Filler, count_buckets, keys_of
from mgraph.ingest.keys import KeyLayout, Pass, key_layout, plan_passes
from mgraph.ingest.memory_check import refusal, require_plan_fits
from mgraph.ingest.plan import state_bytes
from mgraph.ingest.ranked import Positions, rank_positions
from mgraph.ingest.survey import Survey, total_of
from mgraph.shard.block_headers import choose_shape
from mgraph.shard.rows import route
from mgraph.shard.shard import BlockShape, EdgeBlocks, Shard
from mgraph.types import Array


def would_fit(survey: Survey, backend: Backend, comm: Communicator, num_chunks: int) -> bool:
    """Return whether the compact layout would fit if the ranks had equal shares of the edges."""
    width = state_bytes(survey.weight_dtype, survey.source.num_vertices, survey.totals.max_weight)
    edges = -(-survey.num_input_edges // comm.size)
    partition = survey.partition
    layout = key_layout(choose_shape(backend, width), partition.num_states, range(partition.stride), edges)
    plan = plan_compact(survey.sizes(edges), partition, layout, backend.limits, num_chunks, width)
    return layout.fits and refusal(plan, backend, comm) is None


def build_compact(
    survey: Survey, backend: Backend, comm: Communicator, num_chunks: int, shape: BlockShape | None = None
) -> Shard:
    """Build this rank's shard of blocks alone; every rank calls it."""
    sorting = prepare_sorting(survey, backend, comm, num_chunks, shape)
    ends = sorting.ends
    sizes = survey.sizes(sorting.fullest)
    plan = plan_compact(sizes, survey.partition, sorting.layout, backend.limits, num_chunks, sorting.width)
    # A bucket larger than the memory of a pass needs a larger buffer.
    while (passes := plan_passes(ends, plan.buffer_keys, plan.batch_keys)) is None:
        plan = dataclasses.replace(plan, buffer_keys=2 * plan.buffer_keys, buffer=2 * plan.buffer)
    backend.release()
    require_plan_fits(plan, backend, comm)
    # A rank with fewer passes than others takes part in theirs with empty passes of its own.
    num_passes = int(comm.allreduce(np.array([len(passes)], np.int64), "max")[0])
    passes += [Pass(0, 0, 0)] * (num_passes - len(passes))
    filler = Filler(backend, sorting.layout, ends, survey.weight_dtype, passes, plan.batch_keys)
    for todo in passes:
        filler.fill(todo, sorting.edges)
    blocks = filler.finish()
    del filler
    return finish_shard(survey, backend, comm, sorting, blocks, "compact")


@dataclass
class Sorting:
    """What a build of blocks sorts: this rank's edges, and how many there are up to each bucket.

    Attributes
    ----------
    width
        Bytes of the widest states.
    fullest
        The number of edges of the rank that has most, parallel ones included.
    positions, edges
        The positions of all user ids, and the edges by them; until the blocks are built.
    """

    width: int
    layout: KeyLayout
    ends: np.ndarray
    fullest: int
    positions: Positions
    edges: Iterable[tuple[Array, Array | None]]


def prepare_sorting(
    survey: Survey, backend: Backend, comm: Communicator, num_chunks: int, shape: BlockShape | None
) -> Sorting:
    """Count this rank's edges by bucket: a reading of the input."""
    partition = survey.partition
    width = state_bytes(survey.weight_dtype, survey.source.num_vertices, survey.totals.max_weight)
    shape = shape or choose_shape(backend, width)
    base = comm.rank * partition.stride
    layout = key_layout(
        shape, partition.num_states, range(base, base + partition.stride), survey.num_input_edges // comm.size
    )
    if not comm.sum(int(layout.fits))[0] == comm.size:
        raise UsageError(f"{partition.num_positions:,} vertices with edges are too many for layouts of blocks alone")
    positions = rank_positions(backend, partition, survey.position_of_user)
    survey.position_of_user = None
    backend.release()
    edges = _Edges(survey, backend, comm, num_chunks, layout, positions)
    ends = count_buckets(backend, layout, edges)
    fullest = int(comm.allreduce(np.array([ends[-1]], np.int64), "max")[0])
    return Sorting(width, layout, ends, fullest, positions, edges)


def finish_shard(
    survey: Survey, backend: Backend, comm: Communicator, sorting: Sorting, blocks: EdgeBlocks, layout: str
) -> Shard:
    """Return the shard of finished blocks, with the degrees that they have; frees what sorted them."""
    partition = survey.partition
    dropped = int(sorting.ends[-1]) - blocks.num_edges
    positions = sorting.positions
    del sorting.edges, sorting.positions
    position_of_user = positions.of_range(backend, *survey.user_range(comm.rank), partition.dtype)
    del positions
    backend.release()
    both_ways = 0 if survey.source.directed else 1
    degrees = backend.xp.zeros(partition.num_states, np.uint32)
    total_weight = 0.0
    for part in blocks.on_device():
        count_ends[backend](0, part.num_units, *part.edges, part.shape.segment_bits, both_ways, degrees)
        total_weight += total_of(backend, part.weights) * (1 + both_ways)
    if comm.size > 1:
        base = comm.rank * partition.stride
        degrees = comm.allreduce(degrees, "sum")[base : base + partition.num_owned(comm.rank)].copy()
    else:
        degrees = degrees[: partition.num_owned(0)]
    info = survey.describe(backend, comm, layout, degrees, total_weight, dropped << both_ways)
    shard = Shard(backend, info, partition, comm.rank, None, survey.user_of_local, position_of_user)
    shard.blocks[sorting.width] = blocks
    shard.stored_degrees = degrees
    return shard


class _Edges:
    """An iterable over the edges that start at this rank's vertices.

    Each iteration reads the input again.
    """

    def __init__(
        self,
        survey: Survey,
        backend: Backend,
        comm: Communicator,
        num_chunks: int,
        layout: KeyLayout,
        positions: Positions,
    ) -> None:
        self.survey = survey
        self.backend = backend
        self.comm = comm
        self.num_chunks = num_chunks
        self.layout = layout
        self.positions = positions
        self.num_reads = 0

    def __iter__(self) -> Iterator[tuple[Array, Array | None]]:
        backend = self.backend
        survey = self.survey
        xp = backend.xp
        partition = survey.partition
        # In natural order the larger positions, at which edges start, are mostly on the last ranks: start at either.
        by_parity = int(partition.num_ranks > 1 and not partition.cyclic)
        own = steps(self.comm, self.num_chunks)
        self.num_reads += 1
        name = f"placing, pass {self.num_reads}"
        for k in begin_phase(name, survey.source, backend, own, self.num_chunks).steps(own):
            ids, others, weights = read_chunk(survey.source, backend, k, self.num_chunks, survey.weight_dtype)
            sources, targets = (xp.empty(len(ids), partition.dtype) for _ in range(2))
            orient_edges[backend](
                0, len(ids), ids, others, *self.positions.arrays, partition.stride, partition.multiplier,
                int(survey.source.directed), by_parity, sources, targets,
            )  # fmt: skip
            del ids, others
            if self.comm.size > 1:
                # A self-loop has the sentinel for a source: it is sent to the last rank, which gives it no key.
                owners = xp.minimum(sources // partition.stride, self.comm.size - 1)
                sources, targets, weights = route(backend, self.comm, owners, sources, targets, weights)
                del owners
            keys = keys_of(backend, self.layout, sources, targets)
            del sources, targets
            yield keys, weights
            del keys, weights
