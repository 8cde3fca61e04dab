"""PageRank over arc bins: what arcs bring is dealt to slots and collected bin by bin, on GPUs, and without weights.

    for each group of bins:
        deal: for every arc into the group: its slot = what the source gives
        collect: for every slot of the group: what arrives at the target += what the slot holds
        for the few arcs that bring more than a slot holds: what arrives at the target += the rest

Each arc takes 14 bytes of streams, where a pull loads a value at random.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.derived import IN_ROWS
from mgraph.algorithms.pagerank.bins_kernels import HELD_BITS, VALUE_BYTES, add_not_held, collect_scores, deal_scores
from mgraph.algorithms.pagerank.fixed_point import SCORE_BYTES, ScoreSpec
from mgraph.algorithms.pagerank.power_iteration import Passing, Scored, iterate, iteration_bytes
from mgraph.algorithms.variant import Conditions, Derived, GraphSizes, Variant
from mgraph.comm.base import Communicator
from mgraph.shard.arc_bins import SLOT_BYTES, arc_bins, drop_arc_bins, make_arc_bins
from mgraph.shard.shard import Shard
from mgraph.types import Array

# Arcs of a rank from which on streams are faster than loads at random, most of which a cache serves in smaller graphs:
# on one H200 ten iterations of rmat22, of 2^27 arcs, take as long either way; of rmat23 two thirds of a pull.
MIN_ARCS = 1 << 27
# Slots for each arc, at most.
MAX_SLOTS = 1.25


def score_by_bins(shard: Shard, comm: Communicator, trace: Trace, spec: ScoreSpec) -> Scored:
    """Find the scores of all vertices; every arc is read twice in every iteration, in order."""
    found = iterate(shard, comm, trace, spec, Passing("bins", len(shard.incoming.targets), None, _gathering(shard)))
    # Other calls need memory too.
    if shard.backend.free_bytes() < shard.nbytes:
        drop_arc_bins(shard)
    return found


def _gathering(shard: Shard) -> Callable[[Array], tuple[Array, int]]:
    """Return what gathers scores, with the memory of the slots."""
    backend = shard.backend
    xp = backend.xp
    bins = arc_bins(shard)
    low = xp.empty(bins.slots_at_once, np.uint32)
    high = xp.empty(bins.slots_at_once, np.uint8)
    received = xp.empty(shard.num_owned, np.int64)
    dealt = bins.deal.stripes, bins.deal.of, bins.stripes, bins.starts

    def gather(given: Array) -> tuple[Array, int]:
        received[:] = 0
        num_states = len(given)
        has_rest = bool(given.max() >> HELD_BITS)
        for group in bins.groups:
            shape = bins.segment_bits, group.first_stripe, num_states
            deal_scores[backend](*group.deal, *dealt, *shape, given, low, high)
            collected = bins.collect.stripes, bins.collect.of, bins.ends, bins.bin_bits, group.first_stripe
            collect_scores[backend](*group.collect, *collected, shard.num_owned, low, high, received)
            if has_rest:
                targets = bins.ends, bins.bin_stripes, bins.num_bins
                shape = bins.segment_bits, bins.bin_bits, num_states
                add_not_held[backend](*group.deal, *dealt, *targets, *shape, given, received)
        return received, int(received.sum())

    return gather


def _make_arc_bins(shard: Shard, comm: Communicator, dtype: np.dtype) -> bool:
    """Make them on every rank or on none."""
    info = shard.info
    sizes = GraphSizes(info.num_vertices, info.num_edges, info.directed, shard.partition, None, 0)
    max_slots = int(MAX_SLOTS * len(shard.incoming.targets))
    beside = iteration_bytes(sizes)
    try:
        made = make_arc_bins(shard, VALUE_BYTES, SCORE_BYTES, max_slots=max_slots, beside=beside)
    except MemoryError:
        made = False
    if comm.any(not made):
        drop_arc_bins(shard)
        return False
    return True


def _arc_bins_bytes(sizes: GraphSizes) -> int:
    """Return the bytes of the bins; what the slots of a group hold is in addition, as there is room."""
    return int(MAX_SLOTS * SLOT_BYTES * sizes.row_arcs)


def _applies(conditions: Conditions) -> bool:
    arcs = conditions.arcs_per_vertex * conditions.stride
    return conditions.has_rows and conditions.has_persistent_kernels and conditions.by_hops and arcs >= MIN_ARCS


ARC_BINS = Derived("arc_bins", _make_arc_bins, _arc_bins_bytes)

VARIANT = Variant(
    "pagerank.bins",
    when="on rows, on GPUs with 2^27 arcs each, without weights",
    applies=_applies,
    needs=(IN_ROWS, ARC_BINS),
    bytes=iteration_bytes,
    loop=score_by_bins,
    keeps_checkpoints=True,
)
