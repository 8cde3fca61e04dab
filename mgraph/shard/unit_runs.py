"""Runs of units of one window, each divided into units of many edges and units of few.

Units of a window are in order of the segments where their edges end. In degree order those of hubs come first: their
units have most of the edges, and the last units have few edges each, of which a warp of a GPU processes one.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

# A unit of fewer edges has few: a warp reads them in as many rounds as it takes to copy a segment.
FEW_EDGES = 512


class UnitRun(NamedTuple):
    """The units first .. last of one window, and their edges; those from `first_of_few` on have few each."""

    first: int
    first_of_few: int
    last: int
    num_edges: int


def runs_of_units(unit_edges: np.ndarray, windows: np.ndarray) -> list[UnitRun]:
    """Divide units by windows.

    Parameters
    ----------
    unit_edges
        The first edge of each unit, and the number of all edges.
    windows
        The window of each unit.
    """
    begins = np.flatnonzero(windows[1:] != windows[:-1]) + 1
    cuts = [0, *begins.tolist(), len(windows)] if len(windows) else []
    return [run_of_units(unit_edges, first, last) for first, last in itertools.pairwise(cuts)]


def run_of_units(unit_edges: np.ndarray, first: int, last: int) -> UnitRun:
    """Return the run of the units first .. last, which are of one window."""
    many = np.flatnonzero(np.diff(unit_edges[first : last + 1]) >= FEW_EDGES)
    first_of_few = first + int(many[-1]) + 1 if len(many) else first
    return UnitRun(first, first_of_few, last, int(unit_edges[last] - unit_edges[first]))
