"""Numbers from 0 to 1 as integers in units of 2^-62, and what is requested of PageRank in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mgraph.backends.kernel import inline

# 1 in fixed point. Sums of numbers that are 1 in all fit int64.
ONE_BITS = 62
ONE = 1 << ONE_BITS
_HALF_BITS = ONE_BITS // 2
# Of a score.
SCORE_BYTES = 8


def product(a: Any, b: Any) -> Any:
    """Return the product of two numbers up to 1, rounded down; either may be an array."""
    low = (1 << _HALF_BITS) - 1
    a_high = a >> _HALF_BITS
    b_high = b >> _HALF_BITS
    middle = a_high * (b & low) + (a & low) * b_high + ((a & low) * (b & low) >> _HALF_BITS)
    return a_high * b_high + (middle >> _HALF_BITS)


# In kernels.
scaled = inline(product)


@dataclass(frozen=True, eq=False)
class ScoreSpec:
    """The request for scores of all vertices; the same on every rank.

    Attributes
    ----------
    damping
        In units of 2^-62: how much of a vertex's score goes along its arcs.
    largest_change
        The iteration ends when scores have changed by less in all, in units of 2^-62; None to make all iterations.
    weighted
        Whether arcs pass on shares in proportion to their weights.
    users, shares
        The user ids to which the rest of all scores goes, and the share of each in units of 2^-62; without any, equal
        shares go to all vertices.
    """

    damping: int
    largest_change: int | None
    max_iterations: int
    weighted: bool
    users: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    shares: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
