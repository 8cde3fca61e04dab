"""Arc bins: the in-rows in tiles, for sums along all arcs that access no memory at random; made on first use.

A sum over in-rows loads the value of a source for every arc: from memory, or from a cache that delivers one sector for
each. Instead (propagation blocking), sources are divided into segments and targets into bins, so small that the values
of either fit the shared memory of a thread block. The arcs from one segment to one bin are a tile:

    deal: for each segment, its values in shared memory:
        for each arc of its tiles: write what the source gives to the arc's slot
    collect: for each bin, its sums in shared memory:
        for each slot of its tiles, which are one range: add what it holds to the sum of the target

Slots are in order of bins, and of segments in a bin; a tile has whole stripes of slots, so that both passes read and
write stripes. The slots of a group of bins are dealt and collected before those of the next, in the same memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mgraph.backends.base import Backend
from mgraph.shard.arc_bins_kernels import NO_END, STRIPE, count_tile_arcs, list_stripes, place_in_tiles
from mgraph.shard.shard import Shard
from mgraph.types import Array

# Bits of a source in its segment and of a target in its bin, at most: both are stored in 16 bits.
MAX_BITS = 15
# Stripes of a unit, which one thread block processes: large beside the values of a segment, which it loads first.
UNIT_STRIPES = 1 << 15
# For each slot: both ends, and a part of the number of its stripe.
SLOT_BYTES = 4 + 4 / STRIPE
# For each tile while they are made: how many stripes it has, and its first one; both in the order of dealing too, and a
# copy of one of these.
TILE_BYTES = 5 * 8
_KEY = ("arc bins",)


@dataclass(frozen=True)
class Units:
    """Ranges of stripes, each of one segment or one bin.

    Unit i has the stripes stripes[i] .. stripes[i + 1], of the segment or bin of[i].
    """

    stripes: Array
    of: Array


@dataclass(frozen=True)
class Group:
    """Some bins: their first stripe, how many stripes they have, and the ranges of units that deal and collect."""

    first_stripe: int
    num_stripes: int
    deal: tuple[int, int]
    collect: tuple[int, int]


@dataclass(frozen=True)
class ArcBins:
    """The arcs of in-rows in tiles.

    Attributes
    ----------
    starts, ends
        Of each slot the source in its segment, and the target in its bin, or NO_END.
    stripes
        The numbers of all stripes in the order in which they are dealt: by group, segment and bin.
    bin_stripes
        The first stripe of each bin, and the end of the last.
    deal, collect
        The units of both passes: those of `deal` are ranges of `stripes`.
    """

    segment_bits: int
    bin_bits: int
    starts: Array
    ends: Array
    stripes: Array
    bin_stripes: Array
    deal: Units
    collect: Units
    groups: tuple[Group, ...]

    @property
    def num_bins(self) -> int:
        return len(self.bin_stripes) - 1

    @property
    def slots_at_once(self) -> int:
        """The slots of the largest group."""
        return STRIPE * max(group.num_stripes for group in self.groups)


def make_arc_bins(shard: Shard, value_bytes: int, sum_bytes: int, *, max_slots: int, beside: int) -> bool:
    """Make the arc bins of this rank; return False if they have no room.

    Kept bins are made anew, with smaller groups, where there is no longer room for what the slots of a group hold.

    Parameters
    ----------
    value_bytes, sum_bytes
        Bytes of what a source gives, which a slot holds, and of a sum.
    max_slots
        How many slots they may have: with few arcs in a tile, most of its last stripe is empty.
    beside
        Bytes that must remain free in addition to the bins, and to what the slots of a group hold.
    """
    kept = shard.kept
    if kept.get(_KEY) is not None and value_bytes * kept[_KEY].slots_at_once + beside > shard.backend.free_bytes():
        drop_arc_bins(shard)
    if _KEY not in kept:
        kept[_KEY] = _made(shard, value_bytes, sum_bytes, max_slots, beside)
    return kept[_KEY] is not None


def arc_bins(shard: Shard) -> ArcBins:
    """Return the arc bins, which have been made."""
    bins: ArcBins = shard.kept[_KEY]
    return bins


def drop_arc_bins(shard: Shard) -> None:
    """Free the arc bins, so that they are made again when they are needed."""
    shard.kept.pop(_KEY, None)


def _made(shard: Shard, value_bytes: int, sum_bytes: int, max_slots: int, beside: int) -> ArcBins | None:
    """Count the arcs of tiles, place them there, and list the stripes and the units of both passes."""
    backend = shard.backend
    xp = backend.xp
    rows = shard.incoming
    num_rows = shard.num_owned
    num_arcs = len(rows.targets)
    segment_bits, bin_bits = (
        min((backend.shared_bytes // width).bit_length() - 1, MAX_BITS) for width in (value_bytes, sum_bytes)
    )
    num_segments = (shard.partition.num_states - 1 >> segment_bits) + 1
    num_bins = (num_rows - 1 >> bin_bits) + 1
    num_tiles = num_bins * num_segments
    free = backend.free_bytes() - beside - TILE_BYTES * num_tiles
    if not num_arcs or free < 0:
        return None
    of_arcs = rows.indptr, num_rows, rows.targets, segment_bits, bin_bits, num_segments
    counts = xp.zeros(num_tiles, np.int64)
    count_tile_arcs[backend](0, num_arcs, *of_arcs, counts)
    counts += STRIPE - 1
    counts //= STRIPE
    counts = counts.reshape(num_bins, num_segments)
    of_bins = backend.to_host(counts.sum(axis=1))
    num_stripes = int(of_bins.sum())
    # What remains is for the values of a group: few groups, each of which loads all segments, but half of it at most.
    free -= int(SLOT_BYTES * STRIPE * num_stripes)
    cuts = _cuts(of_bins, max(free, 0) // 2 // (value_bytes * STRIPE))
    ends = np.append(0, np.cumsum(of_bins))
    largest = int(np.diff(ends[cuts]).max())
    if STRIPE * num_stripes > max_slots or value_bytes * STRIPE * largest > free:
        return None
    first_stripes = (xp.cumsum(counts) - counts.ravel()).reshape(counts.shape)
    starts = xp.zeros(STRIPE * num_stripes, np.uint16)
    targets = xp.full(STRIPE * num_stripes, NO_END, np.uint16)
    place_in_tiles[backend](
        0, num_arcs, *of_arcs, first_stripes.ravel(), xp.zeros(num_tiles, np.int64), starts, targets
    )
    parts = [slice(*cut) for cut in itertools.pairwise(cuts)]
    dealt, firsts = (xp.concatenate([tiles[part].T.ravel() for part in parts]) for tiles in (counts, first_stripes))
    listed = xp.zeros(num_tiles + 1, np.int64)
    xp.cumsum(dealt, out=listed[1:])
    stripes = xp.empty(num_stripes, np.uint32)
    list_stripes[backend](0, num_stripes, listed, num_tiles, firsts, stripes)
    of_segments = [backend.to_host(counts[part].sum(axis=0)) for part in parts]
    return ArcBins(
        segment_bits,
        bin_bits,
        starts,
        targets,
        stripes,
        backend.to_device(ends),
        _units(backend, np.concatenate(of_segments), np.tile(np.arange(num_segments), len(parts))),
        _units(backend, of_bins, np.arange(num_bins)),
        tuple(_groups(of_segments, [of_bins[part] for part in parts])),
    )


def _cuts(of_bins: np.ndarray, most: int) -> list[int]:
    """Return where groups of bins begin, and the number of bins: groups of at most `most` stripes, or of one bin."""
    ends = np.cumsum(of_bins)
    cuts = [0]
    while cuts[-1] < len(ends):
        before = ends[cuts[-1] - 1] if cuts[-1] else 0
        cuts.append(max(int(np.searchsorted(ends, before + most, side="right")), cuts[-1] + 1))
    return cuts


def _groups(of_segments: list[np.ndarray], of_bins: list[np.ndarray]) -> Iterator[Group]:
    """Yield the groups, given the stripes of the segments and of the bins of each."""
    first = deal = collect = 0
    for segments, bins in zip(of_segments, of_bins, strict=True):
        deals, collects = (int(_pieces(counts).sum()) for counts in (segments, bins))
        yield Group(first, int(bins.sum()), (deal, deal + deals), (collect, collect + collects))
        first, deal, collect = first + int(bins.sum()), deal + deals, collect + collects


def _pieces(counts: np.ndarray) -> np.ndarray:
    """Return into how many units each range of stripes is divided."""
    pieces: np.ndarray = -(-counts // UNIT_STRIPES)
    return pieces


def _units(backend: Backend, counts: np.ndarray, of: np.ndarray) -> Units:
    """Divide ranges of stripes, of these lengths and one after another, into units."""
    pieces = _pieces(counts)
    first = np.repeat(np.cumsum(counts) - counts, pieces)
    nth = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    stripes = np.append(first + nth * UNIT_STRIPES, counts.sum())
    return Units(backend.to_device(stripes), backend.to_device(np.repeat(of, pieces)))
