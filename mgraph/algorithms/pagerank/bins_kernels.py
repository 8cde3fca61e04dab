"""PageRank's kernels over arc bins: what arcs bring is written to their slots, and added up bin by bin.

Work items are units (see ArcBins): some stripes of one segment, or of one bin.
"""

from __future__ import annotations

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_atomics import atomic_add
from mgraph.backends.numba_helpers import row_of_arc
from mgraph.backends.shared_names import Constants
from mgraph.shard.arc_bins_kernels import NO_END, STRIPE

# Of what an arc brings its slot holds the low bits. All arcs bring at most 2^62 together, so that no more than 2^23
# bring others, which are added one by one.
HELD_BITS = 39
# Of what a slot holds, and of what a source gives in shared memory.
VALUE_BYTES = 5
SLOTS = Constants(stripe=STRIPE, no_end=NO_END, held_bits=HELD_BITS)


@kernel(lanes=1024, block=1024, shared_bytes=lambda segment_bits, **_: VALUE_BYTES << segment_bits)
def deal_scores(
    lo, hi, unit_stripes, unit_segments, stripes, starts, segment_bits, first_stripe, num_states, given, low, high
):  # fmt: skip
    """Write what each arc brings, its low HELD_BITS, to its slot: to low and high, which begin at first_stripe.

    `given` is by state index.
    """
    for unit in range(lo, hi):
        segment = unit_segments[unit] << segment_bits
        for i in range(unit_stripes[unit], unit_stripes[unit + 1]):
            first_slot = STRIPE * int(stripes[i])
            for slot in range(first_slot, first_slot + STRIPE):
                brings = given[segment + starts[slot]]
                low[slot - STRIPE * first_stripe] = brings & 0xFFFFFFFF
                high[slot - STRIPE * first_stripe] = brings >> 32 & ((1 << (HELD_BITS - 32)) - 1)


@kernel(lanes=1024, block=1024, shared_bytes=lambda segment_bits, **_: 1 << segment_bits)
def add_not_held(
    lo, hi, unit_stripes, unit_segments, stripes, starts, ends, bin_stripes, num_bins, segment_bits, bin_bits,
    num_states, given, received,
):  # fmt: skip
    """Add to received[target] what an arc brings beyond the low HELD_BITS."""
    for unit in range(lo, hi):
        segment = unit_segments[unit] << segment_bits
        for i in range(unit_stripes[unit], unit_stripes[unit + 1]):
            first_slot = STRIPE * int(stripes[i])
            for slot in range(first_slot, first_slot + STRIPE):
                rest = given[segment + starts[slot]] >> HELD_BITS << HELD_BITS
                if rest > 0 and ends[slot] != NO_END:
                    target = (row_of_arc(bin_stripes, num_bins, stripes[i]) << bin_bits) + ends[slot]
                    atomic_add(received, target, rest)


@kernel(lanes=1024, block=1024, shared_bytes=lambda bin_bits, **_: 8 << bin_bits)
def collect_scores(lo, hi, unit_stripes, unit_bins, ends, bin_bits, first_stripe, num_rows, low, high, received):
    """Add what each slot holds to received[target]."""
    for unit in range(lo, hi):
        base = unit_bins[unit] << bin_bits
        for slot in range(STRIPE * unit_stripes[unit], STRIPE * unit_stripes[unit + 1]):
            if ends[slot] != NO_END:
                i = slot - STRIPE * first_stripe
                atomic_add(received, base + ends[slot], int(low[i]) | int(high[i]) << 32)
