"""Arguments for the kernels of algorithms/pagerank/bins_kernels.py."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from twins.case import Case, Unwritten
from twins.drawing import seeds, some

from mgraph.algorithms.pagerank.bins_kernels import HELD_BITS
from mgraph.algorithms.pagerank.fixed_point import ONE
from mgraph.shard.arc_bins_kernels import NO_END, STRIPE

SEGMENT_BITS = 4
BIN_BITS = 3


@dataclass
class DrawnBins:
    """Bins of which those from `first` on are a group; tiles have stripes that are full but for the last."""

    random: np.random.Generator
    num_states: int
    num_rows: int
    first: int
    counts: np.ndarray  # stripes of each bin and segment
    starts: np.ndarray
    ends: np.ndarray

    @property
    def bin_stripes(self) -> np.ndarray:
        return np.append(0, np.cumsum(self.counts.sum(axis=1)))

    def units(self, counts: np.ndarray, of: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray]:
        """Return units of up to five stripes: ranges of these lengths, which begin at `first`, cut into pieces."""
        pieces = [
            (min(5, count - done), one) for count, one in zip(counts, of, strict=True) for done in range(0, count, 5)
        ]
        lengths = np.array([length for length, _ in pieces], np.int64)
        return np.append(0, np.cumsum(lengths)) + first, np.array([one for _, one in pieces], np.int64)


def _bins(draw: st.DrawFn) -> DrawnBins:
    random = np.random.default_rng(draw(seeds))
    num_states = draw(st.integers(1, 5 << SEGMENT_BITS))
    num_rows = draw(st.integers(1, 5 << BIN_BITS))
    num_segments = -(-num_states >> SEGMENT_BITS)
    num_bins = -(-num_rows >> BIN_BITS)
    counts = random.choice([0, 0, 1, 2, 9], (num_bins, num_segments))
    counts[-1, -1] = 1  # of the group, which is not empty
    bins, segments = (np.repeat(of.ravel(), STRIPE * counts.ravel()) for of in np.indices(counts.shape))
    starts = random.integers(0, np.minimum(num_states - (segments << SEGMENT_BITS), 1 << SEGMENT_BITS))
    ends = random.integers(0, np.minimum(num_rows - (bins << BIN_BITS), 1 << BIN_BITS))
    if draw(st.booleans()):
        ends.sort()  # runs of equal targets, in all lanes
        ends = np.minimum(ends, np.minimum(num_rows - (bins << BIN_BITS), 1 << BIN_BITS) - 1)
    is_last = np.append((bins[1:] != bins[:-1]) | (segments[1:] != segments[:-1]), True)
    for end in np.flatnonzero(is_last) + 1:
        empty = random.integers(0, STRIPE)
        starts[end - empty : end] = 0
        ends[end - empty : end] = NO_END
    first = draw(st.integers(0, num_bins - 1))
    return DrawnBins(random, num_states, num_rows, first, counts, starts.astype(np.uint16), ends.astype(np.uint16))


def _deal(draw: st.DrawFn) -> tuple[DrawnBins, dict]:
    """Return bins, and the arguments of the group's units by segment."""
    drawn = _bins(draw)
    counts = drawn.counts.copy()
    counts[: drawn.first] = 0
    firsts = (np.cumsum(drawn.counts) - drawn.counts.ravel()).reshape(counts.shape)
    in_order = [range(firsts[b, s], firsts[b, s] + counts[b, s]) for s, b in np.ndindex(counts.T.shape)]
    before = draw(st.sampled_from([0, 3]))  # stripes of an earlier group
    stripes = np.array([0] * before + [stripe for tile in in_order for stripe in tile], np.uint32)
    unit_stripes, unit_segments = drawn.units(counts.sum(axis=0), np.arange(counts.shape[1]), before)
    args = {"lo": 0, "hi": len(unit_segments), "unit_stripes": unit_stripes, "unit_segments": unit_segments}
    return drawn, {**args, "stripes": stripes, "starts": drawn.starts}


def _given(draw: st.DrawFn, drawn: DrawnBins) -> np.ndarray:
    """Return what sources give; some of them more than a slot holds."""
    given = drawn.random.integers(0, 1 << HELD_BITS, drawn.num_states)
    large = some(drawn.random, drawn.num_states, draw(st.sampled_from([0, 0.1, 1])))
    given[large] += drawn.random.integers(0, ONE // len(drawn.starts), int(large.sum()))
    return given


def deal_scores(draw: st.DrawFn) -> Case:
    drawn, args = _deal(draw)
    num_slots = STRIPE * int(drawn.counts[drawn.first :].sum())
    args |= {"segment_bits": SEGMENT_BITS, "first_stripe": int(drawn.bin_stripes[drawn.first])}
    args |= {"num_states": drawn.num_states, "given": _given(draw, drawn)}
    return Case({**args, "low": Unwritten(num_slots, np.uint32), "high": np.zeros(num_slots, np.uint8)})


def add_not_held(draw: st.DrawFn) -> Case:
    drawn, args = _deal(draw)
    args |= {"ends": drawn.ends, "bin_stripes": drawn.bin_stripes, "num_bins": len(drawn.counts)}
    args |= {"segment_bits": SEGMENT_BITS, "bin_bits": BIN_BITS, "num_states": drawn.num_states}
    return Case({**args, "given": _given(draw, drawn), "received": np.zeros(drawn.num_rows, np.int64)})


def collect_scores(draw: st.DrawFn) -> Case:
    drawn = _bins(draw)
    group = drawn.counts[drawn.first :].sum(axis=1)
    first_stripe = int(drawn.bin_stripes[drawn.first])
    unit_stripes, unit_bins = drawn.units(group, np.arange(drawn.first, len(drawn.counts)), first_stripe)
    num_slots = STRIPE * int(group.sum())
    args = {"lo": 0, "hi": len(unit_bins), "unit_stripes": unit_stripes, "unit_bins": unit_bins, "ends": drawn.ends}
    args |= {"bin_bits": BIN_BITS, "first_stripe": first_stripe, "num_rows": drawn.num_rows}
    # Half of the low words carry.
    args["low"] = drawn.random.integers(0, 1 << 32, num_slots).astype(np.uint32)
    args["high"] = drawn.random.integers(0, 1 << HELD_BITS - 32, num_slots).astype(np.uint8)
    args["high"][some(drawn.random, num_slots, 0.7)] = 0
    return Case({**args, "received": drawn.random.integers(0, 1 << 50, drawn.num_rows)})
