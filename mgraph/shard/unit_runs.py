"""Runs of units of one window, of which the last have few edges each.

Units of a window are in order of the segments where their edges end. In degree order those of hubs come first, with
most of the edges. A thread block takes microseconds for a unit of any size: units of few edges are processed by warps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# A unit of fewer edges has few: of the 32 warps of a block most would have none, or one reading. On one H200 a made-up
# part of vertices of few arcs of rmat31, 21,600 units, took 652 us a sweep by blocks alone; with 256 to 1,024 edges as
# the limit it took 166 to 212, with 4,096 276.
FEW_EDGES = 512


class UnitRun(NamedTuple):
    """Units first .. last, of one window; those from `first_of_few` on have few edges."""

    first: int
    first_of_few: int
    last: int
    num_edges: int


def run_of_units(unit_edges: np.ndarray, first: int, last: int) -> UnitRun:
    """Return the run of the units first .. last, which are of one window; `unit_edges` has the first edge of each unit.

    All units up to the last one of many edges are for thread blocks. In degree order nearly all of these have many
    edges; in natural order units are of similar sizes, and mostly of one kind.
    """
    many = np.flatnonzero(np.diff(unit_edges[first : last + 1]) >= FEW_EDGES)
    first_of_few = first + int(many[-1]) + 1 if len(many) else first
    return UnitRun(first, first_of_few, last, int(unit_edges[last] - unit_edges[first]))
