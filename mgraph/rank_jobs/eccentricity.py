"""Bound the eccentricities of all vertices by the distances of a few searches (Takes and Kosters)."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from mgraph.cluster.base import Rank
from mgraph.rank_jobs.results import StoredColumns
from mgraph.types import Array

Goal = Literal["all", "diameter", "radius"]


class Candidate(NamedTuple):
    """A vertex to search from; the greatest of all ranks is the next."""

    promise: float | int
    degree: int
    before: int  # minus the vertex: of equal ones the smallest


class Bounded(NamedTuple):
    """What the ranks know after a search: the eccentricity of its source, the best value for the goal, what is next."""

    eccentricity: float | int
    best: float | int
    candidate: Candidate | None


def begin_bounds(rank: Rank, degrees: str, key: str, dtype: np.dtype) -> None:
    """Store as `key` bounds of this rank's vertices that hold before any search."""
    counts: StoredColumns = rank.objects[degrees]
    xp = rank.backend.xp
    top = np.inf if dtype.kind == "f" else np.iinfo(dtype).max
    low = xp.zeros(counts.num_rows, dtype)
    columns = {"low": low, "high": xp.full(counts.num_rows, top, dtype), "degrees": counts.columns["degrees"]}
    rank.objects[key] = StoredColumns(counts.first, columns, labels=counts.labels)


def tighten(
    rank: Rank, key: str, searches: tuple[str, str], vertex: int, slack: float | None, goal: Goal, by_high: bool
) -> Bounded:
    """Tighten the bounds of all vertices by the distances from a vertex and to it.

    For ecc = max of `away`, the distances from the vertex, and `back`, those to it, every vertex has

        max(back, ecc - away) <= eccentricity <= ecc + back

    Distances of floats are rounded: by a factor of up to `slack` a bound of these may be wrong, and is widened. The
    eccentricity of the vertex itself is exact. It is infinite where it was not known how far sums are rounded.
    """
    bounds: StoredColumns = rank.objects[key]
    xp = rank.backend.xp
    low = bounds.columns["low"]
    high = bounds.columns["high"]
    away, back = (rank.objects[search].columns["distances"].astype(low.dtype, copy=False) for search in searches)
    eccentricity = _reduced(rank, _extreme(away, smallest=False), low.dtype, "max")
    if slack is None:
        xp.maximum(low, xp.maximum(back, eccentricity - away), out=low)
        xp.minimum(high, eccentricity + back, out=high)
    elif slack < np.inf:
        xp.maximum(low, xp.maximum(back / slack, eccentricity / slack - away), out=low)
        xp.minimum(high, (eccentricity + back) * slack, out=high)
    place = vertex - bounds.first
    if 0 <= place < bounds.num_rows:
        low[place] = high[place] = eccentricity
    return _next(rank, bounds, eccentricity, goal, exact=slack is None, by_high=by_high)


def _next(
    rank: Rank, bounds: StoredColumns, eccentricity: float | int, goal: Goal, *, exact: bool, by_high: bool
) -> Bounded:
    """Return what is known, and the vertex of this rank that promises most."""
    low = bounds.columns["low"]
    high = bounds.columns["high"]
    # Bounds of integers are themselves eccentricities once they meet; those of floats only where a search began.
    open_ = low < high
    least = _reduced(rank, _extreme(high if exact else high[~open_], smallest=True), low.dtype, "min")
    greatest = _reduced(rank, _extreme(low if exact else low[~open_], smallest=False), low.dtype, "max")
    best = least if goal == "radius" else greatest
    wanted = {"all": open_, "diameter": open_ & (high > greatest), "radius": open_ & (low < least)}[goal]
    is_open = rank.comm.any(bool(wanted.any()))
    # Those far out raise the lower bounds of all, those in the middle lower the upper bounds: whether they are wanted
    # themselves or not.
    helps = (goal == "radius") == by_high
    places = rank.backend.xp.flatnonzero(open_ if helps else wanted)
    if not is_open or not len(places):
        return Bounded(eccentricity, best, None)
    promise = (high if by_high else -low)[places]
    places = places[promise == promise.max()]
    degrees = bounds.columns["degrees"][places]
    place = int(places[degrees.argmax()])
    return Bounded(eccentricity, best, Candidate(promise.max().item(), int(degrees.max()), -place - bounds.first))


def _extreme(values: Array, *, smallest: bool) -> float | int:
    """Return the least or greatest value of an array, which may be empty."""
    if len(values):
        return (values.min() if smallest else values.max()).item()
    if not smallest:
        return 0
    return np.inf if values.dtype.kind == "f" else np.iinfo(values.dtype).max


def _reduced(rank: Rank, value: float | int, dtype: np.dtype, operation: str) -> float | int:
    return rank.comm.allreduce(np.array([value], dtype), operation)[0].item()


def keep_eccentricities(rank: Rank, key: str, dtype: np.dtype) -> None:
    """Store bounds that have met as a column of eccentricities."""
    bounds: StoredColumns = rank.objects[key]
    found = bounds.columns["low"].astype(dtype)
    rank.objects[key] = StoredColumns(bounds.first, {"eccentricities": found}, labels=bounds.labels)
