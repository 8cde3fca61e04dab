"""What a rank is doing: written by its loops, read by threads that show it. No locks: a stale number does no harm."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

Item = TypeVar("Item")


@dataclass(eq=False)
class Phase:
    """A loop of a job.

    Attributes
    ----------
    name
        What it does: counting, placing, ...
    total
        How many steps it has, 0 if that is unknown.
    unit, per_step
        What is counted in addition to steps, and about how many of these a step has.
    done
        How many steps are over. Threads that share a loop may store their numbers out of order.
    began
        When it began, by `time.monotonic()`.
    """

    name: str
    total: int = 0
    unit: str = ""
    per_step: float = 1.0
    done: int = 0
    began: float = field(default_factory=time.monotonic)
    _numbers: Iterator[int] = field(default_factory=partial(itertools.count, 1), init=False, repr=False)

    def advance(self, steps: int) -> None:
        """Count some steps that are over; one thread alone may call this."""
        self.done += steps

    def step(self) -> None:
        """Count a step that is over; several threads may call this."""
        # next() of this iterator is atomic, so that no step is lost.
        self.done = next(self._numbers)

    def steps(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items; each is a step, over when the next one is asked for."""
        for item in items:
            yield item
            self.step()


def seen_phase(phase: Phase | None) -> Phase | None:
    """Return what a rank is seen doing: its phase, unless kernels are being compiled."""
    # A client of a Dask cluster imports this module, and no Numba.
    from mgraph.backends.compile_clock import CLOCK

    return CLOCK.phase or phase
