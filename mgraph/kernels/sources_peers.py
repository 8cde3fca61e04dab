"""Where sources stand, found in one launch a rank: find_positions of translate.py for ranks that share windows.

It wakes the links, and all ranks leave it together.
"""

from __future__ import annotations

from mgraph.kernels.pair import fused


@fused(vertex_t="positions")
def find_sources_on_ranks(lo, hi, abort, windows, window, positions, first, num_users, words) -> None:
    """Put the positions of user ids, which are `words` lo .. hi, in their stead on every rank, and 1 behind them.

    `positions` holds those of this rank's range of user ids, which begins at `first` (None in natural order, where they
    are the ids themselves).
    """
