"""What a loop gives to be kept from time to time, so that another call can go on from there.

Of a search the distances alone are enough. Those of BFS are levels up to that of the frontier. Those of SSSP are upper
bounds, final below the bound of the bucket, and every other reached vertex waits: from there relaxations reach the same
fixed point. Predecessors are found from the distances in the end. Components are kept as a tree root for each
vertex, and whether its row is still to be linked; a spanning forest as the tree of each vertex, the edges taken, and
those that may be. PageRank is kept as the scores of an iteration, HITS as its hub scores.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mgraph.comm.base import Communicator
from mgraph.types import Array


@dataclass(frozen=True)
class CheckpointFolder:
    """Where a call keeps its state, after how many seconds, and in which share of its time at most."""

    path: str
    every_s: float
    share: float


@dataclass(frozen=True)
class KeptState:
    """One rank's part of the state between two supersteps.

    Attributes
    ----------
    values
        Of the owned vertices: distances, tree roots, trees or scores.
    bound
        BFS: the level of the frontier. SSSP: below it all distances are final, and their arcs are relaxed. A forest:
        the weight below which no other edges than those listed are needed. PageRank: the rest that was divided last,
        times 2^32, plus the number of iterations. HITS: this number.
    lists
        Edges by name: of each the position of an end, and its place in that vertex's row. A state that is found has
        those of the owned vertices.
    """

    values: Array
    bound: float | int = 0
    lists: dict[str, Array] = field(default_factory=dict)


class Checkpoints:
    """Keep nothing: the checkpoints of most calls.

    Attributes
    ----------
    is_on
        Whether states are kept.
    found
        The state from which the call goes on; None if it begins from nothing.
    seconds
        How long keeping states has stopped the call; their files are written while it goes on.
    """

    is_on = False
    found: KeptState | None = None
    seconds = 0.0

    def is_due(self) -> bool:
        """Return whether this rank wants to keep the state now; if any rank does, all must."""
        return False

    def are_due(self, comm: Communicator) -> bool:
        """Return whether any rank wants to keep the state now; collective where states are kept."""
        return self.is_on and comm.any(self.is_due())

    def expect(self, passes: int, since: float) -> None:
        """Estimate what the first state costs, as `passes` times the seconds since `since`; collective.

        On the clock without compiling kernels.
        """

    def keep(self, state: KeptState, since: float | None = None) -> None:
        """Keep a state, which was made from the time `since` on if that took long; collective.

        Its arrays may be changed afterwards.
        """
